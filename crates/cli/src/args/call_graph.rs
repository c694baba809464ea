//! `kerntune report PROFILE flat` and `graph`.

use super::Json;
use clap::{Args, ValueEnum};

/// Which functions or entries, and how time goes to callers.
#[derive(Debug, Clone, Args)]
pub struct GraphTable {
    /// At most so many functions or entries; 40 in text, all in JSON if not given
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// Only this function, or those of a pattern with * and ?; may be repeated
    #[arg(long, value_name = "NAME")]
    pub function: Vec<String>,
    /// Only what has at least so many per cent of the time
    #[arg(long, default_value_t = 0.0, value_name = "PERCENT")]
    pub min_percent: f64,
    /// Only what happened in the regions of this name
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
    /// How a function's time goes to its callers: as measured call by call, or in proportion to the
    /// number of calls as gprof does; exact if calls were timed, else counts
    #[arg(long, value_enum, value_name = "HOW")]
    pub propagate: Option<Propagate>,
    /// Also list the functions that never ran: all, those of a pattern (tcp_*), or those of a
    /// directory of the source (net/ipv4)
    #[arg(long, num_args = 0..=1, default_missing_value = "*", value_name = "GLOB|DIR")]
    pub never_called: Option<String>,
    /// Unit of times; what the largest needs if not given, seconds for sampled times
    #[arg(long, value_enum, value_name = "UNIT")]
    pub unit: Option<TableUnit>,
    #[command(flatten)]
    pub format: Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Propagate {
    Exact,
    Counts,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TableUnit {
    S,
    Ms,
    Us,
    Ns,
}
