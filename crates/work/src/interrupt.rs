//! Ctrl-C and SIGTERM as a flag that long work polls; the file size limit as a write error.

use crate::{Error, Result};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

static FLAG: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Installs handlers of SIGINT and SIGTERM. A second signal ends the process at once.
///
/// Also handles SIGXFSZ, so that a write beyond the file size limit fails and can be reported.
/// Handlers do not survive exec, so child processes get the default action.
pub fn install() {
    let flag = FLAG.get_or_init(|| Arc::new(AtomicBool::new(false)));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        // The order matters: the first signal finds the flag unset and goes on to set it.
        let _ = signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(flag));
        let _ = signal_hook::flag::register(signal, Arc::clone(flag));
    }
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::new(AtomicBool::new(false)));
}

/// Returns whether a signal has come.
pub fn is_set() -> bool {
    FLAG.get().is_some_and(|f| f.load(Ordering::Relaxed))
}

/// Returns and clears the flag, for callers that finish with partial results. The next signal
/// counts as the first one again.
pub fn take() -> bool {
    FLAG.get().is_some_and(|f| f.swap(false, Ordering::Relaxed))
}

/// Returns [`Error::Interrupted`] once a signal has come.
pub fn check() -> Result<()> {
    if is_set() {
        Err(Error::Interrupted)
    } else {
        Ok(())
    }
}
