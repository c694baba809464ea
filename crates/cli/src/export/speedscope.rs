//! The format `speedscope` of `kerntune export`.

use super::{Entry, StackExport, CREATOR};
use clap::Args;
use kerntune_command::{entry, CliOutput, Exit, Failure, GlobalOptions, OutputFile, RunSubcommand};
use kerntune_convert::speedscope;
use std::path::PathBuf;

pub const ENTRY: Entry = entry::<_, ExportSpeedscopeOptions>("speedscope", 22);

/// Call paths for speedscope (www.speedscope.app, or its offline page)
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  kerntune export speedscope latest\n  speedscope profile.speedscope.json"
)]
pub struct ExportSpeedscopeOptions {
    /// Beginning of an id, directory, `latest`, `latest~1` (the one before), or
    /// `latest:workload=rr,kernel=base` (docs/profiler.md)
    #[arg(default_value = "latest")]
    profile: String,
    /// Write to this file
    #[arg(long, short, default_value = "profile.speedscope.json", value_name = "FILE")]
    output: PathBuf,
    /// Export only events in the regions of this name
    #[arg(long, value_name = "NAME")]
    region: Option<String>,
}

impl RunSubcommand<GlobalOptions> for ExportSpeedscopeOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        let file = OutputFile::new("--output", &self.output)?;
        let of = StackExport::open(global, &self.profile, self.region.as_deref())?;
        let samples = file.write_with(|out| speedscope::write(&of.stacks, &of.title, CREATOR, out))?;
        let command = format!("speedscope {}", self.output.display());
        of.done(&self.output, &format!("{samples} stacks"), &command, output);
        if of.stacks.total() > speedscope::EXACT {
            output.print("speedscope reads numbers as floats: this total is more than they hold exactly");
        }
        Ok(Exit::Ok)
    }
}
