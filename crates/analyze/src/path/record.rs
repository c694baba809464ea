//! The entries of one thread under construction.

use super::model::{Entry, EntryKind};
use crate::events;
use kerntune_profile::{FunctionIndex, How as Word};
use kerntune_trace::How;

/// Stands for a frame that has no entry.
const NONE: u32 = u32::MAX;
/// Interrupts within interrupts that are shown beyond the wanted depth.
const NESTED: u32 = 100;

/// An open call with what is recorded of it.
pub(super) type Frame = events::Frame<Open>;

/// What is recorded of an open call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Open {
    net: u64,
    /// Total time of callees that ended.
    callees: u64,
    /// Its entry, or [`NONE`].
    node: u32,
    /// The entry of the nearest frame that has one, itself included.
    home: u32,
    /// Level of what happens within it.
    inner: u32,
}

impl Default for Open {
    fn default() -> Self {
        Self { net: 0, callees: 0, node: NONE, home: NONE, inner: 0 }
    }
}

/// How much may be recorded, and how much was not.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget {
    pub left: usize,
    pub depth: u32,
    /// Entries left out for want of room.
    pub more: u64,
    /// Calls left out because of their depth.
    pub hidden: u64,
}

impl Budget {
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

/// Where a thread is that was switched away.
#[derive(Debug, Clone, Copy)]
struct Away {
    node: u32,
    since: u64,
    switches: u64,
    idle_ns: u64,
}

/// What is recorded of a thread. Its open frames are the machine's.
#[derive(Debug, Default)]
pub(super) struct Thread {
    pub entries: Vec<Entry>,
    /// Frames below this one are not shown.
    pub base: usize,
    /// Shown frames that an interrupt entered.
    pub interrupts: u32,
    /// Whether the frames that were open when it first ran have entries.
    pub introduced: bool,
    away: Option<Away>,
}

impl Thread {
    /// Whether a frame is open that is shown.
    pub fn is_open(&self, frames: &[Frame]) -> bool {
        frames.len() > self.base
    }

    /// Time for the frame on top; false if there is none.
    pub fn spend(&mut self, frames: &mut [Frame], ns: u64) -> bool {
        let open = self.is_open(frames);
        match frames.last_mut() {
            Some(top) if open => top.data.net += ns,
            _ => return false,
        }
        true
    }

    /// The frames that are open have entries from here on, as they had not when they began.
    pub fn introduce(&mut self, frames: &mut [Frame], budget: &mut Budget) {
        self.introduced = true;
        self.interrupts = 0;
        for at in self.base..frames.len() {
            let Frame { function, how, data } = frames[at];
            let opened = self.open(&frames[..at], function, how, None, budget);
            frames[at].data = Open { net: data.net, callees: data.callees, ..opened };
        }
    }

    /// A call begins upon `frames`: gives it its entry.
    pub fn open(
        &mut self,
        frames: &[Frame],
        function: u32,
        how: How,
        begin_ns: Option<u64>,
        budget: &mut Budget,
    ) -> Open {
        let below = if self.is_open(frames) { frames.last() } else { None };
        let (level, home) = below.map_or((0, NONE), |frame| (frame.data.inner, frame.data.home));
        let interrupt = how == How::Interrupt;
        self.interrupts += u32::from(interrupt);
        if level >= budget.depth && !(interrupt && level < budget.depth + NESTED) {
            budget.hidden += 1;
            if let Some(entry) = self.entries.get_mut(home as usize) {
                entry.hidden = entry.hidden.saturating_add(1);
            }
            return Open { inner: level, home, ..Open::default() };
        }
        let inner = level + 1;
        if !budget.take() {
            return Open { inner, home, ..Open::default() };
        }
        let node = self.entries.len() as u32;
        let kind = EntryKind::Call { function: FunctionIndex(function), how: word(how) };
        self.entries.push(Entry { begin_ns, end_ns: None, ..leaf(kind, level) });
        Open { inner, node, home: node, ..Open::default() }
    }

    /// A frame that lay on `frames` ended, or is no longer followed if no time is given.
    pub fn ended(&mut self, frames: &mut [Frame], frame: Frame, end_ns: Option<u64>) {
        if frames.len() < self.base {
            return;
        }
        let Open { net: net_ns, callees, node, .. } = frame.data;
        let total_ns = net_ns + callees;
        if frame.how == How::Interrupt {
            self.interrupts = self.interrupts.saturating_sub(1);
        } else if self.is_open(frames) {
            if let Some(below) = frames.last_mut() {
                below.data.callees += total_ns;
            }
        }
        let length = self.entries.len() as u32;
        if let Some(entry) = self.entries.get_mut(node as usize) {
            *entry = Entry { end_ns, net_ns, total_ns, len: length - node, ..*entry };
        }
    }

    /// Something without parts happens.
    pub fn note(&mut self, frames: &[Frame], kind: EntryKind, now: u64, budget: &mut Budget) {
        self.leaf(frames, kind, Some(now), Some(now), 0, budget);
    }

    /// Something without parts, of a length.
    pub fn leaf(
        &mut self,
        frames: &[Frame],
        kind: EntryKind,
        begin_ns: Option<u64>,
        end_ns: Option<u64>,
        ns: u64,
        budget: &mut Budget,
    ) {
        let top = if self.is_open(frames) { frames.last() } else { None };
        let level = top.map_or(0, |frame| frame.data.inner);
        if budget.take() {
            self.entries.push(Entry { begin_ns, end_ns, net_ns: ns, total_ns: ns, ..leaf(kind, level) });
        }
    }

    /// Time that no frame has; goes on with the last entry where that is of the same kind.
    pub fn homeless(&mut self, frames: &[Frame], kind: EntryKind, from: u64, ns: u64, budget: &mut Budget) {
        match self.entries.last_mut() {
            Some(last) if last.kind == kind && last.level == 0 && last.end_ns == Some(from) => {
                last.end_ns = Some(from + ns);
                last.net_ns += ns;
                last.total_ns += ns;
            }
            _ => self.leaf(frames, kind, Some(from), Some(from + ns), ns, budget),
        }
    }

    /// Another thread runs from here on, or another CPU executes: that `kind` says. `switches` and `idle_ns` are what there was until now.
    pub fn leave(
        &mut self,
        frames: &[Frame],
        kind: EntryKind,
        now: u64,
        so_far: (u64, u64),
        budget: &mut Budget,
    ) {
        let (switches, idle_ns) = so_far;
        let before = self.entries.len() as u32;
        self.leaf(frames, kind, Some(now), None, 0, budget);
        let node = if self.entries.len() as u32 > before { before } else { NONE };
        self.away = Some(Away { node, since: now, switches, idle_ns });
    }

    /// It runs again.
    pub fn come_back(&mut self, now: u64, switches: u64, idle_ns: u64) {
        let Some(away) = self.away.take() else { return };
        let Some(entry) = self.entries.get_mut(away.node as usize) else { return };
        if let EntryKind::Away { to, .. } = entry.kind {
            let (switches, idle_ns) = (switches - away.switches, idle_ns - away.idle_ns);
            entry.kind = EntryKind::Away { switches, idle_ns, to };
        }
        entry.end_ns = Some(now);
        (entry.net_ns, entry.total_ns) = (now - away.since, now - away.since);
    }

    /// Nothing more is known of its frames.
    pub fn lose(&mut self, frames: &mut Vec<Frame>) {
        while let Some(frame) = frames.pop() {
            self.ended(frames, frame, None);
        }
        (self.base, self.interrupts, self.introduced, self.away) = (0, 0, false, None);
    }
}

fn leaf(kind: EntryKind, level: u32) -> Entry {
    Entry { kind, level, len: 1, begin_ns: None, end_ns: None, net_ns: 0, total_ns: 0, hidden: 0 }
}

fn word(how: How) -> Word {
    match how {
        How::Call => Word::Call,
        How::Jump => Word::Jump,
        How::Interrupt => Word::Interrupt,
        How::Exception => Word::Exception,
        How::Syscall => Word::Syscall,
    }
}
