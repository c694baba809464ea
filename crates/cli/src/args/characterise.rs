//! `kerntune characterise`.

use crate::global::Json;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct Characterise {
    /// Beginning of an id, directory, `latest`, or `latest:workload=rr,kernel=base`
    #[arg(default_value = "latest")]
    pub profile: String,
    /// Only what happened in the regions of this name; adds figures per operation
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
    /// Compare with this profile, such as one of another workload or a later dump, and say how similar both are. PROFILE takes
    /// the same --region, PROFILE:NAME the regions of that name, and PROFILE: all of the profile; reference:NAME is a reference
    /// workload of that name or kind (reference:nginx, reference:web). May be repeated
    #[arg(long, value_name = "PROFILE[:NAME]|reference:NAME")]
    pub beside: Vec<String>,
    /// Write a self-contained page instead of text
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Save its figures and where its time goes as a reference file that other profiles are compared with (docs/characterise.md)
    #[arg(long, value_name = "FILE.toml", requires = "kind")]
    pub save_reference: Option<PathBuf>,
    /// What kind of work the reference is: web, OLTP, key-value
    #[arg(long, value_name = "WORDS", requires = "save_reference")]
    pub kind: Option<String>,
    #[command(flatten)]
    pub format: Json,
}
