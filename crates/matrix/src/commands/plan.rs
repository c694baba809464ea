//! The command `kerntune matrix plan`.

use super::opening::{OpenPlan, StoreOptions};
use crate::MatrixCell;
use clap::Args;
use kerntune_command::{work, CliOutput, Exit, Failure, FormatOptions, GlobalOptions, RunSubcommand};
use serde::Serialize;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct MatrixPlanOptions {
    /// The plan file (docs/matrix.md)
    file: PathBuf,
    #[command(flatten)]
    store: StoreOptions,
    #[command(flatten)]
    format: FormatOptions,
}

/// Name and version of the JSON form of `matrix plan`.
const PLAN: &str = "kerntune-matrix-planned/1";

#[derive(Serialize)]
struct PlannedJson<'a> {
    schema: &'static str,
    plan: &'a str,
    store: &'a str,
    tasks: usize,
    cells: Vec<String>,
}

impl RunSubcommand<GlobalOptions> for MatrixPlanOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        let work = work(global)?;
        let store = self.store.open(&work)?;
        let open = OpenPlan::new(work, store, &self.file.display().to_string(), output)?;
        let OpenPlan { plan, id, .. } = &open;
        let url = open.store.url();
        if self.format.json {
            let cells = plan.cells.iter().map(MatrixCell::name).collect();
            output.json(&PlannedJson { schema: PLAN, plan: id, store: &url, tasks: plan.tasks.len(), cells });
        } else {
            output.print(id);
            output.note(&format!(
                "{} cells, {} tasks; `kerntune worker --store {url} --plan {id}` computes them",
                plan.cells.len(),
                plan.tasks.len()
            ));
        }
        Ok(Exit::Ok)
    }
}
