//! The interface of all machines.

use crate::{Result, RunOutcome, RunRequest};
use kerntune_work::Progress;
use std::fmt::Debug;
use std::path::Path;

/// A machine that runs kernels.
pub trait Machine: Debug + Send + Sync {
    /// Returns the machine's name in commands and results.
    fn name(&self) -> &'static str;

    /// Returns a hash of everything besides the request that decides a run's results, for their
    /// keys.
    ///
    /// # Errors
    /// A missing program.
    fn identity(&self) -> Result<String>;

    /// Returns the emulating program's version and its firmware, for a reader; `None` if nothing
    /// is emulated.
    ///
    /// # Errors
    /// A missing program.
    fn emulator(&self) -> Result<Option<String>> {
        Ok(None)
    }

    /// Returns the model of the guest's CPU in QEMU's notation, for a reader; `None` where the host
    /// or a fixed model decides.
    ///
    /// # Errors
    /// A host that cannot run the machine.
    fn cpu_model(&self) -> Result<Option<String>> {
        Ok(None)
    }

    /// Runs a guest to its end. All files go into `directory`, which must exist and be empty.
    ///
    /// # Errors
    /// A failed run; a request that this machine does not support.
    fn run(&self, request: &RunRequest, directory: &Path, progress: &dyn Progress) -> Result<RunOutcome>;
}
