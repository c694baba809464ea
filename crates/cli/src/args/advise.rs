//! `kerntune advise`.

use super::Json;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct Advise {
    /// Beginning of an id, directory, `latest`, or `latest:workload=rr,kernel=base`
    #[arg(default_value = "latest")]
    pub profile: String,
    /// Only what happened in the regions of this name
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
    /// Also apply the rules of this directory (*.toml); a rule with the name of a built-in one replaces it
    #[arg(long, value_name = "DIR")]
    pub rules: Option<PathBuf>,
    /// Also list the rules that do not apply, each with the reason
    #[arg(long)]
    pub all: bool,
    /// Write the proposed changes to this file, for `kerntune try`
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub format: Json,
}
