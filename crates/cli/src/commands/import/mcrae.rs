//! `kerntune import mcrae`.

use crate::args::{Global, ImportMcrae};
use crate::commands::work;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use kerntune_convert::mcrae::Order;
use kerntune_profile::Profile;
use kerntune_report::summary;
use kerntune_tune::import_mcrae::{import, Request};

pub fn run(global: &Global, options: &ImportMcrae, output: &Output) -> Result<Exit, Failure> {
    let work = work(global)?;
    let Some((dump, names)) = options.files.split_last().filter(|(_, names)| !names.is_empty()) else {
        return Err(Failure::usage("give a names file and a dump: kerntune import mcrae NAMES… DUMP"));
    };
    let kernel = match &options.kernel {
        Some(kernel) => Some(kerntune_kernel::find(&work, kernel)?),
        None => None,
    };
    let request = Request {
        names,
        dump,
        order: if options.big_endian { Order::Big } else { Order::Little },
        records: options.records,
        kernel: kernel.as_ref(),
    };
    let import = import(&work, &request, output.progress())?;
    for note in import.notes() {
        output.note(&format!("note: {note}"));
    }
    let profile = Profile::load(&import.recorded.path)?;
    if options.format.json {
        output.print(&summary::json(&profile)?);
    } else {
        output.print(&summary::text(&profile, output.style())?);
        output.note(&format!(
            "\nprofile {}\n`kerntune report {} functions` shows the functions, `… path` the code path",
            import.recorded.path.display(),
            import.recorded.manifest.id
        ));
    }
    Ok(Exit::Ok)
}
