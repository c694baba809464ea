//! Sealed objects of a store, checked when they are read.

use crate::figures::{Built, Figures, Said, BUILT, FIGURES, SAID};
use crate::{Error, Result, Store};
use kerntune_work::{parse_sealed, Hash, Id};
use serde::de::DeserializeOwned;
use std::path::Path;

/// The result of a task.
#[derive(Debug)]
pub(crate) enum TaskResult {
    /// Exact counters.
    Figures(Box<Figures>),
    /// A kernel.
    Built(Built),
    /// Output of a command.
    Said(Said),
}

/// The name of a task's result in a store.
pub(crate) fn result(task: &Id) -> String {
    format!("results/{task}.json")
}

/// What an object holds, if its hash is the one that stands before it.
fn value(store: &dyn Store, name: &str, bytes: &[u8]) -> Result<serde_json::Value> {
    parse_sealed(bytes, Path::new(name)).map_err(|_| damaged(store, name, "it is not what was written"))
}

/// Reads an object of the store.
///
/// # Errors
/// [`Error::Object`] for bytes whose hash is not the one that stands before them, and for another schema.
pub(crate) fn decode<T: DeserializeOwned>(
    store: &dyn Store,
    name: &str,
    bytes: &[u8],
    schema: &str,
) -> Result<T> {
    let value = value(store, name, bytes)?;
    if value["schema"] != schema {
        return Err(damaged(store, name, format!("it is no {schema}")));
    }
    serde_json::from_value(value).map_err(|error| damaged(store, name, error))
}

/// The result of a task and its bytes; none if there is none.
///
/// # Errors
/// [`Error::Object`] for one that is damaged, or of another task.
pub(crate) fn read(store: &dyn Store, task: &Id) -> Result<Option<(TaskResult, Vec<u8>)>> {
    let Some(bytes) = store.get(&result(task))? else { return Ok(None) };
    parse(store, task, &bytes).map(|result| Some((result, bytes)))
}

/// A task's result in these bytes.
pub(crate) fn parse(store: &dyn Store, task: &Id, bytes: &[u8]) -> Result<TaskResult> {
    let name = &result(task);
    let value = value(store, name, bytes)?;
    if value["task"] != task.as_str() {
        return Err(damaged(store, name, "it is of another task"));
    }
    match value["schema"].as_str() {
        Some(FIGURES) => serde_json::from_value(value).map(TaskResult::Figures),
        Some(BUILT) => serde_json::from_value(value).map(TaskResult::Built),
        Some(SAID) => serde_json::from_value(value).map(TaskResult::Said),
        _ => return Err(damaged(store, name, "its schema is none that this version of kerntune reads")),
    }
    .map_err(|error| damaged(store, name, error))
}

pub(crate) fn damaged(store: &dyn Store, name: &str, what: impl ToString) -> Error {
    Error::Object { store: store.url(), name: name.to_owned(), what: what.to_string() }
}

/// The kernel that a task made.
pub(crate) fn built(store: &dyn Store, task: &Id) -> Result<Built> {
    match read(store, task)? {
        Some((TaskResult::Built(built), _)) => Ok(built),
        Some(_) => Err(damaged(store, &result(task), format!("it is no {BUILT}"))),
        None => Err(Error::NotReady { task: "this task".into(), need: task.to_string() }),
    }
}

/// Keeps a result that differs from the one in the store, so that neither is believed until somebody has looked.
pub(crate) fn conflict(store: &dyn Store, task: &Id, bytes: &[u8]) -> Result<Error> {
    let kept = format!("{}{}.json", conflicts(task), Hash::of(bytes));
    store.put_new(&kept, bytes)?;
    Ok(Error::Differs { task: task.to_string(), kept })
}

/// How the names of a task's conflicting results begin.
pub(crate) fn conflicts(task: &Id) -> String {
    format!("conflicts/{task}/")
}
