//! `kerntune time`.

use super::{positive_percent, Counters, Interval, Json, MOST_MINUTES};
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct Time {
    /// The base kernel: label, beginning of an id, or directory; it is timed twice. Kernels built with --arch um run as
    /// processes (uml), others in a virtual machine (kvm)
    pub base: String,
    /// Kernels to compare with it
    pub others: Vec<String>,
    /// The workload: a name or a .toml file. Its measured run prints times, or its load generators print figures of their own
    #[arg(long, default_value = "batched", value_name = "WORKLOAD")]
    pub workload: String,
    /// How often each kernel is booted, all kernels in turn; with --until-width, at most this often [default: 10; 1000 with
    /// --until-width]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub boots: Option<u32>,
    /// Boot until every row's interval is this narrow, from end to end and relative to its estimate, such as 1%
    #[arg(long, value_parser = positive_percent, value_name = "PERCENT")]
    pub until_width: Option<f64>,
    /// With --until-width: start no further round of boots after this many minutes
    #[arg(long, requires = "until_width", value_name = "MINUTES", value_parser = clap::value_parser!(u64).range(1..=MOST_MINUTES))]
    pub budget: Option<u64>,
    #[command(flatten)]
    pub interval: Interval,
    /// How often each row is timed in a boot; for servers, how often their load runs [default: 5 for batched suites, 1 for
    /// others; suites of kerntune's other programs allow only 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub iterations: Option<u32>,
    /// How much work a row does each time, as a multiple of that in the emulator [default: 4 for batched suites, 10 for others, 1
    /// for suites that always do the same]
    #[arg(long, value_name = "X")]
    pub scale: Option<f64>,
    /// The host's CPU on which all kernels run [default: the last one]
    #[arg(long, value_name = "N")]
    pub cpu: Option<u32>,
    #[command(flatten)]
    pub counters: Counters,
    /// Directory for the times: KERNEL.json for each kernel, KERNEL-again.json for the base kernel when it is timed again
    #[arg(short, long, alias = "out", value_name = "DIR")]
    pub output: PathBuf,
    #[command(flatten)]
    pub format: Json,
}
