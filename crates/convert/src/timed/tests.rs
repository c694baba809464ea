//! Tests of the builder.

use super::*;
use kerntune_profile::PathNode;

fn calls(names: &[&str]) -> (TimedCalls, Vec<u32>) {
    let mut calls = TimedCalls::default();
    let add = |name: &&str| {
        calls.add_function(Symbol { name: (*name).into(), ..Symbol::default() }, *name == "halt")
    };
    let numbers = names.iter().map(add).collect();
    (calls, numbers)
}

fn own(tables: &TimedTables, name: &str) -> (u64, u64, u64) {
    let symbol = tables.tables.symbols.iter().find(|symbol| symbol.name == name).unwrap();
    let row = tables.tables.functions.iter().find(|row| row.function == symbol.function).unwrap();
    (row.calls, row.self_ticks.get(), row.total_ticks.get())
}

#[test]
fn time_off_the_cpu_is_no_functions() {
    let (mut calls, f) = calls(&["read", "schedule"]);
    let [one, other] = [1, 2].map(|pid| calls.add_thread(ThreadKind::Thread, pid, 0, "work"));
    calls.runs(one, 0);
    calls.enter(one, 10, f[0], CallKind::Call, None);
    calls.enter(one, 20, f[1], CallKind::Call, None);
    calls.leaves(one, 25);
    calls.runs(other, 25);
    calls.switch(other, ["work", "work"], Some(f[0]), SwitchKind::Voluntary);
    calls.leaves(other, 100);
    calls.runs(one, 100);
    calls.exit(one, 105, None);
    calls.exit(one, 115, Some(103));
    let made = calls.finish("trace");
    assert_eq!(own(&made, "schedule"), (1, 10, 10));
    assert_eq!(own(&made, "read"), (1, 18, 28));
    assert_eq!(made.totals.busy, 115);
    assert_eq!(made.tables.paths.iter().map(|path| path.self_ticks.get()).sum::<u64>(), 115);
    let threads: Vec<_> = made.tables.threads.iter().map(|row| row.self_ticks.get()).collect();
    assert_eq!(threads, [40, 75]);
    assert_eq!(made.tables.switches[0].count, 1);
}

#[test]
fn halted_time_is_idle() {
    let (mut calls, f) = calls(&["do_idle", "halt"]);
    let idle = calls.add_thread(ThreadKind::Idle, 0, 0, "swapper");
    calls.runs(idle, 0);
    calls.enter(idle, 0, f[0], CallKind::Call, None);
    calls.enter(idle, 5, f[1], CallKind::Call, None);
    calls.exit(idle, 95, None);
    calls.exit(idle, 100, None);
    calls.leaves(idle, 110);
    let made = calls.finish("trace");
    assert_eq!((made.totals.busy, made.totals.idle, made.totals.elapsed), (10, 100, 110));
    assert_eq!(own(&made, "halt"), (1, 0, 90));
}

#[test]
fn calls_without_begin_or_end_are_counted() {
    let (mut calls, f) = calls(&["a", "b"]);
    let thread = calls.add_thread(ThreadKind::Thread, 1, 1, "work");
    calls.headless(50, f[1], CallKind::Call, 30);
    calls.enter(thread, 60, f[0], CallKind::Call, Some(0));
    calls.enter(thread, 70, f[1], CallKind::Call, Some(1));
    calls.exit(thread, 80, None);
    let made = calls.finish("trace");
    assert_eq!(made.mismatches, CallMismatches { headless: 1, unended: 1, crowded: 0 });
    assert_eq!(own(&made, "b"), (1, 10, 40));
    assert_eq!(own(&made, "a"), (1, 0, 0), "without switches nobody knows whether it slept");
    assert_eq!(made.totals.busy, 10);
}

#[test]
fn counts_without_times_have_time_of_nobody() {
    let (mut calls, f) = calls(&["a", "b"]);
    calls.at(10);
    calls.count(Some(f[0]), f[1]);
    calls.count(None, f[1]);
    calls.at(30);
    let made = calls.finish("trace");
    assert_eq!((made.totals.busy, made.tables.arcs.len()), (20, 2));
    assert_eq!(made.tables.threads[0].comm, "[not timed]");
    assert_eq!(made.tables.paths[0].parent, PathNode::ROOT);
}
