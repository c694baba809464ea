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

/// Refuses a kernel without line tables, of whose counts LLVM makes an empty profile with no more than a warning,
/// and one without discriminators of machine code, whose profile the tuned build would read differently.
///
/// # Errors
/// [`Error::NoDebugInfo`] with what to build it with; of reading.
pub(crate) fn check(kernel: &Kernel) -> Result<()> {
    let path = kernel.vmlinux();
    let cache = ReadCache::new(File::open(&path).at("open", &path)?);
    let label = &kernel.manifest.label;
    let refuse = |missing, flag| Err(Error::NoDebugInfo { kernel: label.clone(), missing, flag });
    let Ok(file) = object::File::parse(&cache) else {
        return refuse("ELF image that can be read", "-gmlt");
    };
    let has = |name| file.section_by_name(name).is_some_and(|section| section.size() > 0);
    if !has(".debug_line") || !has(".debug_info") {
        return refuse("line tables (.debug_line, .debug_info)", "-gmlt");
    }
    if !file.symbols().any(|symbol| symbol.name() == Ok(FS_DISCRIMINATOR)) {
        return refuse("discriminators of machine code", "-mllvm=-enable-fs-discriminator=true");
    }
    Ok(())
}
