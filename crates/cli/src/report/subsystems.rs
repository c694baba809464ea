//! `kerntune report PROFILE subsystems`.

use super::{most, print, Entry};
use crate::exit::{Exit, Failure};
use crate::global::Json;
use crate::output::Output;
use crate::registry::{entry, Run};
use crate::subject::Subject;
use clap::Args;
use kerntune_guest::read_text;
use kerntune_report::{subsystems, Grouping, Groups};
use std::path::PathBuf;

pub const ENTRY: Entry = entry::<_, Options>("subsystems", 6);

/// Time by part of the kernel (net/ipv4, mm …) or by groups of your own, and who calls into whom
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Groups of your own: lines of `name: pattern pattern …`, where a pattern is one of function names
    /// (`tcp_*`) or, with a slash, a directory or file of the source (`net/ipv4/`); the first match counts
    #[arg(long, value_name = "FILE", conflicts_with = "depth")]
    groups: Option<PathBuf>,
    /// How many levels of directories make a part [default: two in arch, drivers, fs, kernel, net, security and sound, one
    /// elsewhere]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..))]
    depth: Option<u8>,
    /// Also show who calls into whom
    #[arg(long)]
    matrix: bool,
    /// Show at most N rows [default: 40 in text, all in JSON]
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// Only what happened in the regions of this name
    #[arg(long, value_name = "NAME")]
    region: Option<String>,
    #[command(flatten)]
    format: Json,
}

impl Run<Subject> for Options {
    fn run(&self, of: &Subject, output: &Output) -> Result<Exit, Failure> {
        let grouping = match &self.groups {
            None => Grouping::Directory(self.depth.map(usize::from)),
            Some(file) => {
                let text = read_text("read", file)?;
                Grouping::File(Groups::parse(&text, &file.display().to_string())?)
            }
        };
        let (top, region) = (most(self.top, self.format), self.region.clone());
        let wanted = subsystems::Options { grouping, matrix: self.matrix, top, region };
        let text = || subsystems::text(&of.profile, &wanted, output.style());
        print(of, output, self.format, || subsystems::json(&of.profile, &wanted), text)?;
        Ok(Exit::Ok)
    }
}
