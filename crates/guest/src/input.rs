//! Reads files that users name, and rejects special files and files that are too large.

use kerntune_work::{open_file, Error, IoContext, Result};
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// Largest text file to read, in bytes: workloads, models, orders, results.
pub const TEXT_MAX: u64 = 64 << 20;

/// Reads a regular file, or a link to one. `action` describes the purpose in errors: "read
/// workload".
///
/// # Errors
/// A file that cannot be read, is no regular file, or has more than `max` bytes.
pub fn read_input(action: &'static str, path: &Path, max: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_file(path).and_then(|file| file.take(max + 1).read_to_end(&mut bytes)).at(action, path)?;
    if bytes.len() as u64 > max {
        return Err(refused(
            action,
            path,
            format!("it has more than {} MiB, which no such file has", max >> 20),
        ));
    }
    Ok(bytes)
}

/// Reads a text file of at most [`TEXT_MAX`] bytes.
///
/// # Errors
/// As for [`read_input`]; text that is not UTF-8.
pub fn read_text(action: &'static str, path: &Path) -> Result<String> {
    String::from_utf8(read_input(action, path, TEXT_MAX)?)
        .map_err(|_| refused(action, path, "it is not UTF-8 text".into()))
}

fn refused(action: &'static str, path: &Path, reason: String) -> Error {
    Error::Io { action, path: path.to_owned(), source: io::Error::new(ErrorKind::InvalidData, reason) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn devices_and_giants_are_no_input() {
        let refused = |path: &Path| read_text("read workload", path).unwrap_err().to_string();
        assert_eq!(
            refused(Path::new("/dev/zero")),
            "cannot read workload /dev/zero: it is not a regular file, but a device"
        );
        let dir = tempfile::tempdir().unwrap();
        let giant = dir.path().join("giant.toml");
        File::create(&giant).unwrap().set_len(3 << 30).unwrap();
        assert!(refused(&giant).ends_with("it has more than 64 MiB, which no such file has"));
        std::fs::write(&giant, b"\xff").unwrap();
        assert!(refused(&giant).ends_with("it is not UTF-8 text"));
        std::fs::write(&giant, "text").unwrap();
        assert_eq!(read_text("read workload", &giant).unwrap(), "text");
    }
}
