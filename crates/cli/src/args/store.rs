//! Arguments of `kerntune check` and `kerntune gc`.

use super::FormatOptions;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
pub struct CheckOptions {
    /// Check also this store of matrices: a directory or a URL; may be repeated; the store in the
    /// work directory is always checked
    #[arg(long, value_name = "URL")]
    pub store: Vec<String>,
    /// Check also the fleet below this prefix; may be repeated
    #[arg(long, value_name = "DIR")]
    pub fleet: Vec<PathBuf>,
    #[command(flatten)]
    pub format: FormatOptions,
}

#[derive(Debug, Args)]
pub struct GcOptions {
    /// Delete what is not needed; without this option nothing is deleted
    #[arg(long)]
    pub remove: bool,
    /// Delete interrupted builds of kernels that did not change for this many days
    #[arg(long, value_name = "DAYS", default_value_t = 7, value_parser = clap::value_parser!(u64).range(..=36_500))]
    pub older_than: u64,
    /// Delete also complete results that no command used for this long ("3h", "30days"), and all
    /// results made from them; kerntune makes them again on demand, but profiles of live kernels
    /// and imported profiles are lost
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub unused_for: Option<Duration>,
    /// Check every file, to find damaged results, which can then be deleted
    #[arg(long)]
    pub thorough: bool,
    #[command(flatten)]
    pub format: FormatOptions,
}
