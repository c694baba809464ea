//! Difficult cases with results worked out by hand.

use super::sim::{read, TraceSim, KERNEL};
use kerntune_analyze::path::{
    CallStart, CodePath, PathEntry, PathEntryKind, PathError, PathSelection, PathSpan, SelectedOperation,
};
use kerntune_profile::FunctionIndex;
use kerntune_trace::{EnterKind, Event};

/// An entry as a line: level, kind, begin..end, self/total.
fn show(entry: &PathEntry) -> String {
    let what = match entry.kind {
        PathEntryKind::Call { function, how } => format!("{how} f{}", function.0),
        PathEntryKind::Away { switches, idle_ns, to } => format!("away {switches} {idle_ns} t{to}"),
        kind => format!("{kind:?}").to_lowercase(),
    };
    let time = |ns: Option<u64>| ns.map_or("?".into(), |ns| ns.to_string());
    let (begin, end) = (time(entry.begin_ns), time(entry.end_ns));
    format!("{} {what} {begin}..{end} {}/{}", entry.level, entry.self_ticks, entry.total_ns)
}

fn lines(path: &CodePath, thread: u32) -> Vec<String> {
    let shown = path.threads.iter().find(|t| t.thread == thread);
    shown.map(|t| t.entries.iter().map(show).collect()).unwrap_or_default()
}

fn window(begin_ns: u64, end_ns: u64) -> PathSelection {
    PathSelection { span: PathSpan::Window { begin_ns, end_ns }, ..PathSelection::default() }
}

fn nth(function: u32, nth: u64) -> PathSelection {
    let span = PathSpan::Call(CallStart::Nth { function: FunctionIndex(function), nth, region: None });
    PathSelection { span, ..PathSelection::default() }
}

fn at(function: u32, begin_ns: u64, took: Option<u64>) -> PathSelection {
    let function = FunctionIndex(function);
    let span = PathSpan::Call(CallStart::At { function, begin_ns, elapsed_ns: took.map(|ns| ns..=ns) });
    PathSelection { span, ..PathSelection::default() }
}

/// A read that blocks: the thread is switched away in the middle of its stack, an interrupt ends
/// the idle period, and the thread returns.
///
/// ```text
/// 1000 user  1010 syscall f0  1015 f1  1020 interrupt f2  1023 f3  1027 exit f3  1030 resume
/// 1034 f4 (schedule)  1040 → t0  1043 idle 100  1143 interrupt f2  1148 resume  1150 → t1
/// 1152 exit f4  1155 exit f1  1160 leave  1170 end
/// ```
fn blocking() -> TraceSim {
    let mut sim = TraceSim::new(2);
    sim.enter(10, 0, EnterKind::Syscall).call(5, 1).enter(5, 2, EnterKind::Interrupt).call(3, 3).exit(4);
    sim.at(3, Event::Resume).call(4, 4).switch(6, 0).at(3, Event::Idle { ns: 100 });
    sim.enter(0, 2, EnterKind::Interrupt)
        .at(5, Event::Resume)
        .switch(2, 1)
        .exit(2)
        .exit(3)
        .at(5, Event::Leave);
    sim.end(10);
    sim
}

#[test]
fn interrupt_switch_and_idle() {
    let path = blocking().path(&window(0, 5_000)).unwrap();
    assert_eq!((path.begin_ns, path.end_ns), (1_000, 1_170));
    assert_eq!(
        lines(&path, 1),
        [
            "0 regionbegin(0) 1000..1000 0/0",
            "0 user 1000..1010 10/10",
            // 5 before f1, 5 after; f1 has 5 + 4 + 3, f4 6 + 2
            "0 syscall f0 1010..1160 10/30",
            "1 call f1 1015..1155 12/20",
            "2 interrupt f2 1020..1030 6/10",
            "3 call f3 1023..1027 4/4",
            "2 call f4 1034..1152 8/8",
            "3 away 2 100 t0 1040..1150 110/110",
            "0 user 1160..1170 10/10",
            "0 regionend(0) 1170..1170 0/0",
        ]
    );
    assert_eq!(
        lines(&path, 0),
        [
            "0 unattributed 1040..1043 3/3",
            "0 idle 1043..1143 100/100",
            "0 interrupt f2 1143..1148 5/5",
            "0 unattributed 1148..1150 2/2",
            "0 away 0 0 t1 1150..? 0/0",
        ]
    );
    let stretches: Vec<_> = path.stretches.iter().map(|s| (s.thread, s.begin_ns, s.end_ns)).collect();
    assert_eq!(stretches, [(1, 1_000, 1_040), (0, 1_040, 1_150), (1, 1_150, 1_170)]);
    let t = path.totals;
    assert_eq!(
        (t.busy_ticks, t.interrupt_ns, t.user_ticks, t.unattributed_ticks, t.idle_ns),
        (70, 15, 20, 5, 100)
    );
    assert_eq!((t.calls, t.interrupts, t.syscalls, t.exceptions, t.switches, t.depth), (6, 2, 1, 0, 2, 4));
}

#[test]
fn one_call_with_the_switch_away_as_one_entry() {
    let path = blocking().path(&nth(1, 1)).unwrap();
    assert_eq!(
        lines(&path, 1),
        [
            "0 call f1 1015..1155 12/20",
            "1 interrupt f2 1020..1030 6/10",
            "2 call f3 1023..1027 4/4",
            "1 call f4 1034..1152 8/8",
            "2 away 2 100 t0 1040..1150 110/110",
        ]
    );
    assert_eq!((path.call_ns(), path.threads.len(), path.begin_ns, path.end_ns), (20, 1, 1_015, 1_155));
    // From entry to exit: the call, its interrupt and the time while it was away.
    assert_eq!(path.totals.busy_ticks + 110, 140);
    assert_eq!(path.totals.interrupt_ns, 10);
    let all = blocking().path(&PathSelection { all: true, ..nth(1, 1) }).unwrap();
    assert_eq!(lines(&all, 1), lines(&path, 1));
    assert_eq!(all.stretches.len(), 3);
    assert_eq!(all.totals.busy_ticks + all.totals.idle_ns, 140);
}

#[test]
fn a_thread_alone() {
    for name in ["1", "t1"] {
        let path =
            blocking().path(&PathSelection { thread: Some(name.into()), ..window(1_030, 1_152) }).unwrap();
        assert_eq!(
            lines(&path, 1),
            [
                "0 syscall f0 ?..? 0/12",
                "1 call f1 ?..? 4/12",
                "2 interrupt f2 ?..1030 0/0",
                "2 call f4 1034..1152 8/8",
                "3 away 2 100 t0 1040..1150 110/110",
            ]
        );
        assert_eq!((path.stretches[1].switches, path.stretches[1].idle_ns), (2, 100));
    }
    let unknown = blocking().path(&PathSelection { thread: Some("redis".into()), ..window(0, 9_999) });
    assert_eq!(
        unknown.unwrap_err().to_string(),
        "the recording has no thread \"redis\"; it has t0 [0], t1 [1]"
    );
}

#[test]
fn a_window_that_cuts_calls_idle_and_the_time_between_events() {
    let path = blocking().path(&window(1_025, 1_100)).unwrap();
    assert_eq!((path.begin_ns, path.end_ns), (1_025, 1_100));
    assert_eq!(
        lines(&path, 1),
        [
            "0 syscall f0 ?..? 0/10",
            "1 call f1 ?..? 4/10",
            "2 interrupt f2 ?..1030 3/5",
            "3 call f3 ?..1027 2/2",
            "2 call f4 1034..? 6/6",
            "3 away 0 0 t0 1040..? 0/0",
        ]
    );
    assert_eq!(lines(&path, 0), ["0 unattributed 1040..1043 3/3", "0 idle 1043..? 57/57"]);
    let path = blocking().path(&window(1_100, 1_145)).unwrap();
    assert_eq!(lines(&path, 0), ["0 idle ?..1143 43/43", "0 interrupt f2 1143..? 2/2"]);
}

#[test]
fn tail_calls_exceptions_points_unwinding_and_user_functions() {
    let mut sim = TraceSim::new(2);
    // 1005 main (user)  1010 fault  1014 f5  1016 → f6 by a jump  1020 point  1025 exit both  1028 leave
    sim.call(5, KERNEL + 1).enter(5, 9, EnterKind::Exception).call(4, 5).enter(2, 6, EnterKind::Jump);
    sim.at(4, Event::Point { point: 3 }).exit(5).at(3, Event::Leave);
    // 1030 syscall  1031 f1  1032 f2  1033 f3  1040 unwind 2, the return is f1's  1044 leave  1046 exit main
    sim.enter(2, 0, EnterKind::Syscall).call(1, 1).call(1, 2).call(1, 3);
    sim.at(7, Event::Unwind { frames: 2 }).exit(0).at(4, Event::Leave).exit(2).at(4, Event::Operation);
    sim.end(1);
    let path = sim.path(&window(1_001, 2_000)).unwrap();
    assert_eq!(
        lines(&path, 1),
        [
            "0 user 1001..1005 4/4",
            "0 call f101 1005..1046 9/41",
            "1 exception f9 1010..1028 7/18",
            "2 call f5 1014..1025 2/11",
            "3 jump f6 1016..1025 9/9",
            "4 point(3) 1020..1020 0/0",
            "1 syscall f0 1030..1044 5/14",
            "2 call f1 1031..1040 1/9",
            "3 call f2 1032..1040 1/8",
            "4 call f3 1033..1040 7/7",
            "5 unwind(2) 1040..1040 0/0",
            "0 user 1046..1050 4/4",
            "0 operation 1050..1050 0/0",
            "0 user 1050..1051 1/1",
            "0 regionend(0) 1051..1051 0/0",
        ]
    );
}

#[test]
fn a_preempted_interrupt_does_not_age_while_it_is_away() {
    let mut sim = TraceSim::new(3);
    // 1002 f1  1004 interrupt f2  1007 nested interrupt f3  1009 resume  1010 → t2  1030 → t1  1033 resume
    sim.call(2, 1).enter(2, 2, EnterKind::Interrupt).enter(3, 3, EnterKind::Interrupt).at(2, Event::Resume);
    sim.switch(1, 2).call(4, 7).exit(6).switch(10, 1).at(3, Event::Resume).exit(5).end(1);
    let path = sim.path(&nth(1, 1)).unwrap();
    assert_eq!(
        lines(&path, 1),
        [
            "0 call f1 1002..1038 7/7",
            "1 interrupt f2 1004..1033 7/7",
            "2 interrupt f3 1007..1009 2/2",
            "2 away 2 0 t2 1010..1030 20/20",
        ]
    );
    assert_eq!((path.totals.interrupt_ns, path.totals.busy_ticks), (9, 16));
}

#[test]
fn chunks_cut_anywhere_change_nothing() {
    let whole = blocking();
    let mut cut = TraceSim::new(2);
    cut.cut()
        .enter(10, 0, EnterKind::Syscall)
        .cut()
        .call(5, 1)
        .cut()
        .enter(5, 2, EnterKind::Interrupt)
        .call(3, 3);
    cut.cut().exit(4).at(3, Event::Resume).cut().call(4, 4).cut().switch(6, 0).cut();
    cut.at(3, Event::Idle { ns: 100 }).cut().enter(0, 2, EnterKind::Interrupt).cut().at(5, Event::Resume);
    cut.switch(2, 1).cut().exit(2).cut().exit(3).at(5, Event::Leave).cut().end(10);
    for selection in [window(0, 9_999), window(1_025, 1_100), nth(1, 1), nth(2, 2)] {
        let (a, b) = (whole.path(&selection).unwrap(), cut.path(&selection).unwrap());
        assert_eq!((&a.threads, &a.stretches, a.totals), (&b.threads, &b.stretches, b.totals));
    }
}

#[test]
fn only_the_chunks_that_are_needed_are_read() {
    let mut sim = TraceSim::new(2);
    for _ in 0..50 {
        sim.cut().call(10, 1).call(5, 2).exit(5).exit(10);
    }
    sim.end(5);
    let (mut bytes, recording) = sim.trace();
    // Call 20 of f1 is in a chunk of its own; all chunks before and after it are destroyed.
    let path = read(&bytes, &recording, &nth(1, 20)).unwrap();
    let begin = path.begin_ns;
    let (from, to) = (recording.chunks[20].offset as usize, recording.chunks[21].offset as usize);
    bytes[16..from].fill(0xee);
    bytes[to..].fill(0xee);
    let again = read(&bytes, &recording, &at(1, begin, Some(20))).unwrap();
    assert_eq!((again.threads, again.chunks), (path.threads, 1));
    assert!(matches!(read(&bytes, &recording, &nth(1, 20)), Err(PathError::Trace(_))));
}

#[test]
fn of_calls_that_begin_together_the_one_that_took_as_long_as_said() {
    let mut sim = TraceSim::new(2);
    // f1 falls into f1 twice, the innermost calls f2.
    sim.call(10, 1).enter(0, 1, EnterKind::Jump).call(0, 1).call(7, 2).exit(3).exit(2).exit(5).end(1);
    let total = |took| sim.path(&at(1, 1_010, took)).map(|path| (path.call_ns(), lines(&path, 1).len()));
    assert_eq!(total(Some(12)).unwrap(), (12, 2));
    assert_eq!(total(Some(17)).unwrap(), (17, 4));
    assert_eq!(total(None).unwrap(), (17, 4));
    assert_eq!(
        total(Some(13)).unwrap_err().to_string(),
        "the call that begins at 1010 ns took 17 ns, not 13 to 13: trace and profile are not of one run"
    );
    assert!(matches!(sim.path(&at(1, 1_011, None)), Err(PathError::NoCall { at: 1_011 })));
    assert!(matches!(sim.path(&nth(2, 4)), Err(PathError::NoNthCall { wanted: 4, found: 1 })));
}

#[test]
fn operations_of_a_region_and_calls_in_it() {
    let mut sim = TraceSim::silent(2);
    let operation = |sim: &mut TraceSim, function| {
        sim.call(3, function).exit(4).at(2, Event::Operation);
    };
    sim.begin("warm");
    operation(&mut sim, 5);
    sim.end(1).unseen(100).begin("rr");
    (1..=3).for_each(|function| operation(&mut sim, function));
    sim.end(1).unseen(100).begin("rr");
    operation(&mut sim, 4);
    sim.end(1);
    let operation = |region: Option<&str>, nth| {
        let span = PathSpan::Operation { region: region.map(Into::into), nth };
        sim.path(&PathSelection { span, ..PathSelection::default() })
    };
    let functions = |path: CodePath| {
        let of = |e: &PathEntry| {
            if let PathEntryKind::Call { function, .. } = e.kind {
                Some(function.0)
            } else {
                None
            }
        };
        path.threads[0].entries.iter().filter_map(of).collect::<Vec<_>>()
    };
    assert_eq!(functions(operation(None, 1).unwrap()), [5]);
    for (nth, function) in [(1, 1), (2, 2), (3, 3), (4, 4)] {
        let path = operation(Some("rr"), nth).unwrap();
        assert_eq!((path.end_ns - path.begin_ns, functions(path)), (9, vec![function]), "operation {nth}");
    }
    let found = |nth| operation(Some("rr"), nth).unwrap().operation;
    assert_eq!(found(1), Some(SelectedOperation { region: 1, marked: true }));
    assert_eq!(found(4), Some(SelectedOperation { region: 2, marked: true }));
    assert!(matches!(operation(Some("rr"), 5), Err(PathError::NoNthOperation { found: 4, .. })));
    assert_eq!(
        operation(Some("udp"), 1).unwrap_err().to_string(),
        "the recording has no region \"udp\"; it has warm, rr"
    );
    let in_region = |region: &str, function| {
        let (function, region) = (FunctionIndex(function), Some(region.into()));
        let span = PathSpan::Call(CallStart::Nth { function, nth: 1, region });
        sim.path(&PathSelection { span, ..PathSelection::default() })
    };
    assert!(in_region("warm", 5).is_ok() && in_region("rr", 5).is_err());
    let from = PathSpan::Call(CallStart::From { begin_ns: 1_104 });
    let first = sim.path(&PathSelection { span: from, ..PathSelection::default() }).unwrap();
    assert_eq!(functions(first), [1]);
}

#[test]
fn what_was_not_recorded_is_a_gap_and_ends_what_is_known() {
    let mut sim = TraceSim::silent(2);
    sim.begin("a").call(5, 1).end(3).unseen(50).begin("b").exit(4).end(2);
    let path = sim.path(&window(0, 9_999)).unwrap();
    assert_eq!(
        lines(&path, 1),
        [
            "0 regionbegin(0) 1000..1000 0/0",
            "0 user 1000..1005 5/5",
            "0 call f1 1005..? 3/3",
            "1 regionend(0) 1008..1008 0/0",
            "0 gap 1008..? 0/0",
            "0 call f1 ?..1062 4/4",
            "1 regionbegin(1) 1058..1058 0/0",
            "0 unattributed 1062..1064 2/2",
            "0 regionend(1) 1064..1064 0/0",
        ]
    );
    assert!(path.stretches[1].gap);
    // A single call ends with the gap, and is not complete.
    let call = sim.path(&nth(1, 1)).unwrap();
    assert_eq!(lines(&call, 1)[0], "0 call f1 1005..? 3/3");
    let outside = sim.path(&window(1_020, 1_040)).unwrap_err();
    assert_eq!(
        outside.to_string(),
        "nothing was recorded from 1020 ns to 1040 ns; the recording covers 1000 ns to 1064 ns"
    );
    assert!(matches!(sim.path(&window(9, 8)), Err(PathError::Backwards { .. })));
}

#[test]
fn depth_and_limit_leave_out_and_say_so() {
    let sim = blocking();
    let path = sim.path(&PathSelection { depth: Some(1), ..window(0, 9_999) }).unwrap();
    assert_eq!(
        lines(&path, 1)[1..],
        [
            "0 user 1000..1010 10/10",
            "0 syscall f0 1010..1160 10/30",
            // Interrupts and switches are shown at any depth.
            "1 interrupt f2 1020..1030 6/10",
            "1 away 2 100 t0 1040..1150 110/110",
            "0 user 1160..1170 10/10",
            "0 regionend(0) 1170..1170 0/0",
        ]
    );
    assert_eq!((path.hidden, path.threads[0].entries[2].hidden), (3, 2));
    let path = sim.path(&PathSelection { limit: 4, ..window(0, 9_999) }).unwrap();
    // The figures include everything, shown or not.
    assert_eq!(lines(&path, 1)[2..], ["0 syscall f0 1010..1160 10/30", "1 call f1 1015..1155 12/20"]);
    assert!(path.more > 0);
    // A region without operations is shown whole; its figures do not depend on the entries shown.
    let all = sim.path(&PathSelection::default()).unwrap();
    let path = sim.path(&PathSelection { limit: 4, ..PathSelection::default() }).unwrap();
    assert_eq!((path.begin_ns, path.end_ns, path.totals), (all.begin_ns, all.end_ns, all.totals));
    assert_eq!((path.end_ns - path.begin_ns, all.totals.calls, all.more), (170, 6, 0));
    let count = |path: &CodePath| path.threads.iter().map(|thread| thread.entries.len() as u64).sum::<u64>();
    assert_eq!((count(&path), path.more), (4, count(&all) - 4));
    assert_eq!(path.operation, Some(SelectedOperation { region: 0, marked: false }));
}
