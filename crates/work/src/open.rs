//! Safe opening of files: never blocks on a pipe, and never follows a symbolic link that somebody
//! else put where we write.

use crate::{IoContext, Result};
use rustix::fs::{fcntl_getfl, fcntl_setfl, OFlags};
use std::fs::{self, File, FileType, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// Opens a file for reading, as [`File::open`] does, without ever blocking. `/dev/null` counts as
/// an empty file.
///
/// # Errors
/// A file that cannot be opened; a directory, a pipe, a socket, or a device.
pub fn open_file(path: impl AsRef<Path>) -> io::Result<File> {
    let path = path.as_ref();
    // With O_NONBLOCK a pipe without a writer opens at once; with O_NOCTTY a terminal does not
    // become ours.
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = match OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path) {
        Err(error) => return Err(kind_of_file(fs::metadata(path)).map_or(error, no_file)),
        Ok(file) => file,
    };
    match kind_of_file(file.metadata()) {
        Some(_) if path == Path::new("/dev/null") => Ok(file),
        Some(kind) => Err(no_file(kind)),
        None => {
            fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
            Ok(file)
        }
    }
}

/// Reads a file that is opened by [`open_file`].
///
/// # Errors
/// Those of [`open_file`]; a file that cannot be read.
pub fn read_file(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_file(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Describes a file that is not regular, such as "a directory"; `None` for regular files.
pub fn file_kind(file_type: FileType) -> Option<&'static str> {
    match file_type {
        kind if kind.is_file() => None,
        kind if kind.is_dir() => Some("a directory"),
        kind if kind.is_fifo() => Some("a pipe"),
        kind if kind.is_socket() => Some("a socket"),
        kind if kind.is_symlink() => Some("a symbolic link"),
        _ => Some("a device"),
    }
}

fn kind_of_file(found: io::Result<Metadata>) -> Option<&'static str> {
    file_kind(found.ok()?.file_type())
}

fn no_file(kind: &'static str) -> io::Error {
    let advice = match kind {
        "a pipe" => "; write what comes through it into a file first",
        _ => "",
    };
    let kind = match kind {
        "a directory" => "a directory".to_owned(),
        kind => format!("not a regular file, but {kind}"),
    };
    io::Error::new(ErrorKind::InvalidInput, format!("it is {kind}{advice}"))
}

/// Creates a new file in place of an existing one; a symbolic link is removed, not followed.
///
/// # Errors
/// A file that cannot be created; a directory with this name.
pub fn create_new(path: &Path) -> io::Result<File> {
    let create = || OpenOptions::new().write(true).create_new(true).open(path);
    match create() {
        // Left by a killed process with our process id.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            fs::remove_file(path)?;
            create()
        }
        other => other,
    }
}

/// Opens a file of the work directory for writing, and creates it if needed. Its content is kept.
///
/// # Errors
/// A symbolic link, or anything else that is not a regular file; a file that cannot be opened.
pub fn open_own(action: &'static str, path: &Path, mode: u32) -> Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true).mode(mode).custom_flags(flags.bits() as i32);
    let open = || match options.open(path) {
        Err(error) => Err(kind_of_file(fs::symlink_metadata(path)).map_or(error, foreign)),
        Ok(file) => kind_of_file(file.metadata()).map_or(Ok(file), |kind| Err(foreign(kind))),
    };
    open().at(action, path)
}

fn foreign(kind: &'static str) -> io::Error {
    let reason = format!("it is {kind}, which kerntune did not put there; look at it, and remove it");
    io::Error::new(ErrorKind::InvalidInput, reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    fn fifo(path: &Path) {
        rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    }

    #[test]
    fn an_input_is_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fifo(&at("pipe"));
        let _socket = UnixListener::bind(at("socket")).unwrap();
        symlink(at("pipe"), at("link")).unwrap();
        fs::write(at("file"), "text").unwrap();
        symlink(at("file"), at("good link")).unwrap();
        let refused = |path: &Path| open_file(path).unwrap_err().to_string();
        for (name, kind) in
            [("pipe", "a pipe"), ("socket", "a socket"), ("link", "a pipe"), ("", "a directory")]
        {
            let path = at(name);
            let said = refused(&path);
            assert!(said.starts_with("it is ") && said.contains(kind), "{said}");
        }
        assert!(refused(Path::new("/dev/zero")) == "it is not a regular file, but a device");
        assert!(refused(&at("none")).contains("No such file"));
        for path in [at("file"), at("good link"), "/dev/null".into(), "/proc/self/status".into()] {
            let file = open_file(&path).unwrap();
            assert!(path.starts_with("/dev") || !fcntl_getfl(&file).unwrap().contains(OFlags::NONBLOCK));
        }
    }

    #[test]
    fn a_new_file_replaces_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let (victim, link) = (dir.path().join("victim"), dir.path().join("link"));
        fs::write(&victim, "precious").unwrap();
        symlink(&victim, &link).unwrap();
        create_new(&link).unwrap().write_all(b"ours").unwrap();
        assert_eq!(fs::read(&victim).unwrap(), b"precious");
        assert_eq!(fs::read(&link).unwrap(), b"ours");
        assert!(fs::symlink_metadata(&link).unwrap().is_file());
    }

    #[test]
    fn our_own_files_are_no_links() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("victim"), "precious").unwrap();
        symlink(at("victim"), at("link")).unwrap();
        symlink(at("none"), at("dangling")).unwrap();
        fifo(&at("pipe"));
        let refused = |name: &str| open_own("open lock", &at(name), 0o644).unwrap_err().to_string();
        for (name, kind) in [("link", "a symbolic link"), ("dangling", "a symbolic link"), ("pipe", "a pipe")]
        {
            assert!(refused(name).contains(&format!("it is {kind}, which kerntune did not put there")));
        }
        assert!(!at("none").exists());
        open_own("open lock", &at("lock"), 0o600).unwrap();
        open_own("open lock", &at("lock"), 0o600).unwrap();
    }
}
