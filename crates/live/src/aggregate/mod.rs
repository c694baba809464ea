//! What samples and counts come to: call paths, calls, threads, switches. No event is kept; everything has a bound.

mod calls;
mod roles;
mod switches;
mod threads;
mod tree;
mod user;

pub use calls::{CallKey, Calls};
pub use roles::Role;
pub use switches::{Switch, Switches};
pub use threads::{Thread, Threads};
pub use tree::{Key, Node, Tree};
pub use user::{parse_mapping, UserCode};

use kerntune_profile::SwitchKind;
use kerntune_symbols::Table;
use std::collections::BTreeMap;

/// Sizes of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Call paths.
    pub paths: usize,
    /// Threads.
    pub threads: usize,
    /// Names of threads.
    pub names: usize,
    /// Kinds of context switches: reason, from, to.
    pub switches: usize,
    /// Pairs of functions that call each other.
    pub calls: usize,
    /// Functions of programs; 0 if call chains end with the kernel.
    pub user: usize,
}

/// Functions of programs that are known at most where their chains are wanted.
pub const USER_FUNCTIONS: usize = 1 << 18;

impl Default for Bounds {
    fn default() -> Self {
        Self { paths: 1 << 17, threads: 1 << 14, names: 1 << 12, switches: 1 << 14, calls: 1 << 16, user: 0 }
    }
}

impl Bounds {
    /// Bytes that the tables take at most, without that of symbols.
    pub fn bytes(&self) -> usize {
        Tree::bound(self.paths)
            .saturating_add(Threads::bound(self.threads, self.names))
            .saturating_add(Switches::bound(self.switches))
            .saturating_add(Calls::bound(self.calls))
            .saturating_add(UserCode::bound(self.user))
    }
}

/// A sample of what a CPU did.
#[derive(Debug, Clone, Copy)]
pub struct Sample<'a> {
    /// Thread id; 0 for an idle task.
    pub tid: u32,
    /// Process id.
    pub tgid: u32,
    /// Whether the CPU was in user mode.
    pub is_user: bool,
    /// The kernel's call chain, innermost first: the instruction, then return addresses. Empty in user mode.
    pub kernel: &'a [u64],
    /// The program's call chain, in the same order; empty if it is not told.
    pub user: &'a [u64],
}

/// A context switch that was sampled.
#[derive(Debug, Clone, Copy)]
pub struct SwitchSample<'a> {
    /// Number of the name of the thread that had the CPU, if known.
    pub from: Option<u32>,
    /// The same of the thread that got it.
    pub to: Option<u32>,
    /// Whether the CPU was taken away; none if that is not told.
    pub preempted: Option<bool>,
    /// The kernel's call chain of the thread that had it.
    pub kernel: &'a [u64],
    /// Switches that it stands for.
    pub weight: u64,
}

/// Everything that was seen since the last [`clear`](Self::clear).
#[derive(Debug, Clone)]
pub struct Aggregate {
    /// The kernel's code.
    pub table: Table,
    roles: Vec<Role>,
    /// Paths.
    pub tree: Tree,
    /// Threads.
    pub threads: Threads,
    /// Context switches.
    pub switches: Switches,
    /// Calls that were counted.
    pub calls: Calls,
    /// Code of programs.
    pub user: UserCode,
    /// Samples in all.
    pub samples: u64,
    /// Of them those of halted CPUs, which are in no table.
    pub halted: u64,
    /// Samples in interrupts.
    pub interrupts: u64,
    /// Samples of idle tasks that were not halted.
    pub idle: u64,
    /// Samples that the kernel or its buffers lost.
    pub lost: u64,
    /// Counts of what a reader has to know, by name.
    pub health: BTreeMap<&'static str, u64>,
    /// The path of the sample under way.
    path: Vec<Key>,
}

/// Frames of the longest chain that is told to be cut (`kernel.perf_event_max_stack`).
const DEEPEST: usize = 127;
/// Return addresses are of the instruction after the call.
const CALL: u64 = 1;

impl Aggregate {
    /// Nothing seen yet.
    pub fn new(table: Table, bounds: Bounds) -> Self {
        let mut new = Self {
            roles: Vec::new(),
            table,
            tree: Tree::new(bounds.paths),
            threads: Threads::new(bounds.threads, bounds.names),
            switches: Switches::new(bounds.switches),
            calls: Calls::new(bounds.calls),
            user: UserCode::new(bounds.user),
            samples: 0,
            halted: 0,
            interrupts: 0,
            idle: 0,
            lost: 0,
            health: BTreeMap::new(),
            path: Vec::with_capacity(2 * DEEPEST),
        };
        new.know_roles();
        new
    }

    fn know_roles(&mut self) {
        let new = self.table.functions().iter().skip(self.roles.len());
        let is_program = |module: &Option<String>| module.as_ref().is_some_and(|path| path.starts_with('/'));
        self.roles.extend(new.map(|function| match is_program(&function.module) {
            true => Role::Plain,
            false => Role::of(&function.name),
        }));
    }

    /// The part that a function plays.
    pub fn role(&self, function: u32) -> Role {
        self.roles.get(function as usize).copied().unwrap_or(Role::Plain)
    }

    /// Code was loaded.
    pub fn code_added(&mut self, name: &str, module: &str, address: u64, size: u64) {
        self.table.add(name, module, address, size);
        self.know_roles();
    }

    /// Code is gone.
    pub fn code_gone(&mut self, address: u64) {
        self.table.forget(address);
    }

    /// Counts something that a reader has to know.
    pub fn note(&mut self, what: &'static str, count: u64) {
        if count > 0 {
            *self.health.entry(what).or_default() += count;
        }
    }

    /// Counts a sample.
    pub fn sample(&mut self, sample: &Sample) {
        self.samples += 1;
        self.path.clear();
        let (mut interrupt, mut unknown) = (false, 0);
        for (depth, address) in sample.kernel.iter().enumerate() {
            let Some(function) = self.table.lookup(address.saturating_sub(if depth == 0 { 0 } else { CALL }))
            else {
                unknown += 1;
                if depth == 0 {
                    self.path.push(Key::Unattributed);
                }
                continue;
            };
            let role = self.role(function);
            if role == Role::Halt && depth < 2 && sample.tid == 0 {
                self.halted += 1;
                return;
            }
            self.path.push(Key::Function(function));
            if role == Role::Interrupt {
                // What it interrupted has nothing to do with it.
                interrupt = true;
                break;
            }
        }
        if unknown > 0 {
            self.note("unnamed_frames", unknown);
        }
        if sample.kernel.len() >= DEEPEST {
            self.note("cut_chains", 1);
        }
        let root = if interrupt {
            self.interrupts += 1;
            Key::Interrupt
        } else if sample.tid == 0 {
            self.idle += 1;
            Key::Idle
        } else {
            let (user, kernel) = if sample.is_user { (1, 0) } else { (0, 1) };
            Key::Thread(self.threads.add(sample.tid, sample.tgid, user, kernel))
        };
        if !sample.is_user && self.path.is_empty() {
            self.path.push(Key::Unattributed);
        }
        if !interrupt {
            self.user_frames(sample);
        }
        self.path.push(root);
        self.tree.add(self.path.iter().rev().copied(), 1);
    }

    /// Frames of the program, below those of the kernel. Code without a name is user mode, whoever called it.
    fn user_frames(&mut self, sample: &Sample) {
        let (mut named, mut unnamed) = (false, 0);
        for (depth, address) in sample.user.iter().enumerate() {
            let at = address.saturating_sub(if depth == 0 { 0 } else { CALL });
            match self.user.lookup(sample.tgid, at, &mut self.table) {
                Some(function) => {
                    self.path.push(Key::Function(function));
                    named = true;
                }
                None if depth == 0 && sample.is_user => {
                    self.path.push(Key::User);
                    named = true;
                }
                None => unnamed += 1,
            }
        }
        if sample.is_user && !named {
            self.path.push(Key::User);
        }
        self.note("unnamed_user_frames", unnamed);
        if !sample.user.is_empty() {
            self.know_roles();
        }
    }

    /// Counts a context switch.
    pub fn switch(&mut self, switch: &SwitchSample) {
        let mut reason = None;
        for (depth, address) in switch.kernel.iter().enumerate() {
            let at = address.saturating_sub(if depth == 0 { 0 } else { CALL });
            let found = self.table.lookup(at);
            if let Some(function) = found.filter(|function| self.role(*function) != Role::Scheduler) {
                reason = Some(function);
                break;
            }
        }
        let kind = match switch.preempted {
            Some(true) => SwitchKind::Preempted,
            _ => SwitchKind::Voluntary,
        };
        self.switches.add(Switch { from: switch.from, to: switch.to, reason, kind }, switch.weight);
    }

    /// Forgets everything that was seen but the names of threads.
    pub fn clear(&mut self) {
        self.tree.clear();
        self.threads.clear();
        self.switches.clear();
        self.calls.clear();
        (self.samples, self.halted, self.interrupts, self.idle, self.lost) = (0, 0, 0, 0, 0);
        self.health.clear();
    }
}

#[cfg(test)]
mod tests;
