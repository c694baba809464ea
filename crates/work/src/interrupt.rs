//! Ctrl-C and SIGTERM as a flag that long work looks at; a limit of file sizes as an error of whoever writes.

use crate::{Error, Result};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

static FLAG: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Takes over SIGINT and SIGTERM. A second signal ends the process at once.
///
/// Takes over SIGXFSZ, too, so that a write beyond the limit of file sizes fails and can be reported. A handler does not
/// outlive exec: programs that we start get the default action.
pub fn install() {
    let flag = FLAG.get_or_init(|| Arc::new(AtomicBool::new(false)));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        // The order matters: the first signal finds the flag unset and goes on to set it.
        let _ = signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(flag));
        let _ = signal_hook::flag::register(signal, Arc::clone(flag));
    }
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::new(AtomicBool::new(false)));
}

/// Whether a signal has come.
pub fn is_set() -> bool {
    FLAG.get().is_some_and(|f| f.load(Ordering::Relaxed))
}

/// Whether a signal has come, which is answered herewith: for who goes on after it with what is there. The next signal is
/// a first one again.
pub fn take() -> bool {
    FLAG.get().is_some_and(|f| f.swap(false, Ordering::Relaxed))
}

/// [`Error::Interrupted`] once a signal has come.
pub fn check() -> Result<()> {
    if is_set() {
        Err(Error::Interrupted)
    } else {
        Ok(())
    }
}
