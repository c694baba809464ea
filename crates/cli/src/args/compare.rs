//! `kerntune compare`.

use super::{Cpus, Json, Model};
use clap::Args;
use kerntune_tune::{MOST_LAYOUTS, MOST_RUNS};
use std::path::PathBuf;

/// Fewer layouts have no quartiles to speak of.
const LEAST_LAYOUTS: i64 = 4;

#[derive(Debug, Args)]
pub struct Compare {
    /// The base kernel: label, beginning of an id, or directory
    pub base: String,
    /// The kernel to compare with it
    pub tuned: String,
    /// The workload: a name or a .toml file
    #[arg(long)]
    pub workload: String,
    #[command(flatten)]
    pub model: Model,
    #[command(flatten)]
    pub cpus: Cpus,
    /// Runs of each kernel, each begun at another moment: where processes wait for each other, the moment decides the path
    /// [default: 1, and 4 if user code runs differently on the two kernels]
    #[arg(long, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_RUNS)))]
    pub runs: Option<u32>,
    /// Seeds of the workload, each with the runs of --runs. A seed changes the random numbers of the guest's kernel, of programs
    /// that get them from the kernel, and of programs whose command takes {seed} (docs/measuring.md)
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub seeds: u32,
    /// Luck of layout: also run the workload on the base kernel with its functions in N random orders, and show where both
    /// kernels lie among these. A base kernel without --movable is built again with it
    #[arg(long, value_name = "N",
          value_parser = clap::value_parser!(u32).range(LEAST_LAYOUTS..=i64::from(MOST_LAYOUTS)))]
    pub layouts: Option<u32>,
    /// Also compute the change, as a range, under the models of several CPUs, each with a front end that waits and with one
    /// that runs ahead (docs/models.md); or under the named models
    #[arg(long, value_name = "MODEL,…", num_args = 0..=1, require_equals = true, value_delimiter = ',', default_missing_value = "")]
    pub models: Option<Vec<String>>,
    /// Also write a picture of the layouts as SVG
    #[arg(long, value_name = "FILE", requires = "layouts")]
    pub picture: Option<PathBuf>,
    /// Also write the comparison as a self-contained page
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    #[command(flatten)]
    pub format: Json,
}
