//! Arguments of `kerntune compare`.

use super::{CpuOptions, FormatOptions, ModelOptions};
use clap::Args;
use kerntune_tune::{MAX_LAYOUTS, MAX_RUNS};
use std::path::PathBuf;

/// Smallest value of `--layouts`: fewer layouts give no meaningful quartiles.
const MIN_LAYOUTS: i64 = 4;

#[derive(Debug, Args)]
pub struct CompareOptions {
    /// The base kernel: label, beginning of an id, or directory
    pub base: String,
    /// The kernel to compare with it
    pub tuned: String,
    /// The workload: a name or a .toml file
    #[arg(long)]
    pub workload: String,
    #[command(flatten)]
    pub model: ModelOptions,
    #[command(flatten)]
    pub cpus: CpuOptions,
    /// Explain, function by function, why one kernel needs fewer instructions: what the compiler did
    /// to each, and what that brought
    #[arg(long, conflicts_with_all = ["runs", "seeds", "layouts", "models", "picture", "html"])]
    pub explain: bool,
    /// With --explain: show every function, not only those that explain most of the difference
    #[arg(long, requires = "explain")]
    pub all: bool,
    /// Number of runs of each kernel, each with another start offset: if processes wait for each
    /// other, the path depends on the time of the start [default: 1, and 4 if user code runs
    /// differently on the two kernels]
    #[arg(long, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_RUNS)))]
    pub runs: Option<u32>,
    /// Number of seeds of the workload; --runs runs are made with each. A seed changes the random
    /// numbers of the guest's kernel, of programs that get them from the kernel, and of programs
    /// whose command takes {seed} (docs/measuring.md)
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub seeds: u32,
    /// Measure layout sensitivity: also run the workload on the base kernel with its functions in N
    /// random orders, and show both kernels among these layouts. A base kernel that is not
    /// --movable is rebuilt as movable
    #[arg(long, value_name = "N",
          value_parser = clap::value_parser!(u32).range(MIN_LAYOUTS..=i64::from(MAX_LAYOUTS)))]
    pub layouts: Option<u32>,
    /// Also compute the change, as a range, under models of several CPUs, each with a front end
    /// that waits and with one that runs ahead (docs/models.md); or under the named models
    #[arg(long, value_name = "MODEL,…", num_args = 0..=1, require_equals = true, value_delimiter = ',', default_missing_value = "")]
    pub models: Option<Vec<String>>,
    /// Also draw the layouts into this SVG file
    #[arg(long, value_name = "FILE", requires = "layouts")]
    pub picture: Option<PathBuf>,
    /// Also write the comparison as a self-contained HTML page
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    #[command(flatten)]
    pub format: FormatOptions,
}
