//! The study of namei on real kernels: what is not measured here is in docs/results/mckusick.md.

mod support;

use serde_json::Value;

/// The row of a table.
fn row<'a>(study: &'a Value, table: usize, what: &str) -> &'a Value {
    let rows = study["tables"][table]["rows"].as_array().unwrap();
    rows.iter().find(|row| row["what"] == what).unwrap_or_else(|| panic!("no row {what}"))
}

fn ours(row: &Value) -> Vec<f64> {
    row["ours"].as_array().unwrap().iter().map(|figure| figure.as_f64().unwrap_or(f64::NAN)).collect()
}

/// A part is no more than the whole.
fn assert_parts(study: &Value, table: usize, part: &str, whole: &str) {
    let (parts, wholes) = (ours(row(study, table, part)), ours(row(study, table, whole)));
    assert!(parts.iter().zip(&wholes).all(|(part, whole)| part <= whole), "{part}: {parts:?} of {wholes:?}");
}

#[test]
fn caches_of_names_do_what_they_did_in_4_2bsd() {
    let study = support::json(["paper", "mckusick", "--json"]);
    println!("{}", support::run(["paper", "mckusick"]));
    assert_eq!(study["schema"], "kerntune-study/1");
    for table in [0, 1] {
        // The same names are translated by all three kernels.
        let uses = ours(row(&study, table, "uses"));
        assert!(uses.iter().all(|count| *count == uses[0] && *count > 600.0), "table {table}: {uses:?}");
        let total = ours(row(&study, table, "total"));
        assert!(total[2] < total[0], "table {table}: the dcache takes less than a search: {total:?}");
        assert_parts(&study, table, "self", "total");
    }
    assert_parts(&study, 0, "self_percent", "total_percent");
    // Searched from its beginning a directory of 600 names takes some 300 compares for each; from the last place on, one.
    let ls = ours(row(&study, 1, "total"));
    assert!(ls[1] * 2.0 < ls[0], "ls -l: {ls:?}");
    let hits = ours(row(&study, 1, "hit_percent"));
    assert!(hits[1] > 90.0 && hits[2] > 90.0, "{hits:?}");
    // Among others it is of use now and then, as in the paper.
    let (hits, total) = (ours(row(&study, 0, "hit_percent")), ours(row(&study, 0, "total")));
    assert!((15.0..35.0).contains(&hits[1]) && hits[2] > 85.0, "{hits:?}");
    assert!(total[2] < total[1] && total[1] < total[0], "{total:?}");
    // One formula for both.
    for table in study["tables"].as_array().unwrap() {
        for row in table["rows"].as_array().unwrap() {
            for (figures, changes) in [("paper", "paper_change_percent"), ("ours", "change_percent")] {
                let of =
                    |key: &str| row[key].as_array().unwrap().iter().map(Value::as_f64).collect::<Vec<_>>();
                let (figures, changes) = (of(figures), of(changes));
                for (figure, change) in
                    figures.iter().zip(&changes).filter_map(|(f, c)| Some((f.as_ref()?, c.as_ref()?)))
                {
                    let expected = 100.0 * (figure / figures[0].unwrap() - 1.0);
                    assert!((change - expected).abs() < 1e-9, "{row}");
                }
            }
        }
    }
    let mut recipe = support::kerntune(["paper", "mckusick", "--recipe", "gcc-pgo"]);
    support::fails(&mut recipe, 2, &["--recipe", "patches"]);
}
