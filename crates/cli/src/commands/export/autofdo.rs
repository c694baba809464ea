//! `kerntune export autofdo`.

use crate::args::{ExportAutofdo, Global};
use crate::commands::work;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use kerntune_convert::autofdo::Unsymbolized;
use kerntune_profile::{find, Profile};
use kerntune_work::write_atomic;

pub fn run(global: &Global, options: &ExportAutofdo, output: &Output) -> Result<Exit, Failure> {
    let work = work(global)?;
    let entry = find(&work, &options.profile)?;
    let profile = Profile::load(&entry.path)?;
    let counts = Unsymbolized::of(&profile.tables).map_err(Failure::usage)?;
    let mut text = Vec::new();
    counts.write(&mut text).map_err(Failure::usage)?;
    write_atomic(&options.output, &text)?;
    if counts.outside_bytes > 0 {
        let share =
            100.0 * counts.outside_bytes as f64 / (counts.outside_bytes + counts.executed_bytes) as f64;
        output.note(&format!("left out: {share:.1} % of what ran is outside of the kernel's image"));
    }
    let kernel = work.find("kernels", &profile.manifest.kernel.id);
    let image = kernel.map_or("VMLINUX".into(), |kernel| kernel.join("vmlinux").display().to_string());
    output.note(&format!("{} ranges, {} branches", counts.ranges(), counts.branches()));
    output.note(&format!(
        "llvm-profgen-19 --binary={image} --unsymbolized-profile={} --use-offset=0 --output=kernel.afdo",
        options.output.display()
    ));
    Ok(Exit::Ok)
}
