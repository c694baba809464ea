//! Papers that change or examine a kernel, on real kernels. docs/results has the figures that are
//! not measured here.

use crate::support;
use serde_json::Value;

/// Returns a row of a table.
fn row<'a>(study: &'a Value, table: usize, what: &str) -> &'a Value {
    let rows = study["tables"][table]["rows"].as_array().unwrap();
    rows.iter().find(|row| row["what"] == what).unwrap_or_else(|| panic!("no row {what}"))
}

fn ours(row: &Value) -> Vec<f64> {
    row["ours"].as_array().unwrap().iter().map(|figure| figure.as_f64().unwrap_or(f64::NAN)).collect()
}

/// Checks that a part is not larger than the whole.
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
        // All three kernels translate the same names.
        let uses = ours(row(&study, table, "uses"));
        assert!(uses.iter().all(|count| *count == uses[0] && *count > 600.0), "table {table}: {uses:?}");
        let total = ours(row(&study, table, "total"));
        assert!(total[2] < total[0], "table {table}: the dcache takes less than a search: {total:?}");
        assert_parts(&study, table, "self", "total");
    }
    assert_parts(&study, 0, "self_percent", "total_percent");
    // Searching a directory of 600 names from its start takes some 300 comparisons for each; from
    // the last position one.
    let ls = ours(row(&study, 1, "total"));
    assert!(ls[1] * 2.0 < ls[0], "ls -l: {ls:?}");
    let hits = ours(row(&study, 1, "hit_percent"));
    assert!(hits[1] > 90.0 && hits[2] > 90.0, "{hits:?}");
    // For mixed names it helps sometimes, as in the paper.
    let (hits, total) = (ours(row(&study, 0, "hit_percent")), ours(row(&study, 0, "total")));
    assert!((15.0..35.0).contains(&hits[1]) && hits[2] > 85.0, "{hits:?}");
    assert!(total[2] < total[1] && total[1] < total[0], "{total:?}");
    // Both use the same formula.
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

/// Uses recordings of other tests, and skips the other workloads.
#[test]
fn what_a_paper_found_is_looked_for_and_what_was_not_run_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("page.md").display().to_string();
    let only = ["--only", "rr", "--only", "kbx"];
    let found = support::json(["paper", "mcrae", "-o", &page, "--json"].iter().chain(&only));
    assert_eq!(found["schema"], "kerntune-survey/1");
    let finding = |words: &str| {
        let findings = found["findings"].as_array().unwrap();
        findings.iter().find(|of| of["says"].as_str().unwrap().contains(words)).unwrap().clone()
    };
    // On any machine, sender and receiver share the CPU, and copy.
    let saturates = finding("saturates the CPU");
    assert_eq!((&saturates["seen"], &saturates["unit"]), (&"reproduced".into(), &"% of time".into()));
    let copying = finding("copying (bcopy)")["value"].as_f64().unwrap();
    assert!((5.0..95.0).contains(&copying), "{copying} % is copying");
    // Packets on loopback have no checksum.
    assert_eq!(finding("in_cksum")["seen"], "contradicted");
    assert_eq!(finding("Reads of the disc")["seen"], "not-made");
    assert_eq!(finding("non-profiled kernel")["seen"], "cannot-be-seen");
    // Figures of the table equal those of the profile's own report.
    let rows = found["tables"][0]["rows"].as_array().unwrap();
    let fault = rows.iter().find(|row| row["name"] == "vm_fault").unwrap();
    let run = found["runs"].as_array().unwrap().iter().find(|run| run["region"] == "fork_exec").unwrap();
    let profile = run["profile"].as_str().unwrap();
    let report = support::json(["report", profile, "functions", "--region", "fork_exec", "--json"]);
    let functions = report["functions"].as_array().unwrap();
    let of = functions.iter().find(|row| row["name"] == "handle_mm_fault").unwrap();
    let per_call = of["elapsed"].as_f64().unwrap() / of["ended"].as_f64().unwrap();
    assert!((fault["value"].as_f64().unwrap() - per_call).abs() < 1e-6, "{fault} {of}");
    // The figures exist, and the page contains the same text.
    assert!(found["figures"][0]["text"].as_str().unwrap().contains("% net"), "{}", found["figures"][0]);
    let page = std::fs::read_to_string(&page).unwrap();
    assert!(page.contains("## Findings") && page.contains("| cannot be seen here |"), "{page}");
    let mut other = support::kerntune(["paper", "mcrae", "--recipe", "gcc-pgo"]);
    support::fails(&mut other, 2, &["--recipe", "looks at one kernel"]);
    let mut unknown = support::kerntune(["paper", "mcrae", "--only", "redis"]);
    support::fails(&mut unknown, 2, &["--only redis", "rr"]);
}
