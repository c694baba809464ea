//! One task on one machine: claim, compute, put the result there once.

use crate::claim::{self, ClaimState};
use crate::made::result;
use crate::{Error, Place, Plan, Result, Store, Task};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// What became of a task in this call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turn {
    /// It was computed here.
    Made,
    /// Its result was there.
    Found,
    /// It was computed here, and somebody else was faster: the same bytes, which are thrown away.
    Discarded,
    /// It failed, here or elsewhere before; why.
    Failed(String),
    /// This machine would compute something else: what differs.
    Refused(Vec<String>),
}

/// A machine that works on a plan.
pub struct Worker<'a> {
    /// What is to be computed.
    pub plan: &'a Plan,
    /// Where results and claims are.
    pub store: Arc<dyn Store>,
    /// Where it is computed.
    pub place: Place<'a>,
    /// After so long without a sign of life another one's claim is taken over ([`crate::LEASE`]).
    pub lease: Duration,
    /// What is said while a task is computed, to be kept with it.
    pub log: &'a (dyn Fn() -> Vec<u8> + Send + Sync),
}

/// Why a task failed.
#[derive(Debug, Serialize, Deserialize)]
struct Failure {
    schema: String,
    task: String,
    message: String,
}

const FAILURE: &str = "kerntune-failure/1";

fn failure(task: &str) -> String {
    format!("failures/{task}.json")
}

/// The ids of the tasks that have a result.
pub(crate) fn finished(store: &dyn Store) -> Result<BTreeSet<String>> {
    ids(store, "results/")
}

/// The ids of the tasks that failed.
pub(crate) fn failed(store: &dyn Store) -> Result<BTreeSet<String>> {
    ids(store, "failures/")
}

fn ids(store: &dyn Store, room: &str) -> Result<BTreeSet<String>> {
    let names = store.list(room)?;
    Ok(names
        .iter()
        .filter_map(|name| Some(name.strip_prefix(room)?.strip_suffix(".json")?.to_owned()))
        .collect())
}

/// Why a task failed, if it did.
pub(crate) fn why_failed(store: &dyn Store, task: &str) -> Result<Option<String>> {
    let name = failure(task);
    let Some(bytes) = store.get(&name)? else { return Ok(None) };
    let damaged =
        |error: serde_json::Error| Error::Object { store: store.url(), name, what: error.to_string() };
    let failure: Failure = serde_json::from_slice(&bytes).map_err(damaged)?;
    Ok(Some(failure.message))
}

/// Forgets that these tasks failed: they are tried again.
pub(crate) fn forgive(store: &dyn Store, tasks: &[Task]) -> Result<()> {
    let failed = failed(store)?;
    tasks
        .iter()
        .filter(|task| failed.contains(&task.id))
        .try_for_each(|task| store.delete(&failure(&task.id)))
}

impl Worker<'_> {
    /// Computes a task, unless it is there. Waits while others compute it.
    ///
    /// # Errors
    /// What keeps this machine from computing it, an interrupt among it; [`Error::Differs`].
    pub fn turn(&self, id: &str) -> Result<Turn> {
        let store = &*self.store;
        let task = self.plan.task(id).ok_or(Error::Unknown { what: "task", name: id.to_owned() })?;
        let progress = self.place.progress;
        if store.get(&result(id))?.is_some() {
            return Ok(Turn::Found);
        }
        if let Some(why) = why_failed(store, id)? {
            return Ok(Turn::Failed(why));
        }
        for need in &task.needs {
            if store.get(&result(need))?.is_none() {
                return Err(Error::NotReady { task: id.to_owned(), need: need.clone() });
            }
        }
        let differences = self.place.differences(self.plan, task)?;
        if !differences.is_empty() {
            return Ok(Turn::Refused(differences));
        }
        let done = || Ok(store.get(&result(id))?.is_some() || why_failed(store, id)?.is_some());
        let Some(held) = claim::take(&self.store, id, self.lease, &done)? else {
            return Ok(why_failed(store, id)?.map_or(Turn::Found, Turn::Failed));
        };
        // Between the last look and the claim it may have come.
        if done()? {
            held.end(ClaimState::Released)?;
            return Ok(why_failed(store, id)?.map_or(Turn::Found, Turn::Failed));
        }
        progress.note(&format!("{}: claim {}", task.title, held.number));
        let number = held.number;
        let computed = self.place.perform(self.plan, store, task);
        // Beside the result, for people: one that is lost is no loss.
        let log = (self.log)();
        if !log.is_empty() {
            let _ = store.put(&format!("logs/{id}/{number:04}.log"), &log);
        }
        match computed {
            Ok(bytes) => {
                let turn = self.put(id, number, &bytes)?;
                held.end(if turn == Turn::Made { ClaimState::Made } else { ClaimState::Discarded })?;
                Ok(turn)
            }
            Err(error) if error.is_interrupt() || error.is_of_the_machine() => {
                held.end(ClaimState::Released)?;
                Err(error)
            }
            Err(error) => {
                let message = error.to_string();
                let failed =
                    Failure { schema: FAILURE.into(), task: id.to_owned(), message: message.clone() };
                store.put_new(&failure(id), &crate::figures::bytes(&failed))?;
                held.end(ClaimState::Failed)?;
                Ok(Turn::Failed(message))
            }
        }
    }

    /// Puts a result there. One that is there has to be the same.
    fn put(&self, id: &str, number: u64, bytes: &[u8]) -> Result<Turn> {
        let (store, name) = (&*self.store, result(id));
        if store.put_new(&name, bytes)? {
            return Ok(Turn::Made);
        }
        if store.get(&name)?.as_deref() == Some(bytes) {
            return Ok(Turn::Discarded);
        }
        let kept = format!("conflicts/{id}/{number:04}.json");
        store.put(&kept, bytes)?;
        Err(Error::Differs { task: id.to_owned(), kept })
    }
}

/// Forgets that tasks of a plan failed: they are tried again.
///
/// # Errors
/// A store that does not answer.
pub fn retry(plan: &Plan, store: &dyn Store) -> Result<()> {
    forgive(store, &plan.tasks)
}
