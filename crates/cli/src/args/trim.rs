//! Arguments of `kerntune trim`.

use super::{BuildOptions, CpuOptions, FormatOptions, ModelOptions, MAX_MINUTES};
use crate::percent::percent;
use clap::Args;
use kerntune_tune::trial::PROBE_RUNS;
use kerntune_tune::MAX_RUNS;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct TrimOptions {
    /// Keep options that this workload uses: a name or a .toml file; may be repeated
    #[arg(long, required = true)]
    pub workload: Vec<String>,
    #[command(flatten)]
    pub build: BuildOptions,
    /// Always keep this option: its name, in which * matches any text, or a file of names, one per
    /// line (@FILE); may be repeated
    #[arg(long, value_name = "OPTION")]
    pub keep: Vec<String>,
    /// Count an option as used only if at least this share of its own functions ran, in percent.
    /// Many options run a few functions although nothing uses them: a hook that is called, a
    /// namespace that is set up and torn down
    #[arg(long, alias = "least", value_name = "PERCENT", default_value_t = 0.0, value_parser = percent)]
    pub min_percent: f64,
    /// Build no modules and no support for them, as `make localmodconfig` does if none is loaded;
    /// modules that --keep names are built in
    #[arg(long)]
    pub no_modules: bool,
    /// Show which options would be switched off; build nothing
    #[arg(long, alias = "plan")]
    pub dry_run: bool,
    /// List every option, not only the largest
    #[arg(long)]
    pub all: bool,
    /// Number of runs of each kernel, if figures depend on the start of a run; otherwise there is
    /// one run
    #[arg(long, default_value_t = 8, value_name = "N",
          value_parser = clap::value_parser!(u32).range(i64::from(PROBE_RUNS)..=i64::from(MAX_RUNS)))]
    pub runs: u32,
    /// Start nothing new after this many minutes
    #[arg(long, value_name = "MINUTES", value_parser = clap::value_parser!(u64).range(0..=MAX_MINUTES))]
    pub budget: Option<u64>,
    /// Write the switched-off options to this file, as a config fragment
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub model: ModelOptions,
    #[command(flatten)]
    pub cpus: CpuOptions,
    #[command(flatten)]
    pub format: FormatOptions,
}
