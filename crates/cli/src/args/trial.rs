//! Arguments of `kerntune ablate`.

use super::{BuildOptions, CpuOptions, FormatOptions, ModelOptions, MAX_MINUTES};
use clap::Args;
use kerntune_compare::{Metric, TOTAL};
use kerntune_tune::trial::PROBE_RUNS;
use kerntune_tune::MAX_RUNS;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct AblateOptions {
    /// The changes: a .toml file (docs/ablate.md)
    #[arg(value_name = "CHANGES")]
    pub changes: PathBuf,
    /// The workload: a name or a .toml file
    #[arg(long)]
    pub workload: String,
    #[command(flatten)]
    pub build: BuildOptions,
    /// Figure by which changes are judged: path-length, taken-branches, l1i-misses, itlb-misses or
    /// model-cycles
    #[arg(long, default_value = "path-length", value_name = "METRIC", value_parser = metric)]
    pub by: Metric,
    /// Judge by this operation of the workload [default: all together]
    #[arg(long, default_value = TOTAL, hide_default_value = true, value_name = "OPERATION")]
    pub operation: String,
    /// Number of runs of each set of changes, if the figure depends on the start of a run;
    /// otherwise there is one run
    #[arg(long, default_value_t = 8, value_name = "N",
          value_parser = clap::value_parser!(u32).range(i64::from(PROBE_RUNS)..=i64::from(MAX_RUNS)))]
    pub runs: u32,
    /// Try each change alone, then the helpful ones together; skip the trials of all changes and of
    /// all but one
    #[arg(long)]
    pub alone: bool,
    /// Start nothing new after this many minutes
    #[arg(long, value_name = "MINUTES", value_parser = clap::value_parser!(u64).range(0..=MAX_MINUTES))]
    pub budget: Option<u64>,
    /// Write the accepted changes into this directory: config fragment, command line, sysctl.conf,
    /// patches
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub model: ModelOptions,
    #[command(flatten)]
    pub cpus: CpuOptions,
    #[command(flatten)]
    pub format: FormatOptions,
}

/// Parses the name of a metric that `ablate` can judge by.
fn metric(name: &str) -> Result<Metric, String> {
    let named = |metric: &&Metric| metric.title().to_lowercase().replace(' ', "-") == name;
    Metric::all().iter().find(named).copied().ok_or_else(|| {
        let known: Vec<_> =
            Metric::all().iter().map(|metric| metric.title().to_lowercase().replace(' ', "-")).collect();
        format!("not a metric; give one of {}", known.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_have_the_names_of_the_help() {
        let names = ["path-length", "taken-branches", "l1i-misses", "itlb-misses", "model-cycles"];
        assert_eq!(names.map(|name| metric(name).is_ok()), [true; 5]);
        assert!(metric("speed").unwrap_err().contains("path-length"));
    }
}
