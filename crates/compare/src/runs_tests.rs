use super::*;
use crate::{KernelRef, RegionFigures};

/// An operation done a thousand times: instructions, branches, L1I and iTLB misses.
fn run(operations: &[(&str, [u64; 4])]) -> Measurement {
    Measurement::from_regions(operations.iter().map(|&(name, counts)| RegionFigures {
        name,
        depth: 0,
        closed: true,
        operations: 1000,
        counts: Metric::COUNTED.into_iter().zip(counts).collect(),
        events: Default::default(),
        whole_events: Default::default(),
    }))
    .unwrap()
}

fn at(instructions: u64, l1i: u64) -> Measurement {
    run(&[("get", [instructions, 3_000_000, l1i, 40])])
}

fn labels() -> ComparisonLabels {
    let kernel = |id: &str| KernelRef { id: id.into(), ..KernelRef::default() };
    ComparisonLabels {
        workload: "redis".into(),
        base: kernel("0f3c"),
        tuned: kernel("9d21"),
        ..ComparisonLabels::default()
    }
}

#[test]
fn several_runs_tell_a_change_from_chance() {
    // A server's path varies by half a per cent with the start offset; the change is -1 % of the
    // path, and 0 of the misses.
    let base: Vec<_> =
        (0..8).map(|moment| at(20_000_000 + moment % 4 * 60_000, 900_000 + moment * 100)).collect();
    let tuned: Vec<_> =
        (0..8).map(|moment| at(19_800_000 + moment % 4 * 60_000, 900_100 + moment * 90)).collect();
    let first = (base[0].clone(), tuned[0].clone());
    let comparison =
        Comparison::from_runs(std::slice::from_ref(&base), &base[0], &[tuned], labels()).unwrap();
    let row = |operation: &str, metric| comparison.row(operation, metric).unwrap();
    let path = row("get", Metric::PathLength);
    assert_eq!((comparison.runs, path.base, path.tuned, path.aa_percent), (8, 20_090.0, 19_890.0, Some(0.0)));
    let [low, high] = path.interval_percent.unwrap();
    assert!(path.is_lower() && low < -0.9955 && -0.9955 < high && high < 0.0, "{low} {high}");
    assert!(row("get", Metric::L1iMisses).within_noise() && row(TOTAL, Metric::PathLength).is_lower());
    // Without a change the interval is a point.
    assert_eq!(row("get", Metric::TakenBranches).interval_percent, Some([0.0, 0.0]));
    assert!(row("get", Metric::TakenBranches).within_noise());
    let text = comparison.to_json();
    assert_eq!(Comparison::from_json(&text).unwrap(), comparison);
    // One run of each kernel gives the same JSON as `Comparison::new`, to the byte.
    let (one, other) = first;
    let both = Comparison::from_runs(&[vec![one.clone()]], &one, &[vec![other.clone()]], labels()).unwrap();
    assert_eq!(both.to_json(), Comparison::new(&one, &one, &other, labels()).unwrap().to_json());
    let words = ["runs\": 1", "seeds", "interval", "layouts"];
    assert!(words.iter().all(|word| !both.to_json().contains(word)));
}

#[test]
fn runs_of_one_seed_are_held_against_each_other() {
    // The work differs by a quarter between seeds, the change is -1 % of each.
    let seeds = [20_000_000, 25_000_000, 16_000_000, 22_000_000, 19_000_000];
    let base: Vec<_> = seeds.iter().map(|of| vec![at(*of, 900), at(of + 40_000, 901)]).collect();
    let tuned: Vec<_> =
        seeds.iter().map(|of| vec![at(of / 100 * 99, 900), at(of / 100 * 99 + 40_400, 901)]).collect();
    let comparison = Comparison::from_runs(&base, &base[0][0], &tuned, labels()).unwrap();
    assert_eq!((comparison.seeds, comparison.runs), (5, 2));
    let path = comparison.row("get", Metric::PathLength).unwrap();
    let [low, high] = path.interval_percent.unwrap();
    assert!(path.is_lower() && low > -1.01 && high < -0.99, "{low} {high}");
    assert_eq!(comparison.row("get", Metric::L1iMisses).unwrap().interval_percent, Some([0.0, 0.0]));
    assert_eq!(Comparison::from_json(&comparison.to_json()).unwrap(), comparison);
    // Start offsets of one seed are not pairs, so the spread of the work hides the change.
    let moments = |of: &[Vec<Measurement>]| vec![of.concat()];
    let unpaired = Comparison::from_runs(&moments(&base), &base[0][0], &moments(&tuned), labels()).unwrap();
    assert!(unpaired.row("get", Metric::PathLength).unwrap().within_noise());
}

#[test]
fn what_one_of_several_runs_did_not_do_has_no_rows() {
    let counts = [1000, 100, 10, 1];
    let (whole, less) = (run(&[("tcp", counts), ("pipe", counts)]), run(&[("tcp", counts)]));
    let tuned = [vec![whole.clone(), less]];
    let base = [vec![whole.clone(), whole.clone()]];
    let comparison = Comparison::from_runs(&base, &whole, &tuned, labels()).unwrap();
    assert_eq!(comparison.operations().collect::<Vec<_>>(), ["tcp"]);
    assert_eq!(
        comparison.missing,
        [MissingOperation { operation: "pipe".into(), runs: vec![ComparedRun::Tuned] }]
    );
    for nothing in [&[][..], &[vec![]]] {
        let none = Comparison::from_runs(nothing, &whole, &tuned, labels());
        assert!(matches!(none, Err(Error::NothingMeasured)));
    }
}
