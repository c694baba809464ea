//! `kerntune report PROFILE histogram|subsystems|threads|interrupts|switches|idle|diff`.

use super::Json;
use clap::Args;
use std::path::PathBuf;

/// What most tables have in common.
#[derive(Debug, Clone, Args)]
pub struct Table {
    /// At most so many rows; 40 in text, all in JSON if not given
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    #[command(flatten)]
    pub part: Part,
}

/// Which part of a profile, and how to print it.
#[derive(Debug, Clone, Args)]
pub struct Part {
    /// Only what happened in the regions of this name
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
    #[command(flatten)]
    pub format: Json,
}

#[derive(Debug, Clone, Args)]
pub struct Histogram {
    /// NAME, or NAME@FILE or NAME@0xADDRESS where several functions have that name
    pub function: String,
    /// Also one histogram for each caller, the one with most calls first
    #[arg(long)]
    pub by_caller: bool,
    /// At most so many callers; 10 in text, all in JSON if not given
    #[arg(long, value_name = "N", requires = "by_caller")]
    pub top: Option<usize>,
    #[command(flatten)]
    pub part: Part,
}

#[derive(Debug, Clone, Args)]
pub struct Subsystems {
    /// Groups of your own: lines of `name: pattern pattern …`, where a pattern is one of function names
    /// (`tcp_*`) or, with a slash, a directory or file of the source (`net/ipv4/`); the first match counts
    #[arg(long, value_name = "FILE", conflicts_with = "depth")]
    pub groups: Option<PathBuf>,
    /// How many directories deep; if not given two in arch, drivers, fs, kernel, net, security and sound,
    /// and one elsewhere
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..))]
    pub depth: Option<u8>,
    /// Also who calls into whom
    #[arg(long)]
    pub matrix: bool,
    #[command(flatten)]
    pub table: Table,
}

#[derive(Debug, Clone, Args)]
pub struct Threads {
    /// All threads of one name in one row
    #[arg(long)]
    pub by_comm: bool,
    #[command(flatten)]
    pub table: Table,
}

#[derive(Debug, Clone, Args)]
pub struct Diff {
    /// The profile to compare with: beginning of an id, directory, or `latest`
    pub other: String,
    /// By call path instead of function
    #[arg(long)]
    pub paths: bool,
    /// Times and calls per operation; in JSON they are whole all the same
    #[arg(long)]
    pub per_operation: bool,
    #[command(flatten)]
    pub table: Table,
}
