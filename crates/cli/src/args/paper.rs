//! `kerntune paper`.

use super::{Build, Exclude, Interval, Json, Model, OfRecipe, MOST_MINUTES};
use clap::{ArgGroup, Args};
use kerntune_tune::{Recipe, MOST_RUNS};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("experiment").multiple(true).requires("name").args([
    "source", "patch", "config", "fragment", "set", "compiler", "kcflags", "jobs", "recipe", "only", "budget", "values",
    "model", "exclude", "output", "runs", "timed", "interval",
]))]
pub struct Paper {
    /// chen, hpux, mckusick, mcrae or yuan; without it: list them
    pub name: Option<String>,
    #[command(flatten)]
    pub build: Build,
    /// Recipe that tunes the kernels [default: the one nearest to what the paper did]
    #[arg(long, value_name = "RECIPE")]
    pub recipe: Option<Recipe>,
    /// Only the tables of this workload; may be repeated
    #[arg(long, value_name = "WORKLOAD")]
    pub only: Vec<String>,
    /// After this many minutes start nothing new, and show what is there; the same command resumes it
    #[arg(long, value_name = "MINUTES", value_parser = clap::value_parser!(u64).range(0..=MOST_MINUTES))]
    pub budget: Option<u64>,
    /// Runs of each kernel, each begun at another moment; improvements then have intervals
    #[arg(long, default_value_t = 1, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_RUNS)))]
    pub runs: u32,
    /// Add columns of measured times: timed results of a base kernel and of a tuned one that ran the paper's workloads, as
    /// `kerntune time` or `kerntune bench run` writes them. Separate several files of one kernel by commas; may be repeated
    #[arg(long, num_args = 2, value_names = ["BASE.json", "TUNED.json"])]
    pub timed: Vec<String>,
    #[command(flatten)]
    pub interval: Interval,
    #[command(flatten)]
    pub of_recipe: OfRecipe,
    #[command(flatten)]
    pub model: Model,
    #[command(flatten)]
    pub exclude: Exclude,
    /// Also write a page: HTML with charts, or Markdown if the name of the file ends in .md
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub format: Json,
}
