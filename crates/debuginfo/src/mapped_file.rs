//! A file in memory, of which the system reads only what is used.

use memmap2::Mmap;
use std::io;
use std::ops::Deref;
use std::path::Path;

/// Contents of a regular file. Only for files that nobody cuts off meanwhile, as linkers replace
/// theirs; files of other users are read instead.
#[derive(Debug)]
pub struct MappedFile(Option<Mmap>);

impl MappedFile {
    /// Opens a file.
    ///
    /// # Errors
    /// Those of [`kerntune_work::open_file`]; a file that cannot be mapped.
    #[expect(unsafe_code, reason = "a mapping changes if somebody writes into the file")]
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let file = kerntune_work::open_file(path)?;
        if file.metadata()?.len() == 0 {
            return Ok(Self(None));
        }
        // SAFETY: the mapping is private and only read, and every byte is valid. Another program
        // that writes into the file changes what is read of it, which parsers expect of any input.
        Ok(Self(Some(unsafe { Mmap::map(&file)? })))
    }
}

impl Deref for MappedFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_their_lack() {
        let dir = tempfile::tempdir().unwrap();
        for contents in ["", "text"] {
            std::fs::write(dir.path().join("a"), contents).unwrap();
            assert_eq!(&*MappedFile::open(dir.path().join("a")).unwrap(), contents.as_bytes());
        }
        assert!(MappedFile::open(dir.path()).is_err());
        assert_eq!(MappedFile::open(dir.path().join("b")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
