//! A guest's run from its first word to its last: the same on every machine.

use crate::console::Console;
use crate::{Error, LastWords, Result};
use kerntune_guest::ConsoleMessage;
use kerntune_work::{Job, JobEnd, Progress};
use std::path::Path;
use std::time::{Duration, Instant};

/// What was seen of a run.
pub(crate) struct Watched {
    pub console: Console,
    pub end: JobEnd,
    /// What began when, in seconds.
    pub phases: Vec<(String, f64)>,
    pub started: Instant,
}

/// What a run is called, and how long it may take.
pub(crate) struct Limits {
    /// For progress: `measured on base`.
    pub what: String,
    /// Wall seconds to init's first word.
    pub boot_seconds: u64,
    /// Wall seconds for all of it.
    pub seconds: u64,
}

/// Runs the machine's program until it ends, or the guest has not said its first word in time. The console is what grows
/// at `console`; `line` sees what the program itself prints, and returns false to stop it.
///
/// # Errors
/// [`Error::NoBoot`]; a program that cannot be run; an interrupt.
pub(crate) fn watch(
    job: Job,
    limits: &Limits,
    console: &Path,
    progress: &dyn Progress,
    line: impl FnMut(&str) -> bool,
) -> Result<Watched> {
    let mut console = Console::follow(console);
    let started = Instant::now();
    let mut no_boot = false;
    let mut phases = Vec::new();
    progress.begin(&limits.what, None);
    let end = job.time_limit(Duration::from_secs(limits.seconds)).run(line, || {
        for phase in console.read() {
            progress.note(&format!("guest: {phase}"));
            phases.push((phase, started.elapsed().as_secs_f64()));
        }
        no_boot = console.phase.is_empty() && started.elapsed().as_secs() > limits.boot_seconds;
        !no_boot
    });
    progress.end();
    phases.extend(console.read().into_iter().map(|phase| (phase, started.elapsed().as_secs_f64())));
    let end = end?;
    if no_boot {
        return Err(Error::NoBoot { seconds: limits.boot_seconds, tail: console.tail() });
    }
    Ok(Watched { console, end, phases, started })
}

impl Watched {
    /// Whether the run went well, from all that was said. `died` makes an error of how the program ended otherwise.
    pub fn judge(&self, limits: &Limits, died: impl FnOnce(&JobEnd) -> Option<Error>) -> Result<()> {
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
                Err(Error::Guest { reason: reason.clone(), services: LastWords::default(), tail })
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
