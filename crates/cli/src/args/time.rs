//! `kerntune time`.

use super::{positive_percent, Counters, Json, MOST_MINUTES};
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct Time {
    /// The base kernel: label, beginning of an id, or directory; it is timed twice. Kernels built with --arch um run as
    /// processes (uml), others in a virtual machine (kvm)
    pub base: String,
    /// Kernels to hold against it
    pub others: Vec<String>,
    /// The workload: a name or a .toml file; its measured run prints times, or its load generators say their own figures
    #[arg(long, default_value = "batched", value_name = "WORKLOAD")]
    pub workload: String,
    /// How often each kernel is booted, all of them in turn; with --until-width at most [default: 10; 1000 with
    /// --until-width]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub boots: Option<u32>,
    /// Boot until every row's interval is so narrow, from end to end and relative to its estimate: 1%
    #[arg(long, value_parser = positive_percent, value_name = "PERCENT")]
    pub until_width: Option<f64>,
    /// With --until-width: begin no round after so many minutes
    #[arg(long, requires = "until_width", value_name = "MINUTES", value_parser = clap::value_parser!(u64).range(1..=MOST_MINUTES))]
    pub budget: Option<u64>,
    /// How often each row is timed in a boot; of servers how often their load comes [default: 5 of batched suites, 1 of
    /// others; suites of kerntune's other programs cannot do more]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub iterations: Option<u32>,
    /// How much of its work a row does each time; 1 is as much as in the emulator [default: 4 of batched suites, 10 of
    /// others, 1 of those that always do the same]
    #[arg(long, value_name = "X")]
    pub scale: Option<f64>,
    /// The host's CPU on which all of them run [default: the last one]
    #[arg(long, value_name = "N")]
    pub cpu: Option<u32>,
    #[command(flatten)]
    pub counters: Counters,
    /// Where the times go: KERNEL.json for each kernel, KERNEL-again.json for the first one's second time
    #[arg(short, long, alias = "out", value_name = "DIR")]
    pub output: PathBuf,
    #[command(flatten)]
    pub format: Json,
}
