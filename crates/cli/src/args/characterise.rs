//! `kerntune characterise`.

use crate::global::Json;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct Characterise {
    /// Beginning of an id, directory, `latest`, or `latest:workload=rr,kernel=base`
    #[arg(default_value = "latest")]
    pub profile: String,
    /// Only what happened in the regions of this name; figures are then per operation, too
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
    /// Put this profile beside it, and say how alike they are: another workload, or a dump of another time. PROFILE has
    /// --region as well, PROFILE:NAME regions of that name, and PROFILE: is all of it; reference:NAME is a reference workload of that
    /// name or kind (reference:nginx, reference:web). May be repeated
    #[arg(long, value_name = "PROFILE[:NAME]|reference:NAME")]
    pub beside: Vec<String>,
    /// Write it as a self-contained page instead
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Write its figures and where its time goes to this file, a reference that others are held against (docs/characterise.md)
    #[arg(long, value_name = "FILE.toml", requires = "kind")]
    pub save_reference: Option<PathBuf>,
    /// What kind of work the reference is: web, OLTP, key-value
    #[arg(long, value_name = "WORDS", requires = "save_reference")]
    pub kind: Option<String>,
    #[command(flatten)]
    pub format: Json,
}
