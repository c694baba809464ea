//! Change of a running event's period, the only request without a function in the library.

use perf_event_open_sys::ioctls;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Sets the period of the event from its next sample on.
///
/// # Errors
/// The kernel refuses the period.
#[expect(unsafe_code, reason = "perf-event2 has no function for this request")]
pub(super) fn set(event: BorrowedFd<'_>, period: u64) -> io::Result<()> {
    // SAFETY: the descriptor is open for as long as it is borrowed, and the request reads 8 bytes, which outlive it.
    let done = unsafe { ioctls::PERIOD(event.as_raw_fd(), std::ptr::from_ref(&period) as u64) };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
