//! The format `bolt` of `kerntune export`.

use super::{left_out, llvm_program, vmlinux, Entry};
use clap::Args;
use kerntune_command::{
    entry, CliOutput, Exit, Failure, GlobalOptions, OutputFile, ProfileSubject, RunSubcommand,
};
use kerntune_convert::bolt::PreAggregated;
use std::path::PathBuf;

pub const ENTRY: Entry = entry::<_, ExportBoltOptions>("bolt", 2);

/// Taken branches and the code between them for LLVM BOLT (llvm-bolt --pa)
#[derive(Debug, Args)]
pub struct ExportBoltOptions {
    /// Beginning of an id, directory, `latest`, `latest~1` (the one before), or
    /// `latest:workload=rr,kernel=base` (docs/profiler.md)
    profile: String,
    // Old position of the file name, before the option `--output`.
    #[arg(hide = true, value_name = "OUTPUT", conflicts_with = "output")]
    place: Option<PathBuf>,
    /// Write to this file, for `llvm-bolt --pa`
    #[arg(long, short, default_value = "bolt.txt", value_name = "FILE")]
    output: PathBuf,
}

impl RunSubcommand<GlobalOptions> for ExportBoltOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        let path = self.place.as_ref().unwrap_or(&self.output);
        let file = OutputFile::new("--output", path)?;
        let subject = ProfileSubject::open(global, &self.profile)?;
        let counts = PreAggregated::of(&subject.profile.tables).map_err(Failure::usage)?;
        let written = file.write_with(|out| counts.write(out))?;
        left_out(&subject.profile.tables, counts.outside_bytes(), counts.executed_bytes(), output);
        let (image, tool) = (vmlinux(&subject), llvm_program(&subject, "llvm-bolt"));
        output.note(&format!(
            "{} branches in {} lines, {} straight runs in {}",
            written.branches, written.branch_lines, written.runs, written.run_lines
        ));
        output.note(&format!("{tool} {image} --pa -p {} -o vmlinux.bolt", path.display()));
        Ok(Exit::Ok)
    }
}
