//! `kerntune export branches`.

use super::{left_out, vmlinux};
use crate::args::{ExportBranches, Global};
use crate::commands::work;
use crate::exit::{Exit, Failure};
use crate::files::OutputFile;
use crate::output::Output;
use kerntune_convert::autofdo::BranchRecords;
use kerntune_profile::{find, Profile};
use kerntune_tune::export;

pub fn run(global: &Global, options: &ExportBranches, output: &Output) -> Result<Exit, Failure> {
    let file = OutputFile::new("OUTPUT", &options.output)?;
    let work = work(global)?;
    let entry = find(&work, &options.profile)?;
    let profile = Profile::load(&entry.path)?;
    let records = BranchRecords::of(&profile.tables).map_err(Failure::usage)?;
    let written = export::branches(&records, file.path())?;
    left_out(records.outside_bytes, records.executed_bytes, output);
    let image = vmlinux(&work, &profile);
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
