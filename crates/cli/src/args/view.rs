//! Arguments of `kerntune view`.

use clap::Args;

/// Options of `kerntune view`: the profile, the profile to compare with, and the way to show them.
#[derive(Debug, Args)]
pub struct ViewOptions {
    /// Beginning of an id, directory, `latest`, `latest~1` (the one before), or
    /// `latest:workload=rr,kernel=base` (docs/profiler.md)
    #[arg(value_name = "PROFILE", default_value = "latest")]
    pub profile: String,
    /// Show it in the terminal: call tree, functions, paths, difference
    #[arg(long)]
    pub tui: bool,
    /// Show only events in the regions of this name
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
    /// Show also this profile, and the difference between both
    #[arg(long, value_name = "PROFILE")]
    pub against: Option<String>,
    /// Listen on this port of 127.0.0.1; 0 picks a free one
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "tui")]
    pub port: u16,
}
