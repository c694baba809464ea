//! Access of the probes to the machine: running programs, reading files, opening counters. It is a
//! trait, so that tests can give their own answers.

use crate::perf_event;
pub(crate) use crate::perf_event::PerfEvent;
use kerntune_kernel::Compiler;
use kerntune_optimize::{bolt, clang_autofdo, gcc_pgo, layout, propeller};
use kerntune_work::{find_program, Job, JobEnd};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Time limit of a short program.
pub(crate) const SHORT: Duration = Duration::from_secs(4);

/// End of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ProgramEnd {
    /// Exited with this status; 128 + N for signal N.
    Exited(i32),
    /// Killed at the time limit.
    TimedOut,
    /// Ended by the watcher.
    Stopped,
}

/// Result of running a program.
#[derive(Debug, Clone)]
pub(crate) struct ProgramRun {
    pub(crate) ending: ProgramEnd,
    /// Standard output and error, in order of arrival.
    pub(crate) output: String,
}

impl ProgramRun {
    pub(crate) fn is_success(&self) -> bool {
        self.ending == ProgramEnd::Exited(0)
    }

    /// Returns the last line that is not empty.
    pub(crate) fn last_line(&self) -> Option<&str> {
        self.output.lines().map(str::trim).rfind(|line| !line.is_empty())
    }
}

/// Reason that a program could not be started, as a message.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct CannotRun(pub String);

/// Callback for each line of output; returns false to end the program.
pub(crate) type OutputWatcher<'a> = &'a mut dyn FnMut(&str) -> bool;

/// Check of a compiler for a recipe.
type RecipeCheck = fn(&Compiler) -> kerntune_optimize::Result<()>;

/// A recipe, and whether a compiler can carry it out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecipeOutcome {
    pub(crate) recipe: &'static str,
    /// Reason why not; `None` if it can.
    pub(crate) problem: Option<String>,
}

/// Operations that probes perform on a machine.
pub(crate) trait ProbeHost: Sync {
    /// Finds a program in `$PATH`.
    fn find(&self, program: &str) -> Option<PathBuf>;
    /// Returns the names `program` and `program-N` in `$PATH`, in any order.
    fn versions(&self, program: &str) -> Vec<String>;
    /// Returns the recipes that a compiler could carry out, and whether it can.
    fn recipes(&self, compiler: &str) -> Vec<RecipeOutcome>;
    /// Runs a program without input, for at most `limit`.
    fn run(&self, argv: &[&str], limit: Duration, watch: OutputWatcher) -> Result<ProgramRun, CannotRun>;
    /// Reads a file.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;
    /// Returns true if a file can be opened for reading.
    fn is_readable(&self, path: &Path) -> bool;
    /// Lists a directory, sorted by name; empty if it cannot be read.
    fn list(&self, directory: &Path) -> Vec<PathBuf>;
    /// Returns the number of bytes that this user can still write at an existing path.
    fn free_bytes(&self, path: &Path) -> io::Result<u64>;
    /// Opens a perf event on this process, and returns its count over a short time.
    fn count(&self, counter: PerfEvent, with_kernel: bool) -> io::Result<u64>;

    /// Runs a short program, for at most [`SHORT`].
    fn ask(&self, argv: &[&str]) -> Result<ProgramRun, CannotRun> {
        self.run(argv, SHORT, &mut |_| true)
    }

    /// Reads a text file; replaces invalid UTF-8.
    fn text(&self, path: &str) -> io::Result<String> {
        self.read(Path::new(path)).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// The machine that this process runs on.
pub(crate) struct ThisMachine;

/// Converts an error to a message. The original message tells the user to run `kerntune doctor`,
/// which is already running.
fn cannot_run(error: kerntune_work::Error) -> CannotRun {
    CannotRun(match error {
        kerntune_work::Error::Spawn { program, source } if source.kind() == io::ErrorKind::NotFound => {
            format!("{program} not found")
        }
        kerntune_work::Error::Spawn { program, source } => format!("cannot run {program}: {source}"),
        other => other.to_string(),
    })
}

impl ProbeHost for ThisMachine {
    fn find(&self, program: &str) -> Option<PathBuf> {
        find_program(program, &[])
    }

    fn versions(&self, program: &str) -> Vec<String> {
        kerntune_kernel::installed(program).into_iter().map(|found| found.name).collect()
    }

    fn recipes(&self, compiler: &str) -> Vec<RecipeOutcome> {
        let Ok(compiler) = compiler.parse::<Compiler>() else { return Vec::new() };
        let checks: &[(&'static str, RecipeCheck)] = match compiler {
            Compiler::Gcc { .. } => &[
                (gcc_pgo::NAME, gcc_pgo::check_compiler),
                (layout::NAME, |of| Ok(of.identify().map(drop)?)),
                (bolt::NAME, |of| bolt::Bolt::find(of).map(drop)),
            ],
            Compiler::Clang { .. } => &[
                (clang_autofdo::NAME, clang_autofdo::check_compiler),
                ("clang-autofdo+thinlto", clang_autofdo::check_thin_lto),
                ("clang-autofdo+propeller", propeller::check_compiler),
                (layout::NAME, |of| Ok(of.identify().map(drop)?)),
                (bolt::NAME, |of| bolt::Bolt::find(of).map(drop)),
            ],
        };
        let outcome = |(recipe, check): &(&'static str, RecipeCheck)| RecipeOutcome {
            recipe,
            problem: check(&compiler).err().map(|error| error.to_string()),
        };
        checks.iter().map(outcome).collect()
    }

    fn run(&self, argv: &[&str], limit: Duration, watch: OutputWatcher) -> Result<ProgramRun, CannotRun> {
        let (program, arguments) = argv.split_first().ok_or_else(|| CannotRun("no program given".into()))?;
        let mut command = Command::new(program);
        // The current directory may be deleted, or programs may write into it.
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
                ProgramEnd::Exited(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)))
            }
            JobEnd::TimedOut => ProgramEnd::TimedOut,
            JobEnd::Stopped => ProgramEnd::Stopped,
        };
        Ok(ProgramRun { ending, output })
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

    fn count(&self, counter: PerfEvent, with_kernel: bool) -> io::Result<u64> {
        perf_event::count(counter, with_kernel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_runs_reads_and_counts_bytes() {
        let ran = ThisMachine.ask(&["sh", "-c", "echo hello; exit 3"]).unwrap();
        assert_eq!((ran.ending.clone(), ran.last_line()), (ProgramEnd::Exited(3), Some("hello")));
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
        assert_eq!(ran.ending, ProgramEnd::TimedOut);
    }
}
