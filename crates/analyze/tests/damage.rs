//! What is not a whole trace of this recording ends in an error that says so, and never in a panic.

mod support;

use kerntune_analyze::{analyze, analyze_chunks, Analysis, Error};
use kerntune_trace::{Event, How, OpenStack, Recording, CHUNK_HEADER_BYTES};
use proptest::prelude::*;
use std::ops::ControlFlow;
use support::{symbols, Writer};

fn run(bytes: &[u8], recording: &Recording) -> Result<Analysis, Error> {
    analyze(bytes, recording, None, &symbols(8), &mut |_| ControlFlow::Continue(()))
}

/// Three chunks, two regions, two threads.
fn writer() -> Writer {
    let mut w = Writer::new(3);
    w.begin(0, "one").enter(5, 1, How::Syscall).call(10, 2).cut();
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
        assert!(length < 16 || error.contains("of 3 chunks; record again"), "{length}: {error}");
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
    let result = analyze(&bytes[..], &recording, None, &symbols(2), &mut |_| ControlFlow::Continue(()));
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
    assert!(matches!(run(&bytes, &recording), Err(Error::SeveralCpus { chunk: 0, vcpu: 1 })));
}

#[test]
fn the_callback_stops_the_analysis() {
    let (bytes, recording) = writer().finish();
    let mut seen = Vec::new();
    let result = analyze(&bytes[..], &recording, None, &symbols(8), &mut |events| {
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

#[test]
fn a_chunk_can_be_analysed_on_its_own() {
    let (bytes, recording) = writer().finish();
    let from = |chunk: usize| {
        let start = recording.chunks[chunk].offset as usize;
        let end = recording.chunks.len();
        analyze_chunks(&bytes[start..], chunk..end, &recording, &symbols(8), &mut |_| {
            ControlFlow::Continue(())
        })
        .unwrap()
    };
    let all = run(&bytes, &recording).unwrap();
    assert_eq!(from(1).events, all.events - 3);
    let net = |a: &Analysis| a.tables.functions.iter().map(|r| r.net_ns.0).sum::<u64>();
    let rest = |a: &Analysis| a.tables.regions.iter().map(|r| r.user_ns.0 + r.unattributed_ns.0).sum::<u64>();
    assert_eq!(net(&all) + rest(&all), 80);
    assert_eq!(net(&from(1)) + rest(&from(1)), 65, "without the 15 of the first chunk");
    assert_eq!(net(&from(2)) + rest(&from(2)), 35);
    let calls = |a: &Analysis, f: u32| {
        a.tables.functions.iter().filter(|r| r.function.0 == f).map(|r| r.calls).sum::<u64>()
    };
    assert_eq!([calls(&all, 2), calls(&all, 3), calls(&all, 4)], [1, 1, 1]);
    assert_eq!([calls(&from(1), 2), calls(&from(1), 3), calls(&from(1), 4)], [0, 1, 1]);
    assert_eq!(from(1).health["stack_mismatches"], 0);
    // Region `two` begins in this chunk, region `one` was open before it.
    let regions: Vec<u32> = from(2).tables.functions.iter().map(|r| r.region).collect();
    assert!(regions.contains(&0) && regions.contains(&1), "{regions:?}");
}

#[test]
fn a_stack_that_is_not_as_the_next_chunk_says_is_counted() {
    let mut w = Writer::new(3);
    w.begin(0, "r").enter(5, 1, How::Syscall).call(10, 2);
    // The recorder loses a frame of the running thread between two chunks.
    w.stacks[1].pop();
    w.cut().call(20, 3).exit(30).at(40, Event::Leave).end(0);
    let (bytes, recording) = w.finish();
    let analysis = run(&bytes, &recording).unwrap();
    assert_eq!(analysis.health["stack_mismatches"], 1);
    let net =
        |f: u32| analysis.tables.functions.iter().find(|r| r.function.0 == f).map(|r| (r.calls, r.net_ns.0));
    assert_eq!(net(1), Some((0, 10 + 20 + 40)), "not seen whole: its time, but no call");
    assert_eq!(net(2), None);
    assert_eq!(net(3), Some((1, 30)));
    assert_eq!(analysis.tables.regions[0].busy_ns.0, 105);
}

/// A trace of one chunk with these stacks and events, with a recording that fits it.
fn forged(stacks: &[u8], payload: &[u8], events: u32) -> (Vec<u8>, Recording) {
    let (bytes, mut recording) = Writer::new(3).begin(0, "r").end(1).finish();
    let mut raw = stacks.to_vec();
    raw.extend_from_slice(payload);
    let body = zstd::bulk::compress(&raw, 1).unwrap();
    let mut header = kerntune_trace::ChunkHeader::parse(&bytes[16..16 + CHUNK_HEADER_BYTES]).unwrap();
    header.events = events;
    (header.stacks, header.payload, header.compressed) =
        (stacks.len() as u32, payload.len() as u32, body.len() as u32);
    recording.chunks[0].events = events;
    let mut trace = bytes[..16].to_vec();
    trace.extend_from_slice(&header.to_bytes());
    trace.extend_from_slice(&body);
    (trace, recording)
}

#[test]
fn endless_stacks_and_times_are_refused() {
    let mut stacks = Vec::new();
    OpenStack::write(1, true, &vec![(1, How::Call); 70_000], &mut stacks);
    let (trace, recording) = forged(&stacks, &[], 0);
    assert!(matches!(run(&trace, &recording), Err(Error::Depth { .. })));

    let (mut payload, mut stacks) = (Vec::new(), Vec::new());
    OpenStack::write(1, true, &[], &mut stacks);
    for _ in 0..3 {
        kerntune_trace::encode::event(
            &mut payload,
            (1 << 62) - 1,
            Event::Enter { function: 1, how: How::Call },
        );
    }
    let (trace, recording) = forged(&stacks, &payload, 3);
    assert!(matches!(run(&trace, &recording), Err(Error::Time { .. })));

    let mut payload = Vec::new();
    for _ in 0..2 {
        kerntune_trace::encode::event(&mut payload, 0, Event::Idle { ns: u64::MAX / 2 });
    }
    let (trace, recording) = forged(&stacks, &payload, 2);
    assert!(matches!(run(&trace, &recording), Err(Error::Time { .. })));
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
    }

    #[test]
    fn events_out_of_order_do_no_harm(
        codes in prop::collection::vec((0u64..1 << 62, 0u8..11, 0u32..5), 0..60),
        frames in prop::collection::vec((0u32..4, 0u32..9), 0..5),
    ) {
        let mut stacks = Vec::new();
        for (thread, function) in frames {
            OpenStack::write(thread, thread == 1, &[(function, How::Jump), (function, How::Interrupt)], &mut stacks);
        }
        let mut payload = Vec::new();
        for (delta, code, argument) in &codes {
            let enter = |how| Event::Enter { function: *argument, how };
            let event = match code {
                0 => enter(How::Call),
                1 => enter(How::Jump),
                2 => enter(How::Interrupt),
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
        let (trace, recording) = forged(&stacks, &payload, codes.len() as u32);
        let _ = run(&trace, &recording);
    }
}
