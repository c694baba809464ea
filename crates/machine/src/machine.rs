//! What every machine can do.

use crate::{Emulator, Kvm, Outcome, Result, RunRequest, Uml};
use kerntune_kernel::Arch;
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

/// The machine on which kernels of an architecture are trained, checked and measured.
///
/// # Errors
/// As [`Emulator::find`].
pub fn machine_of(arch: Arch) -> Result<Box<dyn Machine>> {
    match arch {
        Arch::X86_64 => Ok(Box::new(Emulator::find()?)),
        Arch::Um => Ok(Box::new(Uml::default())),
    }
}

/// The one that times kernels of an architecture, on one CPU of the host.
pub fn machine_that_times(arch: Arch, cpu: Option<u32>) -> Box<dyn Machine> {
    match arch {
        Arch::X86_64 => Box::new(Kvm::new(cpu)),
        Arch::Um => Box::new(Uml { cpu }),
    }
}
