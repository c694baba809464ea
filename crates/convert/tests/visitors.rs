//! All readers of a trace's events agree: the profile, single paths, the timeline and uftrace's
//! records.

use crate::support::{symbols, TestTraceWriter, KERNEL_FUNCTIONS};
use kerntune_analyze::path::{collect, PathEntryKind, PathSelection, PathSpan};
use kerntune_analyze::timeline::{detail, overview, DetailWindow, TimelineLane, WindowEnd};
use kerntune_analyze::{analyze, AnalysisInput, TraceFile};
use kerntune_convert::uftrace::{records, BASE};
use kerntune_trace::{EnterKind, Event};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

const FUNCTIONS: u32 = KERNEL_FUNCTIONS + 4;

/// Calls and self time by function.
type Sums = BTreeMap<u32, (u64, u64)>;

/// One thread in one region, with interrupts and exceptions, in several chunks.
fn trace(steps: &[(u64, u8, u32)]) -> TestTraceWriter {
    let mut w = TestTraceWriter::new(2);
    w.begin(0, "all");
    for &(delta, choice, argument) in steps {
        let stack = &w.stacks[1];
        let entry = |(_, how): &(u32, EnterKind)| matches!(how, EnterKind::Interrupt | EnterKind::Exception);
        let (depth, entered) = (stack.len() as u32, stack.iter().any(entry));
        let enter = |how| Event::Enter { function: argument % FUNCTIONS, how };
        w.at(
            delta,
            match choice {
                0..=9 => enter(EnterKind::Call),
                10..=12 if depth > 0 => enter(EnterKind::Jump),
                13..=14 => enter(EnterKind::Interrupt),
                15 => enter(EnterKind::Exception),
                16 => enter(EnterKind::Syscall),
                17..=26 if depth > 0 => Event::Exit,
                27..=28 if entered => Event::Resume,
                29 => Event::Leave,
                30 => Event::Unwind { frames: argument % (depth + 1) },
                31 => {
                    w.cut();
                    continue;
                }
                _ => Event::Operation,
            },
        );
    }
    let depth = w.stacks[1].len() as u32;
    w.at(1, Event::Unwind { frames: depth }).end(1);
    w
}

/// Begin, end, depth and function.
type Call = (u64, u64, usize, u32);

/// Sums up calls. Each call comes after those that contain it.
fn of_calls(calls: impl Iterator<Item = Call>) -> Sums {
    let mut sums = Sums::new();
    let mut open: Vec<u32> = Vec::new();
    for (begin, end, depth, function) in calls {
        open.truncate(depth);
        if let Some(below) = open.last() {
            let sum = sums.entry(*below).or_default();
            sum.1 = sum.1.wrapping_sub(end - begin);
        }
        open.push(function);
        let sum = sums.entry(function).or_default();
        *sum = (sum.0 + 1, sum.1.wrapping_add(end - begin));
    }
    sums
}

/// Returns the calls of a thread's records in the order in which they began.
fn calls_of_records(bytes: &[u8]) -> Vec<Call> {
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
    let (mut calls, mut open): (Vec<Call>, Vec<usize>) = (Vec::new(), Vec::new());
    for record in bytes.chunks_exact(16) {
        let (time, rest) = (word(&record[..8]), word(&record[8..]));
        let (is_exit, depth) = (rest & 3 == 1, (rest >> 6 & 0x3ff) as usize);
        let function = (((rest >> 16) - BASE) / 16) as u32;
        if is_exit {
            let at = open.pop().unwrap();
            assert_eq!((calls[at], open.len()), ((calls[at].0, 0, depth, function), depth));
            calls[at].1 = time;
        } else {
            assert_eq!(open.len(), depth);
            open.push(calls.len());
            calls.push((time, 0, depth, function));
        }
    }
    assert!(open.is_empty());
    calls
}

proptest! {
    #[test]
    fn all_visitors_agree(steps in prop::collection::vec((0u64..40, 0u8..34, any::<u32>()), 0..300)) {
        let (bytes, recording) = trace(&steps).finish();
        let source = bytes.as_slice();
        let names = symbols(FUNCTIONS);
        let input = AnalysisInput { threads: 1, ..AnalysisInput::new(&source, &recording, &names) };
        let tables = analyze(&input, &mut |_| ControlFlow::Continue(())).unwrap().tables;
        let rows = tables.functions.iter().map(|row| (row.function.0, (row.calls, row.self_ticks.0)));
        let functions: Sums = rows.collect();
        let trace = TraceFile::open(&source, &recording).unwrap();
        let (begin, end) = (recording.chunks[0].begin_ns, recording.chunks.last().unwrap().end_ns);

        let window = DetailWindow { begin, until: WindowEnd::Time(end), calls: usize::MAX };
        let found = detail(&trace, &window).unwrap();
        let calls = found.calls.iter().map(|c| (c.begin, c.end, c.depth as usize, c.function));
        prop_assert_eq!(&of_calls(calls), &functions);

        let mut data = [Vec::new(), Vec::new()];
        let mut sink = |thread: usize, bytes: &[u8]| {
            data[thread].extend_from_slice(bytes);
            Ok(())
        };
        records(&trace, &mut sink, &mut |_| ControlFlow::Continue(())).unwrap();
        prop_assert_eq!(&of_calls(calls_of_records(&data[1]).into_iter()), &functions);
        prop_assert!(data[0].is_empty());

        let span = PathSpan::Window { begin_ns: begin, end_ns: end };
        let path = collect(&trace, FUNCTIONS as usize, &PathSelection { span, ..PathSelection::default() }).unwrap();
        let mut sums = Sums::new();
        for entry in path.threads.iter().flat_map(|thread| &thread.entries) {
            if let PathEntryKind::Call { function, .. } = entry.kind {
                let sum = sums.entry(function.0).or_default();
                *sum = (sum.0 + 1, sum.1 + entry.self_ticks);
            }
        }
        prop_assert_eq!(&sums, &functions);

        let bins = overview(&trace, 7, &mut |_| ControlFlow::Continue(())).unwrap().bins;
        let time = |lane| bins.iter().filter(|bin| bin.holder.lane == lane).map(|bin| bin.ns).sum::<u64>();
        let net = |thread| tables.threads.iter().filter(|r| r.thread == thread).map(|r| r.self_ticks.0).sum::<u64>();
        prop_assert_eq!((time(TimelineLane::Thread(1)), time(TimelineLane::Interrupt)), (net(1), net(2)));
        prop_assert_eq!(path.totals.interrupt_ns, net(2));
    }
}
