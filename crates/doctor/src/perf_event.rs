//! Minimal binding of `perf_event_open(2)`, for which the libc crate has no types. Proves only that
//! events can be counted.

use std::fs::File;
use std::io;
use std::io::Read;
use std::os::fd::{FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// Event to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PerfEvent {
    /// The kernel's software clock, which needs no hardware.
    SoftwareClock,
    /// CPU cycles, which need a PMU.
    Cycles,
}

/// The first version of `struct perf_event_attr` (include/uapi/linux/perf_event.h,
/// `PERF_ATTR_SIZE_VER0`), which every kernel accepts.
#[repr(C)]
#[derive(Default)]
struct PerfEventAttr {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    breakpoint_address: u64,
}

const TYPE_HARDWARE: u32 = 0;
const TYPE_SOFTWARE: u32 = 1;
const HARDWARE_CPU_CYCLES: u64 = 0;
const SOFTWARE_CPU_CLOCK: u64 = 0;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const FLAG_CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;

#[expect(unsafe_code, reason = "no library here has this system call")]
/// Counts an event on this thread during a few milliseconds of work.
pub(crate) fn count(counter: PerfEvent, with_kernel: bool) -> io::Result<u64> {
    let (kind, config) = match counter {
        PerfEvent::SoftwareClock => (TYPE_SOFTWARE, SOFTWARE_CPU_CLOCK),
        PerfEvent::Cycles => (TYPE_HARDWARE, HARDWARE_CPU_CYCLES),
    };
    let kernel = if with_kernel { 0 } else { EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR };
    let size = size_of::<PerfEventAttr>() as u32;
    let attributes = PerfEventAttr { kind, size, config, flags: kernel, ..PerfEventAttr::default() };
    let (this_thread, any_cpu, no_group): (libc::pid_t, libc::c_int, libc::c_int) = (0, -1, -1);
    // SAFETY: `attributes` is a perf_event_attr of the size that it states, and outlives the call;
    // nothing else owns the returned descriptor.
    let file = unsafe {
        let fd = libc::syscall(
            libc::SYS_perf_event_open,
            &attributes as *const PerfEventAttr,
            this_thread,
            any_cpu,
            no_group,
            FLAG_CLOSE_ON_EXEC,
        );
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        OwnedFd::from_raw_fd(fd as i32)
    };
    let started = Instant::now();
    while started.elapsed() < Duration::from_millis(5) {
        std::hint::spin_loop();
    }
    let mut value = [0_u8; 8];
    File::from(file).read_exact(&mut value)?;
    Ok(u64::from_ne_bytes(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_attributes_have_the_size_of_their_first_version() {
        assert_eq!(size_of::<PerfEventAttr>(), 64);
    }
}
