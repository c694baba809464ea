//! The format `pprof` of `kerntune export`.

use super::{Entry, StackExport, CREATOR};
use clap::Args;
use kerntune_command::{entry, CliOutput, Exit, Failure, GlobalOptions, OutputFile, RunSubcommand};
use kerntune_convert::pprof::{self, PprofMetadata};
use kerntune_convert::stacks::FigureUnit;
use std::path::PathBuf;

pub const ENTRY: Entry = entry::<_, ExportPprofOptions>("pprof", 23);

/// Call paths for pprof, as a gzip-compressed protocol buffer
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  kerntune export pprof latest\n  pprof -http=: profile.pb.gz")]
pub struct ExportPprofOptions {
    /// Beginning of an id, directory, `latest`, `latest~1` (the one before), or
    /// `latest:workload=rr,kernel=base` (docs/profiler.md)
    #[arg(default_value = "latest")]
    profile: String,
    /// Write to this file
    #[arg(long, short, default_value = "profile.pb.gz", value_name = "FILE")]
    output: PathBuf,
    /// Export only events in the regions of this name
    #[arg(long, value_name = "NAME")]
    region: Option<String>,
}

impl RunSubcommand<GlobalOptions> for ExportPprofOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        let file = OutputFile::new("--output", &self.output)?;
        let of = StackExport::open(global, &self.profile, self.region.as_deref())?;
        let profile = &of.subject.profile;
        let sampled = profile.manifest.sampled.as_ref();
        let comments = comments(&of);
        let about = PprofMetadata {
            comments: &comments,
            duration_ns: sampled.map_or(0, |sampled| sampled.wall_ns.get()),
            kernel: &profile.manifest.kernel.id,
        };
        let samples = file.write_with(|out| pprof::write(&of.stacks, &profile.tables, &about, out))?;
        let command = format!("pprof -top {}", self.output.display());
        of.done(&self.output, &format!("{samples} samples"), &command, output);
        Ok(Exit::Ok)
    }
}

/// Returns the lines that `pprof -comments` prints.
fn comments(of: &StackExport) -> Vec<String> {
    let unit = match of.stacks.unit {
        FigureUnit::Instructions => "values are instructions, counted exactly, and calls",
        FigureUnit::Nanoseconds => "values are nanoseconds and calls",
        FigureUnit::Sampled(_) => "values are samples and the time that they stand for",
    };
    vec![format!("{CREATOR}: {}", of.title), unit.to_owned()]
}
