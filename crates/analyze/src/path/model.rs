//! Types of a code path.

use kerntune_profile::{CallKind, FunctionIndex};
use kerntune_trace::EventWeights;

/// A window of a trace, call by call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CodePath {
    /// Virtual time of its beginning, in ticks.
    pub begin_ns: u64,
    /// Virtual time of its end, in ticks.
    pub end_ns: u64,
    /// The shown threads that ran, in the order in which they first did.
    pub threads: Vec<ThreadPath>,
    /// Periods in which these threads ran, in order of time.
    pub stretches: Vec<ThreadStretch>,
    /// Thread of the selected call, which is the first entry there; `None` if no single call was
    /// selected.
    pub call: Option<u32>,
    /// Sums over the shown threads.
    pub totals: PathTotals,
    /// Number of entries left out because of [`super::PathSelection::limit`].
    pub more: u64,
    /// Number of calls left out because of [`super::PathSelection::depth`].
    pub hidden: u64,
    /// The selected operation; `None` if no operation was selected.
    pub operation: Option<SelectedOperation>,
    /// Number of chunks that were read.
    pub chunks: u64,
}

impl CodePath {
    /// Returns the total time of the selected call; 0 if no single call was selected.
    pub fn call_ns(&self) -> u64 {
        self.call_entry().map_or(0, |entry| entry.total_ns)
    }

    /// Returns the selected call.
    pub fn call_entry(&self) -> Option<&PathEntry> {
        let thread = self.call?;
        self.threads.iter().find(|t| t.thread == thread)?.entries.first()
    }

    /// Checks whether more than one thread is shown.
    pub fn is_timeline(&self) -> bool {
        self.threads.len() > 1
    }
}

/// The operation that a path shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SelectedOperation {
    /// Index into [`kerntune_trace::Recording::regions`].
    pub region: u32,
    /// True if the operation's end was marked. If not, the region has no marks, and the path is the
    /// whole region.
    pub marked: bool,
}

/// Entries of one thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ThreadPath {
    /// Index into [`kerntune_trace::Recording::threads`]; the number after the last stands for an
    /// unknown thread.
    pub thread: u32,
    /// A tree in preorder: the children of an entry follow it, see [`PathEntry::len`].
    pub entries: Vec<PathEntry>,
}

/// A period in which one of the shown threads ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadStretch {
    /// Thread, as [`ThreadPath::thread`].
    pub thread: u32,
    /// Virtual time of its beginning, in ticks.
    pub begin_ns: u64,
    /// Virtual time of its end, in ticks.
    pub end_ns: u64,
    /// Number of context switches since the stretch before; 0 for the first.
    pub switches: u64,
    /// Idle time since the stretch before.
    pub idle_ns: u64,
    /// True if the recording has a gap between this stretch and the one before.
    pub gap: bool,
}

/// A call or another event of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathEntry {
    /// Kind of the entry.
    pub kind: PathEntryKind,
    /// Nesting level; 0 for entries that no other shown entry contains.
    pub level: u32,
    /// Number of entries of the subtree, itself included: the index distance to the next sibling.
    pub len: u32,
    /// Virtual time of the beginning; `None` if that was before the path.
    pub begin_ns: Option<u64>,
    /// Virtual time of the end; `None` if it did not end within the path.
    pub end_ns: Option<u64>,
    /// Self time of a call; otherwise the same as [`PathEntry::total_ns`].
    pub self_ticks: u64,
    /// Time from beginning to end, without interrupts and without time off the CPU.
    pub total_ns: u64,
    /// Number of calls within it that are left out because of the depth.
    pub hidden: u32,
}

impl PathEntry {
    /// Checks whether both beginning and end are within the path.
    pub fn complete(&self) -> bool {
        self.begin_ns.is_some() && self.end_ns.is_some()
    }
}

/// Kind of a [`PathEntry`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PathEntryKind {
    /// A call of a function.
    Call {
        /// The called function.
        function: FunctionIndex,
        /// Kind of entry: call, jump, interrupt, exception or system call.
        how: CallKind,
    },
    /// User code outside of traced functions.
    User,
    /// Kernel code with no function open.
    Unattributed,
    /// All CPUs were halted.
    Idle,
    /// An inline point; index into [`kerntune_trace::RecorderSpec::points`].
    Point(u32),
    /// The end of one operation.
    Operation,
    /// Begin of a region; index into [`kerntune_trace::Recording::regions`].
    RegionBegin(u32),
    /// End of a region; index into [`kerntune_trace::Recording::regions`].
    RegionEnd(u32),
    /// Number of frames that ended without a return.
    Unwind(u32),
    /// The thread was off the CPU. The entry's times are the time that passed meanwhile.
    Away {
        /// Number of context switches, including the ones away and back.
        switches: u64,
        /// Idle time meanwhile.
        idle_ns: u64,
        /// The thread that ran next.
        to: u32,
    },
    /// The thread kept its CPU while other CPUs executed. The entry's times are the time that
    /// passed meanwhile.
    Turn,
    /// Another thread is woken up; index into [`kerntune_trace::Recording::threads`].
    Wake(u32),
    /// Time for which the thread waited for a CPU before it ran on, in ticks.
    Delay(u64),
    /// A thread moves to another CPU.
    Migrate {
        /// Index into [`kerntune_trace::Recording::threads`].
        thread: u32,
        /// The CPU that it ran on.
        from: u32,
        /// The CPU that it will run on.
        to: u32,
    },
    /// Number of another CPU that is interrupted.
    Signal(u32),
    /// A wait for a lock.
    Lock {
        /// Address of the lock.
        address: u64,
        /// Length of the wait, in ticks.
        ns: u64,
    },
    /// A gap in the recording.
    Gap,
}

/// Sums over the shown threads, within the path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PathTotals {
    /// Time in which the shown threads ran, in ticks.
    pub busy_ticks: u64,
    /// The part of `busy_ticks` in interrupts.
    pub interrupt_ns: u64,
    /// The part of `busy_ticks` in user code outside of traced functions.
    pub user_ticks: u64,
    /// The part of `busy_ticks` in kernel code with no function open.
    pub unattributed_ticks: u64,
    /// Idle time while one of these threads (an idle task) ran.
    pub idle_ns: u64,
    /// Number of calls that began, of any kind.
    pub calls: u64,
    /// Number of interrupts among them.
    pub interrupts: u64,
    /// Number of exceptions among them.
    pub exceptions: u64,
    /// Number of system calls among them.
    pub syscalls: u64,
    /// Number of context switches to or from these threads.
    pub switches: u64,
    /// Greatest number of nested calls, counted from level 0.
    pub depth: u64,
    /// Taken branches and misses; 0 if the trace has no weights.
    pub weights: EventWeights,
}
