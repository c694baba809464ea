//! Progress of a run on the emulator, in words.

use kerntune_trace::{files, RunProgress};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Reader of the position that the recorder writes.
pub(crate) struct RunMeter {
    path: PathBuf,
    /// Virtual time that an earlier run of the same took, in ns.
    expected_ns: Option<u64>,
}

impl RunMeter {
    /// Follows the run in `directory`. Without a recorder there is nothing to read.
    pub fn new(directory: &Path, expected_ns: Option<u64>) -> Self {
        Self { path: directory.join(files::PROGRESS), expected_ns }
    }

    /// Returns the progress after this much wall time; `None` if nothing is known yet.
    pub fn read(&self, elapsed: Duration) -> Option<String> {
        let progress = RunProgress::parse(&std::fs::read(&self.path).ok()?)?;
        Some(describe(progress, elapsed.as_secs_f64(), self.expected_ns))
    }
}

/// Describes a position: `1.24 s virtual, 812 M instructions, 61 M/s, about 40 s left`.
fn describe(
    RunProgress { instructions, virtual_ns }: RunProgress,
    seconds: f64,
    expected_ns: Option<u64>,
) -> String {
    let (instructions, done) = (instructions as f64 / 1e6, virtual_ns as f64);
    let mut text = format!("{:.2} s virtual, {instructions:.0} M instructions", done / 1e9);
    if seconds > 0.0 {
        text += &format!(", {:.0} M/s", instructions / seconds);
    }
    if let Some(left) = expected_ns.and_then(|expected| expected.checked_sub(virtual_ns)) {
        if done > 0.0 {
            text += &format!(", about {:.0} s left", seconds * left as f64 / done);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_is_by_virtual_time() {
        let progress = RunProgress { instructions: 600_000_000, virtual_ns: 1_000_000_000 };
        let known = describe(progress, 10.0, Some(3_000_000_000));
        assert_eq!(known, "1.00 s virtual, 600 M instructions, 60 M/s, about 20 s left");
        let unknown = "1.00 s virtual, 600 M instructions, 60 M/s";
        assert_eq!(describe(progress, 10.0, None), unknown);
        assert_eq!(describe(progress, 10.0, Some(999_999_999)), unknown, "the earlier run was shorter");
    }

    #[test]
    fn a_run_without_a_recorder_has_no_progress() {
        let dir = tempfile::tempdir().unwrap();
        let meter = RunMeter::new(dir.path(), None);
        assert_eq!(meter.read(Duration::from_secs(1)), None);
        std::fs::write(dir.path().join(files::PROGRESS), []).unwrap();
        assert_eq!(meter.read(Duration::from_secs(1)), None);
    }
}
