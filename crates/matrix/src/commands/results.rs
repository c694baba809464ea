//! The command `kerntune matrix results`.

use super::opening::{OpenPlan, PlanOptions};
use crate::{results, CellResult, RESULTS_SCHEMA};
use clap::Args;
use kerntune_command::{CliOutput, Exit, Failure, FormatOptions, GlobalOptions, RunSubcommand};
use kerntune_compare::number::figure;
use kerntune_compare::{Metric, TOTAL};
use serde::Serialize;

#[derive(Debug, Args)]
pub struct MatrixResultsOptions {
    #[command(flatten)]
    plan: PlanOptions,
    #[command(flatten)]
    format: FormatOptions,
}

#[derive(Serialize)]
struct ResultsJson<'a> {
    schema: &'static str,
    plan: &'a str,
    cells: Vec<CellResult>,
}

impl RunSubcommand<GlobalOptions> for MatrixResultsOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        show_results(&self.plan.open(global, output)?, self.format.json, output)?;
        Ok(Exit::Ok)
    }
}

/// Prints the figures of the cells of a plan.
pub(super) fn show_results(open: &OpenPlan, json: bool, output: &CliOutput) -> Result<(), Failure> {
    let OpenPlan { work, store, plan, id, .. } = open;
    let cells = results(plan, &**store, work)?;
    if json {
        output.json(&ResultsJson { schema: RESULTS_SCHEMA, plan: id, cells });
        return Ok(());
    }
    let mut lines = Vec::new();
    for cell in &plan.cells {
        let number = plan.cells.iter().position(|other| other == cell).unwrap_or_default() + 1;
        let start = [number.to_string(), cell.name()];
        let line = |rest: [String; 3]| start.iter().cloned().chain(rest).collect::<Vec<String>>();
        let Some(result) = cells.iter().find(|result| result.task == cell.task) else {
            lines.push(line(["-".into(), "-".into(), "-".into()]));
            continue;
        };
        let Some(figures) = &result.figures else {
            lines.push(line(["output".into(), "-".into(), "-".into()]));
            continue;
        };
        for counters in figures.operations.iter().filter(|counters| counters.operation != TOTAL) {
            let per =
                Metric::PathLength.count(counters).map(|count| count as f64 / counters.operations as f64);
            let operations = counters.operations.to_string();
            lines.push(line([counters.operation.clone(), operations, per.map_or("-".into(), figure)]));
        }
    }
    output.table(
        &[
            "#CELL",
            "KERNEL/CONFIGURATION/COMPILER/RECIPE/WORKLOAD",
            "OPERATION",
            "#OPERATIONS",
            "#PATH LENGTH",
        ],
        lines,
    );
    let foreign = cells.iter().filter(|cell| !cell.confirmed).count();
    if foreign > 0 {
        output.note(&format!(
            "{foreign} of {} results are what other machines say; `matrix run --confirm` computes them here, too",
            cells.len()
        ));
    }
    for cell in cells.iter().filter(|cell| cell.output.is_some()) {
        output.print(&format!("\n{}\n{}", cell.cell, cell.output.as_deref().unwrap_or_default()));
    }
    Ok(())
}
