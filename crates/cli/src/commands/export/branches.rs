//! `kerntune export branches`.

use crate::args::{ExportBranches, Global};
use crate::commands::work;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use kerntune_convert::autofdo::BranchRecords;
use kerntune_profile::{find, Profile};
use kerntune_tune::export;

pub fn run(global: &Global, options: &ExportBranches, output: &Output) -> Result<Exit, Failure> {
    let work = work(global)?;
    let entry = find(&work, &options.profile)?;
    let profile = Profile::load(&entry.path)?;
    let records = BranchRecords::of(&profile.tables).map_err(Failure::usage)?;
    let written = export::branches(&records, &options.output)?;
    if records.outside_bytes > 0 {
        let share =
            100.0 * records.outside_bytes as f64 / (records.outside_bytes + records.executed_bytes) as f64;
        output.note(&format!("left out: {share:.1} % of what ran is outside of the kernel's image"));
    }
    let kernel = work.find("kernels", &profile.manifest.kernel.id);
    let image = kernel.map_or("VMLINUX".into(), |kernel| kernel.join("vmlinux").display().to_string());
    output.note(&format!(
        "{} branches and {} runs of code between them in {} stacks; {} runs began with no branch (repeated \
         string instructions, interrupts, system calls)",
        written.branches, written.runs, written.stacks, written.unexplained
    ));
    output.note(&format!(
        "llvm-profgen-19 --kernel --binary={image} --perfscript={} --output=kernel.afdo",
        options.output.display()
    ));
    Ok(Exit::Ok)
}
