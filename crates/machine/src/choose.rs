//! Which machine a kernel of an architecture runs on.

use crate::{Emulator, Kvm, Machine, Result, Uml};
use kerntune_kernel::Arch;

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
