//! Checks that the addresses of a kernel can be mapped back to its source.

use crate::llvm::ProfileTools;
use crate::{Error, Result};
use kerntune_debuginfo::{Elf, MappedFile};
use kerntune_kernel::{Compiler, Kernel};
use kerntune_work::IoContext;

/// Symbol by which `llvm-profgen` recognizes machine code with discriminators.
pub(crate) const FS_DISCRIMINATOR: &str = "__llvm_fs_discriminator__";

/// Refuses a kernel that LLVM's tools cannot use, whatever was recorded.
///
/// # Errors
/// A compiler other than Clang; an image without debug information for the mapping to the source.
pub fn check_kernel(kernel: &Kernel) -> Result<()> {
    ProfileTools::of(&kernel.manifest.cc.parse::<Compiler>()?)?;
    check_discriminators(kernel)
}

/// Refuses a kernel without line tables: LLVM makes an empty profile of its counts, with only a
/// warning.
///
/// # Errors
/// [`Error::NoDebugInfo`] with the flag to build it with; images that cannot be read.
pub fn check_line_tables(kernel: &Kernel) -> Result<()> {
    image(kernel).map(|_| ())
}

/// Refuses a kernel without line tables or without discriminators of machine code; without the
/// latter the tuned build would read the profile differently.
///
/// # Errors
/// [`Error::NoDebugInfo`] with the flag to build it with; images that cannot be read.
pub(crate) fn check_discriminators(kernel: &Kernel) -> Result<()> {
    match image(kernel)? {
        true => Ok(()),
        false => {
            Err(refused(kernel, "discriminators of machine code", "-mllvm=-enable-fs-discriminator=true"))
        }
    }
}

fn refused(kernel: &Kernel, missing: &'static str, flag: &'static str) -> Error {
    Error::NoDebugInfo { kernel: kernel.manifest.label.clone(), missing, flag }
}

/// Checks whether an image has discriminators; an error if it has no line tables.
fn image(kernel: &Kernel) -> Result<bool> {
    let path = kernel.vmlinux();
    let bytes = MappedFile::open(&path).at("open", &path)?;
    let Ok(elf) = Elf::parse_any(&bytes) else {
        return Err(refused(kernel, "ELF image that can be read", "-gmlt"));
    };
    if !elf.has_section(".debug_line") || !elf.has_section(".debug_info") {
        return Err(refused(kernel, "line tables (.debug_line, .debug_info)", "-gmlt"));
    }
    Ok(elf.address_of(FS_DISCRIMINATOR).is_some())
}
