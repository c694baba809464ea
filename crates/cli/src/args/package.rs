//! Arguments of `kerntune package`.

use super::FormatOptions;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct PackageOptions {
    /// The kernel: label, beginning of an id, or directory
    pub kernel: String,
    /// Also copy the package into this directory
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub format: FormatOptions,
}
