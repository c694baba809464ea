//! Finds the debug file with the symbols of a stripped program: GDB's manual, "Debugging
//! Information in Separate Files".

use object::read::elf::ElfFile64;
use object::{Endianness, Object};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Directory in which distributions install debug files.
pub(crate) const ROOT: &str = "/usr/lib/debug";

/// Largest debug file to read, in bytes.
const MAX: u64 = 4 << 30;

/// Returns the contents of the debug file for the program `bytes` at `path`. The build ids must
/// match; a program without one has no debug file.
pub(crate) fn of(bytes: &[u8], path: &Path, root: &Path) -> Option<Vec<u8>> {
    let program = ElfFile64::<Endianness>::parse(bytes).ok()?;
    let id = program.build_id().ok().flatten().filter(|id| id.len() > 1)?;
    let (first, rest) = id.split_first()?;
    let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut candidates = vec![root.join(format!(".build-id/{first:02x}/{rest}.debug"))];
    // The name may be a link; the debug file is beside the program itself.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let link = program.gnu_debuglink().ok().flatten().map(|(name, _)| Path::new(OsStr::from_bytes(name)));
    // Only a plain file name, which cannot lead elsewhere.
    let name = link.filter(|name| name.file_name() == Some(name.as_os_str()));
    if let (Some(name), Some(dir)) = (name, path.parent()) {
        candidates.push(dir.join(name));
        candidates.push(dir.join(".debug").join(name));
        candidates.push(root.join(dir.strip_prefix("/").unwrap_or(dir)).join(name));
    }
    candidates.into_iter().find_map(|candidate| read(&candidate, id))
}

/// Reads a debug file if it has that build id.
fn read(candidate: &PathBuf, id: &[u8]) -> Option<Vec<u8>> {
    candidate.metadata().ok().filter(|meta| meta.is_file() && meta.len() <= MAX)?;
    let bytes = std::fs::read(candidate).ok()?;
    let file = ElfFile64::<Endianness>::parse(&*bytes).ok()?;
    let same = file.build_id().ok().flatten() == Some(id);
    same.then_some(bytes)
}
