//! Checks a whole store for damaged, disputed and unknown objects.

use crate::task_result::{self, damaged};
use crate::{claim, pack, worker, Error, MatrixPlan, Result, Store};
use kerntune_work::{Id, WorkDir};
use serde::Serialize;

/// An object that is damaged, disputed or unknown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StoreFinding {
    /// Name of the object in the store.
    pub object: String,
    /// Description of the problem.
    pub what: String,
}

/// Result of checking a store.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct StoreAudit {
    /// Number of objects that were checked.
    pub objects: usize,
    /// Problems, sorted by object.
    pub findings: Vec<StoreFinding>,
}

/// Checks every object of a store. Packs are unpacked in `work`, and every file in them is hashed.
///
/// # Errors
/// A store that does not answer.
pub fn audit(store: &dyn Store, work: &WorkDir) -> Result<StoreAudit> {
    let mut audit = StoreAudit::default();
    for object in store.list("")? {
        kerntune_work::interrupt::check()?;
        audit.objects += 1;
        match check_object(store, work, &object) {
            Ok(()) => {}
            Err(Error::Object { what, .. }) => audit.findings.push(StoreFinding { object, what }),
            Err(Error::OtherCode { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(audit)
}

fn check_object(store: &dyn Store, work: &WorkDir, object: &str) -> Result<()> {
    let nobodys = || damaged(store, object, "it is no object of a matrix");
    let (kind, name) = object.split_once('/').ok_or_else(nobodys)?;
    let id = |end: &str| name.strip_suffix(end).and_then(|id| id.parse::<Id>().ok()).ok_or_else(nobodys);
    match kind {
        "plans" => MatrixPlan::load(store, &id(".json")?).map(drop),
        "results" => task_result::read(store, &id(".json")?).map(drop),
        "failures" => worker::why_failed(store, &id(".json")?).map(drop),
        "claims" => {
            let (task, number) = name.split_once('/').ok_or_else(nobodys)?;
            let task: Id = task.parse().map_err(|_| nobodys())?;
            claim::read_named(store, &task, number)?.ok_or_else(nobodys).map(drop)
        }
        "packs" => pack::check(store, work, &id(".tar.zst")?),
        // Logs are for people.
        "logs" => Ok(()),
        "conflicts" => Err(damaged(store, object, "another machine computed another result")),
        _ => Err(nobodys()),
    }
}
