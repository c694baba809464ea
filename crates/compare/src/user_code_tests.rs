use crate::{Comparison, ComparisonLabels, Measurement, Metric, RegionFigures, Verdict, TOTAL};

/// A run of operations, each with its instructions of the kernel and of user code.
fn run(regions: &[(&str, u64, u64)]) -> Measurement {
    Measurement::from_regions(regions.iter().map(|&(name, kernel, user)| {
        let counts = [
            (Metric::PathLength, kernel),
            (Metric::TakenBranches, kernel / 5),
            (Metric::UserInstructions, user),
            (Metric::WholeInstructions, kernel + user),
        ];
        RegionFigures {
            name,
            depth: 0,
            closed: true,
            operations: 100,
            counts: counts.into(),
            events: Default::default(),
            whole_events: Default::default(),
        }
    }))
    .unwrap()
}

fn compared(base: &[(&str, u64, u64)], tuned: &[(&str, u64, u64)]) -> Comparison {
    Comparison::new(&run(base), &run(base), &run(tuned), ComparisonLabels::default()).unwrap()
}

#[test]
fn what_user_code_did_otherwise_is_no_gain_of_the_kernel() {
    // Like a server with a just-in-time compiler: the kernel's path is 0.2 % longer, user code
    // shorter.
    let comparison = compared(&[("get", 100_000, 900_000)], &[("get", 100_200, 886_500)]);
    let unequal = comparison.unequal_user_code(TOTAL).unwrap();
    assert_eq!((unequal.change_percent, unequal.interval_percent), (Some(-1.5), None));
    assert!((unequal.kernel_share_percent.unwrap() - 0.02).abs() < 1e-12, "{unequal:?}");
    let whole = Verdict::new(&comparison).whole().unwrap();
    assert_eq!(
        whole,
        "The runs did not do the same work: user code executed -1.5 % instructions on the tuned kernel, and one run of each does \
         not say how far it differs by itself (--runs). The whole path (instructions -1.3 %) is therefore not the kernel's: of \
         it, the kernel's own instructions account for +0.02 %. The kernel's own figures follow."
    );
    let row = comparison.row(TOTAL, Metric::WholeInstructions).unwrap();
    assert!(
        row.has_unequal_user_code() && row.is_lower() && !row.is_better() && comparison.needs_start_offsets()
    );
    let kernel = comparison.row(TOTAL, Metric::PathLength).unwrap();
    assert!(!kernel.has_unequal_user_code() && kernel.is_worse());
    let text = comparison.to_json();
    assert!(text.contains("\"unequal_user_code\""), "{text}");
    assert_eq!(Comparison::from_json(&text).unwrap(), comparison);
}

#[test]
fn a_program_that_does_the_same_says_nothing_of_it() {
    let comparison = compared(&[("get", 100_000, 900_000)], &[("get", 90_000, 900_000)]);
    assert!(comparison.unequal_user_code.is_empty() && !comparison.needs_start_offsets());
    assert_eq!(
        Verdict::new(&comparison).whole().unwrap(),
        "Whole path (kernel and user): instructions -1.0 %; of user code: instructions 0.0 %*."
    );
    assert!(!comparison.to_json().contains("unequal_user_code"));
    // A tick falls into another system call.
    let comparison = compared(&[("get", 100_000, 900_000)], &[("get", 90_000, 900_090)]);
    assert!(comparison.unequal_user_code.is_empty());
    let comparison = compared(&[("get", 100_000, 900_000)], &[("get", 90_000, 900_091)]);
    assert_eq!(comparison.unequal_user_code.len(), 2, "the operation and the total");
}

#[test]
fn its_own_spread_at_several_moments_is_told_from_other_work() {
    let at = |kernel: u64, user: u64| run(&[("get", kernel, user)]);
    let spread = [0, 9_000, 3_000, 12_000, 6_000];
    let of = |kernel: u64, user: u64| -> Vec<Measurement> {
        spread.iter().map(|more| at(kernel + more / 100, user + more)).collect()
    };
    let compare = |tuned: Vec<Measurement>| {
        let base = of(100_000, 900_000);
        let again = base[0].clone();
        Comparison::from_runs(&[base], &again, &[tuned], ComparisonLabels::default()).unwrap()
    };
    let mut other = of(95_000, 900_000);
    other.rotate_left(1);
    let chance = compare(other);
    assert!(chance.unequal_user_code.is_empty(), "{:?}", chance.unequal_user_code);
    assert!(chance.row(TOTAL, Metric::UserInstructions).unwrap().within_noise());
    let beyond = compare(of(95_000, 850_000));
    let unequal = beyond.unequal_user_code(TOTAL).unwrap();
    let [low, high] = unequal.interval_percent.unwrap();
    assert!(low < -5.4 && -5.4 > high - 3.0 && high < 0.0 && !beyond.needs_start_offsets(), "{unequal:?}");
    let whole = Verdict::new(&beyond).whole().unwrap();
    assert!(whole.contains("more than it differs by itself (5 runs of each, 99 %:"), "{whole}");
}

#[test]
fn an_operation_alone_is_named_though_the_total_is_even() {
    let comparison = compared(&[("a", 1000, 1000), ("b", 1000, 1000)], &[("a", 900, 1100), ("b", 900, 900)]);
    let names: Vec<&str> = comparison.unequal_user_code.iter().map(|of| of.operation.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    let verdict = Verdict::new(&comparison);
    assert!(verdict.whole().unwrap().starts_with("Whole path"), "{verdict}");
    let warning = verdict.warnings().last().unwrap();
    assert!(
        warning.starts_with("User code ran differently in 2 operations (a +10.0 %, b -10.0 %)"),
        "{warning}"
    );
}
