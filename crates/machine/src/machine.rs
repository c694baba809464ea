//! Any of the machines.

use crate::{Emulator, Kvm, Outcome, Result, RunRequest, Uml};
use kerntune_kernel::Arch;
use kerntune_work::Progress;
use std::path::Path;

/// Where kernels run.
#[derive(Debug, Clone)]
pub enum Machine {
    /// Exact.
    Emulator(Emulator),
    /// Timed.
    Kvm(Kvm),
    /// Timed.
    Uml(Uml),
}

impl Machine {
    /// The one on which kernels of an architecture are trained, checked and measured.
    ///
    /// # Errors
    /// As [`Emulator::find`].
    pub fn of(arch: Arch) -> Result<Self> {
        match arch {
            Arch::X86_64 => Ok(Machine::Emulator(Emulator::find()?)),
            Arch::Um => Ok(Machine::Uml(Uml::default())),
        }
    }

    /// The one that times kernels of an architecture, on one CPU of the host.
    pub fn that_times(arch: Arch, cpu: Option<u32>) -> Self {
        match arch {
            Arch::X86_64 => Machine::Kvm(Kvm::new(cpu)),
            Arch::Um => Machine::Uml(Uml { cpu }),
        }
    }

    /// The name in commands and results.
    pub fn name(&self) -> &'static str {
        match self {
            Machine::Emulator(_) => "emulator",
            Machine::Kvm(_) => "kvm",
            Machine::Uml(_) => "uml",
        }
    }

    /// Everything besides the kernel and the image that decides what a run gives, for names of results.
    ///
    /// # Errors
    /// A QEMU that is not there.
    pub fn identity(&self) -> Result<String> {
        match self {
            Machine::Emulator(emulator) => emulator.identity(),
            Machine::Kvm(kvm) => kvm.identity(),
            Machine::Uml(uml) => Ok(uml.identity()),
        }
    }

    /// Runs a guest to its end. `directory` must exist and be empty; everything lands there.
    ///
    /// # Errors
    /// How the run failed; what this machine cannot do.
    pub fn run(&self, request: &RunRequest, directory: &Path, progress: &dyn Progress) -> Result<Outcome> {
        match self {
            Machine::Emulator(emulator) => emulator.run(request, directory, progress),
            Machine::Kvm(kvm) => kvm.run(request, directory, progress),
            Machine::Uml(uml) => uml.run(request, directory, progress),
        }
    }
}
