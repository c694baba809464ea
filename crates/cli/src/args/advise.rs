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
    /// Take the rules of this directory as well (*.toml); one with the name of a rule that is built in takes its place
    #[arg(long, value_name = "DIR")]
    pub rules: Option<PathBuf>,
    /// Say of each other rule why it does not apply
    #[arg(long)]
    pub all: bool,
    /// Write the changes that are proposed into this file, for `kerntune try`
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub format: Json,
}
