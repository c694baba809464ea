//! Arguments of `kerntune matrix` and `kerntune worker`.

use super::FormatOptions;
use clap::{Args, Subcommand, ValueEnum};
use std::num::NonZeroUsize;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum MatrixCommand {
    /// Make a plan from a plan file, and put it and the kernels that it names into a store for
    /// workers
    Plan {
        /// The plan file (docs/matrix.md)
        file: PathBuf,
        #[command(flatten)]
        store: StoreOptions,
        #[command(flatten)]
        format: FormatOptions,
    },
    /// Compute a plan, on this machine or with Slurm; resumes where it stopped
    Run(MatrixRunOptions),
    /// Show the state of each task of a plan
    Status {
        /// The plan file, or the beginning of the plan's id
        plan: String,
        #[command(flatten)]
        store: StoreOptions,
        #[command(flatten)]
        format: FormatOptions,
    },
    /// Show the figures of a plan's cells
    Results {
        /// The plan file, or the beginning of the plan's id
        plan: String,
        #[command(flatten)]
        store: StoreOptions,
        #[command(flatten)]
        format: FormatOptions,
    },
    /// Show the log of a cell
    Log {
        /// The plan file, or the beginning of the plan's id
        plan: String,
        /// The cell: its name, or its number in `matrix results`
        cell: String,
        #[command(flatten)]
        store: StoreOptions,
    },
}

/// The option `--store`: the directory or URL for results and claims.
#[derive(Debug, Clone, Args)]
pub struct StoreOptions {
    /// Store for results and claims: a directory, or a URL: s3://BUCKET/PREFIX, file:///DIRECTORY
    /// [default: .matrix/store in the work directory]
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
}

#[derive(Debug, Args)]
pub struct MatrixRunOptions {
    /// The plan file, or the beginning of a plan's id in the store
    pub plan: String,
    #[command(flatten)]
    pub store: StoreOptions,
    /// Place of the computation: local (this machine), or slurm
    #[arg(long, value_enum, default_value_t = MatrixEngine::Local, value_name = "ENGINE")]
    pub engine: MatrixEngine,
    /// CPUs to use on this machine [default: all]
    #[arg(short, long, alias = "cores", value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
    /// Try failed tasks again
    #[arg(long)]
    pub retry: bool,
    /// Take over a claim that showed no sign of life for this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub lease: u64,
    #[command(flatten)]
    pub trust: TrustOptions,
    /// With slurm: pass this option to sbatch, for example --sbatch=--partition=long; may be
    /// repeated
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    pub sbatch: Vec<String>,
    /// With slurm: the work directory on each node; need not be shared [default: this one]
    #[arg(long, value_name = "DIR")]
    pub node_dir: Option<PathBuf>,
    /// With slurm: the kerntune program on the nodes [default: this one, at the same path]
    #[arg(long, value_name = "PROGRAM")]
    pub node_program: Option<String>,
    #[command(flatten)]
    pub format: FormatOptions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MatrixEngine {
    Local,
    Slurm,
}

#[derive(Debug, Args)]
pub struct WorkerOptions {
    /// Store for results and claims: a directory, or a URL: s3://BUCKET/PREFIX, file:///DIRECTORY
    #[arg(long, value_name = "URL")]
    pub store: String,
    /// The plan: the beginning of its id in the store (printed by `kerntune matrix plan`), or a
    /// plan file
    #[arg(long)]
    pub plan: String,
    /// Compute only this task
    #[arg(long, value_name = "ID", conflicts_with = "jobs")]
    pub task: Option<String>,
    /// CPUs to use [default: all]
    #[arg(short, long, alias = "cores", value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
    /// Take over a claim that showed no sign of life for this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub lease: u64,
    #[command(flatten)]
    pub trust: TrustOptions,
}

/// Trust in a plan and in the other machines that use its store.
#[derive(Debug, Clone, Copy, Args)]
pub struct TrustOptions {
    /// Allow the plan to run its commands on this machine, and to build the sources, patches and
    /// compilers that it names: a plan is code. Not needed for your own plan file
    #[arg(long)]
    pub trust_commands: bool,
    /// Compute also tasks that other machines computed, and reject a result that differs
    #[arg(long)]
    pub confirm: bool,
}
