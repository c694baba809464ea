//! Whether a kernel's addresses lead back to its source.

use crate::{Error, Result};
use kerntune_kernel::Kernel;
use kerntune_work::IoContext;
use object::{Object, ObjectSection, ObjectSymbol, ReadCache};
use std::fs::File;

/// The symbol by which `llvm-profgen` knows that machine code has discriminators of its own.
const FS_DISCRIMINATOR: &str = "__llvm_fs_discriminator__";

/// Refuses a kernel without line tables, of whose counts LLVM makes an empty profile with no more than a warning,
/// and one without discriminators of machine code, whose profile the tuned build would read differently.
///
/// # Errors
/// [`Error::NoDebugInfo`] with what to build it with; of reading.
pub(super) fn check(kernel: &Kernel) -> Result<()> {
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
