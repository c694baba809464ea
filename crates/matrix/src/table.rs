//! Status and results of a plan.

use crate::claim::{self, ClaimState};
use crate::figures::RunCounters;
use crate::task_result::{self, TaskResult};
use crate::{ledger, worker, Error, KernelRef, MatrixCell, MatrixPlan, Result, Store};
use kerntune_work::{Hash, Id, WorkDir};
use serde::Serialize;

/// Schema of the JSON form of [`results`].
pub const RESULTS_SCHEMA: &str = "kerntune-matrix-results/2";
/// Schema of the JSON form of [`states`].
pub const STATES_SCHEMA: &str = "kerntune-matrix-status/1";

/// Progress of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum TaskProgress {
    /// The store has its result.
    Done,
    /// A machine computes it.
    Working {
        /// Name of the machine.
        host: String,
        /// Process on that machine, as `PID@START`.
        process: String,
    },
    /// It failed.
    Failed {
        /// Message of the error.
        why: String,
    },
    /// No machine computes it.
    Waiting,
}

/// Status of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TaskStatus {
    /// Id of the task.
    pub task: String,
    /// Title of the task.
    pub title: String,
    /// Progress of the task.
    #[serde(flatten)]
    pub progress: TaskProgress,
    /// Number of claims; more than one if a claim was lost.
    pub claims: usize,
    /// Number of claims that led to a complete result.
    pub computed: usize,
}

/// Result of a cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CellResult {
    /// Name of the cell: kernel, configuration, compiler, recipe and workload, joined by `/`.
    pub cell: String,
    /// Id of the task.
    pub task: String,
    /// True if this machine computed the same result.
    pub confirmed: bool,
    /// Exact counters, if the cell is a measurement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub figures: Option<RunCounters>,
    /// Standard output, if the cell is a command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
}

/// Returns the status of every task of a plan.
///
/// # Errors
/// A store that does not answer.
pub fn states(plan: &MatrixPlan, store: &dyn Store) -> Result<Vec<TaskStatus>> {
    let (finished, failed) = (worker::finished(store)?, worker::failed(store)?);
    let mut all = Vec::with_capacity(plan.tasks.len());
    for task in &plan.tasks {
        let claims = claim::claims(store, &task.id)?;
        let computed =
            |claim: &claim::Claim| [ClaimState::Made, ClaimState::Discarded].contains(&claim.state);
        let last = claims.last().map(|(_, claim)| claim).filter(|claim| claim.state == ClaimState::Working);
        let progress = match last {
            _ if finished.contains(&task.id) => TaskProgress::Done,
            _ if failed.contains(&task.id) => {
                TaskProgress::Failed { why: worker::why_failed(store, &task.id)?.unwrap_or_default() }
            }
            Some(claim) => {
                let (host, process) = (claim.holder.host.clone(), claim.holder.process.clone());
                TaskProgress::Working { host, process }
            }
            None => TaskProgress::Waiting,
        };
        all.push(TaskStatus {
            task: task.id.to_string(),
            title: task.title.clone(),
            progress,
            claims: claims.len(),
            computed: claims.iter().filter(|(_, claim)| computed(claim)).count(),
        });
    }
    Ok(all)
}

/// Returns the results of all cells that have one. `work` tells which of them this machine
/// computed.
///
/// # Errors
/// A damaged result; [`Error::Differs`] if two machines computed different results;
/// [`Error::Replaced`] if this machine computed another.
pub fn results(plan: &MatrixPlan, store: &dyn Store, work: &WorkDir) -> Result<Vec<CellResult>> {
    let mut all = Vec::new();
    for cell in &plan.cells {
        let task = &cell.task;
        let Some((result, bytes)) = task_result::read(store, task)? else { continue };
        undisputed(plan, store, task)?;
        let ours = ledger::confirmed(work, task);
        let confirmed = ours.as_ref() == Some(&Hash::of(&bytes));
        if ours.is_some() && !confirmed {
            return Err(Error::Replaced { task: task.to_string(), name: task_result::result(task) });
        }
        let (figures, output) = match result {
            TaskResult::RunCounters(figures) => {
                of_its_kernel(plan, store, task, &figures)?;
                (Some(*figures), None)
            }
            TaskResult::CommandOutput(said) => (None, Some(said.output)),
            TaskResult::BuiltKernel(_) => {
                return Err(task_result::damaged(
                    store,
                    &task_result::result(task),
                    "a cell has no kernel for a result",
                ))
            }
        };
        all.push(CellResult { cell: cell.name(), task: task.to_string(), confirmed, figures, output });
    }
    Ok(all)
}

/// Refuses a result that two machines disagree on, or that depends on one.
fn undisputed(plan: &MatrixPlan, store: &dyn Store, task: &Id) -> Result<()> {
    if let Some(kept) = store.list(&task_result::conflicts(task))?.into_iter().next() {
        return Err(Error::Differs { task: task.to_string(), kept });
    }
    let needs = plan.task(task).map_or(&[][..], |task| &task.needs);
    needs.iter().try_for_each(|need| undisputed(plan, store, need))
}

/// Refuses counters of another kernel than the task names.
fn of_its_kernel(plan: &MatrixPlan, store: &dyn Store, task: &Id, figures: &RunCounters) -> Result<()> {
    let kernels = plan.task(task).map_or(&[][..], |task| task.kind.kernels());
    for kernel in kernels {
        let content = match kernel {
            KernelRef::Given { content, .. } => content.clone(),
            KernelRef::Of(need) => task_result::built(store, need)?.content,
        };
        if figures.kernel != content {
            return Err(task_result::damaged(store, &task_result::result(task), "it is of another kernel"));
        }
    }
    Ok(())
}

/// Returns the logs of a cell's task and of the tasks that it needs, by claim.
///
/// # Errors
/// A store that does not answer.
pub fn log(plan: &MatrixPlan, store: &dyn Store, cell: &MatrixCell) -> Result<String> {
    let mut text = String::new();
    let own = plan.task(&cell.task).into_iter();
    let needs = own.clone().flat_map(|task| &task.needs).filter_map(|id| plan.task(id));
    for task in needs.chain(own) {
        text.push_str(&format!("{} ({})\n", task.title, task.id));
        for name in store.list(&format!("logs/{}/", task.id))? {
            let said = store.get(&name)?.unwrap_or_default();
            text.push_str(&String::from_utf8_lossy(&said));
        }
        if let Some(why) = worker::why_failed(store, &task.id)? {
            text.push_str(&format!("failed: {why}\n"));
        }
    }
    Ok(text)
}
