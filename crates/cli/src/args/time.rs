//! `kerntune time`.

use super::Json;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct Time {
    /// The base kernel, built with --arch um: label, beginning of an id, or directory; it is timed twice
    pub base: String,
    /// Kernels to hold against it
    pub others: Vec<String>,
    /// The workload: a name or a .toml file; its measured run prints times
    #[arg(long, default_value = "batched", value_name = "WORKLOAD")]
    pub workload: String,
    /// How often each kernel is booted, all of them in turn
    #[arg(long, default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub boots: u32,
    /// How often each row is timed in a boot
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub iterations: u32,
    /// How much of its work a row does each time; 1 is as much as in the emulator
    #[arg(long, default_value_t = 4.0, value_name = "X")]
    pub scale: f64,
    /// The host's CPU on which all of them run [default: the last one]
    #[arg(long, value_name = "N")]
    pub cpu: Option<u32>,
    /// Where the times go: KERNEL.json for each kernel, KERNEL-again.json for the first one's second time
    #[arg(short, long, value_name = "DIR")]
    pub out: PathBuf,
    #[command(flatten)]
    pub format: Json,
}
