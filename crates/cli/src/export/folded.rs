//! The format `folded` of `kerntune export`.

use super::{Entry, StackExport};
use clap::Args;
use kerntune_command::{entry, CliOutput, Exit, Failure, GlobalOptions, OutputFile, RunSubcommand};
use kerntune_convert::folded;
use std::path::PathBuf;

pub const ENTRY: Entry = entry::<_, ExportFoldedOptions>("folded", 20);

/// Call paths as folded stacks, one `a;b;c N` per line (flamegraph.pl, inferno and many viewers)
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  kerntune export folded latest -o stacks.folded\n  flamegraph.pl --countname instructions stacks.folded > flames.svg"
)]
pub struct ExportFoldedOptions {
    /// Beginning of an id, directory, `latest`, `latest~1` (the one before), or
    /// `latest:workload=rr,kernel=base` (docs/profiler.md)
    #[arg(default_value = "latest")]
    profile: String,
    /// Write to this file
    #[arg(long, short, default_value = "stacks.folded", value_name = "FILE")]
    output: PathBuf,
    /// Export only events in the regions of this name
    #[arg(long, value_name = "NAME")]
    region: Option<String>,
}

impl RunSubcommand<GlobalOptions> for ExportFoldedOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        let file = OutputFile::new("--output", &self.output)?;
        let of = StackExport::open(global, &self.profile, self.region.as_deref())?;
        let lines = file.write_with(|out| folded::write(&of.stacks, out))?;
        let command =
            format!("flamegraph.pl --countname {} {}", of.stacks.unit.name(), self.output.display());
        of.done(&self.output, &format!("{lines} stacks"), &command, output);
        Ok(Exit::Ok)
    }
}
