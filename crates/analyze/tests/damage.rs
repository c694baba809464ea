//! Damaged or mismatched traces end in an error that says so, never in a panic.

use crate::support::{symbols, TestTraceWriter};
use kerntune_analyze::{analyze, Analysis, AnalysisInput, Error};
use kerntune_trace::{ChunkState, EnterKind, Event, OpenStack, Recording, CHUNK_HEADER_BYTES};
use proptest::prelude::*;
use std::ops::ControlFlow;

fn run_with(bytes: &[u8], recording: &Recording, threads: usize, partial: bool) -> Result<Analysis, Error> {
    let symbols = symbols(8);
    let input = AnalysisInput { threads, partial, ..AnalysisInput::new(&bytes, recording, &symbols) };
    analyze(&input, &mut |_| ControlFlow::Continue(()))
}

fn run(bytes: &[u8], recording: &Recording) -> Result<Analysis, Error> {
    run_with(bytes, recording, 1, false)
}

/// The error of a chunk, without the time range of the chunk.
fn inner(error: Error) -> Error {
    match error {
        Error::InTime { source, .. } => *source,
        other => other,
    }
}

/// Three chunks, two regions, two threads.
fn writer() -> TestTraceWriter {
    let mut w = TestTraceWriter::new(3);
    w.begin(0, "one").enter(5, 1, EnterKind::Syscall).call(10, 2).cut();
    w.call(20, 3).exit(1).exit(2).at(3, Event::Switch { thread: 2 }).call(4, 4).cut();
    w.begin(5, "two").exit(6).at(7, Event::Leave).end(8).end(9);
    w
}

#[test]
fn a_trace_that_ends_early_is_refused_wherever_it_ends() {
    let (bytes, recording) = writer().finish();
    assert_eq!(recording.chunks.len(), 3);
    assert!(run(&bytes, &recording).is_ok());
    for length in 0..bytes.len() {
        let error = run(&bytes[..length], &recording).unwrap_err().to_string();
        let missing = error
            .contains("of 3 chunks; record again, or keep the rest: `kerntune profile rebuild")
            && error.contains("covers the virtual time");
        assert!(length < 16 || missing, "{length}: {error}");
    }
}

#[test]
fn files_of_two_runs_are_refused() {
    let (bytes, mut recording) = writer().finish();
    recording.chunks[1].events += 1;
    let error = run(&bytes, &recording).unwrap_err().to_string();
    assert!(error.contains("chunk 1 of the trace is not the one that the recording describes"), "{error}");

    let (bytes, mut recording) = writer().finish();
    recording.threads.pop();
    let error = run(&bytes, &recording).unwrap_err().to_string();
    assert!(error.contains("names thread 2 in chunk 1, of which the recording has 2"), "{error}");

    let (bytes, recording) = writer().finish();
    let (bytes, symbols) = (&bytes[..], symbols(2));
    let result =
        analyze(&AnalysisInput::new(&bytes, &recording, &symbols), &mut |_| ControlFlow::Continue(()));
    assert!(result.unwrap_err().to_string().contains("names function 3"));
    assert!(run(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0", &recording)
        .unwrap_err()
        .to_string()
        .contains("not a kerntune trace"));
}

#[test]
fn another_cpu_is_refused() {
    let (mut bytes, recording) = writer().finish();
    bytes[16 + 4] = 1;
    let error = inner(run(&bytes, &recording).unwrap_err());
    assert!(matches!(error, Error::Unknown { chunk: 0, what: "CPU", number: 1, known: 1 }));
}

#[test]
fn the_callback_stops_the_analysis() {
    let (bytes, recording) = writer().finish();
    let (bytes, symbols) = (&bytes[..], symbols(8));
    for threads in [1, 2, 5] {
        let mut seen = Vec::new();
        let input = AnalysisInput { threads, ..AnalysisInput::new(&bytes, &recording, &symbols) };
        let result = analyze(&input, &mut |events| {
            seen.push(events);
            if seen.len() == 2 {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        assert!(matches!(result, Err(Error::Stopped)));
        assert_eq!(seen, [3, 8]);
    }
}

#[test]
fn a_stack_that_is_not_as_the_next_chunk_says_is_counted() {
    let mut w = TestTraceWriter::new(3);
    w.begin(0, "r").enter(5, 1, EnterKind::Syscall).call(10, 2);
    // The recorder loses a frame of the running thread between two chunks.
    w.stacks[1].pop();
    w.cut().call(20, 3).exit(30).at(40, Event::Leave).end(0);
    let (bytes, recording) = w.finish();
    let analysis = run(&bytes, &recording).unwrap();
    assert_eq!(analysis.health["stack_mismatches"], 1);
    let found = |f: u32| {
        let row = analysis.tables.functions.iter().find(|r| r.function.0 == f)?;
        Some((row.calls, row.ended, row.self_ticks.0))
    };
    assert_eq!(found(1), Some((1, 0, 10 + 20 + 40)), "not seen whole: its time, but no end");
    assert_eq!(found(2), Some((1, 0, 0)), "only its beginning was seen");
    assert_eq!(found(3), Some((1, 1, 30)));
    assert_eq!(analysis.tables.regions[0].busy_ticks.0, 105);
}

/// A trace of one chunk with this state and these events, and a matching recording.
fn forged(stacks: Vec<OpenStack>, payload: &[u8], events: u32) -> (Vec<u8>, Recording) {
    let (bytes, mut recording) = TestTraceWriter::new(3).begin(0, "r").end(1).finish();
    let mut raw = Vec::new();
    ChunkState { user: true, regions: Vec::new(), stacks, ..ChunkState::default() }.write(&mut raw);
    let mut header = kerntune_trace::ChunkHeader::parse(&bytes[16..16 + CHUNK_HEADER_BYTES]).unwrap();
    (header.events, header.state, header.payload) = (events, raw.len() as u32, payload.len() as u32);
    raw.extend_from_slice(payload);
    let trace = kerntune_trace::TraceHeader { wide: false };
    let mut writer = kerntune_trace::TraceFileWriter::new(Vec::new(), trace).unwrap();
    writer.chunk(header, &raw).unwrap();
    let (trace, chunks) = writer.finish().unwrap();
    recording.chunks = chunks;
    (trace, recording)
}

fn stack(thread: u32, frames: Vec<(u32, EnterKind)>) -> OpenStack {
    OpenStack { thread, running: thread == 1, frames }
}

#[test]
fn endless_stacks_and_times_are_refused() {
    let error = |trace: &[u8], recording: &Recording| inner(run(trace, recording).unwrap_err());
    let (trace, recording) = forged(vec![stack(1, vec![(1, EnterKind::Call); 70_000])], &[], 0);
    assert!(matches!(error(&trace, &recording), Error::Depth { .. }));

    let mut payload = Vec::new();
    for _ in 0..3 {
        kerntune_trace::encode::event(
            &mut payload,
            (1 << 62) - 1,
            Event::Enter { function: 1, how: EnterKind::Call },
        );
    }
    let (trace, recording) = forged(vec![stack(1, vec![])], &payload, 3);
    assert!(matches!(error(&trace, &recording), Error::Time { .. }));

    let mut payload = Vec::new();
    for _ in 0..2 {
        kerntune_trace::encode::event(&mut payload, 0, Event::Idle { ns: u64::MAX / 2 });
    }
    let (trace, recording) = forged(vec![stack(1, vec![])], &payload, 2);
    assert!(matches!(error(&trace, &recording), Error::Time { .. }));
}

/// Four chunks: a call of 1 that spans them all, a call of 2 in each, an interrupt in the third.
fn four_chunks() -> (Vec<u8>, Recording) {
    let mut w = TestTraceWriter::new(3);
    w.begin(0, "one").enter(1, 1, EnterKind::Syscall).call(2, 2).exit(4).cut();
    w.call(8, 2).exit(16).call(32, 3).cut();
    w.exit(64).call(128, 2).exit(256).enter(512, 4, EnterKind::Interrupt).at(1024, Event::Resume).cut();
    w.call(2048, 2).exit(4096).at(8192, Event::Leave).end(0);
    let (bytes, recording) = w.finish();
    assert_eq!(recording.chunks.len(), 4);
    (bytes, recording)
}

#[test]
fn a_partial_result_is_exact_but_for_what_is_missing() {
    let (mut bytes, recording) = four_chunks();
    let (from, to) = (recording.chunks[1].offset as usize, recording.chunks[2].offset as usize);
    bytes[to - 3] ^= 0x10;
    let error = run(&bytes, &recording).unwrap_err().to_string();
    assert!(error.contains("damaged in chunk 1") && error.contains("from 1000007 to 1000063 ns"), "{error}");
    assert!(to > from);

    let one = run_with(&bytes, &recording, 1, true).unwrap();
    assert_eq!(run_with(&bytes, &recording, 3, true).unwrap(), one);
    let [missing] = &one.missing[..] else { panic!("{:?}", one.missing) };
    assert_eq!(
        (missing.chunk, missing.begin_ns, missing.end_ns, missing.events),
        (1, 1_000_007, 1_000_063, 3)
    );
    assert!(missing.reason.contains("chunk 1"), "{}", missing.reason);
    let health = |name: &str| one.health[name];
    assert_eq!([health("missing_chunks"), health("missing_events"), health("missing_ns")], [1, 3, 56]);
    // The call of 1, of which the middle is missing, and that of 3, of which the beginning is.
    assert_eq!(health("cut_calls"), 2);
    assert_eq!((health("stack_mismatches"), health("clock_mismatches")), (0, 0));
    let function = |f: u32| {
        let row = one.tables.functions.iter().find(|row| row.function.0 == f)?;
        Some((row.calls, row.ended, row.self_ticks.0, row.ended_self_ticks.0))
    };
    assert_eq!(function(1), Some((1, 0, 2 + 128 + 512 + 2048 + 8192, 0)));
    assert_eq!(function(2), Some((3, 3, 4 + 256 + 4096, 4 + 256 + 4096)));
    assert_eq!(function(3), Some((0, 0, 64, 0)));
    assert_eq!(function(4), Some((1, 1, 1024, 1024)));
    let all = 16383;
    assert_eq!((one.busy_ticks.0, one.tables.regions[0].busy_ticks.0), (all - 56, all - 56));
    assert_eq!(one.tables.paths.iter().map(|row| row.self_ticks.0).sum::<u64>(), all - 56);
    assert_eq!(one.events, recording.events - 3);
}

#[test]
fn a_partial_result_of_a_trace_that_is_cut_off_ends_there() {
    let (bytes, recording) = four_chunks();
    let ends: Vec<usize> = recording.chunks.iter().skip(1).map(|c| c.offset as usize).collect();
    for length in 16..bytes.len() {
        let whole = ends.iter().filter(|end| **end <= length).count();
        let analysis = run_with(&bytes[..length], &recording, 2, true).unwrap();
        let missing: Vec<usize> = analysis.missing.iter().map(|missing| missing.chunk).collect();
        assert_eq!(missing, (whole..4).collect::<Vec<_>>(), "{length}");
        assert_eq!(analysis.busy_ticks.0, [0, 7, 63, 63 + 1984][whole], "{length}");
    }
    assert!(run_with(&bytes[..9], &recording, 2, true).is_err(), "not even a header");
}

#[test]
fn what_turns_out_to_be_damaged_late_is_not_counted_at_all() {
    // Good events, then one that names an unknown thread: the checksum is right, the contents are
    // not.
    let mut payload = Vec::new();
    let enter = Event::Enter { function: 1, how: EnterKind::Syscall };
    for (delta, event) in [(5, enter), (6, Event::Exit), (7, Event::Switch { thread: 99 })] {
        kerntune_trace::encode::event(&mut payload, delta, event);
    }
    let (trace, recording) = forged(vec![stack(1, vec![])], &payload, 3);
    let analysis = run_with(&trace, &recording, 1, true).unwrap();
    assert_eq!(analysis.missing.len(), 1);
    assert!(analysis.tables.functions.is_empty() && analysis.tables.paths.is_empty());
    assert!(analysis.tables.threads.is_empty() && analysis.busy_ticks.0 == 0);
}

proptest! {
    #[test]
    fn changed_bytes_do_no_harm(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
        let (mut bytes, recording) = writer().finish();
        for (place, value) in changes {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        let _ = run(&bytes, &recording);
        let _ = run_with(&bytes, &recording, 2, true);
    }

    #[test]
    fn events_out_of_order_do_no_harm(
        codes in prop::collection::vec((0u64..1 << 62, 0u8..11, 0u32..5), 0..60),
        frames in prop::collection::vec((0u32..4, 0u32..9), 0..5),
    ) {
        let open = |&(thread, function): &_| stack(thread, vec![(function, EnterKind::Jump), (function, EnterKind::Interrupt)]);
        let stacks = frames.iter().map(open).collect();
        let mut payload = Vec::new();
        for (delta, code, argument) in &codes {
            let enter = |how| Event::Enter { function: *argument, how };
            let event = match code {
                0 => enter(EnterKind::Call),
                1 => enter(EnterKind::Jump),
                2 => enter(EnterKind::Interrupt),
                3 => Event::Exit,
                4 => Event::Resume,
                5 => Event::Leave,
                6 => Event::Unwind { frames: *argument },
                7 => Event::Switch { thread: *argument % 3 },
                8 => Event::Idle { ns: *delta },
                9 => Event::RegionBegin { region: 0 },
                _ => Event::RegionEnd { region: 0 },
            };
            kerntune_trace::encode::event(&mut payload, delta >> (argument * 12), event);
        }
        let (trace, recording) = forged(stacks, &payload, codes.len() as u32);
        let _ = run(&trace, &recording);
        let _ = run_with(&trace, &recording, 2, true);
    }
}
