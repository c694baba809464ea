//! Finds the debug file with the symbols of a stripped program: GDB's manual, "Debugging
//! Information in Separate Files".

use crate::Elf;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Directory in which distributions install debug files.
pub const ROOT: &str = "/usr/lib/debug";

/// Returns the path of the debug file of a build id in hexadecimal, below `root`; `None` for an id
/// that is too short.
pub fn by_build_id(root: &Path, id: &str) -> Option<PathBuf> {
    let (head, rest) = id.split_at_checked(2).filter(|(_, rest)| !rest.is_empty())?;
    Some(root.join(format!(".build-id/{head}/{rest}.debug")))
}

/// Returns the contents of the debug file for the program `bytes` at `path`. The build ids must
/// match; a program without one has no debug file. Files of more than `max` bytes are not read.
pub fn debug_file(bytes: &[u8], path: &Path, root: &Path, max: u64) -> Option<Vec<u8>> {
    let program = Elf::parse_any(bytes).ok()?;
    let id = program.build_id()?;
    let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut candidates = vec![by_build_id(root, &hex)?];
    // The name may be a link; the debug file is beside the program itself.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let link = program.debug_link().map(|name| Path::new(OsStr::from_bytes(name)));
    // Only a plain file name, which cannot lead elsewhere.
    let name = link.filter(|name| name.file_name() == Some(name.as_os_str()));
    if let (Some(name), Some(dir)) = (name, path.parent()) {
        candidates.push(dir.join(name));
        candidates.push(dir.join(".debug").join(name));
        candidates.push(root.join(dir.strip_prefix("/").unwrap_or(dir)).join(name));
    }
    candidates.into_iter().find_map(|candidate| read(&candidate, id, max))
}

/// Reads a debug file if it has that build id.
fn read(candidate: &PathBuf, id: &[u8], max: u64) -> Option<Vec<u8>> {
    candidate.metadata().ok().filter(|meta| meta.is_file() && meta.len() <= max)?;
    let bytes = std::fs::read(candidate).ok()?;
    let same = Elf::parse_any(&bytes).ok()?.build_id() == Some(id);
    same.then_some(bytes)
}
