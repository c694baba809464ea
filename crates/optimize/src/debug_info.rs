//! Whether counts of a kernel's addresses can be led back to its source at all.

use crate::llvm::Llvm;
use crate::{Error, Result};
use kerntune_kernel::{Compiler, Kernel};
use kerntune_work::IoContext;
use object::{Object, ObjectSection, ObjectSymbol, ReadCache};
use std::fs::File;

/// The symbol by which `llvm-profgen` knows that machine code has discriminators of its own.
const FS_DISCRIMINATOR: &str = "__llvm_fs_discriminator__";

/// Refuses a kernel that LLVM's tools could make nothing of, whatever was recorded.
///
/// # Errors
/// A compiler that is none of LLVM's, and an image without what leads its addresses back to the source.
pub fn takes(kernel: &Kernel) -> Result<()> {
    Llvm::of(&kernel.manifest.cc.parse::<Compiler>()?)?;
    check(kernel)
}

/// Refuses a kernel without line tables, of whose counts LLVM makes an empty profile with no more than a warning.
///
/// # Errors
/// [`Error::NoDebugInfo`] with what to build it with; of reading.
pub fn line_tables(kernel: &Kernel) -> Result<()> {
    image(kernel).map(|_| ())
}

/// The same, and refuses one without discriminators of machine code, whose profile the tuned build would read differently.
///
/// # Errors
/// [`Error::NoDebugInfo`] with what to build it with; of reading.
pub(crate) fn check(kernel: &Kernel) -> Result<()> {
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

/// Whether an image, which has line tables, has discriminators.
fn image(kernel: &Kernel) -> Result<bool> {
    let path = kernel.vmlinux();
    let cache = ReadCache::new(File::open(&path).at("open", &path)?);
    let Ok(file) = object::File::parse(&cache) else {
        return Err(refused(kernel, "ELF image that can be read", "-gmlt"));
    };
    let has = |name| file.section_by_name(name).is_some_and(|section| section.size() > 0);
    if !has(".debug_line") || !has(".debug_info") {
        return Err(refused(kernel, "line tables (.debug_line, .debug_info)", "-gmlt"));
    }
    let has = file.symbols().any(|symbol| symbol.name() == Ok(FS_DISCRIMINATOR));
    Ok(has)
}
