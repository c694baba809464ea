//! Arguments of `kerntune characterize`.

use crate::global::FormatOptions;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct CharacterizeOptions {
    /// Beginning of an id, directory, `latest`, `latest~1` (the one before), or
    /// `latest:workload=rr,kernel=base` (docs/profiler.md)
    #[arg(default_value = "latest")]
    pub profile: String,
    /// Use only events in the regions of this name; adds figures per operation
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
    /// Compare with this profile, for example of another workload or a later dump, and show their
    /// similarity. PROFILE uses the same --region, PROFILE:NAME the regions of that name, and
    /// PROFILE: the whole profile; reference:NAME is a reference workload of that name or kind
    /// (reference:nginx, reference:web). May be repeated
    #[arg(long, alias = "beside", value_name = "PROFILE[:NAME]|reference:NAME")]
    pub against: Vec<String>,
    /// Write a self-contained page instead of text
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Save the figures and the distribution of time as a reference file, for comparison with other
    /// profiles (docs/characterize.md)
    #[arg(long, value_name = "FILE.toml", requires = "kind")]
    pub save_reference: Option<PathBuf>,
    /// Kind of work of the reference: web, OLTP, key-value
    #[arg(long, value_name = "WORDS", requires = "save_reference")]
    pub kind: Option<String>,
    #[command(flatten)]
    pub format: FormatOptions,
}
