//! All of a store, looked at: what is not as it was written, and what is nobody's.

use crate::made::{self, damaged};
use crate::{claim, pack, turn, Error, Plan, Result, Store};
use kerntune_work::{Id, WorkDir};
use serde::Serialize;

/// An object that is damaged, of nobody, or disputed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StoreFinding {
    /// Its name in the store.
    pub object: String,
    /// What is wrong with it.
    pub what: String,
}

/// What a store has, and what is wrong with it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct StoreAudit {
    /// Objects that were looked at.
    pub objects: usize,
    /// What is wrong, by name.
    pub findings: Vec<StoreFinding>,
}

/// Reads every object of a store. Packs are unpacked in `work`, and every file in them is hashed.
///
/// # Errors
/// A store that does not answer.
pub fn audit(store: &dyn Store, work: &WorkDir) -> Result<StoreAudit> {
    let mut audit = StoreAudit::default();
    for object in store.list("")? {
        kerntune_work::interrupt::check()?;
        audit.objects += 1;
        match look(store, work, &object) {
            Ok(()) => {}
            Err(Error::Object { what, .. }) => audit.findings.push(StoreFinding { object, what }),
            Err(Error::OtherCode { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(audit)
}

fn look(store: &dyn Store, work: &WorkDir, object: &str) -> Result<()> {
    let nobodys = || damaged(store, object, "it is no object of a matrix");
    let (room, name) = object.split_once('/').ok_or_else(nobodys)?;
    let id = |end: &str| name.strip_suffix(end).and_then(|id| id.parse::<Id>().ok()).ok_or_else(nobodys);
    match room {
        "plans" => Plan::load(store, &id(".json")?).map(drop),
        "results" => made::read(store, &id(".json")?).map(drop),
        "failures" => turn::why_failed(store, &id(".json")?).map(drop),
        "claims" => {
            let (task, number) = name.split_once('/').ok_or_else(nobodys)?;
            let task: Id = task.parse().map_err(|_| nobodys())?;
            claim::named(store, &task, number)?.ok_or_else(nobodys).map(drop)
        }
        "packs" => pack::check(store, work, &id(".tar.zst")?),
        // Beside results, for people.
        "logs" => Ok(()),
        "conflicts" => Err(damaged(store, object, "another machine computed another result")),
        _ => Err(nobodys()),
    }
}
