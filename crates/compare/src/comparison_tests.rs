use super::*;
use crate::RegionFigures;

/// Name, operations, instructions, branches, L1I misses, iTLB misses.
type Figures = (&'static str, u64, u64, u64, u64, u64);

fn run(regions: &[Figures]) -> Measurement {
    Measurement::from_regions(regions.iter().map(|&(name, operations, instructions, branches, l1i, itlb)| {
        RegionFigures {
            name,
            depth: 0,
            closed: true,
            operations,
            counts: Metric::COUNTED.into_iter().zip([instructions, branches, l1i, itlb]).collect(),
            events: Default::default(),
            whole_events: Default::default(),
        }
    }))
    .unwrap()
}

fn labels() -> ComparisonLabels {
    ComparisonLabels {
        workload: "rr".into(),
        machine: "emulator".into(),
        model: "generic".into(),
        costs: None,
        base: KernelRef { id: "0f3c".into(), label: "gcc -O2".into(), ..KernelRef::default() },
        tuned: KernelRef { id: "9d21".into(), recipe: Some("gcc-pgo".into()), ..KernelRef::default() },
    }
}

#[test]
fn cycles_are_counts_times_costs() {
    let base = run(&[TCP, PIPE]);
    let tuned = run(&[("tcp_rr", 1000, 17_985_000, 2_300_000, 470_000, 40), PIPE]);
    let costs = ModelCosts {
        path_length: 0.25,
        taken_branches: 1.0,
        l1i_misses: 12.0,
        itlb_misses: 14.0,
        ..ModelCosts::default()
    };
    let labels = ComparisonLabels { costs: Some(costs), ..labels() };
    let comparison = Comparison::new(&base, &base, &tuned, labels).unwrap();
    assert_eq!(comparison.metrics().count(), 5);
    let row = comparison.row("tcp_rr", Metric::ModelCycles).unwrap();
    assert_eq!(row.base, 20_396.0 / 4.0 + 3_000.0 + 12.0 * 900.0 + 0.04 * 14.0);
    assert_eq!(row.tuned, 17_985.0 / 4.0 + 2_300.0 + 12.0 * 470.0 + 0.04 * 14.0);
    assert!(
        row.model && row.is_lower() && comparison.row("pipe", Metric::ModelCycles).unwrap().within_noise()
    );
    let without = example();
    assert!(without.row("tcp_rr", Metric::ModelCycles).is_none() && without.metrics().count() == 4);
}

const TCP: Figures = ("tcp_rr", 1000, 20_396_000, 3_000_000, 900_000, 40);
const PIPE: Figures = ("pipe", 500, 815_000, 100_000, 4_000, 0);

fn example() -> Comparison {
    let tuned = run(&[
        ("tcp_rr", 1000, 17_985_000, 2_300_000, 470_000, 40),
        ("pipe", 500, 815_001, 99_000, 4_000, 3),
    ]);
    let again = run(&[
        ("tcp_rr", 1000, 20_394_000, 3_000_000, 900_000, 41),
        ("pipe", 500, 815_010, 100_000, 4_000, 0),
    ]);
    Comparison::new(&run(&[TCP, PIPE]), &again, &tuned, labels()).unwrap()
}

#[test]
fn rows_are_per_operation_and_the_total_is_a_sum() {
    let comparison = example();
    assert_eq!(comparison.rows.len(), 12);
    assert_eq!(comparison.operations().collect::<Vec<_>>(), ["tcp_rr", "pipe"]);
    let row = comparison.row("tcp_rr", Metric::PathLength).unwrap();
    assert_eq!(
        (row.base, row.tuned, row.unit.as_str(), row.model),
        (20396.0, 17985.0, "instructions/op", false)
    );
    assert!((row.change_percent.unwrap() + 11.8209).abs() < 1e-4);
    assert!((row.aa_percent.unwrap() + 0.0098).abs() < 1e-4);
    let total = comparison.row(TOTAL, Metric::L1iMisses).unwrap();
    assert_eq!(
        (total.base, total.tuned, total.unit.as_str(), total.model),
        (904_000.0, 474_000.0, "misses", true)
    );
    assert!(comparison.missing.is_empty() && comparison.unequal_work.is_empty());
}

#[test]
fn a_change_not_larger_than_the_aa_difference_is_noise() {
    let comparison = example();
    let noise = |operation, metric| comparison.row(operation, metric).unwrap().within_noise();
    assert!(!noise("tcp_rr", Metric::PathLength));
    assert!(noise("pipe", Metric::PathLength), "1 instruction up, 10 in A/A");
    assert!(noise("tcp_rr", Metric::ItlbMisses), "equal");
    assert!(!noise("pipe", Metric::TakenBranches));
    assert!(comparison.row("pipe", Metric::TakenBranches).unwrap().is_lower());
}

#[test]
fn an_equal_difference_is_noise_whatever_division_makes_of_it() {
    let figures = |instructions| run(&[("a", 49, instructions, 1, 1, 1)]);
    let comparison = Comparison::new(&figures(1003), &figures(1000), &figures(1006), labels()).unwrap();
    assert!(comparison.row("a", Metric::PathLength).unwrap().within_noise());
}

#[test]
fn a_base_of_zero_has_no_per_cent() {
    let comparison = example();
    let row = comparison.row("pipe", Metric::ItlbMisses).unwrap();
    assert_eq!((row.change_percent, row.aa_percent), (None, Some(0.0)));
    assert!(row.is_higher());
}

#[test]
fn what_only_some_runs_did_is_named() {
    let (base, tuned) = (run(&[TCP, PIPE]), run(&[("tcp_rr", 900, 1, 1, 1, 1), ("fork", 1, 1, 1, 1, 1)]));
    let comparison = Comparison::new(&base, &base, &tuned, labels()).unwrap();
    let missing: Vec<_> =
        comparison.missing.iter().map(|m| (m.operation.as_str(), m.runs.as_slice())).collect();
    assert_eq!(
        missing,
        [("pipe", &[ComparedRun::Tuned][..]), ("fork", &[ComparedRun::Base, ComparedRun::BaseAgain][..])]
    );
    assert_eq!(comparison.unequal_work[0].tuned, 900);
    assert_eq!(comparison.operations().count(), 1);
}

#[test]
fn runs_of_different_things_and_without_counters_are_refused() {
    let base = run(&[TCP]);
    let error = Comparison::new(&base, &base, &run(&[PIPE]), labels()).unwrap_err().to_string();
    assert!(error.contains("base: tcp_rr; tuned: pipe"), "{error}");
    let bare = run(&[("tcp_rr", 1000, 1, 0, 0, 0)]);
    let error = Comparison::new(&base, &bare, &base, labels()).unwrap_err().to_string();
    assert!(error.starts_with("the second base run has 1 kernel instructions"), "{error}");
}

#[test]
fn json_is_the_contract_and_reads_back() {
    let comparison = example();
    let text = comparison.to_json();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["schema"], SCHEMA);
    assert_eq!((&json["workload"], &json["machine"]), (&"rr".into(), &"emulator".into()));
    for key in ["id", "label", "version", "compiler", "recipe"] {
        assert!(json["base"].get(key).is_some() && json["tuned"].get(key).is_some(), "{key}");
    }
    let row = &json["rows"][0];
    assert_eq!((&row["operation"], &row["metric"]), (&"tcp_rr".into(), &"path_length".into()));
    assert_eq!((&row["unit"], &row["base"]), (&"instructions/op".into(), &20396.0.into()));
    assert!(row["change_percent"].is_f64() && row["aa_percent"].is_f64() && row["tuned"].is_f64());
    assert!(json["rows"][7]["change_percent"].is_null());
    assert_eq!(Comparison::from_json(&text).unwrap(), comparison);
}

#[test]
fn another_schema_is_refused() {
    let text = example().to_json().replace("kerntune-comparison/1", "kerntune-comparison/2");
    let error = Comparison::from_json(&text).unwrap_err().to_string();
    assert!(error.contains("its schema is \"kerntune-comparison/2\""), "{error}");
    assert!(Comparison::from_json("{}").unwrap_err().to_string().contains("missing field `schema`"));
}

#[test]
fn the_largest_growth_is_of_an_operation_and_not_the_total() {
    let base = run(&[("a", 10, 1000, 100, 0, 0), ("b", 10, 1000, 100, 0, 0), ("c", 10, 1000, 100, 0, 0)]);
    let tuned = run(&[("a", 10, 900, 100, 1, 0), ("b", 10, 1010, 90, 1, 0), ("c", 10, 1010, 80, 1, 0)]);
    let comparison = Comparison::new(&base, &base, &tuned, labels()).unwrap();
    let worst = |metric| comparison.largest_growth(metric).map(|row| row.operation.as_str());
    assert_eq!(worst(Metric::PathLength), Some("b"));
    assert_eq!(worst(Metric::TakenBranches), Some("a"));
    assert_eq!(worst(Metric::L1iMisses), None, "from 0 there is no change in percent");
}
