//! Sequences of events with results worked out by hand.

use crate::support::{symbols, TestTraceWriter};
use kerntune_analyze::graph::{CallGraph, Propagation};
use kerntune_analyze::{analyze, Analysis, AnalysisInput};
use kerntune_profile::{bucket_of, CallKind, FunctionIndex, PathKind, SwitchKind, ThreadKind, Ticks};
use kerntune_trace::{EnterKind, Event, EventWeights};
use std::ops::ControlFlow;

fn run(writer: &mut TestTraceWriter) -> Analysis {
    let (bytes, recording) = writer.finish();
    let (bytes, symbols) = (&bytes[..], symbols(32));
    let points = [("f2+0x4".to_owned(), FunctionIndex(2)), ("net/f3.c:7".to_owned(), FunctionIndex(3))];
    let input = |threads| AnalysisInput {
        threads,
        points: &points,
        ..AnalysisInput::new(&bytes, &recording, &symbols)
    };
    let run = |threads| analyze(&input(threads), &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(run(1), run(3));
    run(1)
}

/// Calls, self time, total time, maximum and minimum of a function in a region.
fn function(analysis: &Analysis, region: u32, function: u32) -> Option<[u64; 5]> {
    let rows = &analysis.tables.functions;
    let row = rows.iter().find(|r| r.region == region && r.function.0 == function)?;
    Some([row.calls, row.self_ticks.0, row.total_ticks.0, row.max_ticks.0, row.min_ticks.0])
}

/// Calls that ended in a region, and their self time.
fn ended(analysis: &Analysis, region: u32, function: u32) -> (u64, u64) {
    let mut rows = analysis.tables.functions.iter();
    let row = rows.find(|r| r.region == region && r.function.0 == function).unwrap();
    (row.ended, row.ended_self_ticks.0)
}

/// Calls and total time of an arc, in the first region that has it.
fn arc(analysis: &Analysis, caller: u32, callee: u32, how: CallKind) -> Option<(u64, u64)> {
    let (caller, callee) = (FunctionIndex(caller), FunctionIndex(callee));
    let mut rows = analysis.tables.arcs.iter();
    let row = rows.find(|r| (r.caller, r.callee, r.how) == (caller, callee, how))?;
    Some((row.calls, row.total_ticks.0))
}

/// Self and user time of threads of a kind with a pid, over all regions.
fn thread(analysis: &Analysis, kind: ThreadKind, pid: u32) -> (u64, u64) {
    let rows = analysis.tables.threads.iter().filter(|r| r.kind == kind && r.pid == pid);
    rows.fold((0, 0), |sum, r| (sum.0 + r.self_ticks.0, sum.1 + r.user_ticks.0))
}

/// A region's paths with calls and self time, without paths that have neither: `t1/f1/f2!` is an
/// interrupt `f2` (`*` an exception, `~` a jump, `:` a system call) in `f1` in a thread `t1`.
fn paths(analysis: &Analysis, region: u32) -> Vec<(String, u64, u64)> {
    let t = &analysis.tables;
    let mut names: Vec<String> = Vec::new();
    for row in &t.paths {
        let above = names.get(row.parent as usize).map(|above| format!("{above}/")).unwrap_or_default();
        let mark = match row.how {
            CallKind::Call => "",
            CallKind::Jump => "~",
            CallKind::Interrupt => "!",
            CallKind::Exception => "*",
            CallKind::Syscall => ":",
        };
        names.push(match row.kind {
            PathKind::Thread => row.comm.clone(),
            PathKind::Function => format!("{above}f{}{mark}", row.function.0),
            kind => format!("{above}{kind}"),
        });
    }
    let here = t.paths.iter().zip(names).filter(|(row, _)| row.region == region);
    here.map(|(row, name)| (name, row.calls, row.self_ticks.0))
        .filter(|(_, calls, ns)| calls + ns > 0)
        .collect()
}

fn assert_paths(analysis: &Analysis, region: u32, expected: &[(&str, u64, u64)]) {
    let expected: Vec<_> =
        expected.iter().map(|(name, calls, ns)| ((*name).to_owned(), *calls, *ns)).collect();
    assert_eq!(paths(analysis, region), expected);
}

/// Checks the sum rule of each region, and that there are no anomalies.
fn assert_sums(analysis: &Analysis) {
    let t = &analysis.tables;
    for region in &t.regions {
        let within = t.within(region.region);
        let functions = t.functions.iter().filter(|r| within.contains(&r.region)).map(|r| r.self_ticks.0);
        let rest = t.regions.iter().filter(|r| within.contains(&r.region));
        let rest = rest.map(|r| r.user_ticks.0 + r.unattributed_ticks.0);
        let threads = t.threads.iter().filter(|r| within.contains(&r.region)).map(|r| r.self_ticks.0);
        assert_eq!(functions.sum::<u64>() + rest.sum::<u64>(), region.busy_ticks.0, "{}", region.name);
        assert_eq!(threads.sum::<u64>(), region.busy_ticks.0, "{}", region.name);
        let paths = t.paths.iter().filter(|r| within.contains(&r.region)).map(|r| r.self_ticks.0);
        assert_eq!(paths.sum::<u64>(), region.busy_ticks.0, "{}", region.name);
    }
    for (name, count) in &analysis.health {
        if !["cut_calls", "unattributed_ns", "unclosed_regions"].contains(&name.as_str()) {
            assert_eq!(*count, 0, "{name}");
        }
    }
}

const NONE: u32 = u32::MAX;

#[test]
fn nested_calls() {
    let mut w = TestTraceWriter::new(2);
    w.begin(0, "r").enter(5, 1, EnterKind::Syscall).call(10, 2).call(3, 3).exit(4).exit(2).call(1, 3).exit(6);
    w.at(7, Event::Leave).end(8);
    let a = run(&mut w);
    assert_eq!(function(&a, 0, 1), Some([1, 18, 33, 18, 18])); // 10 + 1 + 7; + 15 within
    assert_eq!(function(&a, 0, 2), Some([1, 5, 9, 5, 5])); // 3 + 2; + 4
    assert_eq!(function(&a, 0, 3), Some([2, 10, 10, 6, 4]));
    assert_eq!(arc(&a, NONE, 1, CallKind::Syscall), Some((1, 33)));
    assert_eq!(arc(&a, 2, 3, CallKind::Call), Some((1, 4)));
    assert_eq!(arc(&a, 1, 3, CallKind::Call), Some((1, 6)));
    assert_eq!(thread(&a, ThreadKind::Thread, 1), (46, 13));
    assert_eq!((a.elapsed_ns.0, a.busy_ticks.0, a.idle_ns.0, a.events), (46, 46, 0, 10));
    let buckets: Vec<_> = a.tables.histograms.iter().map(|h| (h.function.0, h.bucket, h.count)).collect();
    // By caller: total 33, then 6 below 1, 9 below 1, 4 below 2.
    assert_eq!(buckets, [(2, 8, 1), (3, 6, 1), (3, 4, 1), (1, 16, 1)]);
    assert_eq!(a.health["cut_calls"], 0);
    assert_sums(&a);
}

#[test]
fn recursion_counts_elapsed_once_per_level() {
    let mut w = TestTraceWriter::new(2);
    w.begin(0, "r").enter(0, 1, EnterKind::Syscall).call(1, 1).call(2, 1).exit(3).exit(4).exit(5).end(0);
    let a = run(&mut w);
    assert_eq!(function(&a, 0, 1), Some([3, 15, 15 + 9 + 3, 6, 3]));
    assert_sums(&a);
}

#[test]
fn a_tail_call_ends_with_its_callee() {
    let mut w = TestTraceWriter::new(2);
    w.begin(0, "r").enter(0, 1, EnterKind::Syscall).call(1, 2).enter(10, 3, EnterKind::Jump).enter(
        20,
        4,
        EnterKind::Jump,
    );
    w.exit(40).at(100, Event::Leave).end(0);
    let a = run(&mut w);
    assert_eq!(function(&a, 0, 4), Some([1, 40, 40, 40, 40]));
    assert_eq!(function(&a, 0, 3), Some([1, 20, 60, 20, 20]));
    assert_eq!(function(&a, 0, 2), Some([1, 10, 70, 10, 10]));
    assert_eq!(function(&a, 0, 1), Some([1, 101, 171, 101, 101]));
    assert_eq!(arc(&a, 3, 4, CallKind::Jump), Some((1, 40)));
    assert_sums(&a);
}

#[test]
fn an_interrupt_costs_nothing_to_what_it_hits_and_an_exception_does() {
    let mut w = TestTraceWriter::new(2);
    w.begin(0, "r").enter(0, 1, EnterKind::Syscall).call(1, 2);
    // An interrupt with a handler, which another interrupt interrupts.
    w.enter(10, 9, EnterKind::Interrupt)
        .call(100, 3)
        .enter(200, 8, EnterKind::Interrupt)
        .at(400, Event::Resume);
    w.exit(800).at(1600, Event::Resume);
    // A page fault.
    w.enter(20, 7, EnterKind::Exception).call(3000, 3).exit(4000).at(5000, Event::Resume);
    w.exit(40).at(80, Event::Leave).end(0);
    let a = run(&mut w);
    assert_eq!(function(&a, 0, 9), Some([1, 1700, 2700, 1700, 1700]));
    assert_eq!(function(&a, 0, 8), Some([1, 400, 400, 400, 400]));
    assert_eq!(function(&a, 0, 3), Some([2, 5000, 5000, 4000, 1000]));
    assert_eq!(function(&a, 0, 7), Some([1, 8000, 12000, 8000, 8000]));
    assert_eq!(function(&a, 0, 2), Some([1, 70, 12070, 70, 70]));
    assert_eq!(function(&a, 0, 1), Some([1, 81, 12151, 81, 81]));
    assert_eq!(arc(&a, NONE, 8, CallKind::Interrupt), Some((1, 400)));
    assert_eq!(arc(&a, 2, 7, CallKind::Exception), Some((1, 12000)));
    assert_eq!(thread(&a, ThreadKind::Interrupt, 0), (3100, 0));
    assert_eq!(thread(&a, ThreadKind::Thread, 1), (12151, 0));
    assert_sums(&a);
}

#[test]
fn a_thread_does_not_age_while_another_runs() {
    let mut w = TestTraceWriter::new(3);
    w.begin(0, "r").enter(0, 1, EnterKind::Syscall).call(1, 2).at(10, Event::Switch { thread: 2 });
    w.enter(0, 3, EnterKind::Call).exit(1000).at(100, Event::Switch { thread: 1 });
    w.exit(20).at(2, Event::Leave).end(0);
    let a = run(&mut w);
    assert_eq!(function(&a, 0, 2), Some([1, 30, 30, 30, 30]));
    assert_eq!(function(&a, 0, 1), Some([1, 3, 33, 3, 3]));
    assert_eq!(function(&a, 0, 3), Some([1, 1000, 1000, 1000, 1000]));
    assert_eq!(thread(&a, ThreadKind::Thread, 1), (33, 0));
    assert_eq!(thread(&a, ThreadKind::Thread, 2), (1100, 0));
    assert_eq!(a.tables.regions[0].unattributed_ticks.0, 100, "nothing was open in thread 2");
    assert_eq!(a.health["unattributed_ns"], 100);
    let switches: u64 = a.tables.threads.iter().map(|t| t.switches_in).sum();
    assert_eq!(switches, 2);
    assert_sums(&a);
}

#[test]
fn a_thread_may_switch_away_on_the_way_out_of_an_interrupt() {
    let mut w = TestTraceWriter::new(3);
    // User code is interrupted; the handler reschedules; thread 2 runs and is interrupted, too.
    w.begin(0, "r").enter(50, 9, EnterKind::Interrupt).call(1, 2).at(2, Event::Switch { thread: 2 });
    w.call(4, 3).enter(8, 9, EnterKind::Interrupt).at(16, Event::Resume).exit(32).call(64, 2);
    w.at(128, Event::Switch { thread: 1 }).exit(256).at(512, Event::Leave).end(1024);
    let a = run(&mut w);
    assert_eq!(function(&a, 0, 9), Some([2, 1 + 16 + 512, 771 + 16, 513, 16]));
    // Thread 2's call of function 2 is still open: a call and self time, but no end.
    assert_eq!(function(&a, 0, 2), Some([2, 2 + 256 + 128, 258, 258, 258]));
    assert_eq!(ended(&a, 0, 2), (1, 258));
    assert_eq!(function(&a, 0, 3), Some([1, 40, 40, 40, 40]));
    assert_eq!(thread(&a, ThreadKind::Interrupt, 0), (1 + 2 + 16 + 256 + 512, 0));
    assert_eq!(thread(&a, ThreadKind::Thread, 1), (50 + 1024, 50 + 1024));
    assert_eq!(thread(&a, ThreadKind::Thread, 2), (4 + 8 + 32 + 64 + 128, 0));
    assert_eq!(a.health["cut_calls"], 1);
    assert_sums(&a);
}

#[test]
fn threads_are_born_and_die() {
    let mut w = TestTraceWriter::new(4);
    w.begin(0, "r").enter(0, 1, EnterKind::Syscall).call(1, 2).at(2, Event::Switch { thread: 3 });
    // Thread 3 is new: it leaves the switch with nothing open and goes to user code.
    w.enter(4, 5, EnterKind::Jump).exit(8).call(16, 6).at(32, Event::Leave).enter(64, 1, EnterKind::Syscall);
    // It dies in the kernel.
    w.call(128, 7).at(256, Event::Switch { thread: 1 }).exit(512).at(1024, Event::Leave).end(0);
    let a = run(&mut w);
    assert_eq!(function(&a, 0, 5), Some([1, 8, 8, 8, 8]));
    assert_eq!(function(&a, 0, 6), Some([1, 32, 32, 32, 32]));
    // The function in which it died has a caller and no end.
    assert_eq!(function(&a, 0, 7), Some([1, 256, 0, 0, 0]));
    assert_eq!((ended(&a, 0, 7), arc(&a, 1, 7, CallKind::Call)), ((0, 0), Some((1, 0))));
    assert_eq!(function(&a, 0, 1), Some([2, 1 + 128 + 1024, 1539, 1025, 1025]));
    assert_eq!(ended(&a, 0, 1), (1, 1025));
    let graph = CallGraph::of_tables(&a.tables, |_| true, Propagation::Exact).unwrap();
    let of_dying = graph.arcs.iter().find(|arc| (arc.caller, arc.callee) == (Some(1), 7)).unwrap();
    assert_eq!((of_dying.self_ns, of_dying.descendants_ns), (256, 0));
    assert_eq!(graph.functions[1].total_ns(), 1539 + 128 + 256, "its time is its caller's");
    assert_eq!(thread(&a, ThreadKind::Thread, 3), (508, 64));
    assert_eq!(a.tables.regions[0].unattributed_ticks.0, 20);
    assert_eq!(a.health["cut_calls"], 2);
    assert_sums(&a);
}

#[test]
fn unwound_frames_end_where_they_are_unwound() {
    let mut w = TestTraceWriter::new(2);
    w.begin(0, "r").enter(0, 1, EnterKind::Syscall).call(1, 2).call(2, 3).enter(4, 4, EnterKind::Jump);
    w.at(8, Event::Unwind { frames: 3 }).at(16, Event::Leave).end(0);
    let a = run(&mut w);
    assert_eq!(function(&a, 0, 4), Some([1, 8, 8, 8, 8]));
    assert_eq!(function(&a, 0, 2), Some([1, 2, 14, 2, 2]));
    assert_eq!(function(&a, 0, 1), Some([1, 17, 31, 17, 17]));
    assert_sums(&a);
}

#[test]
fn a_call_counts_where_it_is_made_its_end_where_it_ends_and_net_time_where_it_passes() {
    let mut w = TestTraceWriter::new(2);
    w.begin(0, "outer").enter(1, 1, EnterKind::Syscall).call(2, 2).begin(4, "inner").call(8, 3).exit(16);
    w.exit(32).end(64).at(128, Event::Leave).end(256);
    let a = run(&mut w);
    assert_eq!((function(&a, 0, 2), ended(&a, 0, 2)), (Some([1, 4, 0, 0, 0]), (0, 0)));
    assert_eq!((function(&a, 1, 2), ended(&a, 1, 2)), (Some([0, 40, 60, 44, 44]), (1, 44)));
    assert_eq!((function(&a, 1, 3), ended(&a, 1, 3)), (Some([1, 16, 16, 16, 16]), (1, 16)));
    assert_eq!(function(&a, 1, 1), Some([0, 64, 0, 0, 0]));
    assert_eq!((function(&a, 0, 1), ended(&a, 0, 1)), (Some([1, 2 + 128, 60 + 194, 194, 194]), (1, 194)));
    // The open calls have their callers in the inner region too.
    let inner: Vec<_> = a.tables.arcs.iter().filter(|r| r.region == 1).collect();
    let inner = inner.iter().map(|r| (r.caller.0, r.callee.0, r.calls, r.ended, r.total_ticks.0));
    assert_eq!(inner.collect::<Vec<_>>(), [(1, 2, 0, 1, 60), (2, 3, 1, 1, 16), (NONE, 1, 0, 0, 0)]);
    let graph = CallGraph::of_tables(&a.tables, |region| region == 1, Propagation::Exact).unwrap();
    let totals: Vec<u64> = graph.functions[1..4].iter().map(|function| function.total_ns()).collect();
    assert_eq!(totals, [120, 56, 16], "only what passed in the region");
    let regions = &a.tables.regions;
    assert_eq!((regions[0].busy_ticks.0, regions[0].user_ticks.0), (511, 257));
    assert_eq!((regions[1].busy_ticks.0, regions[1].user_ticks.0), (120, 0));
    assert_eq!(a.busy_ticks.0, 511, "the inner region is not counted twice");
    assert_sums(&a);
}

#[test]
fn calls_across_a_gap_have_no_end() {
    let mut w = TestTraceWriter::new(3);
    // Thread 2 sleeps in the kernel, before, between and after the regions.
    w.at(0, Event::Switch { thread: 2 }).call(5, 1).call(5, 2).at(5, Event::Switch { thread: 1 });
    w.at(0, Event::Leave).begin(0, "one").at(10, Event::Switch { thread: 2 }).exit(20).call(40, 3);
    w.at(80, Event::Switch { thread: 1 }).at(0, Event::Leave).end(0);
    w.at(10_000, Event::Switch { thread: 2 }).exit(10_000).call(10_000, 4);
    w.at(10_000, Event::Switch { thread: 1 }).at(0, Event::Leave);
    w.begin(0, "two").at(160, Event::Switch { thread: 2 }).exit(320).call(640, 5).exit(1280).exit(2560);
    w.at(5120, Event::Switch { thread: 1 }).at(0, Event::Leave).end(0);
    let a = run(&mut w);
    assert_eq!(function(&a, 0, 2), Some([0, 20, 0, 0, 0]), "its beginning was not seen");
    assert_eq!(function(&a, 0, 3), Some([1, 80, 0, 0, 0]), "its end was not seen");
    assert_eq!((ended(&a, 0, 2), ended(&a, 0, 3)), ((0, 0), (0, 0)));
    assert_eq!(function(&a, 0, 1), Some([0, 40, 0, 0, 0]));
    assert_eq!(function(&a, 1, 4), Some([0, 320, 0, 0, 0]));
    assert_eq!(function(&a, 1, 5), Some([1, 1280, 1280, 1280, 1280]));
    assert_eq!(function(&a, 1, 1), Some([0, 3200, 0, 0, 0]));
    assert_eq!(a.tables.regions[1].unattributed_ticks.0, 5120);
    assert_eq!(a.busy_ticks.0, 150 + 160 + 320 + 640 + 1280 + 2560 + 5120);
    assert_sums(&a);
}

#[test]
fn idle_time_is_nobodys() {
    let mut w = TestTraceWriter::new(2);
    w.at(0, Event::Switch { thread: 0 }).call(0, 10).at(0, Event::Switch { thread: 1 }).at(0, Event::Leave);
    w.begin(0, "r").enter(1, 1, EnterKind::Syscall).at(2, Event::Switch { thread: 0 }).call(4, 11);
    w.at(8, Event::Idle { ns: 0 }).enter(1, 9, EnterKind::Interrupt).at(0, Event::Idle { ns: 1_000_000 });
    w.at(16, Event::Resume).exit(32).at(64, Event::Switch { thread: 1 }).at(128, Event::Leave).end(0);
    let a = run(&mut w);
    assert_eq!(function(&a, 0, 11), Some([1, 41, 41, 41, 41]));
    assert_eq!(function(&a, 0, 10), Some([0, 68, 0, 0, 0]));
    assert_eq!(thread(&a, ThreadKind::Idle, 0), (109, 0));
    assert_eq!(thread(&a, ThreadKind::Interrupt, 0), (16, 0));
    assert_eq!((a.elapsed_ns.0, a.busy_ticks.0, a.idle_ns.0), (1_000_256, 256, 1_000_000));
    assert_eq!(a.tables.regions[0].idle_ticks.0, 1_000_000);
    assert_sums(&a);
}

#[test]
fn code_in_no_known_function_has_a_name_for_that() {
    let mut w = TestTraceWriter::new(2);
    w.begin(0, "r").enter(0, 1, EnterKind::Syscall).call(1, 32).exit(2).at(4, Event::Leave).end(0);
    let a = run(&mut w);
    assert_eq!(a.tables.name(FunctionIndex(32)), "[unknown]");
    assert_eq!(a.tables.symbols.len(), 33);
    assert_sums(&a);
}

#[test]
fn a_region_without_an_end_has_the_traces_times() {
    let mut w = TestTraceWriter::new(2);
    w.begin(0, "r").enter(5, 1, EnterKind::Syscall).at(6, Event::Idle { ns: 100 }).at(7, Event::Leave);
    let a = run(&mut w);
    assert_eq!((a.elapsed_ns.0, a.busy_ticks.0, a.idle_ns.0), (118, 18, 100));
    assert_eq!(a.health["unclosed_regions"], 1);
    assert_sums(&a);
}

#[test]
fn interrupts_within_interrupts_within_an_exception_within_a_system_call() {
    let mut w = TestTraceWriter::new(2);
    w.begin(0, "r").enter(1, 1, EnterKind::Syscall).call(2, 2).enter(4, 7, EnterKind::Exception).call(8, 3);
    w.enter(16, 9, EnterKind::Interrupt)
        .call(32, 4)
        .enter(64, 8, EnterKind::Interrupt)
        .call(128, 4)
        .exit(256);
    w.at(512, Event::Resume).exit(1024).at(2048, Event::Resume).exit(4096).at(8192, Event::Resume);
    w.exit(16384).at(32768, Event::Leave).end(65536);
    let a = run(&mut w);
    assert_paths(
        &a,
        0,
        &[
            ("t1/f1:", 1, 2 + 32768),
            ("t1/f1:/f2", 1, 4 + 16384),
            ("t1/f1:/f2/f7*", 1, 8 + 8192),
            ("t1/f1:/f2/f7*/f3", 1, 16 + 4096),
            ("t1/user", 0, 1 + 65536),
            ("interrupt/f8!", 1, 128 + 512),
            ("interrupt/f8!/f4", 1, 256),
            ("interrupt/f9!", 1, 32 + 2048),
            ("interrupt/f9!/f4", 1, 64 + 1024),
        ],
    );
    // The exception counts for its victim; the interrupts for no thread, not even for each other.
    assert_eq!(function(&a, 0, 7), Some([1, 8200, 8200 + 4112, 8200, 8200]));
    assert_eq!(function(&a, 0, 9), Some([1, 2080, 2080 + 1088, 2080, 2080]));
    assert_eq!(thread(&a, ThreadKind::Interrupt, 0), (640 + 256 + 2080 + 1088, 0));
    assert_sums(&a);
}

#[test]
fn a_switch_in_the_middle_of_a_stack_and_back() {
    let mut w = TestTraceWriter::new(3);
    w.begin(0, "r").enter(0, 1, EnterKind::Syscall).call(1, 2).at(2, Event::Switch { thread: 2 });
    w.enter(4, 3, EnterKind::Call)
        .call(8, 2)
        .enter(16, 9, EnterKind::Interrupt)
        .at(32, Event::Switch { thread: 1 });
    w.exit(64).at(128, Event::Switch { thread: 2 }).at(256, Event::Resume).exit(512).exit(1024);
    w.at(2048, Event::Switch { thread: 1 }).at(4096, Event::Leave).end(8192);
    let a = run(&mut w);
    assert_paths(
        &a,
        0,
        &[
            ("t1/f1:", 1, 1 + 128 + 4096),
            ("t1/f1:/f2", 1, 2 + 64),
            ("t1/user", 0, 8192),
            ("t2/f3", 1, 8 + 1024),
            ("t2/f3/f2", 1, 16 + 512),
            ("t2/unattributed", 0, 4 + 2048),
            ("interrupt/f9!", 1, 32 + 256),
        ],
    );
    let switches: Vec<_> = (a.tables.switches.iter())
        .map(|r| (r.from.as_str(), r.to.as_str(), r.reason.0, r.kind, r.count))
        .collect();
    assert_eq!(
        switches,
        [
            ("t1", "t2", 1, SwitchKind::Voluntary, 1),
            ("t1", "t2", 2, SwitchKind::Voluntary, 1),
            ("t2", "t1", 9, SwitchKind::Preempted, 1),
            ("t2", "t1", NONE, SwitchKind::Voluntary, 1),
        ]
    );
    assert_sums(&a);
}

#[test]
fn tail_calls_and_unwinding_lie_below_each_other() {
    let mut w = TestTraceWriter::new(2);
    w.begin(0, "r").enter(0, 1, EnterKind::Syscall).call(1, 2).enter(2, 3, EnterKind::Jump).enter(
        4,
        4,
        EnterKind::Jump,
    );
    w.exit(8).call(16, 5).call(32, 6).call(64, 7).at(128, Event::Unwind { frames: 2 }).exit(0);
    w.at(256, Event::Leave).end(0);
    let a = run(&mut w);
    assert_paths(
        &a,
        0,
        &[
            ("t1/f1:", 1, 1 + 16 + 256),
            ("t1/f1:/f2", 1, 2),
            ("t1/f1:/f2/f3~", 1, 4),
            ("t1/f1:/f2/f3~/f4~", 1, 8),
            ("t1/f1:/f5", 1, 32),
            ("t1/f1:/f5/f6", 1, 64),
            ("t1/f1:/f5/f6/f7", 1, 128),
        ],
    );
    assert_sums(&a);
}

#[test]
fn a_path_is_in_each_region_that_it_passes() {
    let mut w = TestTraceWriter::new(3);
    // Thread 2 waits in the kernel meanwhile, and ends its call in the outer region.
    w.begin(0, "outer").at(0, Event::Switch { thread: 2 }).call(1, 3).at(2, Event::Switch { thread: 1 });
    w.enter(4, 1, EnterKind::Syscall).call(8, 2).begin(16, "inner").exit(32).call(64, 2).end(128).exit(256);
    w.at(512, Event::Switch { thread: 2 }).exit(1024).at(2048, Event::Switch { thread: 1 }).exit(4096).end(0);
    let a = run(&mut w);
    assert_paths(
        &a,
        0,
        &[
            ("t1/f1:", 1, 8 + 512 + 4096),
            ("t1/f1:/f2", 1, 16 + 256),
            ("t1/unattributed", 0, 4),
            ("t2/f3", 1, 2 + 1024),
            ("t2/unattributed", 0, 1 + 2048),
        ],
    );
    assert_paths(&a, 1, &[("t1/f1:", 0, 64), ("t1/f1:/f2", 1, 32 + 128)]);
    assert_sums(&a);
}

#[test]
fn user_functions_lie_below_system_calls() {
    let mut w = TestTraceWriter::new(2);
    let (main, helper) = (33, 34);
    w.begin(0, "r").call(2, main).call(4, helper).enter(8, 1, EnterKind::Syscall).call(16, 2).exit(32);
    w.at(64, Event::Leave).exit(128).enter(256, 9, EnterKind::Interrupt).at(512, Event::Leave);
    w.enter(1024, 7, EnterKind::Exception).at(2048, Event::Leave).exit(4096).end(8192);
    let (bytes, recording) = w.finish();
    let (bytes, symbols) = (&bytes[..], symbols(35));
    let input = AnalysisInput::new(&bytes, &recording, &symbols);
    let a = analyze(&input, &mut |_| ControlFlow::Continue(())).unwrap();
    assert_paths(
        &a,
        0,
        &[
            ("t1/f33", 1, 4 + 256 + 1024 + 4096),
            ("t1/f33/f34", 1, 8 + 128),
            ("t1/f33/f34/f1:", 1, 16 + 64),
            ("t1/f33/f34/f1:/f2", 1, 32),
            ("t1/f33/f7*", 1, 2048),
            ("t1/user", 0, 2 + 8192),
            ("interrupt/f9!", 1, 512),
        ],
    );
    // The system call and the page fault are the callers'; the interrupt is not.
    assert_eq!(function(&a, 0, helper), Some([1, 136, 136 + 112, 136, 136]));
    assert_eq!(function(&a, 0, main), Some([1, 5380, 5380 + 248 + 2048, 5380, 5380]));
    assert_eq!(arc(&a, helper, 1, CallKind::Syscall), Some((1, 112)));
    let kernel = 16 + 32 + 64 + 2048;
    let user = 2 + 8192 + 136 + 5380;
    assert_eq!(thread(&a, ThreadKind::Thread, 1), (user + kernel, user));
    assert_eq!(a.tables.regions[0].user_ticks.0, 2 + 8192, "outside of traced functions");
    assert_sums(&a);
}

#[test]
fn calls_that_span_chunks_are_whole() {
    let mut w = TestTraceWriter::new(3);
    w.begin(0, "r").enter(0, 1, EnterKind::Syscall).cut().call(1, 2).call(2, 3).cut().exit(4).cut();
    let slow = w.now() - 4 - 2;
    w.at(8, Event::Switch { thread: 2 }).cut().at(16, Event::Switch { thread: 1 }).cut().exit(32).cut();
    w.call(64, 2).exit(1).at(128, Event::Leave).end(0);
    let a = run(&mut w);
    assert_eq!(function(&a, 0, 3), Some([1, 4, 4, 4, 4]));
    assert_eq!(function(&a, 0, 2), Some([2, 2 + 8 + 32 + 1, 46 + 1, 42, 1]));
    assert_eq!(function(&a, 0, 1), Some([1, 1 + 64 + 128, 193 + 47, 193, 193]));
    assert_eq!(arc(&a, 1, 2, CallKind::Call), Some((2, 47)));
    let two = a.tables.functions.iter().find(|r| r.function.0 == 2).unwrap();
    assert_eq!((two.slowest_ticks.0, two.slowest_at_ticks.0), (46, slow));
    let buckets: Vec<_> = (a.tables.histograms.iter())
        .filter(|h| h.function.0 == 2)
        .map(|h| (h.caller.0, h.bucket, h.count, h.example_ticks.0))
        .collect();
    let second = slow + 2 + 4 + 8 + 16 + 32 + 64;
    let bucket = |ns| bucket_of(Ticks(ns));
    assert_eq!(buckets, [(1, bucket(1), 1, second), (1, bucket(46), 1, slow)]);
    assert_eq!(a.health["cut_calls"], 0);
    assert_sums(&a);
}

#[test]
fn idle_periods_have_a_length_and_what_ended_them() {
    let mut w = TestTraceWriter::new(2);
    w.begin(0, "r").at(0, Event::Switch { thread: 0 }).call(1, 11).at(2, Event::Idle { ns: 1000 });
    w.enter(4, 9, EnterKind::Interrupt).at(0, Event::Resume);
    // The recorder learns of it when the handler reads the clock.
    w.at(0, Event::Idle { ns: 0 }).enter(8, 8, EnterKind::Interrupt).at(1, Event::Idle { ns: 5000 });
    w.at(0, Event::Resume).at(0, Event::Idle { ns: 1000 }).cut().enter(16, 9, EnterKind::Interrupt);
    w.at(0, Event::Resume).at(0, Event::Idle { ns: 70 }).at(0, Event::Switch { thread: 1 }).end(0);
    let a = run(&mut w);
    let bucket = |ns| bucket_of(Ticks(ns));
    let rows: Vec<_> =
        (a.tables.idles.iter()).map(|r| (r.waker.0, r.bucket, r.count, r.idle_ticks.0)).collect();
    assert_eq!(rows, [(8, bucket(5000), 1, 5000), (9, bucket(1000), 2, 2000), (NONE, bucket(70), 1, 70)]);
    assert_eq!(a.idle_ns.0, 7070);
    assert_sums(&a);
}

#[test]
fn points_are_counted_by_region() {
    let mut w = TestTraceWriter::new(2);
    w.begin(0, "a")
        .enter(0, 1, EnterKind::Syscall)
        .at(1, Event::Point { point: 1 })
        .at(1, Event::Point { point: 0 });
    w.begin(0, "b").at(1, Event::Point { point: 1 }).cut().at(1, Event::Point { point: 1 }).end(0).end(0);
    let a = run(&mut w);
    let rows: Vec<_> =
        (a.tables.points.iter()).map(|r| (r.region, r.point.as_str(), r.function.0, r.count)).collect();
    assert_eq!(rows, [(0, "f2+0x4", 2, 1), (0, "net/f3.c:7", 3, 1), (1, "net/f3.c:7", 3, 2)]);
}

#[test]
fn weights_go_where_net_time_goes() {
    let mut w = TestTraceWriter::wide(2);
    let weigh = |w: &mut TestTraceWriter, taken_branches, l1i_misses, itlb_misses| {
        w.weights = EventWeights { taken_branches, l1i_misses, itlb_misses };
    };
    w.begin(0, "r");
    weigh(&mut w, 1, 0, 0); // user mode
    w.enter(10, 1, EnterKind::Syscall);
    weigh(&mut w, 2, 3, 0);
    w.call(0, 2);
    weigh(&mut w, 4, 0, 5);
    w.enter(20, 9, EnterKind::Interrupt);
    weigh(&mut w, 8, 7, 0);
    w.at(30, Event::Resume);
    weigh(&mut w, 16, 0, 0);
    w.cut().exit(40);
    weigh(&mut w, 32, 0, 1);
    w.at(50, Event::Leave).end(0);
    let a = run(&mut w);
    let rows: Vec<_> = (a.tables.paths.iter().filter(|r| r.kind != PathKind::Thread && r.taken_branches > 0))
        .map(|r| (r.function.0, r.taken_branches, r.l1i_misses, r.itlb_misses))
        .collect();
    assert_eq!(rows, [(1, 34, 3, 1), (2, 20, 0, 5), (NONE, 1, 0, 0), (9, 8, 7, 0)]);
    assert_sums(&a);
}
