//! Arguments of `kerntune paper`.

use super::{
    BuildOptions, ExcludeOptions, FormatOptions, IntervalOptions, ModelOptions, RecipeFlags, MAX_MINUTES,
};
use clap::{ArgGroup, Args};
use kerntune_tune::{Recipe, MAX_RUNS};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("experiment").multiple(true).requires("name").args([
    "source", "patch", "config", "fragment", "set", "compiler", "kcflags", "jobs", "recipe", "only", "budget", "values",
    "model", "exclude", "output", "runs", "timed", "interval",
]))]
pub struct PaperOptions {
    /// The paper: chen, hpux, mckusick, mcrae or yuan; lists the papers if not given
    pub name: Option<String>,
    #[command(flatten)]
    pub build: BuildOptions,
    /// Recipe that tunes the kernels [default: the recipe nearest to the paper's method]
    #[arg(long, value_name = "RECIPE")]
    pub recipe: Option<Recipe>,
    /// Make only the tables of this workload; may be repeated
    #[arg(long, value_name = "WORKLOAD")]
    pub only: Vec<String>,
    /// Start nothing new after this many minutes, and show the results so far; the same command
    /// resumes
    #[arg(long, value_name = "MINUTES", value_parser = clap::value_parser!(u64).range(0..=MAX_MINUTES))]
    pub budget: Option<u64>,
    /// Number of runs of each kernel, each with another start offset; with several runs,
    /// improvements have intervals
    #[arg(long, default_value_t = 1, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_RUNS)))]
    pub runs: u32,
    /// Add columns of measured times: timed results of a base kernel and of a tuned kernel for the
    /// paper's workloads, written by `kerntune time` or `kerntune bench run`. Separate several
    /// files of one kernel by commas; may be repeated
    #[arg(long, num_args = 2, value_names = ["BASE.json", "TUNED.json"])]
    pub timed: Vec<String>,
    #[command(flatten)]
    pub interval: IntervalOptions,
    #[command(flatten)]
    pub of_recipe: RecipeFlags,
    #[command(flatten)]
    pub model: ModelOptions,
    #[command(flatten)]
    pub exclude: ExcludeOptions,
    /// Also write a page: Markdown if the file name ends in .md, otherwise HTML with charts
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub format: FormatOptions,
}
