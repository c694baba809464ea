//! The format `branches` of `kerntune export`.

use super::{left_out, llvm_program, vmlinux, Entry};
use clap::Args;
use kerntune_command::{
    entry, CliOutput, Exit, Failure, GlobalOptions, OutputFile, ProfileSubject, RunSubcommand,
};
use kerntune_convert::autofdo::BranchRecords;
use std::path::PathBuf;

pub const ENTRY: Entry = entry::<_, ExportBranchesOptions>("branches", 1);

/// Taken branches as branch records, in the format of `perf script` for a CPU's last branches
/// (llvm-profgen --perfscript)
#[derive(Debug, Args)]
pub struct ExportBranchesOptions {
    /// Beginning of an id, directory, `latest`, `latest~1` (the one before), or
    /// `latest:workload=rr,kernel=base` (docs/profiler.md)
    profile: String,
    // Old position of the file name, before the option `--output`.
    #[arg(hide = true, value_name = "OUTPUT", conflicts_with = "output")]
    place: Option<PathBuf>,
    /// Write to this file, for `llvm-profgen --kernel`
    #[arg(long, short, default_value = "branches.txt", value_name = "FILE")]
    output: PathBuf,
}

impl RunSubcommand<GlobalOptions> for ExportBranchesOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        let path = self.place.as_ref().unwrap_or(&self.output);
        let file = OutputFile::new("--output", path)?;
        let subject = ProfileSubject::open(global, &self.profile)?;
        let records = BranchRecords::of(&subject.profile.tables).map_err(Failure::usage)?;
        let written = file.write_with(|out| records.write(out))?;
        left_out(&subject.profile.tables, records.outside_bytes, records.executed_bytes, output);
        let (image, tool) = (vmlinux(&subject), llvm_program(&subject, "llvm-profgen"));
        output.note(&format!(
        "{} branches and {} runs of code between them in {} stacks; {} runs began with no branch (repeated \
         string instructions, interrupts, system calls)",
        written.branches, written.runs, written.stacks, written.unexplained
    ));
        output.note(&format!(
            "{tool} --kernel --binary={image} --perfscript={} --output=kernel.afdo",
            path.display()
        ));
        Ok(Exit::Ok)
    }
}
