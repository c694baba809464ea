//! The report `subsystems` of `kerntune report`.

use super::{print_report, Entry};
use clap::Args;
use kerntune_command::{entry, CliOutput, Exit, Failure, FormOptions, ProfileSubject, RunSubcommand};
use kerntune_guest::read_text;
use kerntune_report::subsystems::SubsystemsOptions;
use kerntune_report::{Grouping, GroupsFile, Selection};
use std::path::PathBuf;

pub const ENTRY: Entry = entry::<_, ReportSubsystemsOptions>("subsystems", 6);

/// Time by part of the kernel (net/ipv4, mm …) or by your own groups, and the calls between them
#[derive(Debug, Clone, Args)]
pub struct ReportSubsystemsOptions {
    /// Use your own groups: lines of `name: pattern pattern …`, where a pattern matches function
    /// names (`tcp_*`) or, with a slash, a directory or file of the source (`net/ipv4/`); the first
    /// match counts
    #[arg(long, value_name = "FILE", conflicts_with = "depth")]
    groups: Option<PathBuf>,
    /// Number of directory levels that make a part [default: two in arch, drivers, fs, kernel, net,
    /// security and sound, one elsewhere]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..))]
    depth: Option<u8>,
    /// Show also the calls between the parts
    #[arg(long)]
    matrix: bool,
    #[command(flatten)]
    select: Selection,
    #[command(flatten)]
    format: FormOptions,
}

impl RunSubcommand<ProfileSubject> for ReportSubsystemsOptions {
    fn run(&self, of: &ProfileSubject, output: &CliOutput) -> Result<Exit, Failure> {
        let grouping = match &self.groups {
            None => Grouping::Directory(self.depth.map(usize::from)),
            Some(file) => {
                let text = read_text("read", file)?;
                Grouping::File(GroupsFile::parse(&text, &file.display().to_string())?)
            }
        };
        let report = SubsystemsOptions { grouping, matrix: self.matrix, select: self.select.clone() };
        print_report(&report, of, output, self.format)
    }
}
