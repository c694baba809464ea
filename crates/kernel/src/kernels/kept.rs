//! Hashes of a kernel's kept objects, to check that they are still as compiled.
//!
//! A kept build directory changes: a relink writes into it. So it is not sealed like the rest of
//! the kernel. This file has hashes of the files that a later link reads, and of the notes that
//! training counters are checked against.

use crate::{Error, Result};
use kerntune_work::{hash_file, write_atomic, IoContext};
use std::fs;
use std::path::Path;

/// File beside the manifest with one line for each object, in the format of `b3sum`.
const FILE: &str = "objects.b3";

/// Writes the hashes of the objects in `build` to the kernel's directory `dir`.
pub(crate) fn write(dir: &Path, build: &Path) -> Result<()> {
    let mut names = Vec::new();
    list(build, build, &mut names)?;
    names.sort();
    let mut text = String::new();
    for name in names {
        text.push_str(&format!("{}  {name}\n", hash_file(&build.join(&name))?));
    }
    Ok(write_atomic(&dir.join(FILE), text.as_bytes())?)
}

/// Checks the objects in `build` against the hashes in the kernel's directory `dir`.
///
/// # Errors
/// [`Error::Damaged`] with the first object that is missing or differs.
pub(crate) fn check(dir: &Path, build: &Path) -> Result<()> {
    let path = dir.join(FILE);
    let text = fs::read_to_string(&path).at("read", &path)?;
    let damaged = |reason: String| Error::Damaged { dir: dir.to_owned(), reason };
    for (hash, name) in text.lines().filter_map(|line| line.split_once("  ")) {
        let object = build.join(name);
        if !object.is_file() {
            return Err(damaged(format!("its object {name} is missing")));
        }
        if hash_file(&object)? != hash {
            return Err(damaged(format!("its object {name} is not the one that was compiled")));
        }
    }
    Ok(())
}

/// Lists the objects and notes that links do not write: those below the top directory, without the
/// boot code.
fn list(top: &Path, directory: &Path, names: &mut Vec<String>) -> Result<()> {
    for entry in fs::read_dir(directory).at("list", directory)? {
        let entry = entry.at("list", directory)?;
        let (path, kind) = (entry.path(), entry.file_type().at("look at", entry.path())?);
        let name = path.strip_prefix(top).unwrap_or(&path).to_string_lossy().into_owned();
        let extension = path.extension().unwrap_or_default();
        if kind.is_dir() {
            let packing = name.starts_with("arch/") && name.ends_with("/boot");
            let tools = name == "scripts" || name == "tools";
            if !packing && !tools {
                list(top, &path, names)?;
            }
        } else if kind.is_file() && name.contains('/') && (extension == "o" || extension == "gcno") {
            // Compiled at each link, with the time of the link unless it is pinned.
            if name != "init/version-timestamp.o" {
                names.push(name);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_that_changed_is_found_and_what_links_write_is_not_looked_at() {
        let dir = tempfile::tempdir().unwrap();
        let build = dir.path().join("build");
        for name in ["kernel", "arch/x86/boot", "scripts"] {
            fs::create_dir_all(build.join(name)).unwrap();
        }
        let files =
            ["kernel/fork.o", "kernel/fork.gcno", "vmlinux.o", "arch/x86/boot/main.o", "scripts/kallsyms.o"];
        for name in files {
            fs::write(build.join(name), "object").unwrap();
        }
        write(dir.path(), &build).unwrap();
        check(dir.path(), &build).unwrap();
        for name in ["vmlinux.o", "arch/x86/boot/main.o", "scripts/kallsyms.o"] {
            fs::write(build.join(name), "linked again").unwrap();
        }
        check(dir.path(), &build).unwrap();
        fs::write(build.join("kernel/fork.gcno"), "others").unwrap();
        assert!(check(dir.path(), &build).unwrap_err().to_string().contains("kernel/fork.gcno is not"));
        fs::remove_file(build.join("kernel/fork.gcno")).unwrap();
        assert!(check(dir.path(), &build).unwrap_err().to_string().contains("kernel/fork.gcno is missing"));
    }
}
