//! Results of tasks, as they are in the store. Nothing of the machine or the hour is in them: whoever computes one has the same bytes.

use kerntune_compare::{Measurement, OperationCounters};
use serde::{Deserialize, Serialize};

/// Name and version of a measurement's form.
pub(crate) const FIGURES: &str = "kerntune-cell/1";
/// Name and version of a kernel's form.
pub(crate) const BUILT: &str = "kerntune-built/1";
/// Name and version of what a command said.
pub(crate) const SAID: &str = "kerntune-said/1";

/// Exact counters of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figures {
    schema: String,
    /// The task.
    pub task: String,
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
        task: &str,
        kernel: String,
        workload: &str,
        run: &str,
        model: &str,
        of: Measurement,
    ) -> Self {
        Self {
            schema: FIGURES.into(),
            task: task.into(),
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
    pub task: String,
    /// The kernel's id.
    pub kernel: String,
    /// Names the contents of its images.
    pub content: String,
}

impl Built {
    pub(crate) fn new(task: &str, kernel: &str, content: String) -> Self {
        Self { schema: BUILT.into(), task: task.into(), kernel: kernel.into(), content }
    }
}

/// What a command printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Said {
    schema: String,
    pub task: String,
    pub output: String,
}

impl Said {
    pub fn new(task: &str, output: String) -> Self {
        Self { schema: SAID.into(), task: task.into(), output }
    }
}

/// A result's bytes.
pub(crate) fn bytes(value: &impl Serialize) -> Vec<u8> {
    // Maps with keys of text and no floats: it cannot fail.
    let mut bytes = serde_json::to_vec_pretty(value).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}
