//! What every machine can do.

use crate::{Outcome, Result, RunRequest};
use kerntune_work::Progress;
use std::fmt::Debug;
use std::path::Path;

/// Where kernels run.
pub trait Machine: Debug + Send + Sync {
    /// The name in commands and results.
    fn name(&self) -> &'static str;

    /// Everything besides the request that decides what a run gives, for keys of results.
    ///
    /// # Errors
    /// A program that is not there.
    fn identity(&self) -> Result<String>;

    /// Runs a guest to its end. `directory` must exist and be empty; everything lands there.
    ///
    /// # Errors
    /// How the run failed; what this machine cannot do.
    fn run(&self, request: &RunRequest, directory: &Path, progress: &dyn Progress) -> Result<Outcome>;
}
