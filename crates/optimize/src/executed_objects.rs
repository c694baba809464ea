//! Objects of a kernel whose code ran.

use crate::Result;
use kerntune_kernel::Kernel;
use kerntune_profile::{Block, Profile};
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
    let file_of = |block: &Block| {
        let function = symbols.lookup(block.start.get())?;
        symbols.functions()[function].file.as_deref()
    };
    let objects = objects_of(&recording.tables.blocks, file_of);
    Ok((!objects.is_empty()).then_some(objects))
}

/// Returns the objects of the C files of blocks that ran, sorted.
fn objects_of<'a>(blocks: &[Block], file_of: impl Fn(&Block) -> Option<&'a str>) -> Vec<String> {
    let ran = blocks.iter().filter(|block| block.count > 0);
    let files: BTreeSet<&str> = ran.filter_map(|block| file_of(block)?.strip_suffix(".c")).collect();
    files.into_iter().map(|file| format!("{file}.o")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_profile::{Address, Instructions};

    fn block(start: u64, count: u64) -> Block {
        let (last, instructions) = (Address(start + 1), Instructions(2));
        Block { start: Address(start), last, count, instructions, bytes: 2 }
    }

    #[test]
    fn objects_are_those_of_c_files_with_a_block_that_ran() {
        let file_of = |block: &Block| match block.start.get() {
            0 | 2 => Some("mm/mmap.c"),
            4 => Some("kernel/fork.c"),
            6 => Some("arch/x86/entry/entry_64.S"),
            8 => Some("fs/exec.c"),
            _ => None,
        };
        let blocks = [block(0, 0), block(2, 1), block(4, 5), block(6, 7), block(8, 0), block(10, 1)];
        assert_eq!(objects_of(&blocks, file_of), ["kernel/fork.o", "mm/mmap.o"]);
        assert!(objects_of(&[], file_of).is_empty());
    }
}
