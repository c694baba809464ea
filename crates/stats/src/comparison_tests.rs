use super::*;
use crate::set::tests::file;
use crate::BenchResults;

/// Results with one value per boot.
fn boots(version: &str, row: &str, values: &[f64]) -> (String, BenchResults) {
    let values: Vec<[f64; 1]> = values.iter().map(|value| [*value]).collect();
    file(version, row, &values.iter().map(|value| value.as_slice()).collect::<Vec<_>>())
}

fn set(files: &[(String, BenchResults)]) -> JoinedResults {
    JoinedResults::join(files).unwrap()
}

const BASE: [f64; 6] = [100.0, 100.4, 99.8, 100.1, 99.6, 100.2];

fn scaled(by: f64) -> Vec<f64> {
    BASE.iter().rev().map(|value| value * by).collect()
}

fn compared(tuned: &[f64]) -> TimedRow {
    let base = set(&[boots("#1", "getpid", &BASE)]);
    let tuned = set(&[boots("#2", "getpid", tuned)]);
    let mut rows = TimedComparison::new(&base, &tuned, None, &ComparisonOptions::default()).unwrap().rows;
    assert_eq!(rows.len(), 1);
    rows.remove(0)
}

#[test]
fn each_verdict_by_hand() {
    let faster = compared(&scaled(0.9));
    assert_eq!(
        (faster.verdict, faster.level, faster.units),
        (RowVerdict::Faster, VariationLevel::Boot, [6, 6])
    );
    assert!((faster.change_percent + 10.0).abs() < 1e-9 && faster.low_percent < -10.0);
    assert!(faster.high_percent.unwrap() < -9.0 && faster.p == faster.p_adjusted);
    assert!((faster.paper.percent - 100.0 / 9.0).abs() < 1e-9 && !faster.paper.noise_larger);
    assert_eq!(compared(&scaled(1.1)).verdict, RowVerdict::Slower);
    assert_eq!(compared(&scaled(1.0)).verdict, RowVerdict::Equivalent);
    // There is a difference, but smaller than the minimum effect.
    let small = compared(&scaled(0.995));
    assert!(small.p < 0.05 && small.verdict == RowVerdict::Equivalent, "{small:?}");
    assert_eq!(compared(&[90.0, 120.0, 100.0]).verdict, RowVerdict::Inconclusive);
}

#[test]
fn an_aa_pair_stands_beside_it() {
    let row = compared(&scaled(0.9));
    let aa = row.aa.unwrap();
    assert_eq!((aa.kind, aa.units, aa.differs), (AaKind::Split, [3, 3], false));
    // Dealt out A B B A, B A: 100, 100.1, 100.2 against 100.4, 99.8, 99.6.
    assert!((aa.change_percent - (299.8 / 300.3 - 1.0) * 100.0).abs() < 1e-9);

    let base = set(&[boots("#1", "getpid", &BASE)]);
    let tuned = set(&[boots("#2", "getpid", &scaled(0.9))]);
    let again = set(&[boots("#1", "getpid", &scaled(1.05))]);
    let comparison =
        TimedComparison::new(&base, &tuned, Some(&again), &ComparisonOptions::default()).unwrap();
    let row = &comparison.rows[0];
    assert!(row.aa.unwrap().differs && row.aa.unwrap().kind == AaKind::Again);
    assert_eq!((row.verdict, row.because), (RowVerdict::Inconclusive, VerdictReason::AaDiffers));
    let error = TimedComparison::new(&base, &tuned, Some(&tuned), &ComparisonOptions::default())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("#2.json: measured on Linux 6.12 #2, and the base kernel is Linux 6.12 #1"),
        "{error}"
    );
    let three = set(&[boots("#1", "getpid", &BASE[..3])]);
    assert_eq!(
        TimedComparison::new(&three, &tuned, None, &ComparisonOptions::default()).unwrap().rows[0].aa,
        None
    );
}

#[test]
fn many_rows_are_corrected() {
    // One row would be significant by itself, but not among 20 rows without a difference.
    let mut base = boots("#1", "row", &BASE);
    let mut tuned = boots("#2", "row", &[99.7, 98.0, 100.1, 97.9, 98.4, 99.6]);
    let alone = TimedComparison::new(
        &set(&[base.clone()]),
        &set(&[tuned.clone()]),
        None,
        &ComparisonOptions::default(),
    )
    .unwrap();
    assert!(alone.rows[0].verdict == RowVerdict::Faster && alone.rows[0].p > 0.0025, "{:?}", alone.rows[0]);
    for at in 0..19 {
        let same = boots("#1", &format!("same {at}"), &BASE).1.rows.remove(0);
        base.1.rows.push(same.clone());
        tuned.1.rows.push(same);
    }
    let (base, tuned) = (set(&[base]), set(&[tuned]));
    let with = |correction| {
        let options = ComparisonOptions { correction, ..ComparisonOptions::default() };
        let rows = TimedComparison::new(&base, &tuned, None, &options).unwrap().rows;
        (rows[0].verdict, rows[0].because)
    };
    assert_eq!(with(PValueCorrection::Holm), (RowVerdict::Inconclusive, VerdictReason::Correction));
    assert_eq!(with(PValueCorrection::None), (RowVerdict::Faster, VerdictReason::Interval));
}

#[test]
fn the_warm_up_of_both_is_left_out() {
    let run = |first: f64, rest: f64| -> Vec<f64> {
        (0..20).map(|i| if i == 0 { first } else { rest + f64::from(i % 3) * 0.1 }).collect()
    };
    let (slow, fast) = (run(200.0, 100.0), run(90.0, 90.0));
    let base = set(&[file("#1", "fork", &[&slow, &slow, &run(200.0, 100.5)])]);
    let tuned = set(&[file("#2", "fork", &[&fast, &fast, &run(90.0, 90.5)])]);
    let row =
        TimedComparison::new(&base, &tuned, None, &ComparisonOptions::default()).unwrap().rows.remove(0);
    assert_eq!((row.warm_up.state, row.warm_up.left_out), (WarmUpState::WarmUp, 1));
    assert_eq!(row.notes, ["warm-up: the first iteration of each run is left out"]);
    assert!((row.base - 100.27).abs() < 0.01 && (row.tuned - 90.27).abs() < 0.01, "{row:?}");
    assert_eq!(row.verdict, RowVerdict::Faster);
}

#[test]
fn what_is_not_in_the_interval_is_said() {
    let one_boot = set(&[file("#2", "getpid", &[&[90.0, 91.0, 90.5]])]);
    let three = set(&[file("#1", "getpid", &[&[100.0, 101.0], &[102.0, 99.0], &[100.0, 98.0]])]);
    let row =
        TimedComparison::new(&three, &one_boot, None, &ComparisonOptions::default()).unwrap().rows.remove(0);
    assert_eq!((row.level, row.units), (VariationLevel::Iteration, [6, 3]));
    assert_eq!(
        row.notes,
        ["base has 3 boots and tuned 1 boot: what differs between them is not in the interval, which is of iterations"]
    );
    let same = set(&[boots("#1", "getpid", &[5.0; 4])]);
    let row = TimedComparison::new(&same, &same, None, &ComparisonOptions::default()).unwrap().rows.remove(0);
    assert!(row.verdict == RowVerdict::Equivalent && row.notes[0].contains("clock is too coarse"), "{row:?}");
}

#[test]
fn what_cannot_be_compared_is_said() {
    let base = set(&[boots("#1", "getpid", &BASE)]);
    let other = set(&[boots("#2", "fork", &BASE)]);
    let error =
        TimedComparison::new(&base, &other, None, &ComparisonOptions::default()).unwrap_err().to_string();
    assert!(error.contains("base: kbx/getpid; tuned: kbx/fork"), "{error}");
    let one = set(&[boots("#2", "getpid", &[1.0])]);
    let error =
        TimedComparison::new(&base, &one, None, &ComparisonOptions::default()).unwrap_err().to_string();
    assert!(error.contains("kbx/getpid") && error.contains("at least two"), "{error}");
    let zero = set(&[boots("#2", "getpid", &[0.0, 0.0])]);
    assert!(TimedComparison::new(&base, &zero, None, &ComparisonOptions::default()).is_err());
    for options in [
        ComparisonOptions { confidence: 1.0, ..ComparisonOptions::default() },
        ComparisonOptions { confidence: f64::NAN, ..ComparisonOptions::default() },
        ComparisonOptions { min_effect: -0.1, ..ComparisonOptions::default() },
    ] {
        assert!(matches!(TimedComparison::new(&base, &base, None, &options), Err(Error::Option { .. })));
    }
    // A row that only one kernel has is left out; it is no error.
    let both = set(&[boots("#2", "fork", &BASE), boots("#2", "getpid", &BASE)]);
    let left_out = TimedComparison::new(&base, &both, None, &ComparisonOptions::default()).unwrap().left_out;
    assert_eq!((left_out.len(), left_out[0].name().as_str()), (1, "kbx/fork"));
}

#[test]
fn few_units_are_for_student_and_json_reads_back() {
    let base = set(&[boots("#1", "getpid", &BASE)]);
    let with = |tuned: &[f64], method| {
        let tuned = set(&[boots("#2", "getpid", tuned)]);
        let options = ComparisonOptions { method, ..ComparisonOptions::default() };
        TimedComparison::new(&base, &tuned, None, &options).unwrap()
    };
    let [six, five] = [&scaled(0.9)[..], &scaled(0.9)[1..]].map(|tuned| with(tuned, RatioMethod::Bootstrap));
    assert_eq!([six.rows[0].method, five.rows[0].method], [RatioMethod::Bootstrap, RatioMethod::Student]);
    assert_eq!([six.rows[0].verdict, five.rows[0].verdict], [RowVerdict::Faster; 2]);
    assert_eq!(with(&scaled(0.9), RatioMethod::Student).rows[0].method, RatioMethod::Student);
    assert_eq!(six.count(RowVerdict::Faster), 1);
    let back: TimedComparison = serde_json::from_str(&six.to_json()).unwrap();
    assert_eq!(back, six);
}

#[test]
fn boots_that_others_slowed_down_are_told_and_borne() {
    // Every fourth boot takes 1.7 times as long.
    let side = |version: &str, by: f64, slow: f64| {
        let boot = |at: u32| by * (100.0 + f64::from(at * 7 % 5)) * if at % 4 == 3 { slow } else { 1.0 };
        set(&[boots(version, "getpid", &(0..16).map(boot).collect::<Vec<_>>())])
    };
    let compared = |slow: [f64; 2], method| {
        let (base, tuned) = (side("#1", 1.0, slow[0]), side("#2", 0.9, slow[1]));
        let options = ComparisonOptions { method, ..ComparisonOptions::default() };
        TimedComparison::new(&base, &tuned, None, &options).unwrap().rows.remove(0)
    };
    let told = |row: &TimedRow| row.notes.iter().any(|note| note.contains("some boots are far from most"));
    let (student, pairs) =
        (compared([1.7; 2], RatioMethod::Student), compared([1.7; 2], RatioMethod::HodgesLehmann));
    assert!(told(&student) && student.verdict == RowVerdict::Inconclusive, "{student:?}");
    assert!(!told(&pairs) && pairs.verdict == RowVerdict::Faster, "{pairs:?}");
    assert!((pairs.change_percent + 10.0).abs() < 0.5 && pairs.method == RatioMethod::HodgesLehmann);
    // Outliers of one kernel alone may be its own property, so there is no note; nor without
    // outliers.
    assert!(
        !told(&compared([1.0, 1.7], RatioMethod::Student))
            && !told(&compared([1.0; 2], RatioMethod::Student))
    );
    let few = set(&[boots("#1", "getpid", &BASE[1..])]);
    let options = ComparisonOptions { method: RatioMethod::HodgesLehmann, ..ComparisonOptions::default() };
    assert_eq!(
        TimedComparison::new(&few, &few, None, &options).unwrap().rows[0].method,
        RatioMethod::Student
    );
}
