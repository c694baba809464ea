//! Requests to the collector in the background.

use kerntune_command::{Exit, Failure};
use kerntune_live::daemon::{ask, state, state_after, DaemonDir, DaemonRequest, DaemonResponse, DaemonState};
use kerntune_work::WorkDir;

/// Sends a request to the running collector.
///
/// # Errors
/// No collector runs, it was killed, or it refuses the request.
pub(super) fn ask_collector(work: &WorkDir, request: &DaemonRequest) -> Result<DaemonResponse, Failure> {
    let place = DaemonDir::of(work);
    let found = state(&place)?;
    let answer = match found {
        DaemonState::Runs(_) => ask(&place, request),
        DaemonState::Died(_) | DaemonState::None => return Err(gone(work, found)),
    };
    match answer {
        Ok(DaemonResponse::Failed { message, nothing: true }) => {
            Err(Failure { exit: Exit::Recording, message })
        }
        Ok(DaemonResponse::Failed { message, nothing: false }) => Err(Failure::usage(message)),
        Ok(answer) => Ok(answer),
        // The collector may have been killed or stopped after the request was sent.
        Err(error) => match state_after(&place, &error)? {
            DaemonState::Runs(_) => Err(error.into()),
            found => Err(gone(work, found)),
        },
    }
}

/// Returns the error for a collector that does not run or was killed.
fn gone(work: &WorkDir, found: DaemonState) -> Failure {
    match found {
        DaemonState::Died(process) => died(process),
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

/// Returns the error for an answer that does not fit the request, which only another version of
/// kerntune sends.
pub(super) fn unexpected_answer() -> Failure {
    Failure::usage(
        "the collector is of another version of kerntune: stop it with `kerntune live stop`, and start it \
         again",
    )
}
