//! `kerntune matrix` and `kerntune worker`.

use super::Json;
use clap::{Args, Subcommand, ValueEnum};
use std::num::NonZeroUsize;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum Matrix {
    /// Make a plan from a plan file, and put it into a store for workers, with the kernels that it names
    Plan {
        /// The plan file (docs/matrix.md)
        file: PathBuf,
        #[command(flatten)]
        store: StoreAt,
        #[command(flatten)]
        format: Json,
    },
    /// Compute a plan, here or by Slurm; resumes where it stopped
    Run(MatrixRun),
    /// Show the state of each task of a plan
    Status {
        /// The plan file, or the beginning of a plan's id
        plan: String,
        #[command(flatten)]
        store: StoreAt,
        #[command(flatten)]
        format: Json,
    },
    /// Show the figures of a plan's cells
    Results {
        /// The plan file, or the beginning of a plan's id
        plan: String,
        #[command(flatten)]
        store: StoreAt,
        #[command(flatten)]
        format: Json,
    },
    /// Show the log of a cell
    Log {
        /// The plan file, or the beginning of a plan's id
        plan: String,
        /// The cell: its name, or its number among `matrix results`
        cell: String,
        #[command(flatten)]
        store: StoreAt,
    },
}

/// Where results and claims are.
#[derive(Debug, Clone, Args)]
pub struct StoreAt {
    /// A directory, or a URL: s3://BUCKET/PREFIX, file:///DIRECTORY [default: .matrix/store in the work directory]
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
}

#[derive(Debug, Args)]
pub struct MatrixRun {
    /// The plan file, or the beginning of the id of a plan in the store
    pub plan: String,
    #[command(flatten)]
    pub store: StoreAt,
    /// Who computes: local (this machine), or slurm
    #[arg(long, value_enum, default_value_t = Engine::Local, value_name = "ENGINE")]
    pub engine: Engine,
    /// CPUs to use on this machine [default: all]
    #[arg(long, value_name = "N")]
    pub cores: Option<NonZeroUsize>,
    /// Try failed tasks again
    #[arg(long)]
    pub retry: bool,
    /// Take over a claim that showed no sign of life for this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub lease: u64,
    #[command(flatten)]
    pub trust: TrustOptions,
    /// With slurm: an option of sbatch, as --sbatch=--partition=long; may be repeated
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    pub sbatch: Vec<String>,
    /// With slurm: the work directory of a node, which need not be shared [default: this one]
    #[arg(long, value_name = "DIR")]
    pub node_dir: Option<PathBuf>,
    /// With slurm: the program on the nodes [default: this one, at the same path]
    #[arg(long, value_name = "PROGRAM")]
    pub node_program: Option<String>,
    #[command(flatten)]
    pub format: Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Engine {
    Local,
    Slurm,
}

#[derive(Debug, Args)]
pub struct Worker {
    /// Where results and claims are: a directory, or a URL: s3://BUCKET/PREFIX, file:///DIRECTORY
    #[arg(long, value_name = "URL")]
    pub store: String,
    /// The plan: the beginning of its id in the store (`kerntune matrix plan` prints it), or a plan file
    #[arg(long)]
    pub plan: String,
    /// Compute only this task
    #[arg(long, value_name = "ID", conflicts_with = "cores")]
    pub task: Option<String>,
    /// CPUs to use [default: all]
    #[arg(long, value_name = "N")]
    pub cores: Option<NonZeroUsize>,
    /// Take over a claim that showed no sign of life for this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub lease: u64,
    #[command(flatten)]
    pub trust: TrustOptions,
}

/// How far to believe a plan and the other machines of its store.
#[derive(Debug, Clone, Copy, Args)]
pub struct TrustOptions {
    /// Run commands of the plan, and builds of sources, patches and compilers that it names, on this machine: a plan is code. Not needed
    /// for a plan file of yours
    #[arg(long)]
    pub trust_commands: bool,
    /// Compute also what other machines computed, and refuse a result that came out differently
    #[arg(long)]
    pub confirm: bool,
}
