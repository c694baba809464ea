//! `kerntune check` and `kerntune gc`: the work directory as a whole.

use super::Json;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
pub struct Check {
    /// Also check this store of matrices: a directory or a URL; may be repeated (that of the work directory always is)
    #[arg(long, value_name = "URL")]
    pub store: Vec<String>,
    /// Also check the fleet below this prefix; may be repeated
    #[arg(long, value_name = "DIR")]
    pub fleet: Vec<PathBuf>,
    #[command(flatten)]
    pub format: Json,
}

#[derive(Debug, Args)]
pub struct Gc {
    /// Delete what can go; without this option nothing is deleted
    #[arg(long)]
    pub remove: bool,
    /// Let interrupted work go after this many days without a change
    #[arg(long, value_name = "DAYS", default_value_t = 7, value_parser = clap::value_parser!(u64).range(..=36_500))]
    pub older_than: u64,
    /// Also let whole results go that no command used for so long ("3h", "30days"), nor anything made of them; they are
    /// made again when they are needed, but profiles of live kernels and imported ones are lost
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub unused_for: Option<Duration>,
    /// Check every file, so that damaged results can go, too
    #[arg(long)]
    pub thorough: bool,
    #[command(flatten)]
    pub format: Json,
}
