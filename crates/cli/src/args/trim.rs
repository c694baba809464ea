//! `kerntune trim`.

use super::{Build, Cpus, Json, Model, MOST_MINUTES};
use clap::Args;
use kerntune_tune::trial::LOOKS;
use kerntune_tune::MOST_RUNS;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct Trim {
    /// A workload that the kernel is for: a name or a .toml file; may be repeated
    #[arg(long, required = true)]
    pub workload: Vec<String>,
    #[command(flatten)]
    pub build: Build,
    /// Always keep this option: its name, with * for any part of it, or a file of names, one per line (@FILE); may be repeated
    #[arg(long, value_name = "OPTION")]
    pub keep: Vec<String>,
    /// Count an option as used only if at least this share of its own functions ran, in per cent. A few functions of many options
    /// run though nobody uses the option: a hook that is called, a namespace that is set up and torn down
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0, value_parser = percent)]
    pub least: f64,
    /// Build no modules and no support for them, as `make localmodconfig` does where none is loaded; one that --keep names is built in
    #[arg(long)]
    pub no_modules: bool,
    /// Only show which options would go; build nothing
    #[arg(long)]
    pub plan: bool,
    /// List every option, not only the largest
    #[arg(long)]
    pub all: bool,
    /// Runs of each kernel, if figures depend on when a run begins; otherwise there is one run
    #[arg(long, default_value_t = 8, value_name = "N",
          value_parser = clap::value_parser!(u32).range(i64::from(LOOKS)..=i64::from(MOST_RUNS)))]
    pub runs: u32,
    /// Start nothing new after this many minutes
    #[arg(long, value_name = "MINUTES", value_parser = clap::value_parser!(u64).range(0..=MOST_MINUTES))]
    pub budget: Option<u64>,
    /// Write the options that were switched off to this file, as a config fragment
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub model: Model,
    #[command(flatten)]
    pub cpus: Cpus,
    #[command(flatten)]
    pub format: Json,
}

fn percent(text: &str) -> Result<f64, String> {
    let value: Option<f64> = text.parse().ok();
    value.filter(|value| (0.0..=100.0).contains(value)).ok_or_else(|| "give a number from 0 to 100".into())
}
