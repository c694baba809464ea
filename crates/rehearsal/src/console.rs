//! Evaluates the guest's console at the end of a run, like other machines do.

use kerntune_guest::ConsoleMessage;
use kerntune_machine::{ConsoleTail, Error, Result, RunRequest, ServiceLogTail};
use std::path::PathBuf;

/// Number of lines kept for messages.
const TAIL: usize = 12;

/// Console output of a whole run.
#[derive(Debug, Default)]
pub struct ConsoleLog {
    /// Phases that began, in order.
    pub phases: Vec<String>,
    panic: Option<String>,
    end: Option<ConsoleMessage>,
    tail: ConsoleTail,
}

impl ConsoleLog {
    /// Parses the output; `log` is the file that contains it.
    pub fn read(text: &str, log: PathBuf) -> Self {
        let mut console = Self { tail: ConsoleTail { log, ..ConsoleTail::default() }, ..Self::default() };
        for line in text.lines() {
            match ConsoleMessage::parse(line) {
                Some(ConsoleMessage::Phase(phase)) => console.phases.push(phase),
                Some(end) => console.end = Some(end),
                None => {
                    let what =
                        line.split_once("Kernel panic - not syncing: ").map(|(_, what)| what.to_owned());
                    console.panic = console.panic.take().or(what);
                }
            }
            console.tail.lines.push(line.to_owned());
        }
        let surplus = console.tail.lines.len().saturating_sub(TAIL);
        console.tail.lines.drain(..surplus);
        console
    }

    /// Checks whether the run succeeded; `late` if it was stopped at the limit.
    ///
    /// # Errors
    /// The kind of failure.
    pub fn judge(self, late: bool, request: &RunRequest) -> Result<()> {
        let Self { phases, panic, end, tail } = self;
        let phase = phases.last().cloned().unwrap_or_else(|| "kernel boot".into());
        match (panic, end) {
            (Some(what), _) => Err(Error::Panic { phase, what, tail }),
            (None, Some(ConsoleMessage::Failed(reason))) => {
                Err(Error::Guest { reason, services: ServiceLogTail::default(), tail })
            }
            (None, _) if late && phases.is_empty() => {
                Err(Error::NoBoot { seconds: request.demands.boot_limit_seconds, tail })
            }
            (None, _) if late => {
                Err(Error::TimeLimit { seconds: request.demands.time_limit_seconds, phase, tail })
            }
            (None, Some(_)) => Ok(()),
            (None, None) => Err(Error::Silent { phase, tail }),
        }
    }
}
