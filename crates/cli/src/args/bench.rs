//! Arguments of `kerntune bench`.

use super::{CounterOptions, CpuOptions, FormatOptions, IntervalOptions, ModelOptions};
use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// List the rows of all suites and the machines that can run them
    List {
        #[command(flatten)]
        format: FormatOptions,
    },
    /// Run rows of suites on a machine and record their figures
    Run(BenchRunOptions),
    /// Compare timed results of two kernels: ratios with confidence intervals, and a verdict for each row (docs/statistics.md)
    Compare(BenchCompareOptions),
    /// Compare the emulator's and its front-end model's figures of a recipe with measured times:
    /// rank correlation over rows and recipes (docs/models.md)
    #[command(alias = "predict")]
    Correlate(BenchCorrelateOptions),
}

#[derive(Debug, Args)]
pub struct BenchRunOptions {
    /// Suites: workloads by name or .toml file, as listed by `bench list`
    #[arg(required = true, value_name = "SUITE")]
    pub suites: Vec<String>,
    /// The machine: emulator (exact, per operation), kvm (timed, in a virtual machine), uml (timed,
    /// the kernel is a process), or host (timed, on the running kernel)
    #[arg(long, value_enum, default_value_t = BenchMachine::Emulator, value_name = "MACHINE")]
    pub machine: BenchMachine,
    /// Run only this row: ROW for every suite, or SUITE/ROW; may be repeated
    #[arg(long, value_name = "ROW")]
    pub row: Vec<String>,
    /// The guest's kernel: label, beginning of an id, or directory [default: the suites' base kernel, built if it is missing;
    /// none on uml]
    #[arg(long)]
    pub kernel: Option<String>,
    /// Number of boots of the guest [default: 5 on kvm and uml; 1 on the emulator, where more boots
    /// only show that figures repeat]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub boots: Option<u32>,
    /// On the host: number of runs of each suite [default: 5]. On the emulator: number of runs per
    /// boot, each with another start offset [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub runs: Option<u32>,
    /// On kvm and uml: measurements of each row per boot; for servers, runs of their load [default:
    /// 5 for the suite batched, 1 for servers; other suites allow only 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub iterations: Option<u32>,
    /// Work of each row, as a multiple of its usual work [default: 1 on the emulator, 10 elsewhere;
    /// 4 for batched in a guest]
    #[arg(long, value_name = "X")]
    pub scale: Option<f64>,
    #[command(flatten)]
    pub cpus: CpuOptions,
    #[command(flatten)]
    pub counters: CounterOptions,
    #[command(flatten)]
    pub model: ModelOptions,
    /// Also write the results to this file (docs/json.md)
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub format: FormatOptions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BenchMachine {
    Emulator,
    Kvm,
    Uml,
    Host,
}

/// Options of `kerntune bench compare`.
#[derive(Debug, Args)]
pub struct BenchCompareOptions {
    /// Results of the base kernel, as `kerntune bench run` writes them
    #[arg(value_name = "BASE.json")]
    pub base: PathBuf,
    /// Results of the kernel to compare with it
    #[arg(value_name = "TUNED.json")]
    pub tuned: PathBuf,
    /// More results of the base kernel, from other boots or builds; may be repeated
    #[arg(long, alias = "base", value_name = "FILE")]
    pub more_base: Vec<PathBuf>,
    /// More results of the tuned kernel; may be repeated
    #[arg(long, alias = "tuned", value_name = "FILE")]
    pub more_tuned: Vec<PathBuf>,
    /// Results of a second measurement of the base kernel, for the A/A comparison; without them,
    /// kerntune compares one half of the base kernel's values with the other half; may be repeated
    #[arg(long, value_name = "FILE")]
    pub aa: Vec<PathBuf>,
    /// Smallest difference that matters: rows shown to differ by less are called equivalent
    #[arg(long, default_value = "1%", value_parser = percent, value_name = "PERCENT")]
    pub min_effect: f64,
    /// Confidence level of each interval
    #[arg(long, default_value = "95%", value_parser = percent, value_name = "PERCENT")]
    pub confidence: f64,
    /// Correction for many rows: holm (no false finding among all), benjamini-hochberg (few among those found), or none
    #[arg(long, value_enum, default_value_t = RowCorrection::Holm, value_name = "METHOD")]
    pub correction: RowCorrection,
    #[command(flatten)]
    pub interval: IntervalOptions,
    /// Also print the table in the papers' form: base, optimized, standard deviation, improvement
    #[arg(long, conflicts_with = "json")]
    pub paper: bool,
    #[command(flatten)]
    pub format: FormatOptions,
}

/// Options of `kerntune bench correlate`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("model").required(true).args(["exact", "kernels"]))]
pub struct BenchCorrelateOptions {
    /// Timed results of a base kernel and of a tuned kernel, written by `kerntune time`, `kerntune
    /// prove` or `kerntune bench run --machine uml`. Separate several files of one kernel (more
    /// boots) by commas. May be repeated, once for each recipe
    #[arg(long, required = true, num_args = 2, value_names = ["BASE.json", "TUNED.json"])]
    pub timed: Vec<String>,
    /// Exact results of the same recipe, written by `kerntune bench run --machine emulator`: one
    /// pair for each --timed, in the same order. Repeat all pairs for each further front-end model;
    /// gains are then ranges
    #[arg(long, num_args = 2, value_names = ["BASE.json", "TUNED.json"])]
    pub exact: Vec<PathBuf>,
    /// Instead of --exact: run the rows on these kernels of the same recipe in the emulator; one
    /// pair for each --timed, in the same order
    #[arg(long, num_args = 2, value_names = ["BASE", "TUNED"])]
    pub kernels: Vec<String>,
    /// With --kernels: the front-end models of the range [default: models of several CPUs, each
    /// with a front end that waits and with one that runs ahead (docs/models.md)]
    #[arg(long, value_name = "MODEL,…", value_delimiter = ',')]
    pub models: Vec<String>,
    /// Leave out this row (ROW or SUITE/ROW), for example if the machines run different code for it
    /// (docs/models.md); may be repeated
    #[arg(long, value_name = "ROW")]
    pub skip: Vec<String>,
    /// Confidence level of each interval
    #[arg(long, default_value = "95%", value_parser = percent, value_name = "PERCENT")]
    pub confidence: f64,
    /// Also draw all rows into this SVG file; needs several models
    #[arg(long, value_name = "FILE")]
    pub picture: Option<PathBuf>,
    #[command(flatten)]
    pub format: FormatOptions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RowCorrection {
    Holm,
    BenjaminiHochberg,
    None,
}

/// Parses `1%` or `0.5 %` into a fraction of 1. The sign is required, because a bare number could
/// mean either.
pub(super) fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').map(str::trim_end).and_then(|number| number.parse::<f64>().ok());
    let number = number.filter(|number| number.is_finite());
    number.map(|number| number / 100.0).ok_or_else(|| "not a percentage; write it as 1% or 0.5%".into())
}

/// Parses a percentage as [`percent`] does, and rejects values that are not above 0.
pub(super) fn positive_percent(text: &str) -> Result<f64, String> {
    percent(text).and_then(|part| if part > 0.0 { Ok(part) } else { Err("it must be above 0".into()) })
}

#[cfg(test)]
mod tests {
    use super::{percent, positive_percent};

    #[test]
    fn percentages_have_their_sign() {
        assert_eq!((percent("1%"), percent("0.5 %")), (Ok(0.01), Ok(0.005)));
        for wrong in ["1", "%", "", "x%", "NaN%", "inf%", "1%%"] {
            assert!(percent(wrong).is_err(), "{wrong}");
        }
        assert_eq!(positive_percent("100000%"), Ok(1000.0));
        for wrong in ["0%", "-1%"] {
            assert!(positive_percent(wrong).is_err(), "{wrong}");
        }
    }
}
