//! Watches a guest's run from its first to its last message, on every machine.

use crate::console::ConsoleReader;
use crate::run_meter::RunMeter;
use crate::{Error, Result, ServiceLogTail};
use kerntune_guest::ConsoleMessage;
use kerntune_work::{Job, JobEnd, Progress};
use std::path::Path;
use std::time::{Duration, Instant};

/// Observations of a run.
pub(crate) struct WatchedRun {
    pub console: ConsoleReader,
    pub end: JobEnd,
    /// Phases with the seconds at which they began.
    pub phases: Vec<(String, f64)>,
    pub started: Instant,
}

/// Description and time limits of a run.
pub(crate) struct RunLimits {
    /// Description for progress: `measured on base`.
    pub what: String,
    /// Time limit for init's first message, in wall-clock seconds.
    pub boot_seconds: u64,
    /// Time limit of the whole run, in wall-clock seconds.
    pub seconds: u64,
    /// Virtual time of an earlier run of the same, in ns.
    pub expected_ns: Option<u64>,
}

/// Runs the machine's program until it ends, or init's first message is late. The console is the
/// growing file `console`, beside which the recorder writes its progress; `line` receives the program's own output, and returns false to stop it.
///
/// # Errors
/// [`Error::NoBoot`]; a program that cannot run; an interrupt.
pub(crate) fn watch(
    job: Job,
    limits: &RunLimits,
    console: &Path,
    progress: &dyn Progress,
    line: impl FnMut(&str) -> bool,
) -> Result<WatchedRun> {
    let meter = RunMeter::new(console.parent().unwrap_or(Path::new("")), limits.expected_ns);
    let mut console = ConsoleReader::follow(console);
    let started = Instant::now();
    let mut no_boot = false;
    let mut phases = Vec::new();
    progress.begin(&limits.what, None);
    let end = job.time_limit(Duration::from_secs(limits.seconds)).run(line, || {
        for phase in console.read() {
            progress.note(&format!("guest: {phase}"));
            phases.push((phase, started.elapsed().as_secs_f64()));
        }
        if let Some(status) = meter.read(started.elapsed()) {
            progress.status(&status);
        }
        // A sign of life, also of runs without a recorder.
        progress.at(started.elapsed().as_secs());
        no_boot = console.phase.is_empty() && started.elapsed().as_secs() > limits.boot_seconds;
        !no_boot
    });
    progress.end();
    phases.extend(console.read().into_iter().map(|phase| (phase, started.elapsed().as_secs_f64())));
    let end = end?;
    if no_boot {
        return Err(Error::NoBoot { seconds: limits.boot_seconds, tail: console.tail() });
    }
    Ok(WatchedRun { console, end, phases, started })
}

impl WatchedRun {
    /// Checks whether the run succeeded, by all that was observed. `died` turns an abnormal end of
    /// the program into an error.
    pub fn judge(&self, limits: &RunLimits, died: impl FnOnce(&JobEnd) -> Option<Error>) -> Result<()> {
        let Self { console, end, .. } = self;
        let (tail, phase) = (console.tail(), console.phase());
        if let Some(what) = console.panic.clone() {
            return Err(Error::Panic { phase, what, tail });
        }
        if let Some(what) = console.out_of_memory.clone() {
            return Err(Error::OutOfMemory { phase, what, tail });
        }
        match (&console.end, end) {
            (Some(ConsoleMessage::Failed(reason)), _) => {
                Err(Error::Guest { reason: reason.clone(), services: ServiceLogTail::default(), tail })
            }
            (_, JobEnd::TimedOut) => Err(Error::TimeLimit { seconds: limits.seconds, phase, tail }),
            (said, end) => match (died(end), said) {
                (Some(error), _) => Err(error),
                (None, Some(ConsoleMessage::Done)) => Ok(()),
                (None, _) => Err(Error::Silent { phase, tail }),
            },
        }
    }
}
