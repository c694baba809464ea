//! The command `kerntune matrix log`.

use super::opening::PlanOptions;
use crate::log;
use clap::Args;
use kerntune_command::{CliOutput, Exit, Failure, GlobalOptions, RunSubcommand};

#[derive(Debug, Args)]
pub struct MatrixLogOptions {
    #[command(flatten)]
    plan: PlanOptions,
    /// The cell: its name, or its number in `matrix results`
    cell: String,
}

impl RunSubcommand<GlobalOptions> for MatrixLogOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        let open = self.plan.open(global, output)?;
        output.print(&log(&open.plan, &*open.store, open.plan.cell(&self.cell)?)?);
        Ok(Exit::Ok)
    }
}
