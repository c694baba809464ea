//! Arguments of `kerntune advise`.

use super::FormatOptions;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct AdviseOptions {
    /// Beginning of an id, directory, `latest`, `latest~1` (the one before), or
    /// `latest:workload=rr,kernel=base` (docs/profiler.md)
    #[arg(default_value = "latest")]
    pub profile: String,
    /// Use only events in the regions of this name
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
    /// Also apply the rules in this directory (*.toml); a rule replaces the built-in rule of the
    /// same name
    #[arg(long, value_name = "DIR")]
    pub rules: Option<PathBuf>,
    /// Also propose changes with less than 0.1 % of the busy time at stake, and list the rules that
    /// do not apply, each with the reason
    #[arg(long)]
    pub all: bool,
    /// Write the proposed changes to this file, for `kerntune ablate`
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub format: FormatOptions,
}
