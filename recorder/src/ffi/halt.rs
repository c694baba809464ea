//! The clock of a machine whose CPUs all wait.
//!
//! With `-icount sleep=off` QEMU's main thread moves the clock on to the next timer as soon as every CPU has halted
//! (`icount_start_warp_timer`). A CPU counts as halted from its `hlt` on, but what it executed is added to the clock a moment
//! later (`icount_process_data`), and no lock is between the two: a main thread that comes just then adds the whole wait to a
//! clock that is behind, and the wait is longer by that in this run and not in others. So the clock is brought up to date
//! before the CPU halts. QEMU exports what that takes to its loadable modules, as distributions build it; where it does not,
//! nothing is done.

use std::ffi::{c_void, CStr};
use std::mem::transmute;

/// What QEMU has for it.
struct Clock {
    /// `void icount_update(CPUState *)`: adds what the CPU executed, the block that it is in included.
    update: unsafe extern "C" fn(*mut c_void),
    /// `__thread CPUState *current_cpu`, this thread's.
    current: *const *mut c_void,
}

impl Clock {
    fn find() -> Option<Self> {
        let symbol = |name: &CStr| {
            // SAFETY: a NUL-terminated name; the default search order includes the QEMU executable.
            let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
            (!address.is_null()).then_some(address)
        };
        let (update, current) = (symbol(c"icount_update")?, symbol(c"current_cpu")?);
        // SAFETY: QEMU's function of this name has this signature (system/cpus.h).
        let update = unsafe { transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void)>(update) };
        Some(Self { update, current: current.cast() })
    }
}

thread_local! {
    /// The address of a thread's variable is that thread's: looked up at its first halt.
    static CLOCK: Option<Clock> = Clock::find();
}

/// Brings the clock up to date. To be called from the last instruction of a block, on the thread that executes it.
pub(super) fn account() {
    CLOCK.with(|clock| {
        let Some(clock) = clock else { return };
        // SAFETY: the variable lives as long as the thread that we are on; it holds the CPU that this thread executes, which
        // QEMU lets only this thread account for.
        unsafe {
            let cpu = *clock.current;
            if !cpu.is_null() {
                (clock.update)(cpu);
            }
        }
    });
}
