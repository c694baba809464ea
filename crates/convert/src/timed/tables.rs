//! Tables and totals of the calls of a trace.

use super::{ArcFigures, CallMismatches, Path, ThreadNumber, TimedCalls, NO_FUNCTION, NO_MINIMUM, NO_PATH};
use kerntune_profile::{
    CallArc, CallKind, FunctionIndex, FunctionStats, HistogramBucket, PathKind, PathNode, RegionStats,
    SwitchStats, Tables, ThreadKind, ThreadStats, Ticks,
};

/// Name of the pseudo-thread that has the time of a trace without times of functions.
const NOT_TIMED: &str = "[not timed]";

/// Tables and totals of a trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TimedTables {
    /// The tables, with one region.
    pub tables: Tables,
    /// Totals.
    pub totals: TimedTotals,
    /// Calls that do not fit together.
    pub mismatches: CallMismatches,
}

/// Totals of a trace in ns, of all CPUs together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TimedTotals {
    /// Busy and idle time.
    pub elapsed: u64,
    /// Time of threads and interrupts.
    pub busy: u64,
    /// Time in which CPUs were halted, as far as known.
    pub idle: u64,
    /// Time from the first event to the last.
    pub wall: u64,
    /// The trace has context switches: times are without time off the CPU.
    pub has_switches: bool,
}

impl TimedCalls {
    /// Returns the time in which the CPU of this idle thread was halted: all of its time on the CPU
    /// that is in no function, and its halting functions.
    pub fn halted(&self, idle: ThreadNumber) -> u64 {
        let thread = &self.threads[idle.0];
        thread.ran.saturating_sub(thread.in_calls).saturating_add(thread.halted)
    }

    /// Ends everything that is open, at the time of the last event. Afterwards only
    /// [`Self::halted`] and [`Self::finish`] make sense.
    pub fn close(&mut self) {
        let end = self.last;
        for number in 0..self.threads.len() {
            let thread = &mut self.threads[number];
            if let Some(since) = thread.on_since.take() {
                thread.ran = thread.ran.saturating_add(end.saturating_sub(since));
            } else if let (Some(since), Some(call)) = (thread.off_since.take(), thread.open.last_mut()) {
                call.away = call.away.saturating_add(end.saturating_sub(since));
            }
            let open = self.threads[number].open.len();
            self.cut(ThreadNumber(number), open, Some(end));
        }
    }

    /// Returns the tables, with one region of this name. Ends what is open.
    pub fn finish(mut self, region: &str) -> TimedTables {
        self.close();
        let mut totals = TimedTotals {
            wall: self.last - self.start(),
            has_switches: self.has_switches,
            ..Default::default()
        };
        let mut threads = self.thread_rows(&mut totals);
        totals.busy = self.paths.iter().fold(0, |sum, path| sum.saturating_add(path.own));
        if totals.busy == 0 && totals.idle == 0 && totals.wall > 0 {
            // A trace without times: all of it is time of which nothing is known.
            let comm = self.comm(NOT_TIMED);
            let root = self.path(NO_PATH, PathKind::Thread, comm, CallKind::Call);
            let rest = self.path(root, PathKind::Unattributed, 0, CallKind::Call);
            self.paths[rest as usize].own = totals.wall;
            totals.busy = totals.wall;
            threads.push(ThreadStats {
                thread: threads.len() as u32,
                comm: NOT_TIMED.into(),
                self_ticks: Ticks(totals.wall),
                ..ThreadStats::default()
            });
        }
        totals.elapsed = totals.busy.saturating_add(totals.idle);
        let of_kind = |kind| {
            let paths = self.paths.iter().filter(|path: &&Path| path.kind == kind);
            Ticks(paths.fold(0, |sum: u64, path| sum.saturating_add(path.own)))
        };
        let region = RegionStats {
            name: region.into(),
            elapsed_ticks: Ticks(totals.elapsed),
            busy_ticks: Ticks(totals.busy),
            idle_ticks: Ticks(totals.idle),
            user_ticks: of_kind(PathKind::User),
            unattributed_ticks: of_kind(PathKind::Unattributed),
            ..RegionStats::default()
        };
        let mismatches = self.mismatches;
        let tables = Tables {
            regions: vec![region],
            threads,
            paths: self.path_rows(),
            arcs: self.arc_rows(),
            histograms: self.histogram_rows(),
            switches: self.switch_rows(),
            functions: self
                .functions
                .into_iter()
                .filter(|row| row.calls > 0 || row.ended > 0 || row.self_ticks > Ticks::ZERO)
                .map(|row| match row.min_ticks {
                    NO_MINIMUM => FunctionStats { min_ticks: Ticks::ZERO, ..row },
                    _ => row,
                })
                .collect(),
            symbols: self.symbols,
            ..Tables::default()
        };
        TimedTables { tables, totals, mismatches }
    }

    /// Returns the rows of threads, and adds their time outside of calls to the paths.
    fn thread_rows(&mut self, totals: &mut TimedTotals) -> Vec<ThreadStats> {
        let mut rows = Vec::new();
        let mut interrupts = 0_u64;
        let mut idle_row =
            ThreadStats { kind: ThreadKind::Idle, comm: "[idle task]".into(), ..ThreadStats::default() };
        let mut has_idle = false;
        for number in 0..self.threads.len() {
            let thread = &self.threads[number];
            let rest = if self.has_switches { thread.ran.saturating_sub(thread.in_calls) } else { 0 };
            interrupts = interrupts.saturating_add(thread.in_interrupts);
            let in_calls = thread.in_calls.saturating_sub(thread.in_interrupts).saturating_sub(thread.halted);
            totals.idle = totals.idle.saturating_add(thread.halted);
            if thread.kind == ThreadKind::Idle {
                totals.idle = totals.idle.saturating_add(rest);
                has_idle = true;
                idle_row.self_ticks += Ticks(in_calls);
                idle_row.switches_in += thread.switches_in;
                continue;
            }
            let is_user = thread.has_system_calls;
            let row = ThreadStats {
                kind: thread.kind,
                pid: thread.pid,
                tgid: thread.tgid,
                comm: thread.comm.clone(),
                self_ticks: Ticks(in_calls.saturating_add(rest)),
                user_ticks: Ticks(if is_user { rest } else { 0 }),
                switches_in: thread.switches_in,
                ..ThreadStats::default()
            };
            if rest > 0 {
                let root = self.root(number);
                let kind = if is_user { PathKind::User } else { PathKind::Unattributed };
                let path = self.path(root, kind, 0, CallKind::Call);
                let own = &mut self.paths[path as usize].own;
                *own = own.saturating_add(rest);
            }
            if row.self_ticks > Ticks::ZERO || row.switches_in > 0 {
                rows.push(row);
            }
        }
        if has_idle {
            rows.push(idle_row);
        }
        if interrupts > 0 {
            rows.push(ThreadStats {
                kind: ThreadKind::Interrupt,
                comm: "[interrupt]".into(),
                self_ticks: Ticks(interrupts),
                ..ThreadStats::default()
            });
        }
        (0..).zip(&mut rows).for_each(|(number, row)| row.thread = number);
        rows
    }

    fn path_rows(&self) -> Vec<PathNode> {
        let row = |(number, path): (u32, &Path)| PathNode {
            path: number,
            parent: if path.parent == NO_PATH { PathNode::ROOT } else { path.parent },
            kind: path.kind,
            comm: match path.kind {
                PathKind::Thread => self.comms[path.comm as usize].clone(),
                _ => String::new(),
            },
            function: match path.function {
                NO_FUNCTION => FunctionIndex::NONE,
                function => FunctionIndex(function),
            },
            how: path.how,
            calls: path.calls,
            self_ticks: Ticks(path.own),
            ..PathNode::default()
        };
        (0..).zip(&self.paths).map(row).collect()
    }

    fn arc_rows(&self) -> Vec<CallArc> {
        let row = |figures: &ArcFigures| {
            let (caller, callee, how) = figures.key;
            CallArc {
                region: 0,
                caller: known(caller),
                callee: FunctionIndex(callee),
                how,
                calls: figures.calls,
                ended: figures.ended,
                total_ticks: Ticks(figures.total),
            }
        };
        let mut rows: Vec<CallArc> = self.arcs.iter().map(row).collect();
        rows.sort_unstable_by_key(|row| (row.caller, row.callee, row.how));
        rows
    }

    fn histogram_rows(&self) -> Vec<HistogramBucket> {
        let row = |(key, &(count, begin)): (&u64, &(u64, u64))| {
            let (caller, function, _) = self.arcs[(key >> 8) as usize].key;
            HistogramBucket {
                region: 0,
                caller: known(caller),
                function: FunctionIndex(function),
                bucket: (key & 0xff) as u32,
                count,
                example_ticks: Ticks(begin),
            }
        };
        let mut rows: Vec<HistogramBucket> = self.buckets.iter().map(row).collect();
        rows.sort_unstable_by_key(|row| (row.caller, row.function, row.bucket, row.example_ticks));
        // Arcs of several kinds of calls have one histogram.
        rows.dedup_by(|row, first| {
            let is_same =
                (row.caller, row.function, row.bucket) == (first.caller, first.function, first.bucket);
            if is_same {
                first.count += row.count;
            }
            is_same
        });
        rows
    }

    fn switch_rows(&self) -> Vec<SwitchStats> {
        let mut rows: Vec<SwitchStats> = self
            .switches
            .iter()
            .map(|(&(from, to, reason, kind), &count)| SwitchStats {
                region: 0,
                from: self.comms[from as usize].clone(),
                to: self.comms[to as usize].clone(),
                reason: known(reason),
                kind,
                count,
            })
            .collect();
        rows.sort_unstable_by(|a, b| {
            (&a.from, &a.to, a.reason, a.kind).cmp(&(&b.from, &b.to, b.reason, b.kind))
        });
        rows
    }
}

fn known(function: u32) -> FunctionIndex {
    match function {
        NO_FUNCTION => FunctionIndex::NONE,
        function => FunctionIndex(function),
    }
}
