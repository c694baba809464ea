//! Tasks that run on the machine itself what a plan brings along: such a plan is code, and runs only where its author is trusted.
//!
//! A measurement runs in a guest. A build runs make on the source, with the compiler, the flags, the patches and the configuration that
//! the plan names. A command is anything that kerntune does, `record --live -- PROGRAM` among it.

use crate::{materials, Plan, Result, SourceRef, Task, What};
use kerntune_work::WorkDir;

/// How far a machine believes a plan and the other machines of its store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Trust {
    /// Run code that the plan brings along ([`foreign_code`]).
    pub commands: bool,
    /// Compute what other machines computed as well, and refuse what differs.
    pub confirm: bool,
}

/// The reason why a task runs foreign code outside of a guest; none if it does not.
///
/// # Errors
/// A plan that lacks what the task names.
pub fn foreign_code(plan: &Plan, work: &WorkDir, task: &Task) -> Result<Option<String>> {
    match &task.what {
        What::Command { arguments, .. } => Ok(Some(format!("it runs `kerntune {}`", arguments.join(" ")))),
        What::Build { source: SourceRef::Commit { tree, .. }, .. } => {
            Ok(Some(format!("it builds what is in {tree}, and make runs what stands there")))
        }
        What::Build { .. } => match materials::request(plan, work, &task.what)? {
            Some(request) => Ok(kerntune_kernel::foreign_code(&request)?),
            None => Ok(None),
        },
        // What it starts from may have to be built here.
        What::Tune { .. } | What::Measure { .. } => {
            for need in task.needs.iter().filter_map(|need| plan.task(need)) {
                if let Some(reason) = foreign_code(plan, work, need)? {
                    return Ok(Some(reason));
                }
            }
            Ok(None)
        }
    }
}
