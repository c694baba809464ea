//! The report `path-length` of `kerntune report`.

use super::{row_limit, Entry};
use crate::percent::percent;
use clap::Args;
use kerntune_command::{entry, CliOutput, Exit, Failure, FormatOptions, ProfileSubject, RunSubcommand};
use kerntune_profile::{find, Profile};
use kerntune_report::path_length;

pub const ENTRY: Entry = entry::<_, ReportPathLengthOptions>("path-length", 12);

/// Explain by call path why an operation's path is longer or shorter in another profile (B), even
/// if a frame is missing in one kernel
#[derive(Debug, Clone, Args)]
pub struct ReportPathLengthOptions {
    /// The profile to compare with: beginning of an id, directory, or `latest`
    other: String,
    /// Smallest change with its own line in the tree, in percent of this profile's path length
    #[arg(long, alias = "min", value_name = "PERCENT", default_value_t = 0.5, value_parser = percent)]
    min_percent: f64,
    /// Show at most N single paths [default: 40 in text]
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// Use only events in the regions of this name
    #[arg(long, value_name = "NAME")]
    region: Option<String>,
    #[command(flatten)]
    format: FormatOptions,
}

impl RunSubcommand<ProfileSubject> for ReportPathLengthOptions {
    fn run(&self, of: &ProfileSubject, output: &CliOutput) -> Result<Exit, Failure> {
        let other = Profile::load(&find(&of.work, &self.other)?.path)?;
        let wanted = path_length::PathLengthOptions {
            region: self.region.clone(),
            top: row_limit(self.top, self.format),
            min_percent: self.min_percent,
        };
        output.print(&match self.format.json {
            true => path_length::json(&of.profile, &other, &wanted)?,
            false => path_length::text(&of.profile, &other, &wanted, output.style())?,
        });
        Ok(Exit::Ok)
    }
}
