//! The format `uftrace` of `kerntune export`.

use super::Entry;
use clap::Args;
use kerntune_command::{entry, CliOutput, Exit, Failure, GlobalOptions, ProfileSubject, RunSubcommand};
use kerntune_tune::export;
use std::path::PathBuf;

pub const ENTRY: Entry = entry::<_, ExportUftraceOptions>("uftrace", 4);

/// The trace as a data directory for uftrace (report, graph, tui, dump --chrome …)
#[derive(Debug, Args)]
pub struct ExportUftraceOptions {
    /// Beginning of an id, directory, `latest`, `latest~1` (the one before), or
    /// `latest:workload=rr,kernel=base` (docs/profiler.md)
    #[arg(default_value = "latest")]
    profile: String,
    /// Write to this new directory, for `uftrace report -d`
    #[arg(long, short, default_value = "uftrace.data", value_name = "DIR")]
    output: PathBuf,
}

impl RunSubcommand<GlobalOptions> for ExportUftraceOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        let subject = ProfileSubject::open(global, &self.profile)?;
        let records = export::uftrace(&subject.profile, &subject.directory, &self.output, output.progress())?;
        output.note(&format!("{records} records in {}", self.output.display()));
        output.note(&format!("`uftrace report -d {}` reads them", self.output.display()));
        Ok(Exit::Ok)
    }
}
