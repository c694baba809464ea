//! Objects of a kernel whose code ran.

use crate::Result;
use kerntune_kernel::Kernel;
use kerntune_profile::Profile;
use std::collections::BTreeSet;

/// Returns the objects with compiled code of `kernel` that ran in a recording of it, sorted:
/// `kernel/fork.o`. `None` if the source files of its functions are not known. Objects of modules are
/// left out.
///
/// # Errors
/// A kernel or sources that cannot be read.
pub fn executed_objects(recording: &Profile, kernel: &Kernel) -> Result<Option<Vec<String>>> {
    if kernel.sources_are_inferred()? {
        return Ok(None);
    }
    let symbols = kernel.symbols()?;
    let ran = recording.tables.blocks.iter().filter(|block| block.count > 0);
    let functions: BTreeSet<usize> = ran.filter_map(|block| symbols.lookup(block.start.get())).collect();
    let files = functions.into_iter().filter_map(|function| symbols.functions()[function].file.as_deref());
    let objects: BTreeSet<String> =
        files.filter_map(|file| Some(format!("{}.o", file.strip_suffix(".c")?))).collect();
    Ok((!objects.is_empty()).then(|| objects.into_iter().collect()))
}
