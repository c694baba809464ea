//! Arguments of `kerntune advise`.

use super::FormatOptions;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct AdviseOptions {
    /// Beginning of an id, directory, `latest`, or `latest:workload=rr,kernel=base`
    #[arg(default_value = "latest")]
    pub profile: String,
    /// Use only events in the regions of this name
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
    /// Also apply the rules in this directory (*.toml); a rule replaces the built-in rule of the
    /// same name
    #[arg(long, value_name = "DIR")]
    pub rules: Option<PathBuf>,
    /// Also list the rules that do not apply, each with the reason
    #[arg(long)]
    pub all: bool,
    /// Write the proposed changes to this file, for `kerntune try`
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub format: FormatOptions,
}
