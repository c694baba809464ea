//! Untrusted results: either an error that names file and place, or figures that are all finite;
//! never a panic.

use kerntune_stats::{BenchResults, ComparisonOptions, JoinedResults, RatioMethod, TimedComparison};
use proptest::prelude::*;

const GOOD: &str = include_str!("fixtures/results.json");

/// Parses results, compares them with themselves and prints, as far as possible.
fn use_it(text: &str) {
    let results = match BenchResults::parse("some.json", text) {
        Ok(results) => results,
        Err(error) => {
            let error = error.to_string();
            assert!(error.starts_with("some.json: "), "{error}");
            return;
        }
    };
    let Ok(set) = JoinedResults::join(&[("some.json".into(), results)]) else { return };
    for method in [RatioMethod::Student, RatioMethod::Bootstrap, RatioMethod::HodgesLehmann] {
        let mut options = ComparisonOptions { method, ..ComparisonOptions::default() };
        options.bootstrap.replicates = 99;
        if let Ok(comparison) = TimedComparison::new(&set, &set, Some(&set), &options) {
            // A figure that is not finite would be written as null and fail to parse.
            let back: TimedComparison = serde_json::from_str(&comparison.to_json()).unwrap();
            assert_eq!(back, comparison);
        }
    }
}

#[test]
fn the_good_one_is_good() {
    let results = BenchResults::parse("good.json", GOOD).unwrap();
    assert_eq!(results.rows.len(), 2);
    use_it(GOOD);
}

/// Texts that may stand in place of a value in a file.
#[test]
fn what_is_no_number_is_named_with_its_place() {
    for (wrong, words) in [
        ("NaN", "line 12"),
        ("Infinity", "line 12"),
        ("null", "line 12"),
        ("\"13.5\"", "line 12"),
        ("[]", "line 12"),
        ("1e999", "line 12"),
        ("-13.5", "row kbx/getpid: -13.5 at build 0, boot 1, run 0, iteration 0 is no measurement"),
        ("2e100", "row kbx/getpid: "),
    ] {
        let text = GOOD.replace("13.5", wrong);
        assert_ne!(text, GOOD);
        let error = BenchResults::parse("dir/a.json", &text).unwrap_err().to_string();
        assert!(error.starts_with("dir/a.json: ") && error.contains(words), "{wrong}: {error}");
    }
    // An empty file, half a file, another document, a file that was written twice, deep nesting.
    for (text, words) in [
        (String::new(), "line 1 column 0"),
        (GOOD[..GOOD.len() / 2].into(), "EOF"),
        ("[1, 2]".into(), "line 1"),
        (format!("{GOOD}{GOOD}"), "trailing characters"),
        ("{\"schema\":".repeat(10_000), "recursion limit"),
        ("{\"schema\":\"kerntune-comparison/1\"}".into(), "the schema is \"kerntune-comparison/1\""),
        ("{\"schema\":{\"a\":1}}".into(), "the schema is {\"a\":1}"),
    ] {
        let error = BenchResults::parse("dir/a.json", &text).unwrap_err().to_string();
        assert!(error.starts_with("dir/a.json: ") && error.contains(words), "{error}");
    }
}

/// Time is proportional to the number of rows: this would take minutes otherwise.
#[test]
fn a_hundred_thousand_rows_are_read_and_joined() {
    let mut results = BenchResults::parse("good.json", GOOD).unwrap();
    let row = results.rows[0].clone();
    results.rows =
        (0..100_000).map(|at| kerntune_stats::ResultsRow { row: at.to_string(), ..row.clone() }).collect();
    let set = JoinedResults::join(&[("a.json".into(), results.clone()), ("b.json".into(), results)]).unwrap();
    assert_eq!((set.rows.len(), set.row("kbx", "99999").unwrap().row.as_str()), (100_000, "99999"));
}

/// Usual numbers, and numbers at the limits of arithmetic.
fn value() -> impl Strategy<Value = f64> {
    prop_oneof![
        prop::sample::select(vec![0.0, 5e-324, 1e-310, 1e-200, 1e-100, 1e-99, 1.0, 1e50, 1e99, 1e100]),
        0.5f64..2.0,
    ]
}

proptest! {
    #[test]
    fn damaged_text(at in 0..GOOD.len(), length in 0usize..40, put in "[\\PC\"{}\\[\\],:0-9eE.-]{0,12}") {
        let end = (at + length).min(GOOD.len());
        // The fixture is ASCII.
        use_it(&format!("{}{put}{}", &GOOD[..at], &GOOD[end..]));
    }

    #[test]
    fn any_text(text in "\\PC{0,200}") {
        use_it(&text);
    }

    #[test]
    fn any_numbers(boots in prop::collection::vec(prop::collection::vec(value(), 1..12), 1..9)) {
        let mut results = BenchResults::parse("good.json", GOOD).unwrap();
        let mut values = Vec::new();
        for (boot, iterations) in (0..).zip(&boots) {
            let value = |(iteration, value): (u32, &f64)| kerntune_stats::MeasuredValue {
                build: 0, boot, run: 0, iteration, value: *value, ..kerntune_stats::MeasuredValue::default()
            };
            values.extend((0..).zip(iterations).map(value));
        }
        results.rows[0].values = values;
        use_it(&serde_json::to_string(&results).unwrap());
    }
}
