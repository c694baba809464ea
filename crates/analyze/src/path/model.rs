//! What a path consists of.

use kerntune_profile::{FunctionIndex, How};
use kerntune_trace::Weights;

/// A window of a trace, call by call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Path {
    /// Virtual time where it begins, ns.
    pub begin_ns: u64,
    /// Virtual time where it ends, ns.
    pub end_ns: u64,
    /// The threads that are shown and ran, in the order in which they first did.
    pub threads: Vec<ThreadPath>,
    /// When each of them ran, in order of time.
    pub stretches: Vec<Stretch>,
    /// If one call was selected: the number of its thread; it is the first entry there.
    pub call: Option<u32>,
    /// Sums over the threads that are shown.
    pub totals: Totals,
    /// Entries left out because there were more than [`super::Selection::limit`].
    pub more: u64,
    /// Calls left out because they were deeper than [`super::Selection::depth`].
    pub hidden: u64,
    /// If an operation was selected: its region, and whether it has operations at all.
    pub operation: Option<Operation>,
    /// Chunks that were read.
    pub chunks: u64,
}

impl Path {
    /// Total time of the selected call; 0 if none was.
    pub fn call_ns(&self) -> u64 {
        self.call_entry().map_or(0, |entry| entry.total_ns)
    }

    /// The selected call.
    pub fn call_entry(&self) -> Option<&Entry> {
        let thread = self.call?;
        self.threads.iter().find(|t| t.thread == thread)?.entries.first()
    }

    /// Whether more than one thread is shown.
    pub fn is_timeline(&self) -> bool {
        self.threads.len() > 1
    }
}

/// The operation that a path shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// Index into [`kerntune_trace::Recording::regions`].
    pub region: u32,
    /// Whether its end was marked. If not, no operation of the region was: the path is the region from begin to end.
    pub marked: bool,
}

/// What one thread did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ThreadPath {
    /// Index into [`kerntune_trace::Recording::threads`]; the number after the last stands for a
    /// thread that was not identified.
    pub thread: u32,
    /// A tree in preorder: the children of an entry follow it, see [`Entry::len`].
    pub entries: Vec<Entry>,
}

/// A stretch of time in which one of the threads ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// As [`ThreadPath::thread`].
    pub thread: u32,
    /// Virtual ns.
    pub begin_ns: u64,
    /// Virtual ns.
    pub end_ns: u64,
    /// Context switches since the stretch before; 0 for the first.
    pub switches: u64,
    /// Idle time since the stretch before.
    pub idle_ns: u64,
    /// Whether nothing was recorded between this stretch and the one before.
    pub gap: bool,
}

/// One thing that happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// What.
    pub kind: EntryKind,
    /// How deep: 0 for what nothing shown contains.
    pub level: u32,
    /// Number of entries from this one to the end of its subtree: the next sibling, if there is
    /// one, is that much further on.
    pub len: u32,
    /// Virtual time of the beginning; none if that was before the path.
    pub begin_ns: Option<u64>,
    /// Virtual time of the end; none if it did not end within the path.
    pub end_ns: Option<u64>,
    /// Time in itself. For what is no call, as [`Entry::total_ns`].
    pub net_ns: u64,
    /// Time from beginning to end without interrupts and without time off the CPU.
    pub total_ns: u64,
    /// Calls within it that are left out because of the depth.
    pub hidden: u32,
}

impl Entry {
    /// Whether all of it was seen.
    pub fn complete(&self) -> bool {
        self.begin_ns.is_some() && self.end_ns.is_some()
    }
}

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EntryKind {
    /// A function ran.
    Call {
        /// Which.
        function: FunctionIndex,
        /// How it came to run.
        how: How,
    },
    /// User code outside of traced functions.
    User,
    /// Kernel code with no function open.
    Unattributed,
    /// The CPU was halted.
    Idle,
    /// An inline point, by its number in [`kerntune_trace::RecorderSpec::points`].
    Point(u32),
    /// One operation is done.
    Operation,
    /// A region begins: index into [`kerntune_trace::Recording::regions`].
    RegionBegin(u32),
    /// A region ends.
    RegionEnd(u32),
    /// So many frames ended without a return.
    Unwind(u32),
    /// The thread was off the CPU. Its times are what passed meanwhile.
    Away {
        /// Context switches, the one away and the one back included.
        switches: u64,
        /// Time in which the CPU was halted.
        idle_ns: u64,
        /// The thread that ran next.
        to: u32,
    },
    /// The thread kept its CPU while others had their turn. Its times are what passed meanwhile.
    Turn,
    /// Another thread is woken up: index into [`kerntune_trace::Recording::threads`].
    Wake(u32),
    /// The thread waited so many ns for a CPU before it ran on.
    Delay(u64),
    /// A thread is to run on another CPU.
    Migrate {
        /// Index into [`kerntune_trace::Recording::threads`].
        thread: u32,
        /// The CPU that it ran on.
        from: u32,
        /// The CPU that it is to run on.
        to: u32,
    },
    /// Another CPU is interrupted.
    Signal(u32),
    /// A lock was waited for.
    Lock {
        /// Where it is.
        address: u64,
        /// For how long.
        ns: u64,
    },
    /// Nothing was recorded.
    Gap,
}

/// Sums over the threads that are shown, within the path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Time in which one of them ran: on the emulator, instructions.
    pub busy_ns: u64,
    /// The part of it in interrupts.
    pub interrupt_ns: u64,
    /// The part of it in user code outside of traced functions.
    pub user_ns: u64,
    /// The part of it in kernel code with no function open.
    pub unattributed_ns: u64,
    /// Time in which the CPU was halted while one of them (an idle task) ran.
    pub idle_ns: u64,
    /// Calls that began, of any kind.
    pub calls: u64,
    /// Interrupts among them.
    pub interrupts: u64,
    /// Exceptions among them.
    pub exceptions: u64,
    /// System calls among them.
    pub syscalls: u64,
    /// Context switches to or from them.
    pub switches: u64,
    /// Greatest number of calls open at a time, from the level that is shown as 0.
    pub depth: u64,
    /// Branches and misses, where the trace has them.
    pub weights: Weights,
}
