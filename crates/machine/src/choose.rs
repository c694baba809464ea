//! Chooses the machine for a kernel's architecture.

use crate::{Emulator, Kvm, Machine, Result, Uml};
use kerntune_kernel::Arch;

/// Returns the machine that trains, checks and measures kernels of an architecture.
///
/// # Errors
/// As [`Emulator::find`].
pub fn machine_of(arch: Arch) -> Result<Box<dyn Machine>> {
    match arch {
        Arch::X86_64 => Ok(Box::new(Emulator::find()?)),
        Arch::Um => Ok(Box::new(Uml::default())),
    }
}

/// Returns the machine that times kernels of an architecture, on one CPU of the host.
pub fn timing_machine(arch: Arch, cpu: Option<u32>) -> Box<dyn Machine> {
    match arch {
        Arch::X86_64 => Box::new(Kvm::new(cpu)),
        Arch::Um => Box::new(Uml { cpu }),
    }
}
