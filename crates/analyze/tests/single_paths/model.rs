//! Random traces: every figure again, from the definition instead of by passing times on.

use super::sim::{FrameLife, TraceSim, FUNCTIONS, KERNEL};
use kerntune_analyze::path::{
    fold, unfolded, CallStart, PathEntry, PathEntryKind, PathLineKind, PathSelection, PathSpan,
};
use kerntune_analyze::{Analysis, AnalysisInput};
use kerntune_profile::{bounds, Address, FunctionIndex, Symbol};
use kerntune_trace::{EnterKind, Event};
use proptest::prelude::*;
use std::ops::ControlFlow;

/// Builds a well-formed trace of random steps.
fn random(steps: &[(u8, u32, u64)]) -> TraceSim {
    let mut sim = TraceSim::new(4);
    for &(what, argument, delta) in steps {
        let depth = sim.stacks[sim.running].len();
        let entered =
            (0..depth).rev().find(|&at| matches!(sim.how(at), EnterKind::Interrupt | EnterKind::Exception));
        match what % 16 {
            0..=3 => sim.call(delta, argument % 4),
            4 => sim.enter(delta, 4 + argument % 2, EnterKind::Jump),
            5 => sim.enter(delta, 6, EnterKind::Interrupt),
            6 => sim.enter(delta, 7, EnterKind::Exception),
            7 if depth == 0 => sim.call(delta, KERNEL + 1 + argument % 2),
            7..=9 if depth > 0 => sim.exit(delta),
            10 if entered.is_some() => sim.at(delta, Event::Resume),
            11 => sim.switch(delta, argument % 4),
            12 if depth > 0 => sim.at(delta, Event::Unwind { frames: 1 + argument % depth as u32 }),
            13 => sim.at(delta, Event::Idle { ns: delta * 7 }),
            14 if argument % 3 == 0 => sim.at(delta, Event::Leave),
            14 => sim.at(delta, Event::Point { point: argument }),
            15 => sim.cut(),
            _ => sim.enter(delta, 8, EnterKind::Syscall),
        };
    }
    sim.end(3);
    sim
}

fn steps() -> impl Strategy<Value = Vec<(u8, u32, u64)>> {
    prop::collection::vec((any::<u8>(), 0u32..12, 0u64..20), 0..200)
}

/// Self and total time of a frame between two times, by the definition: it has the CPU if it is on
/// top; it ages if no interrupt is above it.
fn times(sim: &TraceSim, life: usize, (begin, end): (u64, u64)) -> (u64, u64) {
    let (mut net, mut total) = (0, 0);
    for interval in sim.intervals.iter().filter(|interval| !interval.idle) {
        let ns = interval.to.min(end).saturating_sub(interval.from.max(begin));
        let Some(at) = interval.stack.iter().position(|&l| l == life) else { continue };
        let above = &interval.stack[at + 1..];
        if above.iter().all(|&l| sim.lives[l].how != EnterKind::Interrupt) {
            total += ns;
        }
        if above.is_empty() {
            net += ns;
        }
    }
    (net, total)
}

fn calls(entries: &[PathEntry]) -> impl Iterator<Item = &PathEntry> {
    entries.iter().filter(|entry| matches!(entry.kind, PathEntryKind::Call { .. }))
}

fn check_tree(entries: &[PathEntry]) {
    let mut open: Vec<(u32, usize)> = Vec::new();
    for (at, entry) in entries.iter().enumerate() {
        while open.last().is_some_and(|&(_, end)| at >= end) {
            open.pop();
        }
        assert_eq!(entry.level as usize, open.len(), "entry {at}");
        let end = at + entry.len as usize;
        assert!(entry.len > 0 && open.last().is_none_or(|&(_, outer)| end <= outer));
        open.push((entry.level, end));
    }
}

fn check_window(sim: &TraceSim, begin: u64, end: u64) {
    let span = PathSpan::Window { begin_ns: begin, end_ns: end };
    let path = sim.path(&PathSelection { span, ..PathSelection::default() }).unwrap();
    let (begin, end) = (begin.max(1_000), end.min(sim.now));
    assert_eq!((path.begin_ns, path.end_ns), (begin, end));
    for thread in 0..4 {
        let at_begin = sim.runs.iter().rev().find(|run| run.0 < begin).map_or(1, |run| run.1);
        let inside = sim.runs.iter().any(|run| run.1 == thread && begin <= run.0 && run.0 <= end);
        let ran = at_begin == thread || inside;
        let shown = path.threads.iter().find(|t| t.thread as usize == thread);
        assert_eq!(shown.is_some(), ran, "thread {thread}");
        let Some(shown) = shown else { continue };
        check_tree(&shown.entries);
        let there = |life: &&(usize, FrameLife)| {
            let (_, life) = life;
            let early = life.begin < begin && life.end.is_none_or(|end| end >= begin);
            life.thread == thread && (early || begin <= life.begin && life.begin <= end)
        };
        let lives: Vec<_> = sim.lives.iter().copied().enumerate().collect();
        let expected: Vec<_> = lives.iter().filter(there).collect();
        let found: Vec<_> = calls(&shown.entries).collect();
        assert_eq!(found.len(), expected.len(), "calls of thread {thread}");
        for (entry, (at, life)) in found.into_iter().zip(expected) {
            let PathEntryKind::Call { function, .. } = entry.kind else { unreachable!() };
            assert_eq!(function.0, life.function);
            assert_eq!(entry.begin_ns, Some(life.begin).filter(|&ns| ns >= begin));
            assert_eq!(entry.end_ns, life.end.filter(|&ns| ns <= end));
            assert_eq!((entry.self_ticks, entry.total_ns), times(sim, *at, (begin, end)), "{entry:?}");
        }
    }
    let all = || path.threads.iter().flat_map(|thread| &thread.entries);
    let sum =
        |of: fn(&PathEntryKind) -> bool| all().filter(|e| of(&e.kind)).map(|e| e.self_ticks).sum::<u64>();
    let totals = path.totals;
    assert_eq!(sum(|kind| matches!(kind, PathEntryKind::User)), totals.user_ticks);
    assert_eq!(sum(|kind| matches!(kind, PathEntryKind::Unattributed)), totals.unattributed_ticks);
    assert_eq!(sum(|kind| matches!(kind, PathEntryKind::Idle)), totals.idle_ns);
    let calls = sum(|kind| matches!(kind, PathEntryKind::Call { .. }));
    assert_eq!(calls + totals.user_ticks + totals.unattributed_ticks, totals.busy_ticks);
    assert_eq!(totals.busy_ticks + totals.idle_ns, end - begin, "nothing is left over");
    let ran: u64 = path.stretches.iter().map(|stretch| stretch.end_ns - stretch.begin_ns).sum();
    assert_eq!(ran, end - begin);
    for thread in &path.threads {
        assert_eq!(unfolded(&thread.entries).len(), thread.entries.len());
        for stretches in [false, true] {
            // Folding loses nothing.
            let lines = fold(&thread.entries, stretches);
            let lines: Vec<_> = lines.iter().filter(|line| line.kind == PathLineKind::Entry).collect();
            assert_eq!(lines.iter().map(|line| line.count).sum::<u64>(), thread.entries.len() as u64);
            let net: u64 = lines.iter().map(|line| line.self_time.sum).sum();
            assert_eq!(net, thread.entries.iter().map(|entry| entry.self_ticks).sum::<u64>());
        }
    }
}

fn analyze(sim: &TraceSim) -> Analysis {
    let symbol = |at: u32| Symbol {
        function: FunctionIndex(at),
        name: format!("f{at}"),
        address: Address(16 * u64::from(at)),
        size: 16,
        file: None,
        module: None,
    };
    let symbols: Vec<Symbol> = (0..FUNCTIONS as u32).map(symbol).collect();
    let (bytes, recording) = sim.trace();
    let source = bytes.as_slice();
    let points = vec![("point".to_string(), FunctionIndex(0)); 12];
    let input =
        AnalysisInput { threads: 1, points: &points, ..AnalysisInput::new(&source, &recording, &symbols) };
    kerntune_analyze::analyze(&input, &mut |_| ControlFlow::Continue(())).unwrap()
}

proptest! {
    /// The slowest calls and the examples that a profile names are found in its trace.
    #[test]
    fn what_the_profile_names_is_there(steps in steps()) {
        let sim = random(&steps);
        let tables = analyze(&sim).tables;
        let find = |function, begin_ns, elapsed| {
            let call = CallStart::At { function, begin_ns, elapsed_ns: Some(elapsed) };
            sim.path(&PathSelection { span: PathSpan::Call(call), ..PathSelection::default() }).map(|path| path.call_ns())
        };
        for row in tables.functions.iter().filter(|row| row.ended > 0) {
            let took = row.slowest_ticks.get();
            prop_assert_eq!(find(row.function, row.slowest_at_ticks.get(), took..=took).ok(), Some(took));
        }
        for row in &tables.histograms {
            let (low, high) = bounds(row.bucket);
            let found = find(row.function, row.example_ticks.get(), low.get()..=high.get());
            prop_assert!(found.is_ok(), "{row:?}: {found:?}");
        }
    }

    #[test]
    fn whole_traces(steps in steps()) {
        check_window(&random(&steps), 0, u64::MAX);
    }

    #[test]
    fn windows(steps in steps(), from in 0.0f64..1.0, length in 0.0f64..1.0) {
        let sim = random(&steps);
        let span = (sim.now - 1_000) as f64;
        let begin = 1_000 + (span * from) as u64;
        let end = begin + ((sim.now - begin) as f64 * length) as u64;
        check_window(&sim, begin, end);
    }

    /// A call that is looked up by its beginning and its time is the right one, and its wall time
    /// has no gap.
    #[test]
    fn single_calls(steps in steps(), which in any::<prop::sample::Index>()) {
        let sim = random(&steps);
        let whole: Vec<_> = sim.lives.iter().enumerate().filter(|(_, life)| life.end.is_some()).collect();
        prop_assume!(!whole.is_empty());
        let (at, life) = *which.get(&whole);
        let (net, total) = times(&sim, at, (0, u64::MAX));
        let call = CallStart::At {
            function: FunctionIndex(life.function),
            begin_ns: life.begin,
            elapsed_ns: Some(total..=total),
        };
        let path = sim.path(&PathSelection { span: PathSpan::Call(call), ..PathSelection::default() }).unwrap();
        let entry = path.call_entry().unwrap();
        prop_assert_eq!(entry.total_ns, total);
        let twins = whole.iter().filter(|(_, l)| l.begin == life.begin && l.function == life.function);
        if twins.count() == 1 {
            prop_assert_eq!(entry.self_ticks, net);
            prop_assert_eq!(entry.end_ns, life.end);
        }
        prop_assert!(entry.complete());
        check_tree(&path.threads[0].entries);
        let away = |e: &&PathEntry| matches!(e.kind, PathEntryKind::Away { .. });
        let away: u64 = path.threads[0].entries.iter().filter(away).map(|entry| entry.total_ns).sum();
        let totals = path.totals;
        prop_assert_eq!(totals.busy_ticks + totals.idle_ns + away, path.end_ns - path.begin_ns);
        // A selected interrupt is in interrupt time itself.
        if life.how != EnterKind::Interrupt {
            prop_assert_eq!(totals.busy_ticks - totals.interrupt_ns, total);
        }
    }
}
