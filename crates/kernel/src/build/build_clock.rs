//! Wall time of a build over all its attempts.

use crate::Result;
use kerntune_work::{write_atomic, IoContext};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// File in a partial directory: seconds of all earlier attempts, and when the last one began.
const FILE: &str = ".spent";

/// Clock that resumes at the time at which an interrupted attempt stopped.
pub(crate) struct BuildClock {
    before: Duration,
    began: Instant,
    file: PathBuf,
}

impl BuildClock {
    /// Begins an attempt in a partial directory. `log` is written line by line, so a killed attempt
    /// lasted until its last line.
    pub fn begin(partial: &Path, log: &Path) -> Result<Self> {
        let file = partial.join(FILE);
        let text = fs::read_to_string(&file).unwrap_or_default();
        let before = fs::metadata(log).and_then(|log| log.modified()).ok();
        let before = before.and_then(|end| over(&text, end)).unwrap_or_default();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        write_atomic(&file, format!("{} {}\n", before.as_secs_f64(), now.as_secs_f64()).as_bytes())?;
        Ok(Self { before, began: Instant::now(), file })
    }

    /// Ends the last attempt and returns the seconds of all attempts, rounded to a tenth.
    pub fn end(self) -> Result<f64> {
        fs::remove_file(&self.file).at("remove", &self.file)?;
        Ok(((self.before + self.began.elapsed()).as_secs_f64() * 10.0).round() / 10.0)
    }
}

/// Returns the time of all earlier attempts, if the last one ended at `end`. `None` if the file is
/// not in our format.
fn over(text: &str, end: SystemTime) -> Option<Duration> {
    let (before, began) = text.trim().split_once(' ')?;
    let seconds = |text: &str| Duration::try_from_secs_f64(text.parse().ok()?).ok();
    let lasted = end.duration_since(UNIX_EPOCH).ok()?.saturating_sub(seconds(began)?);
    seconds(before)?.checked_add(lasted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_added_up() {
        let end = UNIX_EPOCH + Duration::from_secs(1_000_100);
        assert_eq!(over("20.5 1000000\n", end), Some(Duration::from_millis(120_500)));
        // The clock of the host was set back.
        assert_eq!(over("20.5 1000200\n", end), Some(Duration::from_millis(20_500)));
        for bad in ["", "x", "1", "-1 5", "1 nan", "inf 5", "1e300 5"] {
            assert_eq!(over(bad, end), None, "{bad}");
        }
    }

    #[test]
    fn a_killed_attempt_lasted_until_the_last_line_of_its_log() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("build.log");
        drop(BuildClock::begin(dir.path(), &log).unwrap());
        fs::write(&log, "  CC      a.o\n").unwrap();
        let last = SystemTime::now() + Duration::from_secs(100);
        fs::File::options().append(true).open(&log).unwrap().set_modified(last).unwrap();
        let second = BuildClock::begin(dir.path(), &log).unwrap();
        assert!(second.before > Duration::from_secs(99), "{:?}", second.before);
        assert!(second.end().unwrap() > 99.0 && !dir.path().join(FILE).exists());
    }
}
