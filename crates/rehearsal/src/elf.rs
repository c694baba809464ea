//! Programs, from file to memory.

use crate::memory::Memory;
use object::{File, Object, ObjectSegment, SegmentFlags};

/// Bit of a segment's flags: it is code.
const EXECUTABLE: u32 = 1;

/// Puts a program where it is linked to; the address of its first instruction.
///
/// # Errors
/// In words, if it is no ELF file.
pub fn load(bytes: &[u8], memory: &mut Memory) -> Result<u64, String> {
    let file = File::parse(bytes).map_err(|error| error.to_string())?;
    for segment in file.segments() {
        let data = segment.data().map_err(|error| error.to_string())?;
        let code = matches!(segment.flags(), SegmentFlags::Elf { p_flags } if p_flags & EXECUTABLE != 0);
        memory.map(segment.address(), data, segment.size(), code);
    }
    Ok(file.entry())
}
