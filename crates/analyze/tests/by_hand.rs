//! Sequences of events whose numbers were worked out by hand.

mod support;

use kerntune_analyze::{analyze, Analysis, Input};
use kerntune_profile::{FunctionIndex, How as ProfileHow, ThreadKind};
use kerntune_trace::{Event, How};
use std::ops::ControlFlow;
use support::{symbols, Writer};

fn run(writer: &mut Writer) -> Analysis {
    let (bytes, recording) = writer.finish();
    let (bytes, symbols) = (&bytes[..], symbols(32));
    let input = |threads| Input { threads, ..Input::new(&bytes, &recording, &symbols) };
    let run = |threads| analyze(&input(threads), &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(run(1), run(3));
    run(1)
}

/// Calls, net, elapsed, max and min of a function in a region.
fn function(analysis: &Analysis, region: u32, function: u32) -> Option<[u64; 5]> {
    let rows = &analysis.tables.functions;
    let row = rows.iter().find(|r| r.region == region && r.function.0 == function)?;
    Some([row.calls, row.net_ns.0, row.elapsed_ns.0, row.max_ns.0, row.min_ns.0])
}

fn arc(analysis: &Analysis, caller: u32, callee: u32, how: ProfileHow) -> Option<(u64, u64)> {
    let (caller, callee) = (FunctionIndex(caller), FunctionIndex(callee));
    let mut rows = analysis.tables.arcs.iter();
    let row = rows.find(|r| (r.caller, r.callee, r.how) == (caller, callee, how))?;
    Some((row.calls, row.elapsed_ns.0))
}

/// Net and user time of a kind of thread with a pid, over all regions.
fn thread(analysis: &Analysis, kind: ThreadKind, pid: u32) -> (u64, u64) {
    let rows = analysis.tables.threads.iter().filter(|r| r.kind == kind && r.pid == pid);
    rows.fold((0, 0), |sum, r| (sum.0 + r.net_ns.0, sum.1 + r.user_ns.0))
}

/// The sum rule, for each region on its own; and nothing to complain of.
fn assert_sums(analysis: &Analysis) {
    let t = &analysis.tables;
    for region in &t.regions {
        let within = t.within(region.region);
        let functions = t.functions.iter().filter(|r| within.contains(&r.region)).map(|r| r.net_ns.0);
        let rest = t.regions.iter().filter(|r| within.contains(&r.region));
        let rest = rest.map(|r| r.user_ns.0 + r.unattributed_ns.0);
        let threads = t.threads.iter().filter(|r| within.contains(&r.region)).map(|r| r.net_ns.0);
        assert_eq!(functions.sum::<u64>() + rest.sum::<u64>(), region.busy_ns.0, "{}", region.name);
        assert_eq!(threads.sum::<u64>(), region.busy_ns.0, "{}", region.name);
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
    let mut w = Writer::new(2);
    w.begin(0, "r").enter(5, 1, How::Syscall).call(10, 2).call(3, 3).exit(4).exit(2).call(1, 3).exit(6);
    w.at(7, Event::Leave).end(8);
    let a = run(&mut w);
    assert_eq!(function(&a, 0, 1), Some([1, 18, 33, 18, 18])); // 10 + 1 + 7; + 15 within
    assert_eq!(function(&a, 0, 2), Some([1, 5, 9, 5, 5])); // 3 + 2; + 4
    assert_eq!(function(&a, 0, 3), Some([2, 10, 10, 6, 4]));
    assert_eq!(arc(&a, NONE, 1, ProfileHow::Syscall), Some((1, 33)));
    assert_eq!(arc(&a, 2, 3, ProfileHow::Call), Some((1, 4)));
    assert_eq!(arc(&a, 1, 3, ProfileHow::Call), Some((1, 6)));
    assert_eq!(thread(&a, ThreadKind::Thread, 1), (46, 13));
    assert_eq!((a.elapsed_ns.0, a.busy_ns.0, a.idle_ns.0, a.events), (46, 46, 0, 10));
    let buckets: Vec<_> = a.tables.histograms.iter().map(|h| (h.function.0, h.bucket, h.count)).collect();
    // By caller: elapsed 33, then 6 below 1, 9 below 1, 4 below 2.
    assert_eq!(buckets, [(2, 8, 1), (3, 6, 1), (3, 4, 1), (1, 16, 1)]);
    assert_eq!(a.health["cut_calls"], 0);
    assert_sums(&a);
}

#[test]
fn recursion_counts_elapsed_once_per_level() {
    let mut w = Writer::new(2);
    w.begin(0, "r").enter(0, 1, How::Syscall).call(1, 1).call(2, 1).exit(3).exit(4).exit(5).end(0);
    let a = run(&mut w);
    assert_eq!(function(&a, 0, 1), Some([3, 15, 15 + 9 + 3, 6, 3]));
    assert_sums(&a);
}

#[test]
fn a_tail_call_ends_with_its_callee() {
    let mut w = Writer::new(2);
    w.begin(0, "r").enter(0, 1, How::Syscall).call(1, 2).enter(10, 3, How::Jump).enter(20, 4, How::Jump);
    w.exit(40).at(100, Event::Leave).end(0);
    let a = run(&mut w);
    assert_eq!(function(&a, 0, 4), Some([1, 40, 40, 40, 40]));
    assert_eq!(function(&a, 0, 3), Some([1, 20, 60, 20, 20]));
    assert_eq!(function(&a, 0, 2), Some([1, 10, 70, 10, 10]));
    assert_eq!(function(&a, 0, 1), Some([1, 101, 171, 101, 101]));
    assert_eq!(arc(&a, 3, 4, ProfileHow::Jump), Some((1, 40)));
    assert_sums(&a);
}

#[test]
fn an_interrupt_costs_nothing_to_what_it_hits_and_an_exception_does() {
    let mut w = Writer::new(2);
    w.begin(0, "r").enter(0, 1, How::Syscall).call(1, 2);
    // An interrupt with a handler, in which another interrupt hits.
    w.enter(10, 9, How::Interrupt).call(100, 3).enter(200, 8, How::Interrupt).at(400, Event::Resume);
    w.exit(800).at(1600, Event::Resume);
    // A page fault.
    w.enter(20, 7, How::Exception).call(3000, 3).exit(4000).at(5000, Event::Resume);
    w.exit(40).at(80, Event::Leave).end(0);
    let a = run(&mut w);
    assert_eq!(function(&a, 0, 9), Some([1, 1700, 2700, 1700, 1700]));
    assert_eq!(function(&a, 0, 8), Some([1, 400, 400, 400, 400]));
    assert_eq!(function(&a, 0, 3), Some([2, 5000, 5000, 4000, 1000]));
    assert_eq!(function(&a, 0, 7), Some([1, 8000, 12000, 8000, 8000]));
    assert_eq!(function(&a, 0, 2), Some([1, 70, 12070, 70, 70]));
    assert_eq!(function(&a, 0, 1), Some([1, 81, 12151, 81, 81]));
    assert_eq!(arc(&a, NONE, 8, ProfileHow::Interrupt), Some((1, 400)));
    assert_eq!(arc(&a, 2, 7, ProfileHow::Exception), Some((1, 12000)));
    assert_eq!(thread(&a, ThreadKind::Interrupt, 0), (3100, 0));
    assert_eq!(thread(&a, ThreadKind::Thread, 1), (12151, 0));
    assert_sums(&a);
}

#[test]
fn a_thread_does_not_age_while_another_runs() {
    let mut w = Writer::new(3);
    w.begin(0, "r").enter(0, 1, How::Syscall).call(1, 2).at(10, Event::Switch { thread: 2 });
    w.enter(0, 3, How::Call).exit(1000).at(100, Event::Switch { thread: 1 });
    w.exit(20).at(2, Event::Leave).end(0);
    let a = run(&mut w);
    assert_eq!(function(&a, 0, 2), Some([1, 30, 30, 30, 30]));
    assert_eq!(function(&a, 0, 1), Some([1, 3, 33, 3, 3]));
    assert_eq!(function(&a, 0, 3), Some([1, 1000, 1000, 1000, 1000]));
    assert_eq!(thread(&a, ThreadKind::Thread, 1), (33, 0));
    assert_eq!(thread(&a, ThreadKind::Thread, 2), (1100, 0));
    assert_eq!(a.tables.regions[0].unattributed_ns.0, 100, "nothing was open in thread 2");
    assert_eq!(a.health["unattributed_ns"], 100);
    let switches: u64 = a.tables.threads.iter().map(|t| t.switches_in).sum();
    assert_eq!(switches, 2);
    assert_sums(&a);
}

#[test]
fn a_thread_may_switch_away_on_the_way_out_of_an_interrupt() {
    let mut w = Writer::new(3);
    // User code is interrupted; the handler reschedules; thread 2 runs and is interrupted too.
    w.begin(0, "r").enter(50, 9, How::Interrupt).call(1, 2).at(2, Event::Switch { thread: 2 });
    w.call(4, 3).enter(8, 9, How::Interrupt).at(16, Event::Resume).exit(32).call(64, 2);
    w.at(128, Event::Switch { thread: 1 }).exit(256).at(512, Event::Leave).end(1024);
    let a = run(&mut w);
    assert_eq!(function(&a, 0, 9), Some([2, 1 + 16 + 512, 771 + 16, 513, 16]));
    // Thread 2's call of function 2 is still open: net time, no call.
    assert_eq!(function(&a, 0, 2), Some([1, 2 + 256 + 128, 258, 258, 258]));
    assert_eq!(function(&a, 0, 3), Some([1, 40, 40, 40, 40]));
    assert_eq!(thread(&a, ThreadKind::Interrupt, 0), (1 + 2 + 16 + 256 + 512, 0));
    assert_eq!(thread(&a, ThreadKind::Thread, 1), (50 + 1024, 50 + 1024));
    assert_eq!(thread(&a, ThreadKind::Thread, 2), (4 + 8 + 32 + 64 + 128, 0));
    assert_eq!(a.health["cut_calls"], 1);
    assert_sums(&a);
}

#[test]
fn threads_are_born_and_die() {
    let mut w = Writer::new(4);
    w.begin(0, "r").enter(0, 1, How::Syscall).call(1, 2).at(2, Event::Switch { thread: 3 });
    // Thread 3 is new: it comes out of the switch with nothing open and goes to user code.
    w.enter(4, 5, How::Jump).exit(8).call(16, 6).at(32, Event::Leave).enter(64, 1, How::Syscall);
    // And dies in the kernel.
    w.call(128, 7).at(256, Event::Switch { thread: 1 }).exit(512).at(1024, Event::Leave).end(0);
    let a = run(&mut w);
    assert_eq!(function(&a, 0, 5), Some([1, 8, 8, 8, 8]));
    assert_eq!(function(&a, 0, 6), Some([1, 32, 32, 32, 32]));
    assert_eq!(function(&a, 0, 7), Some([0, 256, 0, 0, 0]));
    assert_eq!(function(&a, 0, 1), Some([1, 1 + 128 + 1024, 1539, 1025, 1025]));
    assert_eq!(thread(&a, ThreadKind::Thread, 3), (508, 64));
    assert_eq!(a.tables.regions[0].unattributed_ns.0, 20);
    assert_eq!(a.health["cut_calls"], 2);
    assert_sums(&a);
}

#[test]
fn unwound_frames_end_where_they_are_unwound() {
    let mut w = Writer::new(2);
    w.begin(0, "r").enter(0, 1, How::Syscall).call(1, 2).call(2, 3).enter(4, 4, How::Jump);
    w.at(8, Event::Unwind { frames: 3 }).at(16, Event::Leave).end(0);
    let a = run(&mut w);
    assert_eq!(function(&a, 0, 4), Some([1, 8, 8, 8, 8]));
    assert_eq!(function(&a, 0, 2), Some([1, 2, 14, 2, 2]));
    assert_eq!(function(&a, 0, 1), Some([1, 17, 31, 17, 17]));
    assert_sums(&a);
}

#[test]
fn a_call_counts_where_it_ends_and_its_net_time_where_it_passes() {
    let mut w = Writer::new(2);
    w.begin(0, "outer").enter(1, 1, How::Syscall).call(2, 2).begin(4, "inner").call(8, 3).exit(16);
    w.exit(32).end(64).at(128, Event::Leave).end(256);
    let a = run(&mut w);
    assert_eq!(function(&a, 0, 2), Some([0, 4, 0, 0, 0]));
    assert_eq!(function(&a, 1, 2), Some([1, 40, 60, 44, 44]));
    assert_eq!(function(&a, 1, 3), Some([1, 16, 16, 16, 16]));
    assert_eq!(function(&a, 1, 1), Some([0, 64, 0, 0, 0]));
    assert_eq!(function(&a, 0, 1), Some([1, 2 + 128, 60 + 194, 194, 194]));
    let regions = &a.tables.regions;
    assert_eq!((regions[0].busy_ns.0, regions[0].user_ns.0), (511, 257));
    assert_eq!((regions[1].busy_ns.0, regions[1].user_ns.0), (120, 0));
    assert_eq!(a.busy_ns.0, 511, "the inner region is not counted twice");
    assert_sums(&a);
}

#[test]
fn calls_that_are_open_across_a_gap_do_not_count() {
    let mut w = Writer::new(3);
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
    assert_eq!(function(&a, 0, 3), Some([0, 80, 0, 0, 0]), "its end was not seen");
    assert_eq!(function(&a, 0, 1), Some([0, 40, 0, 0, 0]));
    assert_eq!(function(&a, 1, 4), Some([0, 320, 0, 0, 0]));
    assert_eq!(function(&a, 1, 5), Some([1, 1280, 1280, 1280, 1280]));
    assert_eq!(function(&a, 1, 1), Some([0, 3200, 0, 0, 0]));
    assert_eq!(a.tables.regions[1].unattributed_ns.0, 5120);
    assert_eq!(a.busy_ns.0, 150 + 160 + 320 + 640 + 1280 + 2560 + 5120);
    assert_sums(&a);
}

#[test]
fn idle_time_is_nobodys() {
    let mut w = Writer::new(2);
    w.at(0, Event::Switch { thread: 0 }).call(0, 10).at(0, Event::Switch { thread: 1 }).at(0, Event::Leave);
    w.begin(0, "r").enter(1, 1, How::Syscall).at(2, Event::Switch { thread: 0 }).call(4, 11);
    w.at(8, Event::Idle { ns: 0 }).enter(1, 9, How::Interrupt).at(0, Event::Idle { ns: 1_000_000 });
    w.at(16, Event::Resume).exit(32).at(64, Event::Switch { thread: 1 }).at(128, Event::Leave).end(0);
    let a = run(&mut w);
    assert_eq!(function(&a, 0, 11), Some([1, 41, 41, 41, 41]));
    assert_eq!(function(&a, 0, 10), Some([0, 68, 0, 0, 0]));
    assert_eq!(thread(&a, ThreadKind::Idle, 0), (109, 0));
    assert_eq!(thread(&a, ThreadKind::Interrupt, 0), (16, 0));
    assert_eq!((a.elapsed_ns.0, a.busy_ns.0, a.idle_ns.0), (1_000_256, 256, 1_000_000));
    assert_eq!(a.tables.regions[0].idle_ns.0, 1_000_000);
    assert_sums(&a);
}

#[test]
fn code_in_no_known_function_has_a_name_for_that() {
    let mut w = Writer::new(2);
    w.begin(0, "r").enter(0, 1, How::Syscall).call(1, 32).exit(2).at(4, Event::Leave).end(0);
    let a = run(&mut w);
    assert_eq!(a.tables.name(FunctionIndex(32)), "[unknown]");
    assert_eq!(a.tables.symbols.len(), 33);
    assert_sums(&a);
}

#[test]
fn a_region_without_an_end_has_the_traces_times() {
    let mut w = Writer::new(2);
    w.begin(0, "r").enter(5, 1, How::Syscall).at(6, Event::Idle { ns: 100 }).at(7, Event::Leave);
    let a = run(&mut w);
    assert_eq!((a.elapsed_ns.0, a.busy_ns.0, a.idle_ns.0), (118, 18, 100));
    assert_eq!(a.health["unclosed_regions"], 1);
    assert_sums(&a);
}
