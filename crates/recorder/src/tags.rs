//! File of event tags of McRae's profiler.

use crate::Failure;
use kerntune_trace::{files, TagLayout, MAX_TAG_RECORD};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Writer of [`files::TAGS`], with a buffer of 1 MiB.
pub struct TagWriter {
    out: BufWriter<File>,
    path: PathBuf,
    layout: TagLayout,
}

impl TagWriter {
    /// Creates the file in `directory`.
    pub fn create(directory: &Path, layout: TagLayout) -> Result<Self, Failure> {
        let path = directory.join(files::TAGS);
        let file =
            File::create(&path).map_err(|e| Failure(format!("cannot create {}: {e}", path.display())))?;
        Ok(Self { out: BufWriter::with_capacity(1 << 20, file), path, layout })
    }

    /// Appends a tag seen at this virtual time.
    pub fn push(&mut self, tag: u64, ns: u64) -> Result<(), Failure> {
        let mut record = [0; MAX_TAG_RECORD];
        let count = self.layout.write(tag, self.layout.ticks(ns), &mut record);
        self.out.write_all(&record[..count]).map_err(|e| self.failure(&e))
    }

    /// Writes and syncs the rest of the file.
    pub fn finish(mut self) -> Result<(), Failure> {
        self.out.flush().and_then(|()| self.out.get_ref().sync_data()).map_err(|e| self.failure(&e))
    }

    fn failure(&self, error: &std::io::Error) -> Failure {
        Failure(format!("cannot write {}: {error}", self.path.display()))
    }
}
