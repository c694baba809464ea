//! `kerntune bench`.

use super::{Json, Model};
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum Bench {
    /// List the rows of all suites, and the machines that can run them
    List {
        #[command(flatten)]
        format: Json,
    },
    /// Run rows of suites on a machine, and write down their figures
    Run(BenchRun),
}

#[derive(Debug, Args)]
pub struct BenchRun {
    /// Suites: workloads by name or .toml file, as `bench list` shows them
    #[arg(required = true, value_name = "SUITE")]
    pub suites: Vec<String>,
    /// Where: emulator (exact, per operation), or host (timed, under the kernel that is booted)
    #[arg(long, value_enum, default_value_t = Machine::Emulator, value_name = "MACHINE")]
    pub machine: Machine,
    /// Only this row, of every suite or as SUITE/ROW; may be repeated
    #[arg(long, value_name = "ROW")]
    pub row: Vec<String>,
    /// On the emulator: the kernel, by label, beginning of an id, or directory
    #[arg(long)]
    pub kernel: Option<String>,
    /// On the emulator: how often to boot; figures repeat, and more boots show that they do [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub boots: Option<u32>,
    /// On the host: how often to run each suite [default: 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub runs: Option<u32>,
    /// How many times its usual work each row does [default: 1 on the emulator, 10 on the host]
    #[arg(long, value_name = "X")]
    pub scale: Option<f64>,
    #[command(flatten)]
    pub model: Model,
    /// Write the results to this file, too (docs/json.md)
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub format: Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Machine {
    Emulator,
    Host,
}
