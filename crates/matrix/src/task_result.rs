//! Reads and checks the sealed objects of a store.

use crate::figures::{BuiltKernel, CommandOutput, RunCounters, BUILT_KERNEL, COMMAND_OUTPUT, RUN_COUNTERS};
use crate::{Error, Result, Store};
use kerntune_work::{parse_sealed, Hash, Id};
use serde::de::DeserializeOwned;
use std::path::Path;

/// Result of a task.
#[derive(Debug)]
pub(crate) enum TaskResult {
    RunCounters(Box<RunCounters>),
    BuiltKernel(BuiltKernel),
    CommandOutput(CommandOutput),
}

/// Name of the object that holds a task's result.
pub(crate) fn result(task: &Id) -> String {
    format!("results/{task}.json")
}

/// Parses an object and checks its seal.
fn value(store: &dyn Store, name: &str, bytes: &[u8]) -> Result<serde_json::Value> {
    parse_sealed(bytes, Path::new(name)).map_err(|_| damaged(store, name, "it is not what was written"))
}

/// Parses an object of the given schema.
///
/// # Errors
/// [`Error::Object`] if the seal's hash or the schema is wrong.
pub(crate) fn decode<T: DeserializeOwned>(
    store: &dyn Store,
    name: &str,
    bytes: &[u8],
    schema: &str,
) -> Result<T> {
    let value = value(store, name, bytes)?;
    if value["schema"] != schema {
        return Err(damaged(store, name, format!("its schema is not {schema}")));
    }
    serde_json::from_value(value).map_err(|error| damaged(store, name, error))
}

/// Reads a task's result and its bytes; `None` if the store has none.
///
/// # Errors
/// [`Error::Object`] for a result that is damaged, or of another task.
pub(crate) fn read(store: &dyn Store, task: &Id) -> Result<Option<(TaskResult, Vec<u8>)>> {
    let Some(bytes) = store.get(&result(task))? else { return Ok(None) };
    parse(store, task, &bytes).map(|result| Some((result, bytes)))
}

/// Parses a task's result.
pub(crate) fn parse(store: &dyn Store, task: &Id, bytes: &[u8]) -> Result<TaskResult> {
    let name = &result(task);
    let value = value(store, name, bytes)?;
    if value["task"] != task.as_str() {
        return Err(damaged(store, name, "it is of another task"));
    }
    match value["schema"].as_str() {
        Some(RUN_COUNTERS) => serde_json::from_value(value).map(TaskResult::RunCounters),
        Some(BUILT_KERNEL) => serde_json::from_value(value).map(TaskResult::BuiltKernel),
        Some(COMMAND_OUTPUT) => serde_json::from_value(value).map(TaskResult::CommandOutput),
        _ => return Err(damaged(store, name, "this version of kerntune does not know its schema")),
    }
    .map_err(|error| damaged(store, name, error))
}

pub(crate) fn damaged(store: &dyn Store, name: &str, what: impl ToString) -> Error {
    Error::Object { store: store.url(), name: name.to_owned(), what: what.to_string() }
}

/// Reads the result of a task that made a kernel.
pub(crate) fn built(store: &dyn Store, task: &Id) -> Result<BuiltKernel> {
    match read(store, task)? {
        Some((TaskResult::BuiltKernel(built), _)) => Ok(built),
        Some(_) => Err(damaged(store, &result(task), format!("its schema is not {BUILT_KERNEL}"))),
        None => Err(Error::NotReady { task: "this task".into(), need: task.to_string() }),
    }
}

/// Stores a result that differs from the published one. Neither is used until somebody removes
/// one.
pub(crate) fn conflict(store: &dyn Store, task: &Id, bytes: &[u8]) -> Result<Error> {
    let kept = format!("{}{}.json", conflicts(task), Hash::of(bytes));
    store.put_new(&kept, bytes)?;
    Ok(Error::Differs { task: task.to_string(), kept })
}

/// Prefix of the names of a task's conflicting results.
pub(crate) fn conflicts(task: &Id) -> String {
    format!("conflicts/{task}/")
}
