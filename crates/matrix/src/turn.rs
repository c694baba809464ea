//! One task on one machine: claim, compute, put the result there once.

use crate::claim::{self, ClaimState};
use crate::made::{self, decode, result};
use crate::trust::{self, Trust};
use crate::{ledger, Error, Place, Plan, Result, Store, Task, What};
use kerntune_work::{Hash, Id};
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
    /// It was computed here as well, and came out the same.
    Confirmed,
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
    /// Whether to believe what the plan and the store say.
    pub trust: Trust,
}

/// Why a task failed.
#[derive(Debug, Serialize, Deserialize)]
struct Failure {
    schema: String,
    task: Id,
    message: String,
}

const FAILURE: &str = "kerntune-failure/2";

fn failure(task: &Id) -> String {
    format!("failures/{task}.json")
}

/// The ids of the tasks that have a result.
pub(crate) fn finished(store: &dyn Store) -> Result<BTreeSet<Id>> {
    ids(store, "results/")
}

/// The ids of the tasks that failed.
pub(crate) fn failed(store: &dyn Store) -> Result<BTreeSet<Id>> {
    ids(store, "failures/")
}

fn ids(store: &dyn Store, room: &str) -> Result<BTreeSet<Id>> {
    let names = store.list(room)?;
    Ok(names.iter().filter_map(|name| name.strip_prefix(room)?.strip_suffix(".json")?.parse().ok()).collect())
}

/// Why a task failed, if it did.
pub(crate) fn why_failed(store: &dyn Store, task: &Id) -> Result<Option<String>> {
    let name = failure(task);
    let Some(bytes) = store.get(&name)? else { return Ok(None) };
    let failure: Failure = decode(store, &name, &bytes, FAILURE)?;
    match failure.task == *task {
        true => Ok(Some(failure.message)),
        false => Err(made::damaged(store, &name, "it is of another task")),
    }
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
        let (id, progress) = (&task.id, self.place.progress);
        let found = made::read(store, id)?;
        if found.is_some() && !self.trust.confirm {
            return Ok(Turn::Found);
        }
        if let Some((_, bytes)) = &found {
            match ledger::confirmed(self.place.work, id) {
                Some(ours) if ours == Hash::of(bytes) => return Ok(Turn::Found),
                _ => {}
            }
        } else if let Some(why) = why_failed(store, id)? {
            return Ok(Turn::Failed(why));
        }
        for need in &task.needs {
            if made::read(store, need)?.is_none() {
                return Err(Error::NotReady { task: id.to_string(), need: need.to_string() });
            }
        }
        let runs_code = self.trust.confirm || !matches!(task.what, What::Measure { .. });
        if runs_code && !self.trust.commands {
            if let Some(reason) = trust::foreign_code(self.plan, self.place.work, task)? {
                return Err(Error::Untrusted { title: task.title.clone(), reason });
            }
        }
        let differences = self.place.differences(self.plan, task)?;
        if !differences.is_empty() {
            return Ok(Turn::Refused(differences));
        }
        if let Some((_, theirs)) = found {
            return self.compare(task, &theirs);
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
        let computed = self.place.perform(self.plan, store, task, self.trust);
        // Beside the result, for people: one that is lost is no loss.
        let log = (self.log)();
        if !log.is_empty() {
            let _ = store.put(&format!("logs/{id}/{number:04}.log"), &log);
        }
        match computed {
            Ok(bytes) => {
                let turn = self.put(id, &bytes)?;
                held.end(if turn == Turn::Made { ClaimState::Made } else { ClaimState::Discarded })?;
                Ok(turn)
            }
            Err(error) if error.is_interrupt() || error.is_of_the_machine() => {
                held.end(ClaimState::Released)?;
                Err(error)
            }
            Err(error) => {
                let message = error.to_string();
                let failed = Failure { schema: FAILURE.into(), task: id.clone(), message: message.clone() };
                store.put_new(&failure(id), &crate::figures::bytes(&failed))?;
                held.end(ClaimState::Failed)?;
                Ok(Turn::Failed(message))
            }
        }
    }

    /// Puts a result there. One that is there has to be the same.
    fn put(&self, id: &Id, bytes: &[u8]) -> Result<Turn> {
        let (store, name) = (&*self.store, result(id));
        ledger::confirm(self.place.work, id, bytes)?;
        if store.put_new(&name, bytes)? {
            return Ok(Turn::Made);
        }
        match store.get(&name)?.as_deref() == Some(bytes) {
            true => Ok(Turn::Discarded),
            false => Err(made::conflict(store, id, bytes)?),
        }
    }

    /// Computes a task that another machine computed, without a claim: nobody waits for it.
    fn compare(&self, task: &Task, theirs: &[u8]) -> Result<Turn> {
        let store = &*self.store;
        let ours = self.place.perform(self.plan, store, task, self.trust)?;
        ledger::confirm(self.place.work, &task.id, &ours)?;
        match ours == theirs {
            true => Ok(Turn::Confirmed),
            false => Err(made::conflict(store, &task.id, &ours)?),
        }
    }
}

/// Forgets that tasks of a plan failed: they are tried again.
///
/// # Errors
/// A store that does not answer.
pub fn retry(plan: &Plan, store: &dyn Store) -> Result<()> {
    forgive(store, &plan.tasks)
}
