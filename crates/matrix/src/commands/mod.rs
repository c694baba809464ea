//! The commands `kerntune matrix plan|run|status|results|table|log` and `kerntune worker`, and the audit of
//! stores: a file each. The stores and plans that they name are opened by `opening.rs`.

mod audit;
mod local;
mod log;
mod opening;
mod plan;
mod program;
mod results;
mod run;
mod status;
mod table;
mod worker;

use clap::Subcommand;
use kerntune_command::{
    command, command_group, AuditEntry, CliOutput, CommandEntry, Exit, Failure, GlobalOptions, RunSubcommand,
};

/// Entry of `kerntune matrix`.
pub const MATRIX: CommandEntry = command_group::<MatrixCommand>("matrix", 55, "Many machines");

/// Entry of `kerntune worker`.
pub const WORKER: CommandEntry = command::<worker::WorkerOptions>("worker", 60, "Many machines");

/// Entry of the audit of stores of matrices.
pub const AUDIT: AuditEntry = kerntune_command::audit::<audit::MatrixAudit>("stores");

/// Compute a matrix of kernels, configurations, compilers, recipes and workloads, on this
/// machine or on a cluster (docs/matrix.md)
#[derive(Debug, Subcommand)]
pub enum MatrixCommand {
    /// Make a plan from a plan file, and put it and the kernels that it names into a store for
    /// workers
    Plan(plan::MatrixPlanOptions),
    /// Compute a plan, on this machine or with Slurm; resumes where it stopped
    Run(run::MatrixRunOptions),
    /// Show the state of each task of a plan
    Status(status::MatrixStatusOptions),
    /// Show the figures of a plan's cells
    Results(results::MatrixResultsOptions),
    /// Show what became of each recipe with each kernel and compiler, as Markdown
    Table(table::MatrixTableOptions),
    /// Show the log of a cell
    Log(log::MatrixLogOptions),
}

impl RunSubcommand<GlobalOptions> for MatrixCommand {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        match self {
            Self::Plan(options) => options.run(global, output),
            Self::Run(options) => options.run(global, output),
            Self::Status(options) => options.run(global, output),
            Self::Results(options) => options.run(global, output),
            Self::Table(options) => options.run(global, output),
            Self::Log(options) => options.run(global, output),
        }
    }
}
