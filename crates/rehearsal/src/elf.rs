//! Loads ELF programs into memory.

use crate::memory::GuestMemory;
use object::{File, Object, ObjectSegment, SegmentFlags};

/// Flag of executable segments.
const EXECUTABLE: u32 = 1;

/// Loads a program at its linked address; returns its entry address.
///
/// # Errors
/// A description, if it is not an ELF file.
pub fn load(bytes: &[u8], memory: &mut GuestMemory) -> Result<u64, String> {
    let file = File::parse(bytes).map_err(|error| error.to_string())?;
    for segment in file.segments() {
        let data = segment.data().map_err(|error| error.to_string())?;
        let code = matches!(segment.flags(), SegmentFlags::Elf { p_flags } if p_flags & EXECUTABLE != 0);
        memory.map(segment.address(), data, segment.size(), code);
    }
    Ok(file.entry())
}
