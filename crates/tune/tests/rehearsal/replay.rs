//! The same without a machine: runs that were kept.

use crate::support::{session, Bench};
use kerntune_kernel::ObjectFlags;
use kerntune_machine::{Keeping, Replay};

#[test]
fn kept_runs_give_the_same_comparison_and_others_are_refused() {
    let bench = Bench::new();
    let (work, runs) = (bench.work("work"), bench.path("runs"));
    let machine = bench.machine();
    let identity = machine.identity().unwrap();
    let keeping = session(Box::new(Keeping::new(machine, &runs).unwrap()), &work);
    let (tuned, _) = bench.tune(&keeping, &[]).unwrap();

    let elsewhere = bench.work("elsewhere");
    let replay = Replay::new("rehearsal", identity, &runs).unwrap();
    let replaying = session(Box::new(replay), &elsewhere);
    let (replayed, there) = bench.tune(&replaying, &[]).unwrap();
    assert_eq!((there, replayed.comparison.to_json()), (0, tuned.comparison.to_json()));

    let other = [ObjectFlags::add("lib/sort.o", "-O1")];
    let error = bench.tune(&replaying, &other).unwrap_err().to_string();
    assert!(error.contains("no run of this kernel, image and capture is kept in"), "{error}");
}
