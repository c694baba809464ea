//! `kerntune report PROFILE path-length`.

use super::{most, Entry};
use crate::exit::{Exit, Failure};
use crate::global::Json;
use crate::output::Output;
use crate::registry::{entry, Run};
use crate::subject::Subject;
use clap::Args;
use kerntune_profile::{find, Profile};
use kerntune_report::path_length;

pub const ENTRY: Entry = entry::<_, Options>("path-length", 12);

/// What makes an operation's path longer or shorter in another profile (B), by call path, even if a frame is missing in one
/// kernel
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// The profile to compare with: beginning of an id, directory, or `latest`
    other: String,
    /// Least change that gets a line of its own in the tree, in per cent of this profile's path length
    #[arg(long, value_name = "PERCENT", default_value_t = 0.5, value_parser = percent)]
    min: f64,
    /// Show at most N single paths [default: 40 in text]
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// Only what happened in the regions of this name
    #[arg(long, value_name = "NAME")]
    region: Option<String>,
    #[command(flatten)]
    format: Json,
}

fn percent(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(percent),
        _ => Err(format!("`{text}` is not a share: write a number from 0 to 100")),
    }
}

impl Run<Subject> for Options {
    fn run(&self, of: &Subject, output: &Output) -> Result<Exit, Failure> {
        let other = Profile::load(&find(&of.work, &self.other)?.path)?;
        let wanted = path_length::Options {
            region: self.region.clone(),
            top: most(self.top, self.format),
            min_percent: self.min,
        };
        output.print(&match self.format.json {
            true => path_length::json(&of.profile, &other, &wanted)?,
            false => path_length::text(&of.profile, &other, &wanted, output.style())?,
        });
        Ok(Exit::Ok)
    }
}
