//! How far a plan is, and what came of it.

use crate::claim::{self, ClaimState};
use crate::figures::{Figures, Said, FIGURES};
use crate::{turn, Cell, Error, Plan, Result, Store};
use serde::Serialize;

/// Name and version of the JSON form of [`results`].
pub const RESULTS_SCHEMA: &str = "kerntune-matrix-results/1";
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
            task: task.id.clone(),
            title: task.title.clone(),
            progress,
            claims: claims.len(),
            computed: claims.iter().filter(|(_, claim)| computed(claim)).count(),
        });
    }
    Ok(all)
}

/// The results of the cells that have one.
///
/// # Errors
/// A result that is damaged.
pub fn results(plan: &Plan, store: &dyn Store) -> Result<Vec<CellResult>> {
    let mut all = Vec::new();
    for cell in &plan.cells {
        let name = crate::made::result(&cell.task);
        let Some(bytes) = store.get(&name)? else { continue };
        let damaged = |what: String| Error::Object { store: store.url(), name: name.clone(), what };
        let of = |error: serde_json::Error| damaged(error.to_string());
        let value: serde_json::Value = serde_json::from_slice(&bytes).map_err(of)?;
        if value["task"] != cell.task.as_str() {
            return Err(damaged("it is of another task".into()));
        }
        let (figures, output) = match value["schema"] == FIGURES {
            true => (Some(serde_json::from_value(value).map_err(of)?), None),
            false => (None, Some(serde_json::from_value::<Said>(value).map_err(of)?.output)),
        };
        all.push(CellResult { cell: cell.name(), task: cell.task.clone(), figures, output });
    }
    Ok(all)
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
