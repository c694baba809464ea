//! Replay: a tuning from stored runs, without a machine.

use crate::support::{session, TestBench};
use kerntune_kernel::ObjectFlags;
use kerntune_machine::{ArchivingMachine, ReplayMachine};

#[test]
fn kept_runs_give_the_same_comparison_and_others_are_refused() {
    let bench = TestBench::new();
    let (work, runs) = (bench.work("work"), bench.path("runs"));
    let machine = bench.machine();
    let identity = machine.identity().unwrap();
    let keeping = session(Box::new(ArchivingMachine::new(machine, &runs).unwrap()), &work);
    let (tuned, _) = bench.tune(&keeping, &[]).unwrap();

    let elsewhere = bench.work("elsewhere");
    let replay = ReplayMachine::new("rehearsal", identity, &runs).unwrap();
    let replaying = session(Box::new(replay), &elsewhere);
    let (replayed, there) = bench.tune(&replaying, &[]).unwrap();
    assert_eq!((there, replayed.comparison.to_json()), (0, tuned.comparison.to_json()));

    let other = [ObjectFlags::add("lib/sort.o", "-O1")];
    let error = bench.tune(&replaying, &other).unwrap_err().to_string();
    assert!(error.contains("no run of this kernel, image and capture is kept in"), "{error}");
}
