//! `kerntune import perf`.

use crate::args::{Global, ImportPerf};
use crate::commands::work;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use kerntune_profile::Profile;
use kerntune_report::summary;
use kerntune_tune::import_perf::{import, Request};

pub fn run(global: &Global, options: &ImportPerf, output: &Output) -> Result<Exit, Failure> {
    let work = work(global)?;
    let kernel = kerntune_kernel::find(&work, &options.kernel)?;
    let request = Request {
        file: &options.file,
        kernel: &kernel,
        workload: &options.workload,
        idle_cpus: options.idle_cpus,
    };
    let import = import(&work, &request)?;
    let recorded = &import.recorded;
    if let Some((line, text)) = &import.strange.first {
        output.note(&format!(
            "kerntune: {}: {} lines were not understood, and left out; the first is line {line}: {text}",
            options.file.display(),
            import.strange.lines
        ));
    }
    if options.format.json {
        output.print(&summary::json(&Profile::load(&recorded.path)?)?);
    } else {
        output.print(&format!(
            "{} samples, {} runs between branches in the code of kernel {}\n\nprofile {}\n`kerntune profile check {}` says how \
             fit it is",
            import.samples,
            import.runs,
            kernel.manifest.label,
            recorded.path.display(),
            recorded.manifest.id
        ));
    }
    Ok(Exit::Ok)
}
