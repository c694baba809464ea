//! What is asked of the collector in the background.

use crate::exit::{Exit, Failure};
use kerntune_live::daemon::{ask, state, Answer, Place, Request, State};
use kerntune_work::WorkDir;

/// Asks the collector that runs, or says that none does.
pub(super) fn asked(work: &WorkDir, request: &Request) -> Result<Answer, Failure> {
    let place = Place::of(work);
    match state(&place)? {
        State::Runs(_) => {}
        State::Died(process) => return Err(died(process)),
        State::None => {
            return Err(Failure::usage(format!(
                "no collector runs for {}: `kerntune live start` begins",
                work.root().display()
            )));
        }
    }
    match ask(&place, request)? {
        Answer::Failed { message, nothing: true } => Err(Failure { exit: Exit::Recording, message }),
        Answer::Failed { message, nothing: false } => Err(Failure::usage(message)),
        answer => Ok(answer),
    }
}

pub(super) fn died(process: u32) -> Failure {
    let message = format!(
        "the collector (process {process}) was killed, and what it had seen is lost: `kerntune live start` begins anew"
    );
    Failure { exit: Exit::Recording, message }
}

/// An answer to another question: never of this version.
pub(super) fn strange() -> Failure {
    Failure::usage(
        "the collector is of another version of kerntune: `kerntune live stop` it, and start it again",
    )
}
