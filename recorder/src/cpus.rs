//! Several CPUs. QEMU executes them in turn on one thread, each until its share of instructions is used up or it has nothing
//! to do, and one clock counts the instructions of all.
//!
//! All that is counted and kept belongs to one of them; the recorder has that of the one that executes at hand.

use kerntune_layout::FrontEnd;
use kerntune_trace::{WaitingCpu, Weights};

/// What belongs to one CPU.
pub struct Own {
    /// The thread that runs; kept in [`crate::threads::Threads`] while the CPU executes.
    pub thread: u32,
    /// What the event before says of the CPU's mode.
    pub user: bool,
    /// The block announced last, and the CPU's count of instructions then.
    pub announced: Option<(u64, u32)>,
    /// Taken branches of the kernel and of user code.
    pub taken: [u64; 2],
    pub model: Option<FrontEnd>,
    /// Where the code began that ran straight on and that the model was not told of yet; 0 if none did.
    pub range_start: u64,
    /// What [`Own::weights`] were at the event before.
    pub weighed: Weights,
    /// The count of all CPUs when it was halted, if it is.
    pub halted: Option<u64>,
    /// How much others executed while it was.
    pub halted_for: u64,
}

impl Own {
    /// A CPU on which a thread begins.
    pub fn new(thread: u32, model: Option<FrontEnd>) -> Self {
        Self {
            thread,
            user: true,
            announced: None,
            taken: [0; 2],
            model,
            range_start: 0,
            weighed: Weights::NONE,
            halted: None,
            halted_for: 0,
        }
    }

    /// Branches and misses so far. Branches are counted where they land: a call's belongs to the
    /// caller, and so does a return's.
    pub fn weights(&self) -> Weights {
        let misses = self.model.as_ref().map(FrontEnd::counts).unwrap_or_default();
        Weights {
            taken_branches: self.taken[0] + self.taken[1],
            l1i_misses: misses.kernel.l1i_misses + misses.user.l1i_misses,
            itlb_misses: misses.kernel.itlb_misses + misses.user.itlb_misses,
        }
    }

    /// For how long it has been halted when all have executed so many instructions, without the time in which all were.
    pub fn halted_until(&self, now: u64) -> u64 {
        self.halted_for + self.halted.map_or(0, |since| now.saturating_sub(since))
    }
}

/// The CPUs and whose turn it is.
pub struct Cpus {
    /// What belongs to the others; the place of the one that executes holds nothing of meaning.
    pub others: Vec<Own>,
    pub current: usize,
    /// Instructions of all others.
    pub elsewhere: u64,
    /// How many are halted.
    pub halted: usize,
    /// Virtual time at which the last of them was, without the time since.
    pub asleep: u64,
}

impl Cpus {
    /// The first executes; these are the others.
    pub fn new(others: Vec<Own>) -> Self {
        let places = [Own::new(0, None)].into_iter().chain(others).collect();
        Self { others: places, current: 0, elsewhere: 0, halted: 0, asleep: 0 }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.others.len()
    }

    /// The number of the one that executes.
    pub fn current(&self) -> usize {
        self.current
    }

    /// The others, what runs there and in which mode.
    pub fn waiting(&self) -> impl ExactSizeIterator<Item = WaitingCpu> + '_ {
        let others = 0..self.others.len() - 1;
        let number = |at| if at < self.current { at } else { at + 1 };
        others.map(move |at| {
            let Own { thread, user, halted, .. } = self.others[number(at)];
            WaitingCpu { cpu: number(at) as u32, thread, user, halted: halted.is_some() }
        })
    }
}
