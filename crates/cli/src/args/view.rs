//! Arguments of `kerntune view`.

use clap::Args;

/// Which profile, what else, and where.
#[derive(Debug, Args)]
pub struct View {
    /// Beginning of an id, directory, `latest`, or `latest:workload=rr,kernel=base`
    #[arg(value_name = "PROFILE", default_value = "latest")]
    pub profile: String,
    /// In the terminal: call tree, functions, paths, difference
    #[arg(long)]
    pub tui: bool,
    /// Only what happened in the regions of this name
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
    /// A second profile to show beside it, with the difference between both
    #[arg(long, value_name = "PROFILE")]
    pub against: Option<String>,
    /// Port on 127.0.0.1; 0 for a free one
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "tui")]
    pub port: u16,
}
