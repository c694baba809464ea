//! Aggregate of samples and counts: call paths, calls, threads, switches. It keeps no single event,
//! and all tables are bounded.

mod calls;
mod cgroups;
mod lock_waits;
mod off_cpu;
mod roles;
mod switches;
mod system_calls;
mod threads;
mod tree;
mod user;
mod wait_totals;
mod waits;

pub use calls::{CallKey, CallTable};
pub use cgroups::CgroupTable;
pub use lock_waits::LockWaiter;
pub use off_cpu::{DelayKey, LeftState, WakeCause};
pub use roles::ChainRole;
pub use switches::{SampledSwitch, SwitchTable};
pub use system_calls::SystemCallKey;
pub use threads::{SampledThread, ThreadTable};
pub use tree::{SampleFrame, SampleNode, SampleTree};
pub use user::{parse_mapping, RecordedFiles, UserCode};
pub use wait_totals::WaitTotals;
pub use waits::WaitTables;

use kerntune_profile::{Anomaly, SwitchKind};
use kerntune_symbols::FunctionTable;
use std::collections::BTreeMap;

/// Maximum sizes of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableBounds {
    /// Number of call paths.
    pub paths: usize,
    /// Number of threads.
    pub threads: usize,
    /// Number of thread names.
    pub names: usize,
    /// Number of kinds of context switches (reason, from, to).
    pub switches: usize,
    /// Number of pairs of caller and callee.
    pub calls: usize,
    /// Number of user functions; 0 if call chains end at the kernel.
    pub user: usize,
    /// Number of rows of each table of waits; 0 if no events are traced.
    pub waits: usize,
}

/// Number of rows of each table of waits if events are traced.
pub const WAIT_ROWS: usize = 1 << 14;

/// Maximum number of user functions if user call chains are requested.
pub const USER_FUNCTIONS: usize = 1 << 18;

impl Default for TableBounds {
    fn default() -> Self {
        Self {
            paths: 1 << 17,
            threads: 1 << 14,
            names: 1 << 12,
            switches: 1 << 14,
            calls: 1 << 16,
            user: 0,
            waits: 0,
        }
    }
}

impl TableBounds {
    /// Returns an upper bound for the memory of the tables in bytes, without the table of symbols.
    pub fn bytes(&self) -> usize {
        SampleTree::bound(self.paths)
            .saturating_add(ThreadTable::bound(self.threads, self.names))
            .saturating_add(CgroupTable::bound(self.names))
            .saturating_add(SwitchTable::bound(self.switches))
            .saturating_add(CallTable::bound(self.calls))
            .saturating_add(UserCode::bound(self.user))
            .saturating_add(WaitTables::bound(self.waits))
    }
}

/// Sample of a CPU's activity.
#[derive(Debug, Clone, Copy)]
pub struct StackSample<'a> {
    /// Thread id; 0 for an idle task.
    pub tid: u32,
    /// Process id.
    pub tgid: u32,
    /// True if the CPU was in user mode.
    pub is_user: bool,
    /// Kernel call chain, innermost first: the instruction, then return addresses. Empty in user
    /// mode.
    pub kernel: &'a [u64],
    /// User call chain in the same order; empty if not recorded.
    pub user: &'a [u64],
}

/// Sample of a context switch.
#[derive(Debug, Clone, Copy)]
pub struct SwitchSample<'a> {
    /// Name index of the thread that lost the CPU, if known.
    pub from: Option<u32>,
    /// Name index of the thread that got the CPU, if known.
    pub to: Option<u32>,
    /// True if the thread was preempted; `None` if unknown.
    pub preempted: Option<bool>,
    /// Kernel call chain of the thread that lost the CPU.
    pub kernel: &'a [u64],
    /// Number of switches that the sample stands for.
    pub weight: u64,
}

/// Samples and counts since the start or the last [`clear`](Self::clear).
#[derive(Debug, Clone)]
pub struct Aggregate {
    /// Functions of the kernel and of user code.
    pub table: FunctionTable,
    roles: Vec<ChainRole>,
    /// Call paths with their samples.
    pub tree: SampleTree,
    /// Threads with their samples.
    pub threads: ThreadTable,
    /// Cgroups of the threads.
    pub cgroups: CgroupTable,
    /// Context switches.
    pub switches: SwitchTable,
    /// Counted calls.
    pub calls: CallTable,
    /// Mapped user code.
    pub user: UserCode,
    /// Waits of threads, from traced events.
    pub waits: WaitTables,
    /// Number of all samples.
    pub samples: u64,
    /// Samples of halted CPUs, which are in no table.
    pub halted: u64,
    /// Samples in interrupts.
    pub interrupts: u64,
    /// Samples of idle tasks that were not halted.
    pub idle: u64,
    /// Samples lost by the kernel or its buffers.
    pub lost: u64,
    /// Counts of anomalies.
    pub health: BTreeMap<Anomaly, u64>,
    /// Scratch: path of the current sample.
    path: Vec<SampleFrame>,
    /// Functions of addresses that were looked up lately.
    lookups: LookupCache,
}

/// Functions of kernel addresses, each at the place that its address gives. The same addresses come
/// again and again.
#[derive(Debug, Clone)]
struct LookupCache(Vec<(u64, Option<u32>)>);

impl LookupCache {
    const ENTRIES: usize = 1 << 12;

    fn new() -> Self {
        Self(vec![(0, None); Self::ENTRIES])
    }

    fn lookup(&mut self, table: &FunctionTable, address: u64) -> Option<u32> {
        let place = (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52) as usize;
        let entry = &mut self.0[place % Self::ENTRIES];
        if entry.0 != address || address == 0 {
            *entry = (address, table.lookup(address));
        }
        entry.1
    }

    fn clear(&mut self) {
        self.0.fill((0, None));
    }
}

/// Default length limit of a call chain (`kernel.perf_event_max_stack`); longer chains are cut.
const MAX_CHAIN_FRAMES: usize = 127;
/// Offset from a return address into the call instruction before it.
const CALL_OFFSET: u64 = 1;

impl Aggregate {
    /// Creates an empty aggregate.
    pub fn new(table: FunctionTable, bounds: TableBounds) -> Self {
        let mut new = Self {
            roles: Vec::new(),
            table,
            tree: SampleTree::new(bounds.paths),
            threads: ThreadTable::new(bounds.threads, bounds.names),
            cgroups: CgroupTable::new(bounds.names),
            switches: SwitchTable::new(bounds.switches),
            calls: CallTable::new(bounds.calls),
            user: UserCode::new(bounds.user),
            waits: WaitTables::new(bounds.waits),
            samples: 0,
            halted: 0,
            interrupts: 0,
            idle: 0,
            lost: 0,
            health: BTreeMap::new(),
            path: Vec::with_capacity(2 * MAX_CHAIN_FRAMES),
            lookups: LookupCache::new(),
        };
        new.know_roles();
        new
    }

    fn know_roles(&mut self) {
        let new = self.table.functions().iter().skip(self.roles.len());
        let is_program = |module: &Option<String>| module.as_ref().is_some_and(|path| path.starts_with('/'));
        self.roles.extend(new.map(|function| match is_program(&function.module) {
            true => ChainRole::Plain,
            false => ChainRole::of(&function.name),
        }));
    }

    /// Returns the role of a function in call chains.
    pub fn role(&self, function: u32) -> ChainRole {
        self.roles.get(function as usize).copied().unwrap_or(ChainRole::Plain)
    }

    /// Handles newly loaded code.
    pub fn code_added(&mut self, name: &str, module: &str, address: u64, size: u64) {
        self.table.add(name, module, address, size);
        self.lookups.clear();
        self.know_roles();
    }

    /// Handles removed code.
    pub fn code_gone(&mut self, address: u64) {
        self.table.forget(address);
        self.lookups.clear();
    }

    /// Returns the number of the function of the kernel at an address.
    pub fn lookup(&mut self, address: u64) -> Option<u32> {
        self.lookups.lookup(&self.table, address)
    }

    /// Adds to an anomaly count.
    pub fn note(&mut self, what: Anomaly, count: u64) {
        if count > 0 {
            *self.health.entry(what).or_default() += count;
        }
    }

    /// Adds a sample.
    pub fn sample(&mut self, sample: &StackSample) {
        self.samples += 1;
        self.path.clear();
        let (mut interrupt, mut unknown) = (false, 0);
        for (depth, address) in sample.kernel.iter().enumerate() {
            let at = address.saturating_sub(if depth == 0 { 0 } else { CALL_OFFSET });
            let Some(function) = self.lookups.lookup(&self.table, at) else {
                unknown += 1;
                if depth == 0 {
                    self.path.push(SampleFrame::Unattributed);
                }
                continue;
            };
            let role = self.role(function);
            if role == ChainRole::Halt && depth < 2 && sample.tid == 0 {
                self.halted += 1;
                return;
            }
            self.path.push(SampleFrame::Function(function));
            if role == ChainRole::Interrupt {
                // The interrupted code is unrelated.
                interrupt = true;
                break;
            }
        }
        if unknown > 0 {
            self.note(Anomaly::UnnamedFrames, unknown);
        }
        if sample.kernel.len() >= MAX_CHAIN_FRAMES {
            self.note(Anomaly::CutChains, 1);
        }
        let root = if interrupt {
            self.interrupts += 1;
            SampleFrame::Interrupt
        } else if sample.tid == 0 {
            self.idle += 1;
            SampleFrame::Idle
        } else {
            let (user, kernel) = if sample.is_user { (1, 0) } else { (0, 1) };
            SampleFrame::Thread(self.threads.add(sample.tid, sample.tgid, user, kernel))
        };
        if !sample.is_user && self.path.is_empty() {
            self.path.push(SampleFrame::Unattributed);
        }
        if !interrupt {
            self.user_frames(sample);
        }
        self.path.push(root);
        self.tree.add(self.path.iter().rev().copied(), 1);
    }

    /// Appends the user frames below the kernel's. Unnamed code becomes the frame for user mode.
    fn user_frames(&mut self, sample: &StackSample) {
        let (mut named, mut unnamed) = (false, 0);
        for (depth, address) in sample.user.iter().enumerate() {
            let at = address.saturating_sub(if depth == 0 { 0 } else { CALL_OFFSET });
            match self.user.lookup(sample.tgid, at, &mut self.table) {
                Some(function) => {
                    self.path.push(SampleFrame::Function(function));
                    named = true;
                }
                None if depth == 0 && sample.is_user => {
                    self.path.push(SampleFrame::User);
                    named = true;
                }
                None => unnamed += 1,
            }
        }
        if sample.is_user && !named {
            self.path.push(SampleFrame::User);
        }
        self.note(Anomaly::UnnamedUserFrames, unnamed);
        if !sample.user.is_empty() {
            self.know_roles();
        }
    }

    /// Adds a context switch.
    pub fn switch(&mut self, switch: &SwitchSample) {
        let mut reason = None;
        for (depth, address) in switch.kernel.iter().enumerate() {
            let at = address.saturating_sub(if depth == 0 { 0 } else { CALL_OFFSET });
            let found = self.table.lookup(at);
            let is_part = |role| matches!(role, ChainRole::Scheduler | ChainRole::Tracing);
            if let Some(function) = found.filter(|function| !is_part(self.role(*function))) {
                reason = Some(function);
                break;
            }
        }
        let kind = match switch.preempted {
            Some(true) => SwitchKind::Preempted,
            _ => SwitchKind::Voluntary,
        };
        self.switches.add(SampledSwitch { from: switch.from, to: switch.to, reason, kind }, switch.weight);
    }

    /// Removes everything except the names of threads.
    pub fn clear(&mut self) {
        self.tree.clear();
        self.threads.clear();
        self.switches.clear();
        self.calls.clear();
        self.waits.clear();
        (self.samples, self.halted, self.interrupts, self.idle, self.lost) = (0, 0, 0, 0, 0);
        self.health.clear();
    }
}

#[cfg(test)]
mod tests;
