//! Progress and interruption in one.

use kerntune_work::{interrupt, Progress};
use std::ops::ControlFlow;

/// Tells how far it is; breaks when the user wants to stop.
pub fn at(progress: &dyn Progress, done: u64) -> ControlFlow<()> {
    progress.at(done);
    if interrupt::is_set() {
        ControlFlow::Break(())
    } else {
        ControlFlow::Continue(())
    }
}
