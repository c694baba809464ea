//! `kerntune report`: one kind of report each.

use super::{CodePath, Diff, GraphTable, Histogram, Json, Part, Subsystems, Table, Threads};
use clap::{Args, Subcommand};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = false)]
pub struct Report {
    /// Beginning of an id, directory, or `latest`
    pub profile: String,
    /// What to show: summary and functions if not given
    #[command(subcommand)]
    pub kind: Option<ReportKind>,
    #[command(flatten)]
    pub table: FunctionTable,
}

/// Which functions, in what order.
#[derive(Debug, Clone, Args)]
pub struct FunctionTable {
    /// At most so many functions; 40 in text, all in JSON if not given
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// Order: net, elapsed, calls, max, avg, name
    #[arg(long, default_value = "net", value_name = "KEY")]
    pub sort: String,
    /// Only what happened in the regions of this name
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
    #[command(flatten)]
    pub format: Json,
}

#[derive(Debug, Subcommand)]
pub enum ReportKind {
    /// What the profile is of, how it went, and figures for each region
    Summary {
        #[command(flatten)]
        format: Json,
    },
    /// Each function's calls, elapsed and net time (McRae's summary)
    Functions(FunctionTable),
    /// Each function's own time and calls, greatest time first (gprof's flat profile)
    Flat(Box<GraphTable>),
    /// Callers and callees of each function and cycle, with the time they hand up (gprof's call graph)
    Graph(Box<GraphTable>),
    /// What ran when, call by call: one call, one operation or a window (McRae's code path trace)
    Path(Box<CodePath>),
    /// How long a function's calls took: log-scaled, with percentiles, by caller if asked
    Histogram(Histogram),
    /// Time by part of the kernel (net/ipv4, mm …) or by groups of your own, and who calls into whom
    Subsystems(Subsystems),
    /// Whose time it was
    Threads(Threads),
    /// Interrupts and exceptions: how many, how long, when the longest was
    Interrupts(Part),
    /// Context switches: how often, why, from whom to whom
    Switches(Table),
    /// Idle time: stretches by length, and what ended them
    Idle(Part),
    /// How much code is hot: bytes, cache lines and pages of the most frequent blocks
    Footprint {
        #[command(flatten)]
        format: Json,
    },
    /// This profile (A) and another (B) side by side: what explains the difference
    Diff(Diff),
    /// One page with pictures: call tree, timeline down to single calls, callers and callees, histograms
    Html(HtmlReport),
}

/// Where the page goes and what of the profile is on it.
#[derive(Debug, Clone, Args)]
pub struct HtmlReport {
    /// File to write; it needs nothing else to be read
    #[arg(long, short, value_name = "FILE")]
    pub output: std::path::PathBuf,
    /// Only what happened in the regions of this name
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
}
