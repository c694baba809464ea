//! What is asked of the collector in the background.

use crate::exit::{Exit, Failure};
use kerntune_live::daemon::{ask, state, state_after, Answer, Place, Request, State};
use kerntune_work::WorkDir;

/// Asks the collector that runs, or says that none does.
pub(super) fn asked(work: &WorkDir, request: &Request) -> Result<Answer, Failure> {
    let place = Place::of(work);
    let found = state(&place)?;
    let answer = match found {
        State::Runs(_) => ask(&place, request),
        State::Died(_) | State::None => return Err(gone(work, found)),
    };
    match answer {
        Ok(Answer::Failed { message, nothing: true }) => Err(Failure { exit: Exit::Recording, message }),
        Ok(Answer::Failed { message, nothing: false }) => Err(Failure::usage(message)),
        Ok(answer) => Ok(answer),
        // It was there when it was asked: it may have been killed, or stopped, since.
        Err(error) => match state_after(&place, &error)? {
            State::Runs(_) => Err(error.into()),
            found => Err(gone(work, found)),
        },
    }
}

/// Why nobody answers.
fn gone(work: &WorkDir, found: State) -> Failure {
    match found {
        State::Died(process) => died(process),
        _ => Failure::usage(format!(
            "no collector runs for {}: start one with `kerntune live start`",
            work.root().display()
        )),
    }
}

pub(super) fn died(process: u32) -> Failure {
    let message = format!(
        "the collector (process {process}) was killed, and what it had collected is lost: start another with \
         `kerntune live start`"
    );
    Failure { exit: Exit::Recording, message }
}

/// An answer to another question: never of this version.
pub(super) fn strange() -> Failure {
    Failure::usage(
        "the collector is of another version of kerntune: stop it with `kerntune live stop`, and start it \
         again",
    )
}
