//! `kerntune check` and `kerntune gc`: the work directory as a whole.

use super::Json;
use clap::Args;

#[derive(Debug, Args)]
pub struct Check {
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
    /// Check every file, so that damaged results can go, too
    #[arg(long)]
    pub thorough: bool,
    #[command(flatten)]
    pub format: Json,
}
