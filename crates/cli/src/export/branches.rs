//! `kerntune export branches`.

use super::{left_out, vmlinux, Entry};
use crate::exit::{Exit, Failure};
use crate::files::OutputFile;
use crate::global::Global;
use crate::output::Output;
use crate::registry::{entry, Run};
use crate::subject::Subject;
use clap::Args;
use kerntune_convert::autofdo::BranchRecords;
use std::path::PathBuf;

pub const ENTRY: Entry = entry::<_, Options>("branches", 1);

/// Taken branches as branch records, in the form in which perf prints a CPU's last branches (llvm-profgen --perfscript)
#[derive(Debug, Args)]
pub struct Options {
    /// Beginning of an id, directory, `latest`, or `latest:workload=rr,kernel=base`
    profile: String,
    // Where the file was named before there was an option for it.
    #[arg(hide = true, value_name = "OUTPUT", conflicts_with = "output")]
    place: Option<PathBuf>,
    /// The file to write, for `llvm-profgen --kernel`
    #[arg(long, short, default_value = "branches.txt", value_name = "FILE")]
    output: PathBuf,
}

impl Run<Global> for Options {
    fn run(&self, global: &Global, output: &Output) -> Result<Exit, Failure> {
        let path = self.place.as_ref().unwrap_or(&self.output);
        let file = OutputFile::new("--output", path)?;
        let subject = Subject::open(global, &self.profile)?;
        let records = BranchRecords::of(&subject.profile.tables).map_err(Failure::usage)?;
        let written = file.write_with(|out| records.write(out))?;
        left_out(records.outside_bytes, records.executed_bytes, output);
        let image = vmlinux(&subject);
        output.note(&format!(
        "{} branches and {} runs of code between them in {} stacks; {} runs began with no branch (repeated \
         string instructions, interrupts, system calls)",
        written.branches, written.runs, written.stacks, written.unexplained
    ));
        output.note(&format!(
            "llvm-profgen-19 --kernel --binary={image} --perfscript={} --output=kernel.afdo",
            path.display()
        ));
        Ok(Exit::Ok)
    }
}
