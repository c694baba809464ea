//! File of event tags of McRae's profiler.

use crate::Failure;
use kerntune_trace::files;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Writer of [`files::TAGS`], with a buffer of 1 MiB that holds 200,000 tags.
pub struct TagWriter {
    out: BufWriter<File>,
    path: PathBuf,
}

impl TagWriter {
    /// Creates the file in `directory`.
    pub fn create(directory: &Path) -> Result<Self, Failure> {
        let path = directory.join(files::TAGS);
        let file =
            File::create(&path).map_err(|e| Failure(format!("cannot create {}: {e}", path.display())))?;
        Ok(Self { out: BufWriter::with_capacity(1 << 20, file), path })
    }

    /// Appends a tag seen at this virtual time.
    pub fn push(&mut self, tag: u16, ns: u64) -> Result<(), Failure> {
        self.out.write_all(&record(tag, ns)).map_err(|e| self.failure(&e))
    }

    /// Writes and syncs the rest of the file.
    pub fn finish(mut self) -> Result<(), Failure> {
        self.out.flush().and_then(|()| self.out.get_ref().sync_data()).map_err(|e| self.failure(&e))
    }

    fn failure(&self, error: &std::io::Error) -> Failure {
        Failure(format!("cannot write {}: {error}", self.path.display()))
    }
}

fn record(tag: u16, ns: u64) -> [u8; 5] {
    let [low, high] = tag.to_le_bytes();
    let [a, b, c, ..] = (ns / 1000).to_le_bytes();
    [low, high, a, b, c]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_five_bytes_and_the_timer_wraps() {
        assert_eq!(record(0x1234, 999), [0x34, 0x12, 0, 0, 0]);
        assert_eq!(record(2, 0x0102_0304 * 1000 + 17), [2, 0, 4, 3, 2]);
    }
}
