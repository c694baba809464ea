//! Table of a plan: what became of each recipe with each kernel and compiler.

use crate::{results, task_result, worker, KernelRef, MatrixCell, MatrixPlan, Result, Store};
use kerntune_compare::Metric;
use kerntune_work::{Id, WorkDir};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Schema of the JSON form of [`recipe_table`].
pub const TABLE_SCHEMA: &str = "kerntune-matrix-table/1";

/// Recipe of kernels that are not tuned.
const NONE: &str = "none";

/// Outcome of a recipe.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum RecipeOutcome {
    /// The kernel was made and, if there is a change, measured.
    Made {
        /// Id of the kernel.
        kernel: String,
        /// Change of model cycles against the untuned kernel of the row, as a share: -0.1 for 10 %
        /// fewer.
        #[serde(skip_serializing_if = "Option::is_none")]
        change: Option<f64>,
    },
    /// The recipe refuses the compiler or the kernel, or its kernel is not made.
    Refused {
        /// Reason.
        reason: String,
    },
    /// The machine that made the plan lacks something.
    Missing {
        /// Lacking program or package.
        reason: String,
    },
    /// Nobody computed it.
    NotRun,
}

/// Row of the table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RecipeRow {
    /// Name of the kernel.
    pub kernel: String,
    /// Name of the configuration, or `-`.
    pub configuration: String,
    /// Name of the compiler, or `-`.
    pub compiler: String,
    /// Name of the workload.
    pub workload: String,
    /// Outcomes by recipe.
    pub recipes: BTreeMap<String, RecipeOutcome>,
}

/// Returns the table of a plan, by the results of a store.
///
/// # Errors
/// Errors of [`results`].
pub fn recipe_table(plan: &MatrixPlan, store: &dyn Store, work: &WorkDir) -> Result<Vec<RecipeRow>> {
    let cycles: BTreeMap<String, u64> = results(plan, store, work)?
        .into_iter()
        .filter_map(|cell| Some((cell.task, Metric::ModelCycles.count(&cell.figures?.total)?)))
        .collect();
    let stored = StoredTasks { store, finished: worker::finished(store)?, failed: worker::failed(store)? };
    let mut rows: Vec<RecipeRow> = Vec::new();
    for cell in plan.cells.iter().filter(|cell| plan.workloads.contains_key(&cell.workload)) {
        let row = row_of(&mut rows, [&cell.kernel, &cell.configuration, &cell.compiler, &cell.workload]);
        let untuned = plan.cells.iter().find(|other| is_untuned(other, cell));
        let (own, untuned) =
            (cycles.get(cell.task.as_str()), untuned.and_then(|of| cycles.get(of.task.as_str())));
        let change = match (own, untuned) {
            (Some(own), Some(untuned)) if *untuned > 0 => Some(*own as f64 / *untuned as f64 - 1.0),
            _ => None,
        };
        row.recipes.insert(cell.recipe.clone(), stored.outcome(plan, cell, change)?);
    }
    for refused in &plan.refused {
        for workload in plan.workloads.keys() {
            let names = [&refused.kernel, &refused.configuration, &refused.compiler, workload];
            let reason = refused.reason.clone();
            let outcome = match refused.is_missing {
                true => RecipeOutcome::Missing { reason },
                false => RecipeOutcome::Refused { reason },
            };
            row_of(&mut rows, names).recipes.insert(refused.recipe.clone(), outcome);
        }
    }
    Ok(rows)
}

fn is_untuned(other: &MatrixCell, cell: &MatrixCell) -> bool {
    let names = |of: &MatrixCell| {
        [&of.kernel, &of.configuration, &of.compiler, &of.workload].map(|name| name.to_owned())
    };
    other.recipe == NONE && names(other) == names(cell)
}

fn row_of<'a>(rows: &'a mut Vec<RecipeRow>, names: [&String; 4]) -> &'a mut RecipeRow {
    let is_it = |row: &RecipeRow| [&row.kernel, &row.configuration, &row.compiler, &row.workload] == names;
    let at = rows.iter().position(is_it).unwrap_or(rows.len());
    if at == rows.len() {
        let [kernel, configuration, compiler, workload] = names.map(Clone::clone);
        rows.push(RecipeRow { kernel, configuration, compiler, workload, recipes: BTreeMap::new() });
    }
    &mut rows[at]
}

struct StoredTasks<'a> {
    store: &'a dyn Store,
    finished: BTreeSet<Id>,
    failed: BTreeSet<Id>,
}

impl StoredTasks<'_> {
    fn outcome(&self, plan: &MatrixPlan, cell: &MatrixCell, change: Option<f64>) -> Result<RecipeOutcome> {
        let kernels = plan.task(&cell.task).map_or(&[][..], |task| task.kind.kernels());
        let Some(kernel) = kernels.first() else { return Ok(RecipeOutcome::NotRun) };
        let task = match kernel {
            KernelRef::Given { id, .. } => {
                return Ok(RecipeOutcome::Made { kernel: id.to_string(), change });
            }
            KernelRef::Of(task) => task,
        };
        if self.finished.contains(task) {
            let kernel = task_result::built(self.store, task)?.kernel.to_string();
            return Ok(RecipeOutcome::Made { kernel, change });
        }
        let needs = plan.task(task).map_or(&[][..], |task| &task.needs);
        match needs.iter().chain([task]).find(|need| self.failed.contains(*need)) {
            Some(failed) => {
                let reason = worker::why_failed(self.store, failed)?.unwrap_or_default();
                Ok(RecipeOutcome::Refused { reason })
            }
            None => Ok(RecipeOutcome::NotRun),
        }
    }
}

/// Formats the table as Markdown: a table for each workload, and the reasons below it.
pub fn markdown(rows: &[RecipeRow], recipes: &[String]) -> String {
    let mut text = String::new();
    let mut reasons: Vec<&str> = Vec::new();
    let workloads: Vec<&String> = rows.iter().map(|row| &row.workload).fold(Vec::new(), |mut all, name| {
        if !all.contains(&name) {
            all.push(name);
        }
        all
    });
    for workload in workloads {
        let _ = writeln!(text, "**`{workload}`**\n");
        let names: Vec<String> = recipes.iter().map(|recipe| format!("`{recipe}`")).collect();
        let _ = writeln!(text, "| kernel | compiler | {} |", names.join(" | "));
        let _ = writeln!(text, "|---|---|{}", "---|".repeat(recipes.len()));
        for row in rows.iter().filter(|row| row.workload == *workload) {
            let cells = recipes.iter().map(|recipe| cell(row.recipes.get(recipe), &mut reasons));
            let cells: Vec<String> = cells.collect();
            let kernel = match row.configuration.as_str() {
                "-" => row.kernel.clone(),
                configuration => format!("{} {configuration}", row.kernel),
            };
            let _ = writeln!(text, "| {kernel} | {} | {} |", row.compiler, cells.join(" | "));
        }
        text.push('\n');
    }
    for (number, reason) in (1..).zip(&reasons) {
        let _ = writeln!(text, "{number}. {}", reason.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    text
}

fn cell<'a>(outcome: Option<&'a RecipeOutcome>, reasons: &mut Vec<&'a str>) -> String {
    let mut noted = |word: &str, reason: &'a str| {
        let at = reasons.iter().position(|known| *known == reason).unwrap_or_else(|| {
            reasons.push(reason);
            reasons.len() - 1
        });
        format!("{word} ({})", at + 1)
    };
    match outcome {
        Some(RecipeOutcome::Made { kernel, change: Some(change) }) if *change != 0.0 => {
            format!("`{}` {:+.1} %", &kernel[..kernel.len().min(8)], change * 100.0)
        }
        Some(RecipeOutcome::Made { kernel, .. }) => format!("`{}`", &kernel[..kernel.len().min(8)]),
        Some(RecipeOutcome::Refused { reason }) => noted("refused", reason),
        Some(RecipeOutcome::Missing { reason }) => noted("not run", reason),
        Some(RecipeOutcome::NotRun) | None => "not run".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_says_what_became_of_it() {
        let made = |change| RecipeOutcome::Made { kernel: "0123456789abcdef".into(), change };
        let refused = || RecipeOutcome::Refused { reason: "it needs\n  GCC 12 to 16".into() };
        let missing = || RecipeOutcome::Missing { reason: "no clang-23".into() };
        let row = |compiler: &str, outcomes: [RecipeOutcome; 3]| RecipeRow {
            kernel: "6.12".into(),
            configuration: "-".into(),
            compiler: compiler.into(),
            workload: "rr".into(),
            recipes: ["none", "gcc-pgo", "bolt"].map(String::from).into_iter().zip(outcomes).collect(),
        };
        let rows = [
            row("gcc-12", [made(Some(0.0)), made(Some(-0.3456)), RecipeOutcome::NotRun]),
            row("clang-19", [made(None), refused(), refused()]),
            row("clang-23", [missing(), missing(), missing()]),
        ];
        let recipes = ["none", "gcc-pgo", "bolt"].map(String::from);
        assert_eq!(
            markdown(&rows, &recipes),
            "**`rr`**\n\n\
             | kernel | compiler | `none` | `gcc-pgo` | `bolt` |\n\
             |---|---|---|---|---|\n\
             | 6.12 | gcc-12 | `01234567` | `01234567` -34.6 % | not run |\n\
             | 6.12 | clang-19 | `01234567` | refused (1) | refused (1) |\n\
             | 6.12 | clang-23 | not run (2) | not run (2) | not run (2) |\n\n\
             1. it needs GCC 12 to 16\n\
             2. no clang-23\n"
        );
    }
}
