//! Arguments of `kerntune view`.

use clap::Args;

#[derive(Debug, Args)]
pub struct View {
    /// Beginning of an id, directory, `latest`, or `latest:workload=rr,kernel=base`
    #[arg(default_value = "latest")]
    pub profile: String,
    /// In the terminal: call tree, functions, paths, difference
    #[arg(long)]
    pub tui: bool,
    /// Also the difference to this profile
    #[arg(long, value_name = "PROFILE")]
    pub against: Option<String>,
    /// Only what happened in the regions of this name
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
}
