//! Correction of the clock when all CPUs halt.
//!
//! With `-icount sleep=off` QEMU's main thread advances the clock to the next timer as soon as
//! every CPU has halted (`icount_start_warp_timer`). A CPU counts as halted from its `hlt` on, but
//! its instructions are added to the clock a little later (`icount_process_data`), without a common
//! lock. If the main thread comes in between, it adds the whole wait to a clock that is behind, and
//! the wait is longer in this run than in others. The recorder therefore updates the clock before
//! the CPU halts. The functions for this are exported for QEMU's loadable modules, as in
//! distributions' builds; if they are missing, nothing is done.

use super::level;
use std::ffi::c_void;
use std::mem::transmute;

/// Exports of QEMU for updating the clock.
struct IcountClock {
    /// `void icount_update(CPUState *)`: adds the CPU's executed instructions, including those of
    /// its current block.
    update: unsafe extern "C" fn(*mut c_void),
}

impl IcountClock {
    fn find() -> Option<Self> {
        let update = Some(level::symbol(c"icount_update")).filter(|address| !address.is_null())?;
        // SAFETY: QEMU's function of this name has this signature (system/cpus.h).
        let update = unsafe { transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void)>(update) };
        Some(Self { update })
    }
}

thread_local! {
    static CLOCK: Option<IcountClock> = IcountClock::find();
    /// `__thread CPUState *current_cpu`. Looked up by each thread, because the address of a
    /// thread-local variable depends on the thread.
    static CURRENT: *const *mut c_void = level::symbol(c"current_cpu").cast();
}

/// Returns the address of the CPU that this thread executes; `None` if QEMU does not show it.
pub(super) fn current_cpu() -> Option<usize> {
    let place = CURRENT.with(|place| *place);
    // SAFETY: null, or the variable, which lives as long as the thread that we are on.
    let cpu = unsafe { place.as_ref() }.map(|cpu| *cpu as usize);
    cpu.filter(|cpu| *cpu != 0)
}

/// Updates the clock. Must be called from the last instruction of a block, on the executing thread.
pub(super) fn account() {
    CLOCK.with(|clock| {
        let (Some(clock), Some(cpu)) = (clock, current_cpu()) else { return };
        // SAFETY: the CPU that this thread executes, which QEMU lets only this thread account for.
        unsafe { (clock.update)(cpu as *mut c_void) };
    });
}
