//! File with the position of the run, which the machine reads while it waits.

use kerntune_trace::{files, RunProgress};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Least wall time between two updates.
const INTERVAL: Duration = Duration::from_millis(250);

/// Writer of [`files::PROGRESS`].
pub struct ProgressWriter {
    /// `None` if the file cannot be written: a run without it is as good.
    file: Option<File>,
    updated: Instant,
}

impl ProgressWriter {
    /// Creates the file in `directory`.
    pub fn create(directory: &Path) -> Self {
        Self { file: File::create(directory.join(files::PROGRESS)).ok(), updated: Instant::now() }
    }

    /// Writes the position, unless the last one is recent. Called where the guest's clock is
    /// compared, which is not once per event.
    pub fn update(&mut self, progress: RunProgress) {
        if self.updated.elapsed() < INTERVAL {
            return;
        }
        self.updated = Instant::now();
        let written = self.file.as_ref().map(|file| file.write_all_at(&progress.to_bytes(), 0));
        if let Some(Err(_)) = written {
            self.file = None;
        }
    }
}
