//! Counting of one chunk of a trace by itself. Calls that span chunks are left to be joined
//! ([`super::add`]).

use super::super::numbers::code;
use super::names::{NameTable, NOTHING};
use kerntune_analyze::events::{self, credit_caller, CallTimes, ChunkOpening, EventVisitor, TraceBounds};
use kerntune_profile::{bucket_of, Ticks};
use kerntune_trace::{EnterKind, Event, EventWeights, Recording};

pub(super) type ReplayState = events::ReplayState<CountedFrame>;
type StackFrame = events::StackFrame<CountedFrame>;

/// Stride between the histograms of accounts: an upper bound of the number of buckets.
pub(super) const BUCKETS: usize = 256;

/// Counts of a chunk, or of a part of one, in columns of nodes, accounts and cells. A cell is
/// account × [`BUCKETS`] + bucket within a counter, and afterwards the number that
/// `NameTable::cell` gives.
#[derive(Debug, Default)]
pub(super) struct ChunkRecord {
    pub begin: u64,
    pub end: u64,
    pub nodes: Vec<u32>,
    pub calls: Vec<u64>,
    pub ns: Vec<u64>,
    /// Taken branches, L1I misses, iTLB misses; empty if events have none.
    pub weights: Vec<[u64; 3]>,
    pub accounts: Vec<u32>,
    pub ended: Vec<EndedCalls>,
    pub cells: Vec<(u64, u64)>,
    /// By group: busy, idle, user time.
    pub times: Vec<[u64; 3]>,
    /// Frames open at the begin: thread, and number of frames.
    pub base: Vec<(u32, u32)>,
    /// Those of them that ended, in order: thread, account, total time within the chunk.
    pub theirs: Vec<(u32, u32, u64)>,
    /// Frames open at the end.
    pub left: Vec<OpenFrames>,
}

/// Sums over calls of an account that began and ended in a chunk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct EndedCalls {
    pub count: u64,
    pub elapsed: u64,
    pub slowest: u64,
    pub at: u64,
}

impl EndedCalls {
    pub fn add_call(&mut self, elapsed: u64, begin: u64) {
        self.add(&EndedCalls { count: 1, elapsed, slowest: elapsed, at: begin });
    }

    pub fn add(&mut self, more: &EndedCalls) {
        if more.count > 0
            && (self.count == 0
                || (more.slowest, std::cmp::Reverse(more.at)) > (self.slowest, std::cmp::Reverse(self.at)))
        {
            (self.slowest, self.at) = (more.slowest, more.at);
        }
        self.count += more.count;
        self.elapsed = self.elapsed.saturating_add(more.elapsed);
    }
}

/// Frames of a thread that are open at the end of a chunk.
#[derive(Debug, Default)]
pub(super) struct OpenFrames {
    pub thread: u32,
    /// Number of them that were open at the begin of the chunk.
    pub inherited: u32,
    /// Total time of each within the chunk, and its begin.
    pub open: Vec<(u64, u64)>,
}

/// State of an open call; the default is that of one that was open where counting began.
#[derive(Debug, Clone, Copy)]
pub(super) struct CountedFrame {
    times: CallTimes,
    node: u32,
    begin: u64,
    inherited: bool,
}

impl Default for CountedFrame {
    fn default() -> Self {
        Self { times: CallTimes::default(), node: NOTHING, begin: 0, inherited: true }
    }
}

impl AsMut<CallTimes> for CountedFrame {
    #[inline]
    fn as_mut(&mut self) -> &mut CallTimes {
        &mut self.times
    }
}

/// Root of a thread's paths.
#[derive(Clone, Copy, Default)]
struct ThreadRoot {
    /// Number of the region change for which the root and the frames' nodes are valid; 0 for none.
    stamp: u64,
    node: u32,
}

/// Settings common to all chunks.
#[derive(Debug, Clone)]
pub(super) struct CountingSetup {
    pub bounds: TraceBounds,
    pub wide: bool,
    /// By thread: the code of its root.
    pub roots: Vec<i64>,
    /// By region: its group.
    pub groups: Vec<Option<u32>>,
    pub group_count: usize,
}

impl CountingSetup {
    pub fn new(
        recording: &Recording,
        functions: usize,
        wide: bool,
        groups: &super::super::groups::RegionGroups,
        comm: &mut dyn FnMut(&str) -> i64,
    ) -> Self {
        let threads = recording.threads.iter();
        let root = |thread: &kerntune_trace::RecordedThread| match thread.pid == 0 && thread.task != 0 {
            true => code::IDLE,
            false => code::THREAD - comm(&thread.comm),
        };
        let mut roots: Vec<i64> = threads.map(root).collect();
        let unknown = code::THREAD - comm(super::super::data::UNKNOWN);
        roots.extend([code::INTERRUPT, unknown]);
        let bounds =
            TraceBounds { functions, regions: recording.regions.len(), ..TraceBounds::of(recording) };
        Self { bounds, wide, roots, groups: groups.of_region.clone(), group_count: groups.count as usize }
    }
}

/// Counter of single chunks, in any order.
pub(super) struct ChunkCounter {
    setting: CountingSetup,
    pub names: NameTable,
    /// Numbers of its names in the shared table.
    pub nodes_of_all: Vec<u32>,
    pub accounts_of_all: Vec<u32>,
    roots: Vec<ThreadRoot>,
    group: Option<u32>,
    stamp: u64,
    from: u64,
    until: u64,
    active: bool,
    done: bool,
    // Index of each node and account in this chunk's record.
    node_place: Vec<u32>,
    account_place: Vec<u32>,
    cells: Vec<u32>,
    touched: Vec<u64>,
    record: ChunkRecord,
}

impl ChunkCounter {
    pub fn new(setting: CountingSetup) -> Self {
        Self {
            roots: vec![ThreadRoot::default(); setting.bounds.threads + 2],
            setting,
            names: NameTable::default(),
            nodes_of_all: Vec::new(),
            accounts_of_all: Vec::new(),
            group: None,
            stamp: 0,
            from: 0,
            until: u64::MAX,
            active: false,
            done: false,
            node_place: Vec::new(),
            account_place: Vec::new(),
            cells: Vec::new(),
            touched: Vec::new(),
            record: ChunkRecord::default(),
        }
    }

    /// Restricts counting to events from `from` up to `until`.
    pub fn between(&mut self, from: u64, until: u64) {
        (self.from, self.until) = (from, until);
    }

    /// Returns the counts since the chunk's begin; `end` is its end.
    pub fn take(&mut self, machine: &mut ReplayState, end: u64) -> ChunkRecord {
        self.start(machine);
        let mut record = std::mem::take(&mut self.record);
        record.end = end.min(self.until);
        for thread in 0..self.roots.len() {
            let frames = machine.frames_of(thread);
            if frames.is_empty() {
                continue;
            }
            let inherited = frames.iter().take_while(|frame| frame.data.inherited).count() as u32;
            let mut open: Vec<(u64, u64)> = Vec::with_capacity(frames.len());
            let mut above = 0;
            for frame in frames.iter().rev() {
                let here = frame.data.times.total() + above;
                open.push((here, frame.data.begin));
                above = if frame.how == EnterKind::Interrupt { 0 } else { here };
            }
            open.reverse();
            record.left.push(OpenFrames { thread: thread as u32, inherited, open });
        }
        for node in &record.nodes {
            self.node_place[*node as usize] = NOTHING;
        }
        for account in &record.accounts {
            self.account_place[*account as usize] = NOTHING;
        }
        for cell in self.touched.drain(..) {
            record.cells.push((cell, std::mem::take(&mut self.cells[cell as usize]).into()));
        }
        record
    }

    /// Begins counting: open frames count as begun before.
    fn start(&mut self, machine: &mut ReplayState) {
        if self.active {
            return;
        }
        self.active = true;
        for thread in 0..self.roots.len() {
            let frames = machine.frames_of(thread);
            for frame in frames.iter_mut() {
                (frame.data.inherited, frame.data.times) = (true, CallTimes::default());
            }
            if !frames.is_empty() {
                self.record.base.push((thread as u32, frames.len() as u32));
            }
        }
    }

    fn region(&mut self, machine: &mut ReplayState) {
        let region = machine.regions().last();
        self.group = region.and_then(|region| self.setting.groups.get(*region as usize).copied().flatten());
        self.stamp += 1;
        self.arrive(machine);
    }

    /// Locates the running thread's frames in the tree after a change of thread or region.
    fn arrive(&mut self, machine: &mut ReplayState) {
        let Some(group) = self.group else { return };
        let running = machine.running();
        let Self { names, roots, setting, stamp, .. } = self;
        if roots[running].stamp == *stamp {
            return;
        }
        let mut node = names.root(group, setting.roots.get(running).copied().unwrap_or(code::IDLE));
        roots[running] = ThreadRoot { stamp: *stamp, node };
        for frame in machine.frames_mut() {
            if frame.how == EnterKind::Interrupt {
                node = names.root(group, code::INTERRUPT);
            }
            node = names.child(node, frame.function.into(), frame.how as u8);
            frame.data.node = node;
        }
    }

    /// Returns the index of a node in the record.
    #[inline]
    fn place(&mut self, node: u32) -> usize {
        let at = node as usize;
        if at >= self.node_place.len() {
            self.node_place.resize(self.names.nodes.len().max(at + 1), NOTHING);
        }
        if self.node_place[at] == NOTHING {
            self.node_place[at] = self.record.nodes.len() as u32;
            self.record.nodes.push(node);
            self.record.calls.push(0);
            self.record.ns.push(0);
            if self.setting.wide {
                self.record.weights.push([0; 3]);
            }
        }
        self.node_place[at] as usize
    }

    fn count_ended(&mut self, account: u32, elapsed: u64, begin: u64) {
        let at = account as usize;
        if at >= self.account_place.len() {
            let length = self.names.accounts.len().max(at + 1);
            self.account_place.resize(length, NOTHING);
            self.cells.resize(length * BUCKETS, 0);
        }
        if self.account_place[at] == NOTHING {
            self.account_place[at] = self.record.accounts.len() as u32;
            self.record.accounts.push(account);
            self.record.ended.push(EndedCalls::default());
        }
        self.record.ended[self.account_place[at] as usize].add_call(elapsed, begin);
        let cell = at * BUCKETS + bucket_of(Ticks(elapsed)) as usize;
        if self.cells[cell] == 0 {
            self.touched.push(cell as u64);
        }
        self.cells[cell] += 1;
    }

    fn spend(&mut self, machine: &mut ReplayState, ns: u64, weights: EventWeights) {
        let top = machine.charge(ns).map(|top| top.data.node);
        let Some(group) = self.group else { return };
        let running = machine.running();
        let is_idle_task = self.setting.roots.get(running) == Some(&code::IDLE);
        let is_user = top.is_none() && machine.is_user_mode() && !is_idle_task;
        let root = self.roots[running].node;
        let node = match top {
            Some(node) => node,
            None => self.names.child(root, if is_user { code::USER } else { code::UNATTRIBUTED }, 0),
        };
        let at = self.place(node);
        self.record.ns[at] += ns;
        if let Some(sums) = self.record.weights.get_mut(at) {
            sums[0] += weights.taken_branches;
            sums[1] += weights.l1i_misses;
            sums[2] += weights.itlb_misses;
        }
        let times = &mut self.record.times[group as usize];
        times[0] += ns;
        if is_user {
            times[2] += ns;
        }
    }
}

impl EventVisitor for ChunkCounter {
    type PerFrame = CountedFrame;

    fn begin(&mut self, machine: &mut ReplayState, opening: &ChunkOpening<'_>) {
        machine.adopt(opening);
        self.record = ChunkRecord {
            begin: opening.begin.max(self.from),
            times: vec![[0; 3]; self.setting.group_count],
            ..ChunkRecord::default()
        };
        (self.active, self.done) = (false, false);
        self.roots.iter_mut().for_each(|root| root.stamp = 0);
        if opening.begin >= self.from {
            self.start(machine);
        }
        self.region(machine);
    }

    #[inline]
    fn is_done(&self) -> bool {
        self.done
    }

    #[inline]
    fn pass(&mut self, machine: &mut ReplayState, ns: u64, weights: EventWeights, _: &Event) {
        let now = machine.now();
        let (mut ns, mut weights) = (ns, weights);
        if now.saturating_add(ns) >= self.until {
            (ns, weights) = (self.until.saturating_sub(now), EventWeights::NONE);
            self.done = true;
        }
        let is_counted = now.saturating_add(ns) >= self.from;
        if is_counted && !self.active {
            ns = (now + ns) - self.from.max(now);
            self.start(machine);
        }
        if is_counted && (ns > 0 || weights != EventWeights::NONE) {
            self.spend(machine, ns, weights);
        }
    }

    fn idle(&mut self, machine: &mut ReplayState, ns: u64) {
        let now = machine.now();
        let slept = ns.min(self.until.saturating_sub(now));
        self.done = slept < ns;
        let end = now + slept;
        if end <= self.from && now < self.from {
            return;
        }
        self.start(machine);
        if let Some(group) = self.group {
            self.record.times[group as usize][1] += end - self.from.max(now);
        }
    }

    #[inline]
    fn enter(&mut self, machine: &mut ReplayState, function: u32, how: EnterKind) -> CountedFrame {
        let root = &mut self.roots[machine.running()];
        let mut node = NOTHING;
        match self.group {
            None => root.stamp = 0,
            Some(group) => {
                let parent = match machine.frames().last() {
                    _ if how == EnterKind::Interrupt => self.names.root(group, code::INTERRUPT),
                    Some(top) => top.data.node,
                    None => root.node,
                };
                node = self.names.child(parent, function.into(), how as u8);
                if self.active {
                    let at = self.place(node);
                    self.record.calls[at] += 1;
                }
            }
        }
        CountedFrame { node, begin: machine.now(), inherited: false, ..CountedFrame::default() }
    }

    #[inline]
    fn ended(&mut self, machine: &mut ReplayState, frame: StackFrame) {
        let total = credit_caller(machine.frames_mut(), frame);
        if !self.active {
            return;
        }
        let CountedFrame { node, begin, inherited, .. } = frame.data;
        let account = match self.group {
            Some(_) => self.names.nodes.get(node as usize).map_or(NOTHING, |node| node.account),
            None => NOTHING,
        };
        if inherited {
            self.record.theirs.push((machine.running() as u32, account, total));
        } else if account != NOTHING {
            self.count_ended(account, total, begin);
        }
    }

    fn switched(&mut self, machine: &mut ReplayState) {
        self.arrive(machine);
    }

    fn turned(&mut self, machine: &mut ReplayState) {
        self.arrive(machine);
    }

    fn region_begun(&mut self, machine: &mut ReplayState, _: u32) {
        self.region(machine);
    }

    fn region_ended(&mut self, machine: &mut ReplayState, _: u32) {
        self.region(machine);
    }
}
