//! Computes one task on one machine: claims it, computes it, publishes the result once.

use crate::claim::{self, ClaimState};
use crate::task_result::{self, decode, result};
use crate::trust::{self, Trust};
use crate::{ledger, Error, MatrixPlan, Result, Store, Task, TaskEnvironment, TaskKind};
use kerntune_work::{Hash, Id};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// Outcome of [`Worker::compute`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskOutcome {
    /// Computed here and published.
    Made,
    /// The store already had the result.
    Found,
    /// Computed here, but another machine had published the same bytes first.
    Discarded,
    /// The store had the result; computed again here, with the same bytes.
    Confirmed,
    /// Failed, here or earlier on another machine; the message of the error.
    Failed(String),
    /// Not computed, because these inputs differ on this machine.
    Refused(Vec<String>),
}

/// A machine that works on a plan.
pub struct Worker<'a> {
    /// Plan to work on.
    pub plan: &'a MatrixPlan,
    /// Store of results and claims.
    pub store: Arc<dyn Store>,
    /// Work directory, machine and progress of this worker.
    pub environment: TaskEnvironment<'a>,
    /// Time without a change after which another machine's claim is taken over ([`crate::LEASE`]).
    pub lease: Duration,
    /// Returns the log of the current task, which is stored with its result.
    pub log: &'a (dyn Fn() -> Vec<u8> + Send + Sync),
    /// Trust in the plan and in other machines.
    pub trust: Trust,
}

/// Reason why a task failed, as the store has it.
#[derive(Debug, Serialize, Deserialize)]
struct TaskFailure {
    schema: String,
    task: Id,
    message: String,
}

const FAILURE: &str = "kerntune-failure/2";

fn failure(task: &Id) -> String {
    format!("failures/{task}.json")
}

/// Ids of the tasks that have a result.
pub(crate) fn finished(store: &dyn Store) -> Result<BTreeSet<Id>> {
    ids(store, "results/")
}

/// Ids of the tasks that failed.
pub(crate) fn failed(store: &dyn Store) -> Result<BTreeSet<Id>> {
    ids(store, "failures/")
}

fn ids(store: &dyn Store, prefix: &str) -> Result<BTreeSet<Id>> {
    let names = store.list(prefix)?;
    Ok(names
        .iter()
        .filter_map(|name| name.strip_prefix(prefix)?.strip_suffix(".json")?.parse().ok())
        .collect())
}

/// Returns the message of a failed task; `None` if it did not fail.
pub(crate) fn why_failed(store: &dyn Store, task: &Id) -> Result<Option<String>> {
    let name = failure(task);
    let Some(bytes) = store.get(&name)? else { return Ok(None) };
    let failure: TaskFailure = decode(store, &name, &bytes, FAILURE)?;
    match failure.task == *task {
        true => Ok(Some(failure.message)),
        false => Err(task_result::damaged(store, &name, "it is of another task")),
    }
}

/// Deletes the failures of these tasks, so that they are tried again.
pub(crate) fn forgive(store: &dyn Store, tasks: &[Task]) -> Result<()> {
    let failed = failed(store)?;
    tasks
        .iter()
        .filter(|task| failed.contains(&task.id))
        .try_for_each(|task| store.delete(&failure(&task.id)))
}

impl Worker<'_> {
    /// Computes a task unless the store has its result. Waits while another machine computes it.
    ///
    /// # Errors
    /// Errors that are this machine's and not the task's, including an interrupt;
    /// [`Error::Differs`].
    pub fn compute(&self, id: &str) -> Result<TaskOutcome> {
        let store = &*self.store;
        let task = self.plan.task(id).ok_or(Error::Unknown { what: "task", name: id.to_owned() })?;
        let (id, progress) = (&task.id, self.environment.progress);
        let found = task_result::read(store, id)?;
        if found.is_some() && !self.trust.confirm {
            return Ok(TaskOutcome::Found);
        }
        if let Some((_, bytes)) = &found {
            match ledger::confirmed(self.environment.work, id) {
                Some(ours) if ours == Hash::of(bytes) => return Ok(TaskOutcome::Found),
                _ => {}
            }
        } else if let Some(why) = why_failed(store, id)? {
            return Ok(TaskOutcome::Failed(why));
        }
        for need in &task.needs {
            if task_result::read(store, need)?.is_none() {
                return Err(Error::NotReady { task: id.to_string(), need: need.to_string() });
            }
        }
        let runs_code = self.trust.confirm || !matches!(task.kind, TaskKind::Measure { .. });
        if runs_code && !self.trust.commands {
            if let Some(reason) = trust::foreign_code(self.plan, self.environment.work, task)? {
                return Err(Error::Untrusted { title: task.title.clone(), reason });
            }
        }
        let differences = self.environment.differences(self.plan, task)?;
        if !differences.is_empty() {
            return Ok(TaskOutcome::Refused(differences));
        }
        if let Some((_, theirs)) = found {
            return self.confirm(task, &theirs);
        }
        let done = || Ok(store.get(&result(id))?.is_some() || why_failed(store, id)?.is_some());
        let Some(held) = claim::acquire(&self.store, id, self.lease, &done)? else {
            return Ok(why_failed(store, id)?.map_or(TaskOutcome::Found, TaskOutcome::Failed));
        };
        // The result may have come between the last check and the claim.
        if done()? {
            held.end(ClaimState::Released)?;
            return Ok(why_failed(store, id)?.map_or(TaskOutcome::Found, TaskOutcome::Failed));
        }
        progress.note(&format!("{}: claim {}", task.title, held.number));
        let number = held.number;
        let computed = self.environment.perform(self.plan, store, task, self.trust);
        // The log is for people; a lost one does not matter.
        let log = (self.log)();
        if !log.is_empty() {
            let _ = store.put(&format!("logs/{id}/{number:04}.log"), &log);
        }
        match computed {
            Ok(bytes) => {
                let outcome = self.publish(id, &bytes)?;
                held.end(if outcome == TaskOutcome::Made {
                    ClaimState::Made
                } else {
                    ClaimState::Discarded
                })?;
                Ok(outcome)
            }
            Err(error) if error.is_interrupt() || error.is_of_the_machine() => {
                held.end(ClaimState::Released)?;
                Err(error)
            }
            Err(error) => {
                let message = error.to_string();
                let failed =
                    TaskFailure { schema: FAILURE.into(), task: id.clone(), message: message.clone() };
                store.put_new(&failure(id), &crate::figures::bytes(&failed))?;
                held.end(ClaimState::Failed)?;
                Ok(TaskOutcome::Failed(message))
            }
        }
    }

    /// Publishes a result. One that is there must be the same.
    fn publish(&self, id: &Id, bytes: &[u8]) -> Result<TaskOutcome> {
        let (store, name) = (&*self.store, result(id));
        ledger::confirm(self.environment.work, id, bytes)?;
        if store.put_new(&name, bytes)? {
            return Ok(TaskOutcome::Made);
        }
        match store.get(&name)?.as_deref() == Some(bytes) {
            true => Ok(TaskOutcome::Discarded),
            false => Err(task_result::conflict(store, id, bytes)?),
        }
    }

    /// Recomputes a task that has a result, without a claim, since no machine waits for it.
    fn confirm(&self, task: &Task, theirs: &[u8]) -> Result<TaskOutcome> {
        let store = &*self.store;
        let ours = self.environment.perform(self.plan, store, task, self.trust)?;
        ledger::confirm(self.environment.work, &task.id, &ours)?;
        match ours == theirs {
            true => Ok(TaskOutcome::Confirmed),
            false => Err(task_result::conflict(store, &task.id, &ours)?),
        }
    }
}

/// Deletes the failures of a plan's tasks, so that they are tried again.
///
/// # Errors
/// A store that does not answer.
pub fn retry(plan: &MatrixPlan, store: &dyn Store) -> Result<()> {
    forgive(store, &plan.tasks)
}
