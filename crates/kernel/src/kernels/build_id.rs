//! Build id: the hash that the linker writes into the image and that the running kernel shows.
//!
//! Kernels of one configuration have the same release and version, however they were tuned; the
//! build id tells them apart. Notes are as in the ELF specification: name size, description size,
//! type, then both, padded to 4 bytes.

use crate::{list, Kernel, Result};
use kerntune_debuginfo::{Elf, MappedFile};
use kerntune_work::{IoContext, WorkDir};
use std::borrow::Cow;
use std::fs;
use std::path::Path;

/// Type of the note with the build id.
const NT_GNU_BUILD_ID: u32 = 3;
/// File in which a running kernel shows its notes.
const RUNNING: &str = "/sys/kernel/notes";

/// Returns the running kernel's build id in hexadecimal; `None` if the kernel does not show one.
pub fn running_build_id() -> Option<String> {
    build_id(&fs::read(RUNNING).ok()?)
}

/// Finds the kernel of the work directory that runs on this machine; `None` if another kernel runs.
///
/// # Errors
/// The work directory cannot be listed.
pub fn find_running(work: &WorkDir) -> Result<Option<Kernel>> {
    let Some(running) = running_build_id() else { return Ok(None) };
    // A kernel that cannot be read is not the one that was booted.
    let is_it = |kernel: &Kernel| kernel.build_id().is_ok_and(|id| id.as_ref() == Some(&running));
    Ok(list(work)?.into_iter().find(is_it))
}

impl Kernel {
    /// Returns the build id in hexadecimal; `None` if the kernel was linked without one.
    ///
    /// # Errors
    /// `vmlinux` cannot be opened.
    pub fn build_id(&self) -> Result<Option<String>> {
        build_id_of(&self.vmlinux())
    }
}

/// Returns the build id of a `vmlinux` in hexadecimal; `None` if it has none or is no ELF file.
///
/// # Errors
/// The file cannot be opened.
pub fn build_id_of(vmlinux: &Path) -> Result<Option<String>> {
    let bytes = MappedFile::open(vmlinux).at("open", vmlinux)?;
    // Callers that need more of the file report what is wrong with it.
    Ok(notes(&bytes).and_then(|notes| build_id(&notes)))
}

/// Returns the contents of the section `.notes`.
pub(crate) fn notes(data: &[u8]) -> Option<Cow<'_, [u8]>> {
    Elf::parse(data).ok()?.section(".notes").ok()?
}

/// Returns the build id in the content of `/sys/kernel/notes` or of a section `.notes`, in
/// hexadecimal; `None` if there is none.
pub fn build_id_in_notes(notes: &[u8]) -> Option<String> {
    build_id(notes)
}

pub(crate) fn build_id(notes: &[u8]) -> Option<String> {
    let mut rest = notes;
    while let Some((head, after)) = rest.split_first_chunk::<12>() {
        let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let padded = |size: u32| (size as usize).checked_next_multiple_of(4);
        let name = after.get(..word(0) as usize)?;
        let after = after.get(padded(word(0))?..)?;
        let description = after.get(..word(4) as usize)?;
        if name == b"GNU\0" && word(8) == NT_GNU_BUILD_ID {
            return Some(description.iter().map(|byte| format!("{byte:02x}")).collect());
        }
        rest = after.get(padded(word(4))?..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(name: &[u8], kind: u32, description: &[u8]) -> Vec<u8> {
        let mut bytes: Vec<u8> = [name.len() as u32, description.len() as u32, kind]
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        for part in [name, description] {
            bytes.extend(part);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        bytes
    }

    #[test]
    fn the_hash_is_found_among_other_notes() {
        let mut notes = note(b"Linux\0", 257, b"x");
        notes.extend(note(b"GNU\0", 4, b"gold"));
        notes.extend(note(b"GNU\0", NT_GNU_BUILD_ID, &[0xe4, 0x0f, 0x01]));
        assert_eq!(build_id(&notes).as_deref(), Some("e40f01"));
        for end in 0..notes.len() {
            let _ = build_id(&notes[..end]); // cut anywhere, it does not panic
        }
        assert_eq!(build_id(&notes[..40]), None);
        assert_eq!(build_id(&[0xff; 64]), None);
    }
}
