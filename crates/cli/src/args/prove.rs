//! `kerntune prove`.

use super::{positive_percent, Interval, Json, Model, MOST_MINUTES};
use clap::{Args, ValueEnum};
use kerntune_tune::MOST_RUNS;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct Prove {
    /// The base kernel: label, beginning of an id, or directory
    pub base: String,
    /// The kernel to compare with it
    pub tuned: String,
    /// The workload: a name or a .toml file
    #[arg(long)]
    pub workload: String,
    /// The machine: timed in a virtual machine (kvm) or as a process (uml), or in the emulator alone, which counts exactly and
    /// has no clock
    #[arg(long, value_enum, default_value_t = On::Auto)]
    pub machine: On,
    /// On kvm and uml: boot until every row's interval is this narrow, from end to end and relative to its estimate
    #[arg(long, value_parser = positive_percent, default_value = "2%", value_name = "PERCENT")]
    pub until_width: f64,
    /// On kvm and uml: start no further round of boots after this many minutes
    #[arg(long, default_value_t = 30, value_name = "MINUTES", value_parser = clap::value_parser!(u64).range(1..=MOST_MINUTES))]
    pub budget: u64,
    #[command(flatten)]
    pub interval: Interval,
    /// On the emulator: runs of each kernel, each begun at another moment
    #[arg(long, default_value_t = 4, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_RUNS)))]
    pub runs: u32,
    #[command(flatten)]
    pub model: Model,
    /// The directory to make: kernels, workload, results, and a script that repeats it on another machine
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    #[command(flatten)]
    pub format: Json,
}

/// Where it is proved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum On {
    /// The best machine available: one with a clock if there is one.
    Auto,
    Kvm,
    Uml,
    Emulator,
}
