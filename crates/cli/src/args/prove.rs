//! Arguments of `kerntune prove`.

use super::{positive_percent, FormatOptions, IntervalOptions, ModelOptions, MAX_MINUTES};
use clap::{Args, ValueEnum};
use kerntune_tune::MAX_RUNS;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct ProveOptions {
    /// The base kernel: label, beginning of an id, or directory
    pub base: String,
    /// The kernel to compare with it
    pub tuned: String,
    /// The workload: a name or a .toml file
    #[arg(long)]
    pub workload: String,
    /// The machine: a virtual machine (kvm) or a process (uml), which time the kernels, or the
    /// emulator, which counts exactly and has no clock
    #[arg(long, value_enum, default_value_t = ProveMachine::Auto)]
    pub machine: ProveMachine,
    /// On kvm and uml: boot until the interval of every row is at most this wide, relative to its
    /// estimate
    #[arg(long, value_parser = positive_percent, default_value = "2%", value_name = "PERCENT")]
    pub until_width: f64,
    /// On kvm and uml: start no further round of boots after this many minutes
    #[arg(long, default_value_t = 30, value_name = "MINUTES", value_parser = clap::value_parser!(u64).range(1..=MAX_MINUTES))]
    pub budget: u64,
    #[command(flatten)]
    pub interval: IntervalOptions,
    /// On the emulator: number of runs of each kernel, each with another start offset
    #[arg(long, default_value_t = 4, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_RUNS)))]
    pub runs: u32,
    #[command(flatten)]
    pub model: ModelOptions,
    /// Write the bundle into this new directory: kernels, workload, results, and a script that
    /// repeats the proof on another machine
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    #[command(flatten)]
    pub format: FormatOptions,
}

/// Machine on which the gain is proved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProveMachine {
    /// The best machine available; a machine with a clock is preferred.
    Auto,
    Kvm,
    Uml,
    Emulator,
}
