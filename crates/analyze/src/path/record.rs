//! Entries of one thread under construction.

use super::model::{PathEntry, PathEntryKind};
use crate::events::{self, credit_caller, CallTimes};
use crate::known::call_kind;
use kerntune_profile::FunctionIndex;
use kerntune_trace::EnterKind;

/// No entry.
const NONE: u32 = u32::MAX;
/// Number of nested interrupts that are shown beyond the selected depth.
const NESTED: u32 = 100;

/// An open call with its recorded state.
pub(super) type StackFrame = events::StackFrame<PathFrame>;

/// Recorded state of an open call.
#[derive(Debug, Clone, Copy)]
pub(super) struct PathFrame {
    times: CallTimes,
    /// Index of its entry, or [`NONE`].
    node: u32,
    /// Index of the entry of the nearest frame that has one, itself included.
    home: u32,
    /// Level of its callees.
    inner: u32,
}

impl Default for PathFrame {
    fn default() -> Self {
        Self { times: CallTimes::default(), node: NONE, home: NONE, inner: 0 }
    }
}

impl AsMut<CallTimes> for PathFrame {
    #[inline]
    fn as_mut(&mut self) -> &mut CallTimes {
        &mut self.times
    }
}

/// Limits of the number and depth of entries, and the number of entries that exceeded them.
#[derive(Debug, Clone, Copy)]
pub(super) struct EntryBudget {
    pub left: usize,
    pub depth: u32,
    /// Entries left out because of the limit.
    pub more: u64,
    /// Calls left out because of their depth.
    pub hidden: u64,
}

impl EntryBudget {
    fn take(&mut self) -> bool {
        let some = self.left > 0;
        if some {
            self.left -= 1;
        } else {
            self.more += 1;
        }
        some
    }
}

/// Period off the CPU that has begun.
#[derive(Debug, Clone, Copy)]
struct AwayPeriod {
    node: u32,
    since: u64,
    switches: u64,
    idle_ns: u64,
}

/// Recorded entries of a thread. Its open frames are in the replay state.
#[derive(Debug, Default)]
pub(super) struct ThreadRecorder {
    pub entries: Vec<PathEntry>,
    /// Frames below this one are not shown.
    pub base: usize,
    /// Number of shown frames that an interrupt entered.
    pub interrupts: u32,
    /// True if the frames that were open when the thread first ran have entries.
    pub introduced: bool,
    away: Option<AwayPeriod>,
}

impl ThreadRecorder {
    /// Checks whether a shown frame is open.
    pub fn is_open(&self, frames: &[StackFrame]) -> bool {
        frames.len() > self.base
    }

    /// Gives entries to frames that were open before the path began.
    pub fn introduce(&mut self, frames: &mut [StackFrame], budget: &mut EntryBudget) {
        self.introduced = true;
        self.interrupts = 0;
        for at in self.base..frames.len() {
            let StackFrame { function, how, data } = frames[at];
            let opened = self.open(&frames[..at], function, how, None, budget);
            frames[at].data = PathFrame { times: data.times, ..opened };
        }
    }

    /// Adds the entry of a call above `frames`.
    pub fn open(
        &mut self,
        frames: &[StackFrame],
        function: u32,
        how: EnterKind,
        begin_ns: Option<u64>,
        budget: &mut EntryBudget,
    ) -> PathFrame {
        let below = if self.is_open(frames) { frames.last() } else { None };
        let (level, home) = below.map_or((0, NONE), |frame| (frame.data.inner, frame.data.home));
        let interrupt = how == EnterKind::Interrupt;
        self.interrupts += u32::from(interrupt);
        if level >= budget.depth && !(interrupt && level < budget.depth + NESTED) {
            budget.hidden += 1;
            if let Some(entry) = self.entries.get_mut(home as usize) {
                entry.hidden = entry.hidden.saturating_add(1);
            }
            return PathFrame { inner: level, home, ..PathFrame::default() };
        }
        let inner = level + 1;
        if !budget.take() {
            return PathFrame { inner, home, ..PathFrame::default() };
        }
        let node = self.entries.len() as u32;
        let kind = PathEntryKind::Call { function: FunctionIndex(function), how: call_kind(how) };
        self.entries.push(PathEntry { begin_ns, end_ns: None, ..leaf(kind, level) });
        PathFrame { inner, node, home: node, ..PathFrame::default() }
    }

    /// Ends a frame that lay above `frames`; with `None` as time, its end is not known.
    pub fn ended(&mut self, frames: &mut [StackFrame], frame: StackFrame, end_ns: Option<u64>) {
        if frames.len() < self.base {
            return;
        }
        let PathFrame { times: CallTimes { self_ticks, .. }, node, .. } = frame.data;
        let total_ns = credit_caller(frames, frame);
        if frame.how == EnterKind::Interrupt {
            self.interrupts = self.interrupts.saturating_sub(1);
        }
        let length = self.entries.len() as u32;
        if let Some(entry) = self.entries.get_mut(node as usize) {
            *entry = PathEntry { end_ns, self_ticks, total_ns, len: length - node, ..*entry };
        }
    }

    /// Adds an entry without length and children.
    pub fn note(&mut self, frames: &[StackFrame], kind: PathEntryKind, now: u64, budget: &mut EntryBudget) {
        self.leaf(frames, kind, Some(now), Some(now), 0, budget);
    }

    /// Adds an entry without children.
    pub fn leaf(
        &mut self,
        frames: &[StackFrame],
        kind: PathEntryKind,
        begin_ns: Option<u64>,
        end_ns: Option<u64>,
        ns: u64,
        budget: &mut EntryBudget,
    ) {
        let top = if self.is_open(frames) { frames.last() } else { None };
        let level = top.map_or(0, |frame| frame.data.inner);
        if budget.take() {
            self.entries.push(PathEntry {
                begin_ns,
                end_ns,
                self_ticks: ns,
                total_ns: ns,
                ..leaf(kind, level)
            });
        }
    }

    /// Adds time outside of all frames; extends the last entry if it has the same kind.
    pub fn homeless(
        &mut self,
        frames: &[StackFrame],
        kind: PathEntryKind,
        from: u64,
        ns: u64,
        budget: &mut EntryBudget,
    ) {
        match self.entries.last_mut() {
            Some(last) if last.kind == kind && last.level == 0 && last.end_ns == Some(from) => {
                last.end_ns = Some(from + ns);
                last.self_ticks += ns;
                last.total_ns += ns;
            }
            _ => self.leaf(frames, kind, Some(from), Some(from + ns), ns, budget),
        }
    }

    /// Notes that the thread stops executing, with an entry of `kind`. `switches` and `idle_ns` are
    /// the totals so far.
    pub fn leave(
        &mut self,
        frames: &[StackFrame],
        kind: PathEntryKind,
        now: u64,
        so_far: (u64, u64),
        budget: &mut EntryBudget,
    ) {
        let (switches, idle_ns) = so_far;
        let before = self.entries.len() as u32;
        self.leaf(frames, kind, Some(now), None, 0, budget);
        let node = if self.entries.len() as u32 > before { before } else { NONE };
        self.away = Some(AwayPeriod { node, since: now, switches, idle_ns });
    }

    /// Notes that the thread executes again.
    pub fn come_back(&mut self, now: u64, switches: u64, idle_ns: u64) {
        let Some(away) = self.away.take() else { return };
        let Some(entry) = self.entries.get_mut(away.node as usize) else { return };
        if let PathEntryKind::Away { to, .. } = entry.kind {
            let (switches, idle_ns) = (switches - away.switches, idle_ns - away.idle_ns);
            entry.kind = PathEntryKind::Away { switches, idle_ns, to };
        }
        entry.end_ns = Some(now);
        (entry.self_ticks, entry.total_ns) = (now - away.since, now - away.since);
    }

    /// Discards all frames, as their ends are not known.
    pub fn lose(&mut self, frames: &mut Vec<StackFrame>) {
        while let Some(frame) = frames.pop() {
            self.ended(frames, frame, None);
        }
        (self.base, self.interrupts, self.introduced, self.away) = (0, 0, false, None);
    }
}

fn leaf(kind: PathEntryKind, level: u32) -> PathEntry {
    PathEntry { kind, level, len: 1, begin_ns: None, end_ns: None, self_ticks: 0, total_ns: 0, hidden: 0 }
}
