//! `kerntune package`.

use super::Json;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct Package {
    /// The kernel: label, beginning of an id, or directory
    pub kernel: String,
    /// Also put a copy of the package into this directory
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub format: Json,
}
