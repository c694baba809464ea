//! The objects of a build that were kept: their hashes, and whether they are still what was compiled.
//!
//! A build directory that is kept is worked in: a link with another order writes into it. So it is no sealed part of the
//! kernel; what a later link reads, and the notes that a training's counters are held against, have their hashes here.

use crate::{Error, Result};
use kerntune_work::{hash_file, write_atomic, IoContext};
use std::fs;
use std::path::Path;

/// Beside the manifest: one line for each object, as `b3sum` has it.
const FILE: &str = "objects.b3";

/// Writes the hashes of the objects in `build` beside the kernel in `dir`.
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

/// Holds the objects in `build` against the hashes beside the kernel in `dir`.
///
/// # Errors
/// [`Error::Damaged`] with the first that is missing or is another.
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

/// The objects and notes that links do not write: those below the top, but for what an image to boot is packed from.
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
            // Compiled at each link, with the time of the link where it is not pinned.
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
