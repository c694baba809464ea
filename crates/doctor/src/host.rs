//! The machine as the probes see it: programs that are run, files that are read, counters that
//! are opened. Behind a trait, so that every probe is tested with made-up answers.

use crate::perf_event;
pub(crate) use crate::perf_event::Counter;
use kerntune_work::{find_program, Job, JobEnd};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A short program's time.
pub(crate) const SHORT: Duration = Duration::from_secs(4);

/// What became of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It ended with this status; a signal counts as 128 + its number.
    Exited(i32),
    /// Its time was up.
    TimedOut,
    /// The watcher had seen enough.
    Stopped,
}

/// A program that was run.
#[derive(Debug, Clone)]
pub(crate) struct Ran {
    pub(crate) ending: Ending,
    /// Output and error output in the order of their arrival.
    pub(crate) output: String,
}

impl Ran {
    pub(crate) fn is_success(&self) -> bool {
        self.ending == Ending::Exited(0)
    }

    /// The last line that is not empty.
    pub(crate) fn last_line(&self) -> Option<&str> {
        self.output.lines().map(str::trim).rfind(|line| !line.is_empty())
    }
}

/// Why a program could not be run at all, in words.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct CannotRun(pub String);

/// Sees each line of output; `false` ends the program.
pub(crate) type Watch<'a> = &'a mut dyn FnMut(&str) -> bool;

/// What probes may ask of a machine.
pub(crate) trait Host: Sync {
    /// Where a program is, by the PATH.
    fn find(&self, program: &str) -> Option<PathBuf>;
    /// Runs a program without input.
    fn run(&self, argv: &[&str], limit: Duration, watch: Watch) -> Result<Ran, CannotRun>;
    /// A file's bytes.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;
    /// Whether a file can be opened for reading.
    fn is_readable(&self, path: &Path) -> bool;
    /// What is in a directory, sorted by name; nothing if it cannot be listed.
    fn list(&self, directory: &Path) -> Vec<PathBuf>;
    /// Bytes that this user may still write at a path that exists.
    fn free_bytes(&self, path: &Path) -> io::Result<u64>;
    /// Opens a perf counter on this process, lets it count, and gives what it counted.
    fn count(&self, counter: Counter, with_kernel: bool) -> io::Result<u64>;

    /// Runs a short program to its end.
    fn ask(&self, argv: &[&str]) -> Result<Ran, CannotRun> {
        self.run(argv, SHORT, &mut |_| true)
    }

    /// A file's text, invalid UTF-8 replaced.
    fn text(&self, path: &str) -> io::Result<String> {
        self.read(Path::new(path)).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// The machine that we run on.
pub(crate) struct ThisMachine;

/// The error's own text sends its reader to the doctor, which is where he is.
fn cannot_run(error: kerntune_work::Error) -> CannotRun {
    CannotRun(match error {
        kerntune_work::Error::Spawn { program, source } if source.kind() == io::ErrorKind::NotFound => {
            format!("{program} not found")
        }
        kerntune_work::Error::Spawn { program, source } => format!("cannot run {program}: {source}"),
        other => other.to_string(),
    })
}

impl Host for ThisMachine {
    fn find(&self, program: &str) -> Option<PathBuf> {
        find_program(program, &[])
    }

    fn run(&self, argv: &[&str], limit: Duration, watch: Watch) -> Result<Ran, CannotRun> {
        let (program, arguments) = argv.split_first().ok_or_else(|| CannotRun("no program given".into()))?;
        let mut command = Command::new(program);
        // Where the caller stands may be gone, or be a directory that programs write into.
        command.args(arguments).env("LC_ALL", "C").current_dir("/");
        let mut output = String::new();
        let end = Job::new(command).time_limit(limit).run(
            |line| {
                output.push_str(line);
                output.push('\n');
                watch(line)
            },
            || true,
        );
        let ending = match end.map_err(cannot_run)? {
            JobEnd::Exited(status) => {
                use std::os::unix::process::ExitStatusExt;
                Ending::Exited(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)))
            }
            JobEnd::TimedOut => Ending::TimedOut,
            JobEnd::Stopped => Ending::Stopped,
        };
        Ok(Ran { ending, output })
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        std::fs::read(path)
    }

    fn is_readable(&self, path: &Path) -> bool {
        std::fs::File::open(path).is_ok_and(|file| file.metadata().is_ok_and(|m| m.is_file()))
    }

    fn list(&self, directory: &Path) -> Vec<PathBuf> {
        let mut found: Vec<_> =
            std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        found.sort();
        found
    }

    fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        let space = rustix::fs::statvfs(path)?;
        Ok(space.f_bavail.saturating_mul(space.f_frsize))
    }

    fn count(&self, counter: Counter, with_kernel: bool) -> io::Result<u64> {
        perf_event::count(counter, with_kernel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_runs_reads_and_counts_bytes() {
        let ran = ThisMachine.ask(&["sh", "-c", "echo hello; exit 3"]).unwrap();
        assert_eq!((ran.ending.clone(), ran.last_line()), (Ending::Exited(3), Some("hello")));
        assert!(ThisMachine.find("sh").is_some());
        assert!(ThisMachine.find("no-such-program").is_none());
        let error = ThisMachine.ask(&["/no/such/program"]).unwrap_err();
        assert_eq!(error.to_string(), "/no/such/program not found");
        assert!(ThisMachine.ask(&[]).is_err());
        assert!(ThisMachine.free_bytes(Path::new("/")).unwrap() > 0);
        assert!(ThisMachine.free_bytes(Path::new("/no/such/place")).is_err());
        assert!(!ThisMachine.is_readable(Path::new("/")));
    }

    #[test]
    fn a_program_that_hangs_is_ended() {
        let ran = ThisMachine.run(&["sleep", "60"], Duration::from_millis(300), &mut |_| true).unwrap();
        assert_eq!(ran.ending, Ending::TimedOut);
    }
}
