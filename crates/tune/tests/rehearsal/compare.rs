//! `compare`: from build to comparison, with random layouts and seeds.

use crate::support::{build_request, TestBench};
use kerntune_compare::{Comparison, Metric, TOTAL};
use kerntune_kernel::{build, BuildRequest, ObjectFlags};
use kerntune_tune::compare::{across_models, compare, CompareEffort};
use kerntune_tune::model;
use kerntune_work::NoProgress;

const LAYOUTS: u32 = 5;

#[test]
fn a_change_is_held_against_random_layouts_and_seeds() {
    let bench = TestBench::new();
    let work = bench.work("work");
    let session = bench.session(&work);
    let kernel = |label: &str, movable, object_flags| {
        let request = BuildRequest { movable, object_flags, ..build_request(label) };
        build(session.work, &request, &NoProgress).unwrap()
    };
    let base = kernel("base", false, Vec::new());
    let tuned = kernel("tuned", false, vec![ObjectFlags::add("net/", "-O1")]);
    let of =
        |effort| compare(&session, &base, &tuned, &bench.workload, &bench.model, effort).unwrap().comparison;
    let plain = of(CompareEffort::default());
    assert!((plain.seeds, plain.runs) == (1, 1) && plain.layouts.is_none());
    let sum = |operation: &str, metrics: [Metric; 2]| -> f64 {
        metrics.iter().map(|metric| plain.row(operation, *metric).unwrap().base).sum()
    };
    let whole = |metric| plain.row("pipe_rr", metric).unwrap().base;
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-6, "{a} {b}");
    close(whole(Metric::WholeInstructions), sum("pipe_rr", [Metric::PathLength, Metric::UserInstructions]));
    close(whole(Metric::WholeL1iMisses), sum("pipe_rr", [Metric::L1iMisses, Metric::UserL1iMisses]));
    assert!(whole(Metric::UserInstructions) > 0.0 && whole(Metric::WholeCycles) > whole(Metric::ModelCycles));

    let compared = of(CompareEffort { layouts: LAYOUTS, ..CompareEffort::default() });
    let layouts = compared.layouts.as_ref().unwrap();
    assert_eq!((layouts.kernels.len(), layouts.seed), (LAYOUTS as usize, kerntune_tune::LAYOUT_SEED));
    // Another order executes the same instructions; caches hold other lines.
    let path = layouts.row(TOTAL, Metric::PathLength).unwrap();
    assert_eq!(path.quartiles[0], path.quartiles[4], "{path:?}");
    let misses = layouts.row(TOTAL, Metric::L1iMisses).unwrap();
    assert!(misses.quartiles[0] < misses.quartiles[4], "{misses:?}");
    assert!(misses.below_base <= LAYOUTS as usize && misses.values.len() == LAYOUTS as usize);
    let text = compared.to_json();
    assert_eq!(Comparison::from_json(&text).unwrap(), compared);
    // The same comparison is found again; fewer layouts are the first of these.
    assert_eq!(of(CompareEffort { layouts: LAYOUTS, ..CompareEffort::default() }).to_json(), text);
    let effort = CompareEffort { layouts: LAYOUTS - 1, ..CompareEffort::default() };
    assert_eq!(of(effort).layouts.unwrap().kernels[..], layouts.kernels[..LAYOUTS as usize - 1]);
    // A movable base kernel is linked in the same random orders.
    let movable = kernel("movable", true, Vec::new());
    let own = compare(&session, &movable, &tuned, &bench.workload, &bench.model, effort).unwrap().comparison;
    let own = own.layouts.unwrap();
    assert_eq!((own.kernels.len(), own.seed), (LAYOUTS as usize - 1, layouts.seed));

    let models = ["generic", "zen4"].map(|name| model::find(name).unwrap());
    let range = across_models(&session, [&base, &tuned], &bench.workload, &models).unwrap();
    assert_eq!(range.models, ["generic", "zen4"]);
    let changes = &range.row(TOTAL, Metric::L1iMisses).unwrap().changes_percent;
    assert_eq!(changes[0], plain.row(TOTAL, Metric::L1iMisses).unwrap().change_percent, "{changes:?}");

    // The stand-in's programs use no random numbers, so seeds and start offsets change nothing.
    let seeds = of(CompareEffort { seeds: 3, runs: 2, ..CompareEffort::default() });
    assert_eq!((seeds.seeds, seeds.runs), (3, 2));
    let (row, alone) =
        (seeds.row(TOTAL, Metric::PathLength).unwrap(), plain.row(TOTAL, Metric::PathLength).unwrap());
    let ([low, high], change) = (row.interval_percent.unwrap(), row.change_percent.unwrap());
    assert!(low - 1e-9 <= change && change <= high + 1e-9, "{row:?}");
    assert!((change - alone.change_percent.unwrap()).abs() < 0.1, "{row:?} {alone:?}");
}
