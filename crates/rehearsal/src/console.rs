//! What the guest's console says of a run, judged as that of any machine.

use kerntune_guest::ConsoleMessage;
use kerntune_machine::{Error, LastWords, Result, RunRequest, Tail};
use std::path::PathBuf;

/// Lines kept for messages.
const TAIL: usize = 12;

/// A console at the end of a run.
#[derive(Debug, Default)]
pub struct Console {
    /// The phases that began.
    pub phases: Vec<String>,
    panic: Option<String>,
    end: Option<ConsoleMessage>,
    tail: Tail,
}

impl Console {
    /// Reads all of it; `log` is the file in which it is.
    pub fn read(text: &str, log: PathBuf) -> Self {
        let mut console = Self { tail: Tail { log, lines: Vec::new() }, ..Self::default() };
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

    /// Whether the run went well; `late` if it was stopped because it did not end.
    ///
    /// # Errors
    /// How it failed.
    pub fn judge(self, late: bool, request: &RunRequest) -> Result<()> {
        let Self { phases, panic, end, tail } = self;
        let phase = phases.last().cloned().unwrap_or_else(|| "kernel boot".into());
        match (panic, end) {
            (Some(what), _) => Err(Error::Panic { phase, what, tail }),
            (None, Some(ConsoleMessage::Failed(reason))) => {
                Err(Error::Guest { reason, services: LastWords::default(), tail })
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
