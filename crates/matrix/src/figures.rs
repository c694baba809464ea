//! Results of tasks, as they are in the store, sealed. Nothing of the machine or the hour is in them: whoever computes one has the same bytes.

use kerntune_compare::{Measurement, OperationCounters};
use kerntune_work::{seal_bytes, Id};
use serde::{Deserialize, Serialize};

/// Name and version of a measurement's form.
pub(crate) const FIGURES: &str = "kerntune-cell/2";
/// Name and version of a kernel's form.
pub(crate) const BUILT: &str = "kerntune-built/2";
/// Name and version of what a command said.
pub(crate) const SAID: &str = "kerntune-said/2";

/// Exact counters of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figures {
    schema: String,
    /// The task.
    pub task: Id,
    /// Names the contents of the kernel's images.
    pub kernel: String,
    /// The workload.
    pub workload: String,
    /// Its run.
    pub run: String,
    /// The front-end model.
    pub model: String,
    /// By operation, in the order in which they first ran.
    pub operations: Vec<OperationCounters>,
    /// Of the whole run.
    pub total: OperationCounters,
}

impl Figures {
    pub(crate) fn new(
        task: &Id,
        kernel: String,
        workload: &str,
        run: &str,
        model: &str,
        of: Measurement,
    ) -> Self {
        Self {
            schema: FIGURES.into(),
            task: task.clone(),
            kernel,
            workload: workload.into(),
            run: run.into(),
            model: model.into(),
            operations: of.operations,
            total: of.total,
        }
    }
}

/// A kernel that a task made; it is in the store as well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Built {
    schema: String,
    /// The task.
    pub task: Id,
    /// The kernel's id.
    pub kernel: Id,
    /// Names the contents of its images.
    pub content: String,
}

impl Built {
    pub(crate) fn new(task: &Id, kernel: Id, content: String) -> Self {
        Self { schema: BUILT.into(), task: task.clone(), kernel, content }
    }
}

/// What a command printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Said {
    schema: String,
    pub task: Id,
    pub output: String,
}

impl Said {
    pub fn new(task: &Id, output: String) -> Self {
        Self { schema: SAID.into(), task: task.clone(), output }
    }
}

/// An object's bytes, with their hash.
pub(crate) fn bytes(value: &impl Serialize) -> Vec<u8> {
    // Maps with keys of text and no floats: it cannot fail.
    seal_bytes(value).unwrap_or_default()
}
