//! Tables of a profile from the entries and exits of functions of another tool's trace.
//!
//! Times are nanoseconds of the trace's clock. A call's total time is the duration that the trace
//! has, without the time in which its thread was known to be off the CPU. Unlike in kerntune's own
//! recordings, an interrupt's time is also part of the function that it hit, because the tools
//! measure it so.

mod tables;
#[cfg(test)]
mod tests;

use kerntune_profile::{
    bucket_of, CallKind, FunctionIndex, FunctionStats, PathKind, SwitchKind, Symbol, ThreadKind, Ticks,
};
use rustc_hash::FxHashMap;
pub use tables::{TimedTables, TimedTotals};

/// Maximum number of call paths; further ones are counted for their callers.
const MAX_PATHS: usize = 1 << 21;
/// Maximum number of arcs, and of buckets of all histograms.
const MAX_ROWS: usize = 1 << 21;
/// Maximum number of open calls of a thread.
const MAX_DEPTH: usize = 1 << 12;

/// Number of a thread in [`TimedCalls`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ThreadNumber(usize);

/// Counts of what does not fit together in a trace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallMismatches {
    /// Calls that ended without a recorded entry.
    pub headless: u64,
    /// Calls without a recorded end, because events were lost or the trace ends.
    pub unended: u64,
    /// Calls whose path, arc or histogram had no room.
    pub crowded: u64,
}

/// Open call.
#[derive(Debug, Clone, Copy)]
struct OpenCall {
    function: u32,
    how: CallKind,
    /// Depth that the trace states, if any.
    depth: Option<u32>,
    path: u32,
    arc: u32,
    entered: u64,
    /// Time of callees on the CPU.
    callees: u64,
    /// Time off the CPU, in callees too.
    away: u64,
}

#[derive(Debug)]
struct Thread {
    kind: ThreadKind,
    pid: u32,
    tgid: u32,
    comm: String,
    /// Number of the comm in [`TimedCalls::comms`].
    comm_number: u32,
    open: Vec<OpenCall>,
    /// Start of the present stay on a CPU.
    on_since: Option<u64>,
    off_since: Option<u64>,
    /// Time on CPUs.
    ran: u64,
    /// Time of calls without a caller, on the CPU.
    in_calls: u64,
    /// Part of `in_calls` in interrupts.
    in_interrupts: u64,
    /// Part of `in_calls` in which the CPU was halted.
    halted: u64,
    /// The trace has system calls of this thread.
    has_system_calls: bool,
    switches_in: u64,
}

#[derive(Debug, Clone, Copy)]
struct ArcFigures {
    key: ArcKey,
    calls: u64,
    ended: u64,
    total: u64,
}

#[derive(Debug, Clone, Copy)]
struct Path {
    parent: u32,
    kind: PathKind,
    comm: u32,
    function: u32,
    how: CallKind,
    /// Arc of the path's last call; [`NO_ARC`] if it is not known yet.
    arc: u32,
    calls: u64,
    own: u64,
}

/// Least self time of a function without calls that ended.
const NO_MINIMUM: Ticks = Ticks(u64::MAX);
const NO_PATH: u32 = u32::MAX;
const NO_FUNCTION: u32 = u32::MAX;
const NO_ARC: u32 = u32::MAX;

type PathKey = (u32, PathKind, u32, CallKind);
type ArcKey = (u32, u32, CallKind);

/// Builder of a profile's tables.
///
/// ```
/// use kerntune_convert::timed::TimedCalls;
/// use kerntune_profile::{CallKind, Symbol, ThreadKind, Ticks};
/// let mut calls = TimedCalls::default();
/// let [outer, inner] = ["outer", "inner"].map(|name| calls.add_function(Symbol { name: name.into(), ..Symbol::default() }, false));
/// let thread = calls.add_thread(ThreadKind::Thread, 7, 7, "work");
/// calls.enter(thread, 100, outer, CallKind::Call, None);
/// calls.enter(thread, 110, inner, CallKind::Call, None);
/// calls.exit(thread, 130, None);
/// calls.exit(thread, 150, None);
/// let tables = calls.finish("trace").tables;
/// assert_eq!((tables.functions[0].total_ticks, tables.functions[0].self_ticks), (Ticks(50), Ticks(30)));
/// ```
#[derive(Debug, Default)]
pub struct TimedCalls {
    symbols: Vec<Symbol>,
    /// Functions in which a CPU is halted.
    halts: Vec<bool>,
    functions: Vec<FunctionStats>,
    arcs: Vec<ArcFigures>,
    arc_numbers: FxHashMap<ArcKey, u32>,
    /// Number of calls and begin of the first one, by arc and bucket.
    buckets: FxHashMap<u64, (u64, u64)>,
    paths: Vec<Path>,
    path_numbers: FxHashMap<PathKey, u32>,
    threads: Vec<Thread>,
    comms: Vec<String>,
    comm_numbers: FxHashMap<String, u32>,
    switches: FxHashMap<(u32, u32, u32, SwitchKind), u64>,
    first: Option<u64>,
    last: u64,
    /// The trace has context switches, so that stays on CPUs are known.
    has_switches: bool,
    mismatches: CallMismatches,
}

impl TimedCalls {
    /// Adds a function and returns its number; the symbol's own number is set. `halts` tells
    /// whether the CPU is halted in its self time.
    pub fn add_function(&mut self, symbol: Symbol, halts: bool) -> u32 {
        let number = self.symbols.len() as u32;
        self.symbols.push(Symbol { function: FunctionIndex(number), ..symbol });
        self.halts.push(halts);
        self.functions.push(FunctionStats {
            function: FunctionIndex(number),
            min_ticks: NO_MINIMUM,
            ..FunctionStats::default()
        });
        number
    }

    /// Adds a thread.
    pub fn add_thread(&mut self, kind: ThreadKind, pid: u32, tgid: u32, comm: &str) -> ThreadNumber {
        let comm_number = self.comm(comm);
        self.threads.push(Thread {
            kind,
            pid,
            tgid,
            comm: comm.into(),
            comm_number,
            open: Vec::new(),
            on_since: None,
            off_since: None,
            ran: 0,
            in_calls: 0,
            in_interrupts: 0,
            halted: 0,
            has_system_calls: false,
            switches_in: 0,
        });
        ThreadNumber(self.threads.len() - 1)
    }

    fn comm(&mut self, comm: &str) -> u32 {
        if let Some(number) = self.comm_numbers.get(comm) {
            return *number;
        }
        let number = self.comms.len() as u32;
        self.comms.push(comm.into());
        self.comm_numbers.insert(comm.into(), number);
        number
    }

    /// Notes an event at this time, for the trace's length.
    #[inline]
    pub fn at(&mut self, time: u64) {
        let first = self.first.get_or_insert(time);
        *first = (*first).min(time);
        self.last = self.last.max(time);
    }

    /// Returns the time of the first event.
    pub fn start(&self) -> u64 {
        self.first.unwrap_or(0)
    }

    /// Returns the time of the last event.
    pub fn end(&self) -> u64 {
        self.last
    }

    /// Returns what did not fit together so far.
    pub fn mismatches(&self) -> CallMismatches {
        self.mismatches
    }

    /// Returns the numbers of open calls of a thread.
    pub fn depth(&self, thread: ThreadNumber) -> usize {
        self.threads[thread.0].open.len()
    }

    /// Returns the function that the thread is in and the depth that the trace states for it.
    pub fn top(&self, thread: ThreadNumber) -> Option<(u32, CallKind, Option<u32>)> {
        self.threads[thread.0].open.last().map(|call| (call.function, call.how, call.depth))
    }

    /// Finds the innermost open call that fits, and returns how many calls are open inside of it.
    pub fn find_open(
        &self,
        thread: ThreadNumber,
        fits: impl Fn(u32, CallKind, Option<u32>) -> bool,
    ) -> Option<usize> {
        let open = self.threads[thread.0].open.iter().rev();
        open.enumerate().find(|(_, call)| fits(call.function, call.how, call.depth)).map(|(inside, _)| inside)
    }

    /// Returns the innermost open function for which `fits` is true.
    pub fn open_function(&self, thread: ThreadNumber, fits: impl Fn(u32) -> bool) -> Option<u32> {
        self.threads[thread.0].open.iter().rev().map(|call| call.function).find(|function| fits(*function))
    }

    /// Counts a call without a time.
    #[inline]
    pub fn count(&mut self, caller: Option<u32>, callee: u32) {
        self.functions[callee as usize].calls += 1;
        let arc = self.arc((caller.unwrap_or(NO_FUNCTION), callee, CallKind::Call));
        self.arcs[arc as usize].calls += 1;
    }

    /// Returns the number of an arc. One without room counts as a call without a caller.
    fn arc(&mut self, key: ArcKey) -> u32 {
        if let Some(arc) = self.arc_numbers.get(&key) {
            return *arc;
        }
        let (caller, callee, _) = key;
        if self.arcs.len() >= MAX_ROWS && caller != NO_FUNCTION {
            self.mismatches.crowded += 1;
            return self.arc((NO_FUNCTION, callee, CallKind::Call));
        }
        let arc = self.arcs.len() as u32;
        self.arcs.push(ArcFigures { key, calls: 0, ended: 0, total: 0 });
        self.arc_numbers.insert(key, arc);
        arc
    }

    /// Returns the number of a path; the parent's own if there is no room.
    #[inline]
    fn path(&mut self, parent: u32, kind: PathKind, number: u32, how: CallKind) -> u32 {
        let key = (parent, kind, number, how);
        if let Some(path) = self.path_numbers.get(&key) {
            return *path;
        }
        if self.paths.len() >= MAX_PATHS && parent != NO_PATH {
            self.mismatches.crowded += 1;
            return parent;
        }
        let (comm, function) = match kind {
            PathKind::Thread => (number, NO_FUNCTION),
            PathKind::Function => (0, number),
            _ => (0, NO_FUNCTION),
        };
        let path = self.paths.len() as u32;
        self.paths.push(Path { parent, kind, comm, function, how, arc: NO_ARC, calls: 0, own: 0 });
        self.path_numbers.insert(key, path);
        path
    }

    /// Returns the root path of a thread.
    fn root(&mut self, thread: usize) -> u32 {
        match self.threads[thread].kind {
            ThreadKind::Thread => {
                let comm = self.threads[thread].comm_number;
                self.path(NO_PATH, PathKind::Thread, comm, CallKind::Call)
            }
            ThreadKind::Interrupt => self.path(NO_PATH, PathKind::Interrupt, 0, CallKind::Call),
            ThreadKind::Idle => self.path(NO_PATH, PathKind::Idle, 0, CallKind::Call),
        }
    }

    /// Begins a call.
    pub fn enter(
        &mut self,
        thread: ThreadNumber,
        time: u64,
        function: u32,
        how: CallKind,
        depth: Option<u32>,
    ) {
        self.at(time);
        let caller = self.threads[thread.0].open.last().copied();
        if self.threads[thread.0].open.len() >= MAX_DEPTH {
            self.functions[function as usize].calls += 1;
            self.mismatches.crowded += 1;
            return;
        }
        if how == CallKind::Syscall {
            self.threads[thread.0].has_system_calls = true;
        }
        let above = match (&caller, how) {
            (Some(caller), _) => caller.path,
            (None, CallKind::Interrupt) => self.path(NO_PATH, PathKind::Interrupt, 0, CallKind::Call),
            (None, _) => self.root(thread.0),
        };
        let path = self.path(above, PathKind::Function, function, how);
        let mut arc = self.paths[path as usize].arc;
        // A path without room is its caller's, which has another arc.
        if arc == NO_ARC || path == above {
            arc = self.arc((caller_of(caller, how), function, how));
            if path != above {
                self.paths[path as usize].arc = arc;
            }
        }
        self.paths[path as usize].calls += 1;
        self.functions[function as usize].calls += 1;
        self.arcs[arc as usize].calls += 1;
        self.threads[thread.0].open.push(OpenCall {
            function,
            how,
            depth,
            path,
            arc,
            entered: time,
            callees: 0,
            away: 0,
        });
    }

    /// Ends the innermost call. `duration` is the one that the trace states, if any, otherwise it
    /// is computed from the times of both events.
    pub fn exit(&mut self, thread: ThreadNumber, time: u64, duration: Option<u64>) {
        self.at(time);
        let Some(call) = self.threads[thread.0].open.pop() else { return };
        let elapsed = duration.unwrap_or_else(|| time.saturating_sub(call.entered));
        let total = elapsed.saturating_sub(call.away);
        let own = total.saturating_sub(call.callees);
        self.charge(thread.0, &call, own, total);
        let begin = call.entered.saturating_sub(self.start());
        self.end_of(call.arc, call.function, total, Some(own), begin);
    }

    /// Adds the times of a call that ended to function, arc and histogram. `own` is its self time, if
    /// known.
    fn end_of(&mut self, arc: u32, function: u32, total: u64, own: Option<u64>, begin: u64) {
        let row = &mut self.functions[function as usize];
        if row.ended == 0 || Ticks(total) > row.slowest_ticks {
            (row.slowest_ticks, row.slowest_at_ticks) = (Ticks(total), Ticks(begin));
        }
        row.ended += 1;
        row.total_ticks += Ticks(total);
        if let Some(own) = own.map(Ticks) {
            row.ended_self_ticks += own;
            row.max_ticks = row.max_ticks.max(own);
            row.min_ticks = row.min_ticks.min(own);
        }
        let figures = &mut self.arcs[arc as usize];
        figures.ended += 1;
        figures.total = figures.total.saturating_add(total);
        let key = u64::from(arc) << 8 | u64::from(bucket_of(Ticks(total)));
        if self.buckets.len() >= MAX_ROWS && !self.buckets.contains_key(&key) {
            self.mismatches.crowded += 1;
            return;
        }
        let bucket = self.buckets.entry(key).or_insert((0, begin));
        bucket.0 += 1;
        bucket.1 = bucket.1.min(begin);
    }

    /// Charges self time to a call's path and function, and the whole to its caller.
    fn charge(&mut self, thread: usize, call: &OpenCall, own: u64, total: u64) {
        let thread = &mut self.threads[thread];
        if self.halts[call.function as usize] {
            thread.halted = thread.halted.saturating_add(own);
        } else {
            self.functions[call.function as usize].self_ticks += Ticks(own);
            let path = &mut self.paths[call.path as usize];
            path.own = path.own.saturating_add(own);
        }
        match thread.open.last_mut() {
            Some(caller) => {
                caller.callees = caller.callees.saturating_add(total);
                caller.away = caller.away.saturating_add(call.away);
            }
            None => {
                thread.in_calls = thread.in_calls.saturating_add(total);
                if call.how == CallKind::Interrupt && thread.kind != ThreadKind::Interrupt {
                    thread.in_interrupts = thread.in_interrupts.saturating_add(total);
                }
            }
        }
    }

    /// Drops the innermost `calls` calls, whose ends the trace does not have. They keep the times
    /// of their callees, and self time up to `time` if it is given and context switches are known.
    pub fn cut(&mut self, thread: ThreadNumber, calls: usize, time: Option<u64>) {
        for _ in 0..calls {
            let Some(call) = self.threads[thread.0].open.pop() else { return };
            self.mismatches.unended += 1;
            let total = match time.filter(|_| self.has_switches) {
                Some(time) => time.saturating_sub(call.entered).saturating_sub(call.away).max(call.callees),
                None => call.callees,
            };
            self.charge(thread.0, &call, total - call.callees, total);
        }
    }

    /// Counts the end of a call whose entry the trace does not have, if it states its duration.
    pub fn headless(&mut self, time: u64, function: u32, how: CallKind, duration: u64) {
        self.at(time);
        self.mismatches.headless += 1;
        let begin = time.saturating_sub(duration).saturating_sub(self.start());
        let arc = self.arc((NO_FUNCTION, function, how));
        self.end_of(arc, function, duration, None, begin);
    }

    /// Notes that the thread runs on a CPU from this time on.
    pub fn runs(&mut self, thread: ThreadNumber, time: u64) {
        self.at(time);
        let thread = &mut self.threads[thread.0];
        if thread.on_since.is_some() {
            return;
        }
        thread.on_since = Some(time);
        if let (Some(since), Some(call)) = (thread.off_since.take(), thread.open.last_mut()) {
            call.away = call.away.saturating_add(time.saturating_sub(since));
        }
    }

    /// Notes that the thread leaves its CPU.
    pub fn leaves(&mut self, thread: ThreadNumber, time: u64) {
        self.at(time);
        self.has_switches = true;
        let thread = &mut self.threads[thread.0];
        if let Some(since) = thread.on_since.take() {
            thread.ran = thread.ran.saturating_add(time.saturating_sub(since));
        }
        thread.off_since.get_or_insert(time);
    }

    /// Counts a context switch.
    pub fn switch(&mut self, to: ThreadNumber, names: [&str; 2], reason: Option<u32>, kind: SwitchKind) {
        self.threads[to.0].switches_in += 1;
        let [from, to] = names.map(|name| self.comm(name));
        *self.switches.entry((from, to, reason.unwrap_or(NO_FUNCTION), kind)).or_default() += 1;
    }

    /// Replaces the name of a thread in the table of threads. Call paths keep the first name.
    pub fn rename(&mut self, thread: ThreadNumber, comm: &str) {
        let row = &mut self.threads[thread.0];
        if row.comm != comm {
            comm.clone_into(&mut row.comm);
        }
    }
}

/// Returns the caller of an arc: interrupts have none.
fn caller_of(caller: Option<OpenCall>, how: CallKind) -> u32 {
    match how {
        CallKind::Interrupt => NO_FUNCTION,
        _ => caller.map_or(NO_FUNCTION, |call| call.function),
    }
}
