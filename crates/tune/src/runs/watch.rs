//! Progress and interruption in one callback.

use kerntune_work::{interrupt, Progress};
use std::ops::ControlFlow;

/// Reports `done` units; returns `Break` after an interrupt.
pub fn report(progress: &dyn Progress, done: u64) -> ControlFlow<()> {
    progress.at(done);
    if interrupt::is_set() {
        ControlFlow::Break(())
    } else {
        ControlFlow::Continue(())
    }
}
