//! Random traces against a second implementation that is as close to the definition as can be:
//! segments with clocks, maps for everything, each interval looked at on its own.

mod support;

use kerntune_analyze::{analyze, Analysis};
use kerntune_profile::bucket_of;
use kerntune_trace::{Event, How};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use support::{symbols, Step, Writer};

const FUNCTIONS: u32 = 6;
const THREADS: usize = 3;
const NONE: u32 = u32::MAX;

struct Frame {
    function: u32,
    how: How,
    seen: bool,
    /// What the segment's clock showed at entry.
    entry: u64,
    callees: u64,
}

/// What the tables have, in maps: all by region first.
#[derive(Debug, Default, PartialEq)]
struct Sums {
    net: BTreeMap<(u32, u32), u64>,
    /// Calls, elapsed, max, min.
    calls: BTreeMap<(u32, u32), (u64, u64, u64, u64)>,
    arcs: BTreeMap<(u32, u32, u32, u8), (u64, u64)>,
    /// By thread; the pseudo-thread of interrupts has the number after the last.
    threads: BTreeMap<(u32, u32), (u64, u64, u64)>,
    unattributed: BTreeMap<u32, u64>,
    histograms: BTreeMap<(u32, u32), u64>,
}

#[derive(Default)]
struct Reference {
    stacks: Vec<Vec<Frame>>,
    /// Clocks of each thread's segments, one more than it has interrupt frames.
    clocks: Vec<Vec<u64>>,
    running: usize,
    user: bool,
    regions: Vec<u32>,
    sums: Sums,
}

impl Reference {
    fn of(steps: &[Step]) -> Sums {
        let mut reference = Self::default();
        for step in steps {
            match step {
                Step::Start { running, stacks } => reference.start(*running, stacks),
                Step::Event(delta, event) => {
                    reference.pass(*delta);
                    reference.happen(*event);
                }
            }
        }
        reference.sums
    }

    fn start(&mut self, running: usize, stacks: &[Vec<(u32, How)>]) {
        let unseen = |&(function, how): &_| Frame { function, how, seen: false, entry: 0, callees: 0 };
        self.stacks = stacks.iter().map(|frames| frames.iter().map(unseen).collect()).collect();
        let segments =
            |frames: &Vec<(u32, How)>| frames.iter().filter(|(_, how)| *how == How::Interrupt).count() + 1;
        self.clocks = stacks.iter().map(|frames| vec![0; segments(frames)]).collect();
        self.running = running;
        self.user = stacks[running].is_empty();
    }

    fn pass(&mut self, ns: u64) {
        *self.clocks[self.running].last_mut().unwrap() += ns;
        let Some(&region) = self.regions.last() else { return };
        let interrupts = self.clocks[self.running].len() - 1;
        let thread = if interrupts > 0 { THREADS } else { self.running } as u32;
        let user = self.stacks[self.running].is_empty() && self.user && self.running != 0;
        if ns > 0 {
            let sums = self.sums.threads.entry((region, thread)).or_default();
            sums.0 += ns;
            sums.1 += if user { ns } else { 0 };
            match self.stacks[self.running].last() {
                Some(top) => *self.sums.net.entry((region, top.function)).or_default() += ns,
                None if user => {}
                None => *self.sums.unattributed.entry(region).or_default() += ns,
            }
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Enter { function, how } => {
                self.user = false;
                let clocks = &mut self.clocks[self.running];
                if how == How::Interrupt {
                    clocks.push(0);
                }
                let entry = *clocks.last().unwrap();
                self.stacks[self.running].push(Frame { function, how, seen: true, entry, callees: 0 });
            }
            Event::Exit => while self.end() == How::Jump && !self.stacks[self.running].is_empty() {},
            Event::Resume => while !matches!(self.end(), How::Interrupt | How::Exception) {},
            Event::Leave => {
                while !self.stacks[self.running].is_empty() {
                    self.end();
                }
                self.user = true;
            }
            Event::Unwind { frames } => (0..frames).for_each(|_| {
                self.end();
            }),
            Event::Switch { thread } => {
                self.running = thread as usize;
                self.user = false;
                if let Some(&region) = self.regions.last() {
                    self.sums.threads.entry((region, thread)).or_default().2 += 1;
                }
            }
            Event::RegionBegin { region } => self.regions.push(region),
            Event::RegionEnd { region } => self.regions.retain(|r| *r != region),
            Event::Idle { .. } | Event::Operation => {}
        }
    }

    fn end(&mut self) -> How {
        let clocks = &mut self.clocks[self.running];
        let frame = self.stacks[self.running].pop().unwrap();
        let elapsed = clocks.last().unwrap() - frame.entry;
        let mut caller = NONE;
        if frame.how == How::Interrupt {
            clocks.pop();
        } else if let Some(below) = self.stacks[self.running].last_mut() {
            below.callees += elapsed;
            caller = below.function;
        }
        if frame.seen {
            let net = elapsed - frame.callees;
            let region = *self.regions.last().unwrap();
            let sum = self.sums.calls.entry((region, frame.function)).or_insert((0, 0, 0, u64::MAX));
            *sum = (sum.0 + 1, sum.1 + elapsed, sum.2.max(net), sum.3.min(net));
            let arc = (region, caller, frame.function, frame.how as u8);
            let sum = self.sums.arcs.entry(arc).or_default();
            *sum = (sum.0 + 1, sum.1 + elapsed);
            let bucket = bucket_of(kerntune_profile::Nanoseconds(net));
            *self.sums.histograms.entry((frame.function, bucket)).or_default() += 1;
        }
        frame.how
    }
}

fn sums_of(analysis: &Analysis) -> Sums {
    let t = &analysis.tables;
    let how = |how: kerntune_profile::How| kerntune_profile::How::ALL.iter().position(|h| *h == how).unwrap();
    let functions = || t.functions.iter().map(|r| ((r.region, r.function.0), r));
    Sums {
        net: functions().filter(|(_, r)| r.net_ns.0 > 0).map(|(key, r)| (key, r.net_ns.0)).collect(),
        calls: functions()
            .filter(|(_, r)| r.calls > 0)
            .map(|(key, r)| (key, (r.calls, r.elapsed_ns.0, r.max_ns.0, r.min_ns.0)))
            .collect(),
        arcs: (t.arcs.iter())
            .map(|r| ((r.region, r.caller.0, r.callee.0, how(r.how) as u8), (r.calls, r.elapsed_ns.0)))
            .collect(),
        threads: (t.threads.iter())
            .map(|r| ((r.region, r.thread), (r.net_ns.0, r.user_ns.0, r.switches_in)))
            .collect(),
        unattributed: (t.regions.iter().filter(|r| r.unattributed_ns.0 > 0))
            .map(|r| (r.region, r.unattributed_ns.0))
            .collect(),
        histograms: t.histograms.iter().map(|r| ((r.function.0, r.bucket), r.count)).collect(),
    }
}

/// Makes something well-formed of three random numbers.
fn step(w: &mut Writer, delta: u64, choice: u8, argument: u32) {
    let depth = w.stacks[w.running].len() as u32;
    let function = argument % FUNCTIONS;
    let entered = w.stacks[w.running].iter().any(|(_, h)| matches!(h, How::Interrupt | How::Exception));
    let enter = |how| Event::Enter { function, how };
    let event = match choice {
        0..=29 => enter(How::Call),
        30..=35 if depth > 0 => enter(How::Jump),
        36..=43 => enter(How::Interrupt),
        44..=47 => enter(How::Exception),
        48..=51 if depth == 0 => enter(How::Syscall),
        52..=79 if depth > 0 => Event::Exit,
        80..=85 if entered => Event::Resume,
        86..=88 => Event::Leave,
        89..=90 => Event::Unwind { frames: argument % (depth + 1) },
        91..=97 => Event::Switch { thread: argument % THREADS as u32 },
        98..=99 => Event::Idle { ns: argument.into() },
        100..=104 if w.open_regions() < 3 => {
            w.begin(delta, ["a", "b"][argument as usize % 2]);
            return;
        }
        105..=108 if w.open_regions() > 0 => {
            w.end(delta);
            return;
        }
        109..=115 => {
            w.cut();
            return;
        }
        _ => Event::Operation,
    };
    w.at(delta, event);
}

fn any_trace() -> impl Strategy<Value = Writer2> {
    let steps = prop::collection::vec((0u64..40, 0u8..120, any::<u32>()), 0..400);
    (steps, any::<bool>()).prop_map(|(steps, in_region)| {
        let mut w = Writer::new(THREADS);
        if in_region {
            w.begin(3, "first");
        }
        for (delta, choice, argument) in steps {
            step(&mut w, delta, choice, argument);
        }
        while w.open_regions() > 0 {
            w.end(1);
        }
        Writer2(w)
    })
}

/// A writer that can be shown.
struct Writer2(Writer);

impl std::fmt::Debug for Writer2 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(&self.0.steps).finish()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn the_analysis_is_the_reference(mut trace in any_trace()) {
        let (bytes, recording) = trace.0.finish();
        let symbols = symbols(FUNCTIONS);
        let analysis =
            analyze(&bytes[..], &recording, None, &symbols, &mut |_| ControlFlow::Continue(())).unwrap();
        prop_assert_eq!(sums_of(&analysis), Reference::of(&trace.0.steps));

        let t = &analysis.tables;
        for region in &t.regions {
            let within = t.within(region.region);
            let inside = |r: u32| within.contains(&r);
            let net: u64 = t.functions.iter().filter(|r| inside(r.region)).map(|r| r.net_ns.0).sum();
            let rest: u64 = t.regions.iter().filter(|r| inside(r.region))
                .map(|r| r.user_ns.0 + r.unattributed_ns.0).sum();
            let threads: u64 = t.threads.iter().filter(|r| inside(r.region)).map(|r| r.net_ns.0).sum();
            prop_assert_eq!(net + rest, region.busy_ns.0);
            prop_assert_eq!(threads, region.busy_ns.0);
        }
        for name in ["stack_mismatches", "running_mismatches", "clock_mismatches", "unmatched_exits",
            "outside_ns", "region_mismatches", "region_mismatch_ns"] {
            prop_assert_eq!(analysis.health[name], 0, "{}", name);
        }
        let counted: u64 = t.histograms.iter().map(|r| r.count).sum();
        prop_assert_eq!(counted, t.functions.iter().map(|r| r.calls).sum::<u64>());
        prop_assert_eq!(counted, t.arcs.iter().map(|r| r.calls).sum::<u64>());
    }
}
