use super::*;
use crate::stacks::tests::{profile, stacks};
use kerntune_analyze::timeline::{CpuHolder, CpuState};
use kerntune_profile::Ticks;
use kerntune_trace::{CaptureSpec, RecordedThread, RecordingHealth, VERSION};

const ABOUT: FirefoxMetadata<'static> = FirefoxMetadata {
    title: "rr",
    creator: "kerntune 0",
    unit: FigureUnit::Instructions,
    recorded_ms: 1e12,
    left_out: Some("the end"),
};

fn recording() -> Recording {
    let thread =
        |pid, tgid, comm: &str| RecordedThread { task: u64::from(pid), pid, tgid, comm: comm.into() };
    Recording {
        ran: Vec::new(),
        ran_since_boot: Vec::new(),
        version: VERSION,
        capture: CaptureSpec { functions: true, edges: false, weights: false },
        kernel_functions: 2,
        first_loaded: None,
        cpus: 1,
        per_cpu: Vec::new(),
        regions: Vec::new(),
        threads: vec![thread(7, 7, "rr"), thread(8, 7, "rr-2")],
        chunks: Vec::new(),
        events: 0,
        health: RecordingHealth::default(),
        notes: Vec::new(),
    }
}

fn slice(begin: u64, end: u64, lane: TimelineLane, user: bool) -> HolderSlice {
    HolderSlice { begin, end, holder: CpuHolder { lane, user }, cpu: 0 }
}

/// Returns the weights of the row of this name, and the number of samples without a stack.
fn weights_of(value: &Value, name: &str) -> (Vec<u64>, usize) {
    let rows = value["threads"].as_array().unwrap();
    let row = rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("no {name}"));
    let weights = row["samples"]["weight"].as_array().unwrap();
    let bare = row["samples"]["stack"].as_array().unwrap().iter().filter(|stack| stack.is_null()).count();
    (weights.iter().map(|weight| weight.as_u64().unwrap()).collect(), bare)
}

#[test]
fn each_interval_is_a_sample_of_whoever_ran() {
    let (profile, recording) = (profile(), recording());
    let mut timeline = FirefoxTimeline::new(&ABOUT, &profile.tables, &recording, 100);
    timeline.region_begun(1000, 0);
    timeline.ran(slice(1000, 1010, TimelineLane::Thread(0), true), 0);
    timeline.enter(1010, 0, 0, EnterKind::Syscall);
    timeline.ran(slice(1010, 1030, TimelineLane::Thread(0), false), 0);
    timeline.enter(1030, 0, 2, EnterKind::Interrupt);
    timeline.ran(slice(1030, 1035, TimelineLane::Interrupt, false), 0);
    timeline.exit(1035, 0);
    timeline.ran(slice(1035, 1040, TimelineLane::Thread(0), false), 0);
    timeline.exit(1040, 0);
    let halted =
        CpuState { doing: CpuActivity::Halted, holder: CpuHolder { lane: TimelineLane::Idle, user: false } };
    timeline.cpu(0, CpuSlice { begin: 1040, end: 1100, state: halted });
    timeline.region_ended(1100, 0);
    assert_eq!(timeline.total, 40);
    let value = timeline.finish(&ABOUT).unwrap();
    assert_eq!(weights_of(&value, "rr"), (vec![10, 20, 0, 5, 0], 2));
    assert_eq!(weights_of(&value, "[interrupt]"), (vec![5, 0], 1));
    let strings = value["threads"][0]["stringArray"].to_string() + &value["shared"].to_string();
    assert!(!strings.is_empty());
    assert_eq!(value["meta"]["sampleUnits"]["threadCPUDelta"], "ns");
    let extra = value["meta"]["extra"].to_string();
    assert!(extra.contains("one instruction") && extra.contains("the end"), "{extra}");
    let all = value.to_string();
    assert!(all.contains("\"halted\"") && all.contains("\"sys\"") && all.contains("\"[user]\""), "{all}");
}

#[test]
fn it_takes_no_more_than_there_is_room_for() {
    let (profile, recording) = (profile(), recording());
    let mut timeline = FirefoxTimeline::new(&ABOUT, &profile.tables, &recording, 2);
    timeline.ran(slice(0, 5, TimelineLane::Thread(0), true), 0);
    assert!(!timeline.is_full());
    timeline.ran(slice(5, 9, TimelineLane::Thread(0), true), 0);
    assert!(timeline.is_full());
    let mut timeline = FirefoxTimeline::new(&ABOUT, &profile.tables, &recording, 2);
    timeline.ran(slice(0, MAX_INTERVAL + 1, TimelineLane::Thread(0), true), 0);
    assert_eq!((timeline.is_full(), timeline.total), (true, 0));
}

#[test]
fn what_is_longer_than_a_weight_is_several() {
    let long = 3 * (i32::MAX as u64) + 5;
    assert_eq!(weights(long).map(|weight| weight as u64).sum::<u64>(), long);
    assert_eq!(weights(0).count(), 0);
}

#[test]
fn paths_have_a_row_for_each_root() {
    let value = of_paths(&stacks(), &ABOUT).unwrap();
    let (rr, interrupts) = (weights_of(&value, "rr"), weights_of(&value, "[interrupt]"));
    assert_eq!((rr.0.iter().sum::<u64>(), interrupts.0.iter().sum::<u64>()), (600, 400));
    let mut sampled = stacks();
    sampled.unit = FigureUnit::Sampled(Ticks(10));
    let about = FirefoxMetadata { unit: sampled.unit, ..ABOUT };
    assert_eq!(weights_of(&of_paths(&sampled, &about).unwrap(), "rr").0.iter().sum::<u64>(), 60);
}
