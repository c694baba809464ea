//! Comparison with benchstat on the same numbers: medians, their ratio, and the p-values of Mann
//! and Whitney's test. `fixtures/make` produced its output.

use kerntune_stats::{median, MannWhitney};
use std::collections::HashMap;

const BASE: &str = include_str!("fixtures/base.txt");
const TUNED: &str = include_str!("fixtures/tuned.txt");
const BENCHSTAT: &str = include_str!("fixtures/benchstat.csv");

/// Parses `BenchmarkName 1 99.5 ns/op` into the values of each name.
fn numbers(text: &str) -> HashMap<String, Vec<f64>> {
    let mut rows: HashMap<String, Vec<f64>> = HashMap::new();
    for line in text.lines() {
        let [name, "1", value, "ns/op"] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let name = name.strip_prefix("Benchmark").unwrap();
        rows.entry(name.into()).or_default().push(value.parse().unwrap());
    }
    rows
}

/// One row of benchstat's output.
struct BenchstatRow {
    name: String,
    /// Medians of base and tuned kernel, in ns.
    medians: [f64; 2],
    /// tuned / base − 1 in per cent; `None` where benchstat prints none.
    change: Option<f64>,
    /// P-value, rounded to three digits.
    p: f64,
}

fn said() -> Vec<BenchstatRow> {
    let rows = BENCHSTAT.lines().filter(|line| line.contains("p="));
    rows.map(|line| {
        let [name, base, _, tuned, _, change, test] = line.split(',').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let median = |text: &str| text.parse::<f64>().unwrap() * 1e9;
        let p = test.strip_prefix("p=").unwrap().split(' ').next().unwrap();
        BenchstatRow {
            name: name.into(),
            medians: [median(base), median(tuned)],
            change: change.strip_suffix('%').map(|change| change.parse().unwrap()),
            p: p.parse().unwrap(),
        }
    })
    .collect()
}

#[test]
fn medians_ratios_and_p_values_are_benchstats() {
    let (base, tuned, said) = (numbers(BASE), numbers(TUNED), said());
    assert_eq!(said.len(), base.len());
    for row in said {
        let (base, tuned) = (&base[&row.name], &tuned[&row.name]);
        let medians = [median(base), median(tuned)];
        for (ours, theirs) in medians.iter().zip(row.medians) {
            assert!((ours / theirs - 1.0).abs() < 1e-12, "{}: {ours} {theirs}", row.name);
        }
        if let Some(change) = row.change {
            let ours = 100.0 * (medians[1] / medians[0] - 1.0);
            assert!((ours - change).abs() < 0.005_001, "{}: {ours} {change}", row.name);
        }
        // Compared in the test below.
        if row.name != "Lopsided5x8" {
            let ours = MannWhitney::new(base, tuned).p;
            assert!((ours - row.p).abs() < 0.000_501, "{}: {ours} {}", row.name, row.p);
        }
    }
}

/// With ties that make the distribution of U lopsided, benchstat counts the tail on the side where
/// the base kernel is lower, wherever the observed U is: with the files swapped it prints 0.305
/// instead of 0.172. The tail beyond the observation has 0.086 in both cases, and twice that is our
/// result in both.
#[test]
fn a_lopsided_distribution_has_the_same_p_value_from_both_sides() {
    let (base, tuned) = (numbers(BASE), numbers(TUNED));
    let said: HashMap<String, f64> = said().into_iter().map(|row| (row.name, row.p)).collect();
    assert_eq!((said["Lopsided5x8"], said["Lopsided8x5"]), (0.305, 0.172));
    for name in ["Lopsided5x8", "Lopsided8x5"] {
        let p = MannWhitney::new(&base[name], &tuned[name]).p;
        // 111 of the 1,287 ways to choose five of the thirteen.
        assert!((p - 222.0 / 1_287.0).abs() < 1e-12, "{name}: {p}");
    }
}
