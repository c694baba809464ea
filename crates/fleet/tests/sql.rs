//! Other engines read a fleet's profiles and compute the same sums: the queries of docs/fleet.md.

mod support;

use kerntune_fleet::{merge, query, PartitionKey, Weights};
use kerntune_work::NoProgress;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::fleet;

/// Rows by name of the query.
type QueryRows = BTreeMap<String, Vec<Vec<String>>>;

fn python() -> PathBuf {
    // Directory where `scripts/setup cluster` installs packages that Debian lacks.
    let own = Path::new("/var/lib/kerntune/python/bin/python");
    let named = std::env::var_os("KERNTUNE_PYTHON").map(PathBuf::from);
    named.unwrap_or_else(|| if own.is_file() { own.into() } else { "python3".into() })
}

/// Runs the page's queries; `None` if the engine is not installed.
fn rows(engine: &str, prefix: &Path) -> Option<QueryRows> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/fleet-sql");
    let output = Command::new(python()).arg(script).arg(engine).arg(prefix).output();
    let output = match output {
        Ok(output) if output.status.code() != Some(3) => output,
        Ok(output) => {
            eprintln!("skipped: {}", String::from_utf8_lossy(&output.stderr));
            return None;
        }
        Err(error) => {
            eprintln!("skipped: no Python: {error}");
            return None;
        }
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let line = |line: &str| {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        (value["name"].as_str().unwrap().to_owned(), serde_json::from_value(value["rows"].clone()).unwrap())
    };
    Some(String::from_utf8(output.stdout).unwrap().lines().map(line).collect())
}

fn sums_are_ours(engine: &str) {
    let dir = tempfile::tempdir().unwrap();
    let (fleet, all) = fleet(dir.path(), 24);
    let Some(rows) = rows(engine, fleet.root()) else { return };
    assert_eq!(rows.len(), 5, "{:?}", rows.keys());

    let merged = merge(&all, &Weights::default(), 2, &NoProgress).unwrap().profile.tables;
    let functions = &merged.functions;
    let sum =
        |of: fn(&kerntune_profile::FunctionStats) -> u64| functions.iter().map(of).sum::<u64>().to_string();
    let totals =
        vec![sum(|row| row.calls), sum(|row| row.self_ticks.get()), sum(|row| row.total_ticks.get())];
    assert_eq!(rows["totals"], [totals]);

    let mut by_name: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for totals in merged.totals(|_| true) {
        let sum = by_name.entry(merged.name(totals.function)).or_default();
        *sum = (sum.0 + totals.calls, sum.1 + totals.self_ticks.get());
    }
    let mut top: Vec<Vec<String>> = by_name
        .iter()
        .map(|(name, (calls, net))| vec![name.to_string(), calls.to_string(), net.to_string()])
        .collect();
    top.sort_by_key(|row| std::cmp::Reverse(row[2].parse::<u64>().unwrap()));
    assert_eq!(rows["top_functions"], top);
    assert_eq!(rows["top_functions_of_equal_symbols"], top);

    let decoded = |text: &str| text.replace("%20", " ");
    let by_day = query(&all, &[PartitionKey::Workload, PartitionKey::Date], None).unwrap();
    let ours: Vec<Vec<String>> = by_day
        .iter()
        .map(|group| {
            let mut row = group.values.clone();
            row.extend([group.profiles, group.busy, group.elapsed_ns].map(|number| number.to_string()));
            row
        })
        .collect();
    let theirs: Vec<Vec<String>> =
        rows["by_workload"].iter().map(|row| row.iter().map(|cell| decoded(cell)).collect()).collect();
    assert_eq!(theirs, ours);

    let by_host = query(&all, &[PartitionKey::Host], Some("schedule")).unwrap();
    let ours: Vec<[String; 2]> = by_host
        .iter()
        .map(|group| [group.values[0].clone(), group.function.unwrap().own.to_string()])
        .collect();
    let theirs: Vec<[String; 2]> =
        rows["share_by_host"].iter().map(|row| [row[0].clone(), row[2].clone()]).collect();
    assert_eq!(theirs, ours);
}

#[test]
fn duckdb_comes_to_our_sums() {
    sums_are_ours("duckdb");
}

#[test]
fn datafusion_comes_to_our_sums() {
    sums_are_ours("datafusion");
}
