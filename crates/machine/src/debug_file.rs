//! The file that has the symbols of a stripped program: GDB's manual, "Debugging Information in Separate Files".

use object::read::elf::ElfFile64;
use object::{Endianness, Object};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Where distributions install them.
pub(crate) const ROOT: &str = "/usr/lib/debug";

/// Bytes of the largest one that is read.
const MAX: u64 = 4 << 30;

/// The contents of the debug file of the program `bytes` at `path`. One of another build id is none of its own, and neither is
/// any of a program without one.
pub(crate) fn of(bytes: &[u8], path: &Path, root: &Path) -> Option<Vec<u8>> {
    let program = ElfFile64::<Endianness>::parse(bytes).ok()?;
    let id = program.build_id().ok().flatten().filter(|id| id.len() > 1)?;
    let (first, rest) = id.split_first()?;
    let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut candidates = vec![root.join(format!(".build-id/{first:02x}/{rest}.debug"))];
    // The program's name may be a link; its debug file lies where the program itself is.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let link = program.gnu_debuglink().ok().flatten().map(|(name, _)| Path::new(OsStr::from_bytes(name)));
    // A name, and nothing that leads elsewhere.
    let name = link.filter(|name| name.file_name() == Some(name.as_os_str()));
    if let (Some(name), Some(dir)) = (name, path.parent()) {
        candidates.push(dir.join(name));
        candidates.push(dir.join(".debug").join(name));
        candidates.push(root.join(dir.strip_prefix("/").unwrap_or(dir)).join(name));
    }
    candidates.into_iter().find_map(|candidate| read(&candidate, id))
}

/// A debug file, if it has that build id.
fn read(candidate: &PathBuf, id: &[u8]) -> Option<Vec<u8>> {
    candidate.metadata().ok().filter(|meta| meta.is_file() && meta.len() <= MAX)?;
    let bytes = std::fs::read(candidate).ok()?;
    let file = ElfFile64::<Endianness>::parse(&*bytes).ok()?;
    let same = file.build_id().ok().flatten() == Some(id);
    same.then_some(bytes)
}
