//! Decides which tasks run a plan's code outside a guest. Such a plan is code, and runs only where
//! its author is trusted.
//!
//! A measurement runs in a guest. A build runs make on the source, with the plan's compiler, flags,
//! patches and configuration. A command is any command of kerntune, including `record --live --
//! PROGRAM`.

use crate::{materials, MatrixPlan, Result, SourceRef, Task, TaskKind};
use kerntune_work::WorkDir;

/// Trust of a machine in a plan and in the other machines of its store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Trust {
    /// Run code that the plan brings along ([`foreign_code`]).
    pub commands: bool,
    /// Recompute what other machines computed, and refuse results that differ.
    pub confirm: bool,
}

/// Returns the reason if a task runs a plan's code outside a guest; `None` if it does not.
///
/// # Errors
/// A plan that lacks what the task names.
pub fn foreign_code(plan: &MatrixPlan, work: &WorkDir, task: &Task) -> Result<Option<String>> {
    match &task.kind {
        TaskKind::Command { arguments, .. } => {
            Ok(Some(format!("it runs `kerntune {}`", arguments.join(" "))))
        }
        TaskKind::Build { source: SourceRef::Commit { tree, .. }, .. } => {
            Ok(Some(format!("it builds what is in {tree}, and make runs what stands there")))
        }
        TaskKind::Build { .. } => match materials::request(plan, work, &task.kind)? {
            Some(request) => Ok(kerntune_kernel::untrusted_code(&request)?),
            None => Ok(None),
        },
        TaskKind::Tune { compiler, .. } if !kerntune_kernel::is_known_compiler(compiler) => {
            Ok(Some(format!("its compiler is `{compiler}`")))
        }
        // Its kernel may have to be built here.
        TaskKind::Tune { .. } | TaskKind::Measure { .. } => {
            for need in task.needs.iter().filter_map(|need| plan.task(need)) {
                if let Some(reason) = foreign_code(plan, work, need)? {
                    return Ok(Some(reason));
                }
            }
            Ok(None)
        }
    }
}
