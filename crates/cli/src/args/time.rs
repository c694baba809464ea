//! Arguments of `kerntune time`.

use super::{positive_percent, CounterOptions, FormatOptions, IntervalOptions, MAX_MINUTES};
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct TimeOptions {
    /// The base kernel, which is timed twice: label, beginning of an id, or directory. Kernels
    /// built with --arch um run as processes (uml), others in a virtual machine (kvm)
    pub base: String,
    /// Kernels to compare with it
    pub others: Vec<String>,
    /// The workload: a name or a .toml file. Its measured run or its load generators must print
    /// times or figures
    #[arg(long, default_value = "batched", value_name = "WORKLOAD")]
    pub workload: String,
    /// Number of boots of each kernel, all kernels in turn; with --until-width, at most this many
    /// [default: 10; 1000 with --until-width]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub boots: Option<u32>,
    /// Boot until the interval of every row is at most this wide, relative to its estimate, for
    /// example 1%
    #[arg(long, value_parser = positive_percent, value_name = "PERCENT")]
    pub until_width: Option<f64>,
    /// With --until-width: start no further round of boots after this many minutes
    #[arg(long, requires = "until_width", value_name = "MINUTES", value_parser = clap::value_parser!(u64).range(1..=MAX_MINUTES))]
    pub budget: Option<u64>,
    #[command(flatten)]
    pub interval: IntervalOptions,
    /// Measurements of each row per boot; for servers, runs of their load [default: 5 for batched
    /// suites, 1 for others; suites of kerntune's other programs allow only 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub iterations: Option<u32>,
    /// Work of a row per measurement, as a multiple of its work in the emulator [default: 4 for
    /// batched suites, 10 for others, 1 for suites with fixed work]
    #[arg(long, value_name = "X")]
    pub scale: Option<f64>,
    /// CPU of the host on which all kernels run [default: the last one]
    #[arg(long, value_name = "N")]
    pub cpu: Option<u32>,
    #[command(flatten)]
    pub counters: CounterOptions,
    /// Write the times into this directory: KERNEL.json for each kernel, KERNEL-again.json for the
    /// second timing of the base kernel
    #[arg(short, long, alias = "out", value_name = "DIR")]
    pub output: PathBuf,
    #[command(flatten)]
    pub format: FormatOptions,
}
