//! Folding: lines and their figures.

use super::sim::TraceSim;
use kerntune_analyze::path::{
    fold, CallStart, PathEntry, PathEntryKind, PathLine, PathLineKind, PathSelection, PathSpan,
};
use kerntune_profile::FunctionIndex;
use kerntune_trace::Event;

/// The calls within the first call of f0 as folded lines: name, times/count, self sum, total
/// least..greatest.
fn folded(sim: &TraceSim) -> Vec<String> {
    let call = CallStart::Nth { function: FunctionIndex(0), nth: 1, region: None };
    let path = sim.path(&PathSelection { span: PathSpan::Call(call), ..PathSelection::default() }).unwrap();
    let entries = &path.threads[0].entries;
    fold(entries, false).iter().map(|line| show(line, entries)).collect()
}

fn show(line: &PathLine, entries: &[PathEntry]) -> String {
    let what = match (line.kind, entries[line.entry as usize].kind) {
        (PathLineKind::GroupEnd, _) => return "}".into(),
        (PathLineKind::Group, _) => "{".into(),
        (_, PathEntryKind::Call { function, .. }) => format!("f{}", function.0),
        (_, kind) => format!("{kind:?}"),
    };
    let PathLine { times, count, self_time, total, .. } = line;
    format!("{what} x{times}/{count} net {} total {}..{}", self_time.sum, total.min, total.max)
}

#[test]
fn calls_in_a_row_become_one_with_their_spread() {
    let mut sim = TraceSim::new(2);
    sim.call(1, 0);
    for took in [5, 3, 9, 4] {
        sim.call(1, 1).call(2, 2).exit(took).exit(1);
    }
    // Of another shape: f2 twice.
    sim.call(1, 1).call(1, 2).exit(7).call(0, 2).exit(8).exit(0).exit(1).end(1);
    assert_eq!(
        folded(&sim),
        [
            "f0 x1/1 net 6 total 55..55",
            "f1 x4/4 net 12 total 6..12",
            "f2 x1/4 net 21 total 3..9",
            "f1 x1/1 net 1 total 16..16",
            "f2 x2/2 net 15 total 7..8",
        ]
    );
}

#[test]
fn what_repeats_together_becomes_a_group() {
    let mut sim = TraceSim::new(2);
    sim.call(1, 0);
    for turn in 1..=3 {
        sim.call(0, 1).exit(turn);
        for _ in 0..2 {
            sim.call(0, 2).exit(10);
        }
        sim.at(0, Event::Point { point: 1 });
    }
    sim.call(0, 1).exit(4).exit(0).end(1);
    assert_eq!(
        folded(&sim),
        [
            "f0 x1/1 net 0 total 70..70",
            "{ x3/3 net 66 total 21..23",
            "f1 x1/3 net 6 total 1..3",
            "f2 x1/3 net 30 total 10..10",
            "f2 x1/3 net 30 total 10..10",
            "Point(1) x1/3 net 0 total 0..0",
            "}",
            "f1 x1/1 net 4 total 4..4",
        ]
    );
}

#[test]
fn what_was_not_seen_whole_is_folded_with_nothing() {
    let mut sim = TraceSim::new(2);
    sim.call(1, 1).exit(5).call(1, 1).exit(5).call(1, 1).exit(5).call(1, 1).exit(5).end(1);
    let span = PathSpan::Window { begin_ns: 1_003, end_ns: 1_021 };
    let path = sim.path(&PathSelection { span, ..PathSelection::default() }).unwrap();
    let entries = &path.threads[0].entries;
    let lines: Vec<_> = fold(entries, false).iter().map(|line| show(line, entries)).collect();
    assert_eq!(
        lines,
        [
            "f1 x1/1 net 3 total 3..3",
            "{ x2/2 net 12 total 6..6",
            "Unattributed x1/2 net 2 total 1..1",
            "f1 x1/2 net 10 total 5..5",
            "}",
            "Unattributed x1/1 net 1 total 1..1",
            "f1 x1/1 net 2 total 2..2",
        ]
    );
}

#[test]
fn switches_are_folded_only_where_one_thread_is_shown() {
    let mut sim = TraceSim::new(3);
    sim.call(1, 0);
    for _ in 0..2 {
        sim.call(1, 1).switch(2, 2).call(3, 5).exit(4).switch(5, 1).exit(6);
    }
    sim.exit(1).end(1);
    let call = CallStart::Nth { function: FunctionIndex(0), nth: 1, region: None };
    let path = sim.path(&PathSelection { span: PathSpan::Call(call), ..PathSelection::default() }).unwrap();
    let entries = &path.threads[0].entries;
    let lines =
        |stretches| fold(entries, stretches).iter().map(|line| show(line, entries)).collect::<Vec<_>>();
    assert_eq!(lines(false)[1], "f1 x2/2 net 16 total 8..8");
    assert_eq!(lines(false)[2], "Away { switches: 2, idle_ns: 0, to: 2 } x1/2 net 24 total 12..12");
    assert_eq!(lines(true).len(), entries.len());
}
