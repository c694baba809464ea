//! Arguments of `kerntune anatomy`.

use super::FormatOptions;
use crate::percent::percent;
use clap::Args;

/// Options of `kerntune anatomy`: the calls to examine, and the form of the tables.
#[derive(Debug, Args)]
pub struct AnatomyOptions {
    /// A function (`vfs_read`, or `name@file` if several have the name), a system call (`read`), or
    /// the first function of an interrupt (`asm_common_interrupt:0x22`)
    pub operation: String,
    /// The profile, with its trace: beginning of an id, directory, or `latest`
    #[arg(long, default_value = "latest", value_name = "PROFILE")]
    pub profile: String,
    /// Count only calls that end in the regions of this name
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
    /// Also show what each call does before it enters this boundary: a function (submit_bio), a pattern (`blk_*`), or a file or
    /// directory of the source (net/core/)
    #[arg(long, value_name = "FUNCTION|PATTERN|DIR")]
    pub until: Option<String>,
    /// Compare with this profile (B), usually of another kernel: show the figures of both and the
    /// functions that explain the difference
    #[arg(long, value_name = "PROFILE")]
    pub against: Option<String>,
    /// Show at most N levels of calls below the operation
    #[arg(long, value_name = "N")]
    pub depth: Option<u32>,
    /// Show at most N rows of each table except the tree [default: a number that suits each table
    /// in text, all rows in JSON]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// Fold calls whose share of the operation's time is below this, both on average and in the
    /// typical and the worst call [default: 1 in text, 0 in JSON]
    #[arg(long, alias = "min", value_name = "PERCENT", value_parser = percent)]
    pub min_percent: Option<f64>,
    #[command(flatten)]
    pub format: FormatOptions,
}
