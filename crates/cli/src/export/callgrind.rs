//! The format `callgrind` of `kerntune export`.

use super::{Entry, StackExport, CREATOR};
use clap::Args;
use kerntune_command::{entry, CliOutput, Exit, Failure, GlobalOptions, OutputFile, RunSubcommand};
use kerntune_convert::callgrind;
use std::path::PathBuf;

pub const ENTRY: Entry = entry::<_, ExportCallgrindOptions>("callgrind", 24);

/// Functions and their callers for callgrind_annotate and KCachegrind
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  kerntune export callgrind latest\n  callgrind_annotate --inclusive=yes callgrind.out"
)]
pub struct ExportCallgrindOptions {
    /// Beginning of an id, directory, `latest`, `latest~1` (the one before), or
    /// `latest:workload=rr,kernel=base` (docs/profiler.md)
    #[arg(default_value = "latest")]
    profile: String,
    /// Write to this file
    #[arg(long, short, default_value = "callgrind.out", value_name = "FILE")]
    output: PathBuf,
    /// Export only events in the regions of this name
    #[arg(long, value_name = "NAME")]
    region: Option<String>,
}

impl RunSubcommand<GlobalOptions> for ExportCallgrindOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        let file = OutputFile::new("--output", &self.output)?;
        let of = StackExport::open(global, &self.profile, self.region.as_deref())?;
        let functions = file.write_with(|out| callgrind::write(&of.stacks, &of.title, CREATOR, out))?;
        let command = format!("callgrind_annotate {}", self.output.display());
        of.done(&self.output, &format!("{functions} functions"), &command, output);
        Ok(Exit::Ok)
    }
}
