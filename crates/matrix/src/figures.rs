//! Results of tasks as sealed objects of the store. They contain nothing about the machine or the
//! time, so every machine gets the same bytes.

use kerntune_compare::{Measurement, OperationCounters};
use kerntune_work::{seal_bytes, Id};
use serde::{Deserialize, Serialize};

/// Schema of [`RunCounters`].
pub(crate) const RUN_COUNTERS: &str = "kerntune-cell/2";
/// Schema of [`BuiltKernel`].
pub(crate) const BUILT_KERNEL: &str = "kerntune-built/2";
/// Schema of [`CommandOutput`].
pub(crate) const COMMAND_OUTPUT: &str = "kerntune-said/2";

/// Exact counters of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunCounters {
    schema: String,
    /// Task that this is the result of.
    pub task: Id,
    /// Hash of the kernel's images.
    pub kernel: String,
    /// Name of the workload.
    pub workload: String,
    /// Run of the workload: `measured` or `training`.
    pub run: String,
    /// Name of the front-end model.
    pub model: String,
    /// Counters of each operation, in the order in which they first ran.
    pub operations: Vec<OperationCounters>,
    /// Counters of the whole run.
    pub total: OperationCounters,
}

impl RunCounters {
    pub(crate) fn new(
        task: &Id,
        kernel: String,
        workload: &str,
        run: &str,
        model: &str,
        of: Measurement,
    ) -> Self {
        Self {
            schema: RUN_COUNTERS.into(),
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

/// A kernel that a task made; the kernel itself is packed in the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuiltKernel {
    schema: String,
    /// Task that made the kernel.
    pub task: Id,
    /// Id of the kernel.
    pub kernel: Id,
    /// Hash of its images.
    pub content: String,
}

impl BuiltKernel {
    pub(crate) fn new(task: &Id, kernel: Id, content: String) -> Self {
        Self { schema: BUILT_KERNEL.into(), task: task.clone(), kernel, content }
    }
}

/// Standard output of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CommandOutput {
    schema: String,
    pub task: Id,
    pub output: String,
}

impl CommandOutput {
    pub fn new(task: &Id, output: String) -> Self {
        Self { schema: COMMAND_OUTPUT.into(), task: task.clone(), output }
    }
}

/// Serializes a value as a sealed object: with its hash.
pub(crate) fn bytes(value: &impl Serialize) -> Vec<u8> {
    // Serialization cannot fail: all map keys are strings.
    seal_bytes(value).unwrap_or_default()
}
