//! How far a plan is, and what came of it.

use crate::claim::{self, ClaimState};
use crate::figures::Figures;
use crate::made::{self, TaskResult};
use crate::{ledger, turn, Cell, Error, KernelRef, Plan, Result, Store};
use kerntune_work::{Hash, Id, WorkDir};
use serde::Serialize;

/// Name and version of the JSON form of [`results`].
pub const RESULTS_SCHEMA: &str = "kerntune-matrix-results/2";
/// Name and version of the JSON form of [`states`].
pub const STATES_SCHEMA: &str = "kerntune-matrix-status/1";

/// How far a task is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum Progress {
    /// Its result is there.
    Done,
    /// Somebody works on it: machine and process.
    Working {
        /// Which machine.
        host: String,
        /// Which process of it.
        process: String,
    },
    /// It failed; why.
    Failed {
        /// The message.
        why: String,
    },
    /// Nobody works on it.
    Waiting,
}

/// A task, how far it is, and how often it was begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CellState {
    /// The task.
    pub task: String,
    /// What it does.
    pub title: String,
    /// How far it is.
    #[serde(flatten)]
    pub progress: Progress,
    /// How often it was claimed: more than once where one was lost.
    pub claims: usize,
    /// Of these, how many computed a whole result.
    pub computed: usize,
}

/// A cell's result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CellResult {
    /// Kernel, configuration, compiler, recipe and workload, with `/` between them.
    pub cell: String,
    /// The task.
    pub task: String,
    /// Whether this machine computed the same.
    pub confirmed: bool,
    /// Exact counters, of a measurement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub figures: Option<Figures>,
    /// What was printed, of a command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
}

/// Every task of a plan.
///
/// # Errors
/// A store that does not answer.
pub fn states(plan: &Plan, store: &dyn Store) -> Result<Vec<CellState>> {
    let (finished, failed) = (turn::finished(store)?, turn::failed(store)?);
    let mut all = Vec::with_capacity(plan.tasks.len());
    for task in &plan.tasks {
        let claims = claim::claims(store, &task.id)?;
        let computed =
            |claim: &claim::Claim| [ClaimState::Made, ClaimState::Discarded].contains(&claim.state);
        let last = claims.last().map(|(_, claim)| claim).filter(|claim| claim.state == ClaimState::Working);
        let progress = match last {
            _ if finished.contains(&task.id) => Progress::Done,
            _ if failed.contains(&task.id) => {
                Progress::Failed { why: turn::why_failed(store, &task.id)?.unwrap_or_default() }
            }
            Some(claim) => {
                let (host, process) = (claim.holder.host.clone(), claim.holder.process.clone());
                Progress::Working { host, process }
            }
            None => Progress::Waiting,
        };
        all.push(CellState {
            task: task.id.to_string(),
            title: task.title.clone(),
            progress,
            claims: claims.len(),
            computed: claims.iter().filter(|(_, claim)| computed(claim)).count(),
        });
    }
    Ok(all)
}

/// The results of the cells that have one. `work` knows which of them this machine computed.
///
/// # Errors
/// A result that is damaged; [`Error::Differs`] for one that came out differently on another machine, or on this one.
pub fn results(plan: &Plan, store: &dyn Store, work: &WorkDir) -> Result<Vec<CellResult>> {
    let mut all = Vec::new();
    for cell in &plan.cells {
        let task = &cell.task;
        let Some((result, bytes)) = made::read(store, task)? else { continue };
        undisputed(plan, store, task)?;
        let ours = ledger::confirmed(work, task);
        let confirmed = ours.as_ref() == Some(&Hash::of(&bytes));
        if ours.is_some() && !confirmed {
            return Err(Error::Replaced { task: task.to_string(), name: made::result(task) });
        }
        let (figures, output) = match result {
            TaskResult::Figures(figures) => {
                of_its_kernel(plan, store, task, &figures)?;
                (Some(*figures), None)
            }
            TaskResult::Said(said) => (None, Some(said.output)),
            TaskResult::Built(_) => {
                return Err(made::damaged(store, &made::result(task), "a cell has no kernel for a result"))
            }
        };
        all.push(CellResult { cell: cell.name(), task: task.to_string(), confirmed, figures, output });
    }
    Ok(all)
}

/// Refuses a result on which two machines disagree, or that needs one.
fn undisputed(plan: &Plan, store: &dyn Store, task: &Id) -> Result<()> {
    if let Some(kept) = store.list(&made::conflicts(task))?.into_iter().next() {
        return Err(Error::Differs { task: task.to_string(), kept });
    }
    let needs = plan.task(task).map_or(&[][..], |task| &task.needs);
    needs.iter().try_for_each(|need| undisputed(plan, store, need))
}

/// Refuses figures of another kernel than the task names.
fn of_its_kernel(plan: &Plan, store: &dyn Store, task: &Id, figures: &Figures) -> Result<()> {
    let kernels = plan.task(task).map_or(&[][..], |task| task.what.kernels());
    for kernel in kernels {
        let content = match kernel {
            KernelRef::Given { content, .. } => content.clone(),
            KernelRef::Of(need) => made::built(store, need)?.content,
        };
        if figures.kernel != content {
            return Err(made::damaged(store, &made::result(task), "it is of another kernel"));
        }
    }
    Ok(())
}

/// What was said while a cell was computed: of each task that it needs, and of its own, by claim.
///
/// # Errors
/// A store that does not answer.
pub fn log(plan: &Plan, store: &dyn Store, cell: &Cell) -> Result<String> {
    let mut text = String::new();
    let own = plan.task(&cell.task).into_iter();
    let needs = own.clone().flat_map(|task| &task.needs).filter_map(|id| plan.task(id));
    for task in needs.chain(own) {
        text.push_str(&format!("{} ({})\n", task.title, task.id));
        for name in store.list(&format!("logs/{}/", task.id))? {
            let said = store.get(&name)?.unwrap_or_default();
            text.push_str(&String::from_utf8_lossy(&said));
        }
        if let Some(why) = turn::why_failed(store, &task.id)? {
            text.push_str(&format!("failed: {why}\n"));
        }
    }
    Ok(text)
}
