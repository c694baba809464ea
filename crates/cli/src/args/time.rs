//! `kerntune time`.

use super::Json;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct Time {
    /// A kernel built with --arch um: label, beginning of an id, or directory; repeated for those that are to be held
    /// against the first, which is timed twice
    #[arg(long, required = true, value_name = "KERNEL")]
    pub kernel: Vec<String>,
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
    /// Where the times go: KERNEL.json for each kernel, KERNEL-again.json for the first one's second time
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    #[command(flatten)]
    pub format: Json,
}
