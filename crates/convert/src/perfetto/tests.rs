use super::proto::{Trace, TracePacket};
use super::*;
use crate::stacks::tests::{profile, stacks};
use kerntune_analyze::timeline::{CpuHolder, CpuState};
use kerntune_trace::{CaptureSpec, RecordedRegion, RecordedThread, RecordingHealth, VERSION};
use prost::Message;
use std::collections::BTreeMap;

fn recording() -> Recording {
    let thread =
        |pid, tgid, comm: &str| RecordedThread { task: u64::from(pid), pid, tgid, comm: comm.into() };
    let region = RecordedRegion {
        name: "tcp_rr".into(),
        begin_ns: 1000,
        elapsed_ns: 100,
        idle_ns: 0,
        operations: 1,
        depth: 0,
        closed: true,
        kernel: Default::default(),
        user: Default::default(),
        model_events: Vec::new(),
        cpus: Vec::new(),
    };
    Recording {
        ran: Vec::new(),
        ran_since_boot: Vec::new(),
        version: VERSION,
        capture: CaptureSpec { functions: true, edges: false, weights: false },
        kernel_functions: 2,
        first_loaded: None,
        cpus: 1,
        per_cpu: Vec::new(),
        regions: vec![region],
        threads: vec![thread(7, 7, "rr"), thread(0, 0, "swapper")],
        chunks: Vec::new(),
        events: 0,
        health: RecordingHealth::default(),
        notes: Vec::new(),
    }
}

/// Returns every slice as track, name and length.
fn slices(packets: &[TracePacket]) -> Vec<(u64, String, u64)> {
    let mut names = BTreeMap::new();
    let mut open: BTreeMap<u64, Vec<(u64, u64)>> = BTreeMap::new();
    let mut slices = Vec::new();
    for packet in packets {
        for name in packet.interned_data.iter().flat_map(|data| &data.event_names) {
            names.insert(name.iid, name.name.clone());
        }
        let Some(event) = &packet.track_event else { continue };
        let (at, track) = (packet.timestamp.unwrap(), open.entry(event.track_uuid).or_default());
        match event.r#type {
            1 => track.push((event.name_iid, at)),
            _ => {
                let (name, begin) = track.pop().unwrap();
                slices.push((event.track_uuid, names[&name].clone(), at - begin));
            }
        }
    }
    assert!(open.values().all(Vec::is_empty), "{open:?}");
    slices
}

#[test]
fn calls_cpus_and_regions_are_slices() {
    let (profile, recording) = (profile(), recording());
    let mut out = Vec::new();
    let mut timeline =
        PerfettoTimeline::new(&mut out, "rr (1 ns = 1 instruction)", &profile.tables, &recording);
    timeline.region_begun(1000, 0);
    timeline.enter(1010, 0, 0, EnterKind::Syscall);
    timeline.enter(1030, 0, 2, EnterKind::Interrupt);
    timeline.exit(1035, 0);
    timeline.exit(1040, 0);
    timeline.enter(1041, 1, 1, EnterKind::Call);
    timeline.exit(1042, 1);
    let state =
        CpuState { doing: CpuActivity::Halted, holder: CpuHolder { lane: TimelineLane::Idle, user: false } };
    timeline.cpu(0, CpuSlice { begin: 1040, end: 1100, state });
    timeline.region_ended(1100, 0);
    timeline.cut(1100, "rr, first 3 % only");
    assert_eq!(timeline.calls, 3);
    timeline.finish().unwrap();
    let trace = Trace::decode(&out[..]).unwrap();
    let expected = [
        (FIRST_THREAD, "irq;x", 5),
        (FIRST_THREAD, "sys", 30),
        (FIRST_THREAD + 1, "walk", 1),
        (FIRST_CPU, "[halted]", 60),
        (REGIONS, "tcp_rr", 100),
        (CUT, "[cut here]", 1),
    ];
    assert_eq!(slices(&trace.packet), expected.map(|(track, name, length)| (track, name.to_owned(), length)));
    let tracks: Vec<_> = trace.packet.iter().filter_map(|packet| packet.track_descriptor.as_ref()).collect();
    assert_eq!(tracks[0].name.as_deref(), Some("rr (1 ns = 1 instruction)"));
    assert!(tracks.iter().any(|track| track.name.as_deref() == Some("rr, first 3 % only")));
    let thread = tracks.iter().find_map(|track| track.thread.as_ref()).unwrap();
    assert_eq!((thread.pid, thread.tid, thread.thread_name.as_str()), (Some(7), Some(7), "rr"));
    assert!(tracks.iter().any(|track| track.name.as_deref() == Some("swapper (idle task)")));
}

#[test]
fn paths_are_as_long_as_what_they_took() {
    let mut out = Vec::new();
    of_paths(&stacks(), "rr", &mut out).unwrap();
    let trace = Trace::decode(&out[..]).unwrap();
    let found = slices(&trace.packet);
    let roots: u64 =
        found.iter().filter(|(_, name, _)| name == "rr" || name == "[interrupt]").map(|slice| slice.2).sum();
    assert_eq!(roots, 1000);
    assert!(found.contains(&(2, "sys".into(), 200)), "{found:?}");
}

#[test]
fn what_cannot_be_written_is_said() {
    let (profile, recording) = (profile(), recording());
    let mut room = [0; 16];
    let timeline = PerfettoTimeline::new(&mut room[..], "rr", &profile.tables, &recording);
    assert!(timeline.is_full());
    assert!(timeline.finish().is_err());
}
