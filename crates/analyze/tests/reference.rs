//! Random traces checked against a second implementation that follows the definition as closely as
//! possible: segments with clocks, maps for everything, each interval on its own. Also, the tables
//! do not depend on the cuts into chunks or on the number of threads.

use crate::support::lanes::assert_lanes;
use crate::support::plans::{any_plan, is_user, write, THREADS, USER_FUNCTIONS};
use crate::support::{symbols, TraceStep, KERNEL_FUNCTIONS};
use kerntune_analyze::graph::{ArcBinding, ArcChanges, AutoCut, CallGraph, Propagation};
use kerntune_analyze::{analyze, Analysis, AnalysisInput};
use kerntune_profile::{bucket_of, FunctionIndex, PathKind, PathNode, SwitchKind, Tables, Ticks};
use kerntune_trace::{EnterKind, Event, EventWeights, Recording};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

const NONE: u32 = u32::MAX;

struct ClockedFrame {
    function: u32,
    how: EnterKind,
    seen: bool,
    begin: u64,
    /// The segment's clock at entry.
    entry: u64,
    callees: u64,
}

/// Region, caller, callee, kind of entry.
type ArcTuple = (u32, u32, u32, u8);

/// A step of a path: kind, name, function, kind of entry.
type PathStep = (PathKind, String, u32, u8);

/// Of calls that ended: number, total, maximum, minimum, self; slowest, and when it began.
type EndedCallSums = ([u64; 5], (u64, u64));

/// Contents of the tables as maps, with the region first in each key.
#[derive(Debug, Default, PartialEq)]
struct ReferenceTables {
    net: BTreeMap<(u32, u32), u64>,
    /// Calls that were made.
    made: BTreeMap<(u32, u32), u64>,
    calls: BTreeMap<(u32, u32), EndedCallSums>,
    /// Calls that were made, that ended, and the total time of these. Also arcs that were only open
    /// while time passed or a call was made above them.
    arcs: BTreeMap<ArcTuple, (u64, u64, u64)>,
    /// By thread; the pseudo-thread of interrupts has the number after the last.
    threads: BTreeMap<(u32, u32), (u64, u64, u64)>,
    user: BTreeMap<u32, u64>,
    unattributed: BTreeMap<u32, u64>,
    /// By caller, function and bucket: number of calls, and when the first one began.
    histograms: BTreeMap<(u32, u32, u32, u32), (u64, u64)>,
    /// Calls, self time, branches and misses.
    paths: BTreeMap<(u32, Vec<PathStep>), [u64; 5]>,
    idles: BTreeMap<(u32, u32, u32), (u64, u64)>,
    switches: BTreeMap<(u32, String, String, u32, SwitchKind), u64>,
    points: BTreeMap<(u32, String), u64>,
    /// By thread: number, sum and maximum.
    delays: BTreeMap<(u32, String), (u64, u64, u64)>,
}

#[derive(Default)]
struct ReferenceReplay {
    stacks: Vec<Vec<ClockedFrame>>,
    /// Clocks of each thread's segments, one more than it has interrupt frames.
    clocks: Vec<Vec<u64>>,
    running: usize,
    user: bool,
    cpu: usize,
    /// Thread and mode of each CPU; stale for the one that executes.
    cpus: Vec<(usize, bool)>,
    now: u64,
    regions: Vec<u32>,
    /// Idle periods without a waker yet: region and length.
    halts: Vec<(u32, u64)>,
    sums: ReferenceTables,
}

impl ReferenceReplay {
    /// A trace that is not wide has no weights, although steps have.
    fn of(steps: &[TraceStep], wide: bool) -> ReferenceTables {
        let mut reference = Self::default();
        for step in steps {
            match step {
                TraceStep::Start { now, cpu, cpus, stacks } => reference.start(*now, *cpu, cpus, stacks),
                TraceStep::Event(delta, weights, event) => {
                    reference.pass(*delta, if wide { *weights } else { EventWeights::NONE });
                    reference.happen(*event);
                }
            }
        }
        reference.wake(NONE);
        reference.sums
    }

    fn start(&mut self, now: u64, cpu: usize, cpus: &[(usize, bool)], stacks: &[Vec<(u32, EnterKind)>]) {
        self.wake(NONE);
        self.now = now;
        let unseen = |&(function, how): &_| ClockedFrame {
            function,
            how,
            seen: false,
            begin: 0,
            entry: 0,
            callees: 0,
        };
        self.stacks = stacks.iter().map(|frames| frames.iter().map(unseen).collect()).collect();
        let segments = |frames: &Vec<(u32, EnterKind)>| {
            frames.iter().filter(|(_, how)| *how == EnterKind::Interrupt).count() + 1
        };
        self.clocks = stacks.iter().map(|frames| vec![0; segments(frames)]).collect();
        (self.cpu, self.cpus) = (cpu, cpus.to_vec());
        self.running = cpus[cpu].0;
        self.user = true;
    }

    /// The path of the running thread's `frames`th frame from the outermost.
    fn path(&self, frames: usize) -> Vec<PathStep> {
        let mut path = vec![match self.running {
            0 => (PathKind::Idle, String::new(), NONE, 0),
            thread => (PathKind::Thread, format!("t{thread}"), NONE, 0),
        }];
        for frame in &self.stacks[self.running][..frames] {
            if frame.how == EnterKind::Interrupt {
                path = vec![(PathKind::Interrupt, String::new(), NONE, 0)];
            }
            path.push((PathKind::Function, String::new(), frame.function, frame.how as u8));
        }
        path
    }

    fn pass(&mut self, ns: u64, weights: EventWeights) {
        self.now += ns;
        *self.clocks[self.running].last_mut().unwrap() += ns;
        let Some(&region) = self.regions.last() else { return };
        let interrupts = self.clocks[self.running].len() - 1;
        let thread = if interrupts > 0 { THREADS } else { self.running } as u32;
        let stack = &self.stacks[self.running];
        let bare_user = stack.is_empty() && self.user && self.running != 0;
        let user = bare_user || stack.last().is_some_and(|top| is_user(top.function));
        let mut path = self.path(stack.len());
        match stack.last() {
            Some(_) => {}
            None if bare_user => path.push((PathKind::User, String::new(), NONE, 0)),
            None => path.push((PathKind::Unattributed, String::new(), NONE, 0)),
        }
        if ns > 0 || weights != EventWeights::NONE {
            self.open_arcs(region);
            let sums = self.sums.paths.entry((region, path)).or_default();
            sums[1] += ns;
            sums[2] += weights.taken_branches;
            sums[3] += weights.l1i_misses;
            sums[4] += weights.itlb_misses;
        }
        if ns > 0 {
            let sums = self.sums.threads.entry((region, thread)).or_default();
            sums.0 += ns;
            sums.1 += if user { ns } else { 0 };
            match self.stacks[self.running].last() {
                Some(top) => *self.sums.net.entry((region, top.function)).or_default() += ns,
                None if user => *self.sums.user.entry(region).or_default() += ns,
                None => *self.sums.unattributed.entry(region).or_default() += ns,
            }
        }
    }

    /// Region and arc of the `frames`th frame from the outermost.
    fn arc(&self, region: u32, frames: usize) -> (u32, u32, u32, u8) {
        let stack = &self.stacks[self.running][..frames];
        let top = &stack[frames - 1];
        let caller = stack[..frames - 1].last().filter(|_| top.how != EnterKind::Interrupt);
        (region, caller.map_or(NONE, |caller| caller.function), top.function, top.how as u8)
    }

    /// Adds arcs for the open frames, from the last interrupt's on.
    fn open_arcs(&mut self, region: u32) {
        for frames in (1..=self.stacks[self.running].len()).rev() {
            let arc = self.arc(region, frames);
            self.sums.arcs.entry(arc).or_default();
            if self.stacks[self.running][frames - 1].how == EnterKind::Interrupt {
                break;
            }
        }
    }

    fn wake(&mut self, waker: u32) {
        for (region, ns) in std::mem::take(&mut self.halts) {
            let sum = self.sums.idles.entry((region, waker, bucket_of(Ticks(ns)))).or_default();
            *sum = (sum.0 + 1, sum.1 + ns);
        }
    }

    fn happen(&mut self, event: Event) {
        let running = self.running;
        match event {
            Event::Enter { function, how } => {
                self.user = is_user(function);
                if how == EnterKind::Interrupt {
                    self.clocks[running].push(0);
                    self.wake(function);
                }
                let (begin, entry) = (self.now, *self.clocks[running].last().unwrap());
                self.stacks[running].push(ClockedFrame {
                    function,
                    how,
                    seen: true,
                    begin,
                    entry,
                    callees: 0,
                });
                let (region, frames) = (*self.regions.last().unwrap(), self.stacks[running].len());
                *self.sums.made.entry((region, function)).or_default() += 1;
                self.open_arcs(region);
                let arc = self.arc(region, frames);
                self.sums.arcs.entry(arc).or_default().0 += 1;
                let path = self.path(frames);
                self.sums.paths.entry((region, path)).or_default()[0] += 1;
            }
            Event::Exit => while self.end() == EnterKind::Jump && !self.stacks[self.running].is_empty() {},
            Event::Resume => while !matches!(self.end(), EnterKind::Interrupt | EnterKind::Exception) {},
            Event::Leave => {
                while self.stacks[running].last().is_some_and(|top| !is_user(top.function)) {
                    self.end();
                }
                self.user = true;
            }
            Event::Unwind { frames } => (0..frames).for_each(|_| {
                self.end();
            }),
            Event::Switch { thread } => {
                if let Some(&region) = self.regions.last() {
                    self.sums.threads.entry((region, thread)).or_default().2 += 1;
                    let comm = |thread: usize| format!("t{thread}");
                    let reason = self.stacks[running].last().map_or(NONE, |top| top.function);
                    let kind = match self.clocks[running].len() {
                        1 => SwitchKind::Voluntary,
                        _ => SwitchKind::Preempted,
                    };
                    let key = (region, comm(running), comm(thread as usize), reason, kind);
                    *self.sums.switches.entry(key).or_default() += 1;
                }
                self.running = thread as usize;
                self.user = false;
            }
            Event::Idle { ns } => {
                self.now += ns;
                let region = *self.regions.last().unwrap();
                let entry = self.stacks[running].iter().rev().find(|frame| frame.how == EnterKind::Interrupt);
                let entry = entry.map(|frame| frame.function);
                if ns > 0 {
                    let others = std::mem::replace(&mut self.halts, vec![(region, ns)]);
                    if let Some(function) = entry {
                        self.wake(function);
                    }
                    self.halts.extend(others);
                }
            }
            Event::RegionBegin { region } => self.regions.push(region),
            Event::RegionEnd { region } => self.regions.retain(|r| *r != region),
            Event::Point { point } => {
                let region = *self.regions.last().unwrap();
                *self.sums.points.entry((region, format!("p{point}"))).or_default() += 1;
            }
            Event::Operation => {}
            Event::Cpu { cpu, .. } => {
                self.cpus[self.cpu] = (self.running, self.user);
                self.cpu = cpu as usize;
                (self.running, self.user) = self.cpus[self.cpu];
            }
            Event::Delay { ns, .. } => {
                let region = *self.regions.last().unwrap();
                let sums = self.sums.delays.entry((region, format!("t{running}"))).or_default();
                *sums = (sums.0 + 1, sums.1 + ns, sums.2.max(ns));
            }
            Event::Wake { .. } | Event::Migrate { .. } | Event::Signal { .. } | Event::Lock { .. } => {}
        }
    }

    fn end(&mut self) -> EnterKind {
        let region = *self.regions.last().unwrap();
        let arc = self.arc(region, self.stacks[self.running].len());
        let clocks = &mut self.clocks[self.running];
        let frame = self.stacks[self.running].pop().unwrap();
        let elapsed = clocks.last().unwrap() - frame.entry;
        if frame.how == EnterKind::Interrupt {
            clocks.pop();
        } else if let Some(below) = self.stacks[self.running].last_mut() {
            below.callees += elapsed;
        }
        if frame.seen {
            let net = elapsed - frame.callees;
            let none = ([0, 0, 0, u64::MAX, 0], (0, u64::MAX));
            let (sum, slowest) = self.sums.calls.entry((region, frame.function)).or_insert(none);
            *sum = [sum[0] + 1, sum[1] + elapsed, sum[2].max(net), sum[3].min(net), sum[4] + net];
            if elapsed > slowest.0 || (elapsed == slowest.0 && frame.begin < slowest.1) {
                *slowest = (elapsed, frame.begin);
            }
            let sum = self.sums.arcs.entry(arc).or_default();
            *sum = (sum.0, sum.1 + 1, sum.2 + elapsed);
            let bucket = (region, arc.1, frame.function, bucket_of(Ticks(elapsed)));
            let sum = self.sums.histograms.entry(bucket).or_insert((0, u64::MAX));
            *sum = (sum.0 + 1, sum.1.min(frame.begin));
        }
        frame.how
    }
}

fn sums_of(t: &Tables) -> ReferenceTables {
    let how = |how: kerntune_profile::CallKind| {
        kerntune_profile::CallKind::ALL.iter().position(|h| *h == how).unwrap()
    };
    let functions = || t.functions.iter().map(|r| ((r.region, r.function.0), r));
    let path = |row: &PathNode| {
        let mut path = Vec::new();
        let mut at = Some(row);
        while let Some(row) = at {
            path.push((row.kind, row.comm.clone(), row.function.0, how(row.how) as u8));
            at = t.paths.get(row.parent as usize);
        }
        path.reverse();
        path
    };
    let numbers = |r: &PathNode| [r.calls, r.self_ticks.0, r.taken_branches, r.l1i_misses, r.itlb_misses];
    let times = |get: fn(&kerntune_profile::RegionStats) -> Ticks| {
        t.regions.iter().map(move |r| (r.region, get(r).0)).filter(|(_, ns)| *ns > 0).collect()
    };
    ReferenceTables {
        net: functions().filter(|(_, r)| r.self_ticks.0 > 0).map(|(key, r)| (key, r.self_ticks.0)).collect(),
        made: functions().filter(|(_, r)| r.calls > 0).map(|(key, r)| (key, r.calls)).collect(),
        calls: functions()
            .filter(|(_, r)| r.ended > 0)
            .map(|(key, r)| {
                let sums = [r.ended, r.total_ticks.0, r.max_ticks.0, r.min_ticks.0, r.ended_self_ticks.0];
                (key, (sums, (r.slowest_ticks.0, r.slowest_at_ticks.0)))
            })
            .collect(),
        arcs: (t.arcs.iter())
            .map(|r| {
                ((r.region, r.caller.0, r.callee.0, how(r.how) as u8), (r.calls, r.ended, r.total_ticks.0))
            })
            .collect(),
        threads: (t.threads.iter())
            .map(|r| ((r.region, r.thread), (r.self_ticks.0, r.user_ticks.0, r.switches_in)))
            .collect(),
        user: times(|r| r.user_ticks),
        unattributed: times(|r| r.unattributed_ticks),
        histograms: (t.histograms.iter())
            .map(|r| ((r.region, r.caller.0, r.function.0, r.bucket), (r.count, r.example_ticks.0)))
            .collect(),
        paths: (t.paths.iter())
            .filter(|r| numbers(r) != [0; 5])
            .map(|r| ((r.region, path(r)), numbers(r)))
            .collect(),
        idles: (t.idles.iter())
            .map(|r| ((r.region, r.waker.0, r.bucket), (r.count, r.idle_ticks.0)))
            .collect(),
        switches: (t.switches.iter())
            .map(|r| ((r.region, r.from.clone(), r.to.clone(), r.reason.0, r.kind), r.count))
            .collect(),
        points: t.points.iter().map(|r| ((r.region, r.point.clone()), r.count)).collect(),
        delays: t.delays.iter().fold(BTreeMap::new(), |mut sums, row| {
            let sum: &mut (u64, u64, u64) = sums.entry((row.region, row.comm.clone())).or_default();
            *sum = (sum.0 + row.count, sum.1 + row.delay_ticks.0, sum.2.max(row.max_ticks.0));
            sums
        }),
    }
}

fn run(bytes: &[u8], recording: &Recording, threads: usize) -> Analysis {
    let symbols = symbols(KERNEL_FUNCTIONS + 1 + USER_FUNCTIONS);
    let points = [("p0".to_owned(), FunctionIndex(0)), ("p1".to_owned(), FunctionIndex(1))];
    let input = AnalysisInput { points: &points, threads, ..AnalysisInput::new(&bytes, recording, &symbols) };
    analyze(&input, &mut |_| ControlFlow::Continue(())).unwrap()
}

/// Checks the sum rule of each region.
fn assert_sums(t: &Tables) {
    for region in &t.regions {
        let here = |r: u32| r == region.region;
        let within = t.within(region.region);
        let inner: u64 = (t.regions.iter())
            .filter(|r| within.contains(&r.region) && r.depth == region.depth + 1)
            .map(|r| r.busy_ticks.0)
            .sum();
        let own = region.busy_ticks.0 - inner;
        let net: u64 = t.functions.iter().filter(|r| here(r.region)).map(|r| r.self_ticks.0).sum();
        let threads: u64 = t.threads.iter().filter(|r| here(r.region)).map(|r| r.self_ticks.0).sum();
        let paths: u64 = t.paths.iter().filter(|r| here(r.region)).map(|r| r.self_ticks.0).sum();
        assert_eq!(net + region.user_ticks.0 + region.unattributed_ticks.0, own);
        assert_eq!((threads, paths), (own, own));
        let idle: u64 = t.idles.iter().filter(|r| within.contains(&r.region)).map(|r| r.idle_ticks.0).sum();
        assert_eq!(idle, region.idle_ticks.0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn the_analysis_is_the_reference(plan in any_plan()) {
        let mut trace = write(&plan, true);
        let (bytes, recording) = trace.finish();
        let analysis = run(&bytes, &recording, 1);
        let t = &analysis.tables;
        prop_assert_eq!(sums_of(t), ReferenceReplay::of(&trace.steps, plan.2));
        assert_sums(t);
        assert_lanes(&bytes, &recording, t);
        for name in ["stack_mismatches", "running_mismatches", "clock_mismatches", "unmatched_exits",
            "outside_ns", "region_mismatches", "region_mismatch_ns", "folded_calls", "missing_ns"] {
            prop_assert_eq!(analysis.health[name], 0, "{}", name);
        }
        prop_assert_eq!(analysis.health.get("cpu_mismatch_ns"), (plan.3 > 1).then_some(&0));
        let ended: u64 = t.histograms.iter().map(|r| r.count).sum();
        prop_assert_eq!(ended, t.functions.iter().map(|r| r.ended).sum::<u64>());
        prop_assert_eq!(ended, t.arcs.iter().map(|r| r.ended).sum::<u64>());
        let made: u64 = t.functions.iter().map(|r| r.calls).sum();
        prop_assert_eq!(made, t.arcs.iter().map(|r| r.calls).sum::<u64>());
        prop_assert_eq!(made, t.paths.iter().map(|r| r.calls).sum::<u64>());
        for row in t.totals(|_| true).iter().filter(|row| row.ended > 0) {
            prop_assert!(row.min_ticks <= row.avg_ticks() && row.avg_ticks() <= row.max_ticks, "{:?}", row);
        }
        // Functions without callers have, together, the time of all functions.
        let graph = CallGraph::of_tables(t, |_| true, Propagation::Exact).unwrap();
        let top: u64 = graph.arcs.iter().filter(|arc| arc.caller.is_none()).map(|arc| arc.total_ns()).sum();
        prop_assert_eq!(top, graph.total_ns);
        for (at, function) in graph.functions.iter().enumerate().filter(|(_, f)| f.cycle.is_none()) {
            let arcs = function.parents.iter().map(|arc| graph.arcs[*arc]);
            let handed: u64 = arcs.map(|arc| arc.total_ns()).sum();
            prop_assert_eq!(handed, function.total_ns(), "function {}", at);
        }
        // Rows are sorted: by region, then depth first.
        prop_assert!(t.paths.iter().zip(0..).all(|(r, at)| r.path == at && (r.parent == NONE || r.parent < at)));
        prop_assert!(t.paths.is_sorted_by_key(|r| r.region));
    }

    /// No time is lost by cutting: functions without callers and cut arcs have, together, all time,
    /// and every function and cycle has the time of the arcs into it.
    #[test]
    fn sums_hold_whatever_is_cut(plan in any_plan(), which in any::<u64>(), max_percent in 0u8..=100) {
        let (bytes, recording) = write(&plan, true).finish();
        let t = &run(&bytes, &recording, 1).tables;
        let arcs: Vec<_> = t.arcs.iter().filter_map(|row| Some((row.caller.known()?, row.callee))).collect();
        let chosen = arcs.iter().enumerate().filter(|(at, _)| which >> (at % 64) & 1 == 1);
        let cut = chosen.map(|(_, (from, to))| (from.get() as usize, to.get() as usize)).collect();
        let all = AutoCut { max_percent: 100 };
        for changes in [
            ArcChanges { cut, ..ArcChanges::default() },
            ArcChanges { auto: Some(AutoCut { max_percent }), ..ArcChanges::default() },
            ArcChanges { auto: Some(all), ..ArcChanges::default() },
        ] {
            let graph = CallGraph::of_tables_with(t, |_| true, Propagation::Exact, &changes).unwrap();
            if changes.auto == Some(all) {
                prop_assert_eq!(graph.cycles.len(), 0);
            }
            let top = graph.arcs.iter().filter(|arc| arc.caller.is_none() || arc.tie.is_cut());
            prop_assert_eq!(top.map(|arc| arc.total_ns()).sum::<u64>(), graph.total_ns);
            let into = |functions: &[usize]| -> u64 {
                let arcs = functions.iter().flat_map(|at| &graph.functions[*at].parents);
                arcs.map(|arc| graph.arcs[*arc].total_ns()).sum()
            };
            for (at, function) in graph.functions.iter().enumerate().filter(|(_, f)| f.cycle.is_none()) {
                prop_assert_eq!(into(&[at]), function.total_ns(), "function {}", at);
                let below = function.children.iter().map(|arc| &graph.arcs[*arc]);
                let below: u64 = below.filter(|arc| arc.tie == ArcBinding::Bound).map(|arc| arc.total_ns()).sum();
                prop_assert_eq!(below, function.descendants_ns, "function {}", at);
            }
            for cycle in &graph.cycles {
                prop_assert_eq!(into(&cycle.members), cycle.total_ns(), "{:?}", cycle.members);
            }
            // Every call is counted in some arc.
            let calls = |arcs: &mut dyn Iterator<Item = u64>| arcs.sum::<u64>();
            prop_assert_eq!(
                calls(&mut graph.arcs.iter().map(|arc| arc.calls)),
                calls(&mut t.arcs.iter().map(|row| row.calls))
            );
            // By counts, the time of functions that only cut arcs call is propagated to no other
            // function.
            let counts = CallGraph::of_tables_with(t, |_| true, Propagation::Counts, &changes).unwrap();
            prop_assert_eq!(counts.total_ns, graph.total_ns);
            prop_assert!(counts.cuts().all(|arc| arc.total_ns() == 0));
        }
    }

    #[test]
    fn cuts_and_threads_change_nothing(plan in any_plan()) {
        let (bytes, recording) = write(&plan, true).finish();
        let one = run(&bytes, &recording, 1);
        for threads in [2, 5] {
            prop_assert_eq!(&run(&bytes, &recording, threads), &one);
        }
        let (bytes, recording) = write(&plan, false).finish();
        prop_assert_eq!(&run(&bytes, &recording, 1), &one);
    }
}
