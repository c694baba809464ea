//! State of several CPUs. QEMU executes them in turn on one thread, each until its share of
//! instructions is used up or it has nothing to do. One clock counts the instructions of all.
//!
//! The recorder keeps the state of the executing CPU apart from the others.

use kerntune_layout::FrontEnd;
use kerntune_trace::{EventWeights, WaitingCpu};

/// Recorder state of one CPU.
pub struct PerCpuState {
    /// Running thread; kept in [`crate::threads::ShadowStacks`] while the CPU executes.
    pub thread: u32,
    /// CPU mode according to the previous event: true for user mode.
    pub user: bool,
    /// CPU's instruction count at the last announcement, and the announced block.
    pub announced: Option<(u64, u32)>,
    /// Taken branches of kernel code and of user code.
    pub taken: [u64; 2],
    pub model: Option<FrontEnd>,
    /// Start of the straight run of code that the model has not fetched yet; 0 if there is none.
    pub range_start: u64,
    /// Value of [`PerCpuState::weights`] at the previous event.
    pub weighed: EventWeights,
    /// Instruction count of all CPUs when this one halted; `None` if it is not halted.
    pub halted: Option<u64>,
    /// Instructions that other CPUs executed during earlier halts.
    pub halted_for: u64,
}

impl PerCpuState {
    /// Creates the state of a CPU on which a thread begins.
    pub fn new(thread: u32, model: Option<FrontEnd>) -> Self {
        Self {
            thread,
            user: true,
            announced: None,
            taken: [0; 2],
            model,
            range_start: 0,
            weighed: EventWeights::NONE,
            halted: None,
            halted_for: 0,
        }
    }

    /// Returns branches and misses so far. Branches are counted at their target, so a call belongs
    /// to the caller, and so does a return.
    pub fn weights(&self) -> EventWeights {
        let misses = self.model.as_ref().map(FrontEnd::counts).unwrap_or_default();
        EventWeights {
            taken_branches: self.taken[0] + self.taken[1],
            l1i_misses: misses.kernel.l1i_misses + misses.user.l1i_misses,
            itlb_misses: misses.kernel.itlb_misses + misses.user.itlb_misses,
        }
    }

    /// Returns the halted time until the count of all CPUs is `now`, without time in which all were
    /// halted.
    pub fn halted_until(&self, now: u64) -> u64 {
        self.halted_for + self.halted.map_or(0, |since| now.saturating_sub(since))
    }
}

/// States of all CPUs, and the CPU whose turn it is.
pub struct CpuStates {
    /// State of each CPU. The entry of the executing CPU is unused; the recorder holds its state.
    pub others: Vec<PerCpuState>,
    pub current: usize,
    /// Instructions executed by all other CPUs.
    pub elsewhere: u64,
    /// Number of halted CPUs.
    pub halted: usize,
    /// Virtual time at which the last CPU halted, without the idle time since.
    pub asleep: u64,
}

impl CpuStates {
    /// Creates the states; CPU 0 executes, `others` are the rest.
    pub fn new(others: Vec<PerCpuState>) -> Self {
        let places = [PerCpuState::new(0, None)].into_iter().chain(others).collect();
        Self { others: places, current: 0, elsewhere: 0, halted: 0, asleep: 0 }
    }

    /// Returns the number of CPUs.
    pub fn count(&self) -> usize {
        self.others.len()
    }

    /// Returns the number of the executing CPU.
    pub fn current(&self) -> usize {
        self.current
    }

    /// Returns the other CPUs with their threads and modes.
    pub fn waiting(&self) -> impl ExactSizeIterator<Item = WaitingCpu> + '_ {
        let others = 0..self.others.len() - 1;
        let number = |at| if at < self.current { at } else { at + 1 };
        others.map(move |at| {
            let PerCpuState { thread, user, halted, .. } = self.others[number(at)];
            WaitingCpu { cpu: number(at) as u32, thread, user, halted: halted.is_some() }
        })
    }
}
