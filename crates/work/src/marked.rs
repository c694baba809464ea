//! Output directories named by the user. A mark file shows that kerntune made them, so that the
//! user's own files are never overwritten.

use crate::{file_kind, read_versioned, write_json, Error, IoContext, Result};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

/// Name of the mark file.
pub const DIRECTORY_MARK: &str = "made-by-kerntune.json";
const SCHEMA: &str = "kerntune-directory/1";

/// Contents of the mark file.
#[derive(Debug, Serialize, Deserialize)]
struct DirectoryMark {
    schema: String,
    /// Command that made the directory.
    command: String,
    /// Inputs whose results are in the directory.
    of: Vec<String>,
}

/// Takes a directory for the results of a command: a new one, an empty one, or one that this
/// command made of the same inputs.
///
/// # Errors
/// [`Error::OthersDirectory`] for any other directory, and for one with a symbolic link in it; a
/// directory that cannot be created.
pub fn take_directory(path: &Path, command: &str, of: &[&str]) -> Result<()> {
    let refused =
        |what: String| Error::OthersDirectory { path: path.to_owned(), command: command.to_owned(), what };
    if let Ok(found) = fs::metadata(path) {
        if !found.is_dir() {
            return Err(refused(format!("is {}", file_kind(found.file_type()).unwrap_or("a file"))));
        }
    }
    fs::create_dir_all(path).at("create", path)?;
    let mark = path.join(DIRECTORY_MARK);
    let entries = fs::read_dir(path).at("list", path)?.collect::<io::Result<Vec<_>>>().at("list", path)?;
    if !entries.is_empty() {
        if !fs::symlink_metadata(&mark).is_ok_and(|found| found.is_file()) {
            return Err(refused(format!("is not empty, and `kerntune {command}` did not make it")));
        }
        let mut there: DirectoryMark = read_versioned(&mark, SCHEMA)?;
        if there.command == "try" {
            there.command = "ablate".into(); // its former name
        }
        if there.command != command || there.of != of {
            let (command, of) = (there.command, there.of.join(", "));
            return Err(refused(format!("is what `kerntune {command}` made of {of}")));
        }
        for entry in entries {
            if entry.file_type().at("look at", entry.path())?.is_symlink() {
                return Err(refused(format!(
                    "has a symbolic link in it, {}",
                    entry.file_name().to_string_lossy()
                )));
            }
        }
        return Ok(());
    }
    let of = of.iter().map(ToString::to_string).collect();
    write_json(&mark, &DirectoryMark { schema: SCHEMA.into(), command: command.into(), of })
}

/// Copies a directory and everything in it, except the top-level directories `except`. Links in the
/// target are not followed.
///
/// # Errors
/// A symbolic link, or anything else that is neither a file nor a directory; files that cannot be
/// read or written.
pub fn copy_directory(from: &Path, to: &Path, except: &[String]) -> Result<()> {
    match fs::symlink_metadata(to) {
        Err(error) if error.kind() == ErrorKind::NotFound => fs::create_dir_all(to).at("create", to)?,
        found => {
            if !found.at("look at", to)?.is_dir() {
                let source = io::Error::other("it is not a directory of kerntune's: remove it");
                return Err(Error::Io { action: "copy to", path: to.to_owned(), source });
            }
        }
    }
    for entry in fs::read_dir(from).at("list", from)? {
        let entry = entry.at("list", from)?;
        let (name, path) = (entry.file_name(), entry.path());
        if except.iter().any(|except| name == except.as_str()) {
            continue;
        }
        let target = to.join(&name);
        match file_kind(entry.file_type().at("look at", &path)?) {
            None => copy_file(&path, &target)?,
            Some("a directory") => copy_directory(&path, &target, &[])?,
            Some(kind) => {
                let source = io::Error::other(format!("it is {kind}, and only files are copied"));
                return Err(Error::Io { action: "copy", path, source });
            }
        }
    }
    Ok(())
}

fn copy_file(from: &Path, to: &Path) -> Result<()> {
    let mut input = crate::open_file(from).at("copy", from)?;
    let permissions = input.metadata().at("copy", from)?.permissions();
    let mut output = crate::create_new(to).at("create", to)?;
    io::copy(&mut input, &mut output).and_then(|_| output.set_permissions(permissions)).at("copy", from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{symlink, PermissionsExt};

    #[test]
    fn a_directory_is_ours_by_its_mark_alone() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        take_directory(&at("new/one"), "prove", &["a", "b"]).unwrap();
        fs::write(at("new/one/README.md"), "ours").unwrap();
        take_directory(&at("new/one"), "prove", &["a", "b"]).unwrap();
        fs::create_dir(at("empty")).unwrap();
        take_directory(&at("empty"), "try", &[]).unwrap();
        take_directory(&at("empty"), "ablate", &[]).unwrap();
        let refused =
            |name: &str, of: &[&str]| take_directory(&at(name), "prove", of).unwrap_err().to_string();
        assert!(refused("new/one", &["a", "c"])
            .contains("is what `kerntune prove` made of a, b; name a new directory"));
        assert!(refused("empty", &[]).contains("is what `kerntune ablate` made"));
        // Many directories contain the files of a bundle.
        fs::create_dir_all(at("project/results")).unwrap();
        fs::write(at("project/repeat.sh"), "").unwrap();
        assert!(refused("project", &[]).contains("is not empty, and `kerntune prove` did not make it"));
        symlink(at("new/one/README.md"), at(&format!("project/{DIRECTORY_MARK}"))).unwrap();
        assert!(refused("project", &[]).contains("is not empty"));
        symlink(at("project"), at("new/one/results")).unwrap();
        assert!(refused("new/one", &["a", "b"]).contains("has a symbolic link in it, results"));
        assert!(refused("project/repeat.sh", &[]).contains("is a file; name a new directory"));
    }

    #[test]
    fn a_copy_has_files_alone_and_goes_through_no_link() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("from/below")).unwrap();
        fs::create_dir_all(at("from/build")).unwrap();
        fs::write(at("victim"), "precious").unwrap();
        fs::write(at("from/below/file"), "text").unwrap();
        fs::set_permissions(at("from/below/file"), fs::Permissions::from_mode(0o755)).unwrap();
        symlink(at("victim"), at("from/build/link")).unwrap();
        fs::create_dir_all(at("to/below")).unwrap();
        symlink(at("victim"), at("to/below/file")).unwrap();
        copy_directory(&at("from"), &at("to"), &["build".into()]).unwrap();
        assert_eq!(fs::read(at("victim")).unwrap(), b"precious");
        assert_eq!(fs::read(at("to/below/file")).unwrap(), b"text");
        assert_eq!(fs::metadata(at("to/below/file")).unwrap().permissions().mode() & 0o777, 0o755);
        assert!(!at("to/build").exists());
        let said = copy_directory(&at("from"), &at("all"), &[]).unwrap_err().to_string();
        assert!(said.contains("from/build/link: it is a symbolic link, and only files are copied"), "{said}");
        assert!(!at("all/build/link").exists());
        symlink(at("from"), at("elsewhere")).unwrap();
        assert!(copy_directory(&at("from"), &at("elsewhere"), &["build".into()]).is_err());
    }
}
