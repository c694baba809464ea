//! What a task made, in a store.

use crate::figures::{Built, BUILT};
use crate::{Error, Result, Store};

/// Its name there.
pub(crate) fn result(task: &str) -> String {
    format!("results/{task}.json")
}

/// The kernel that a task made.
pub(crate) fn built(store: &dyn Store, task: &str) -> Result<Built> {
    let name = result(task);
    let not_ready = || Error::NotReady { task: "this task".into(), need: task.to_owned() };
    let bytes = store.get(&name)?.ok_or_else(not_ready)?;
    let damaged = |what: String| Error::Object { store: store.url(), name: name.clone(), what };
    let value: serde_json::Value =
        serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
    if value["schema"] != BUILT {
        return Err(damaged(format!("it is no {BUILT}")));
    }
    serde_json::from_value(value).map_err(|error| damaged(error.to_string()))
}
