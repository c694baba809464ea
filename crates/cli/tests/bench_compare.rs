//! `kerntune bench compare` on synthetic files with known results.

use crate::support::{self, fails, kerntune, run};
use serde_json::{json, Value};
use tempfile::TempDir;

/// Writes boots of one kernel: each row with its values by boot.
fn write(directory: &TempDir, name: &str, version: &str, rows: &[(&str, &str, [f64; 6])]) -> String {
    let row = |(row, better, values): &(&str, &str, [f64; 6])| {
        let value = |(boot, value): (usize, &f64)| json!({"build": 0, "boot": boot, "run": 0, "iteration": 0, "value": value});
        let values: Vec<Value> = values.iter().enumerate().map(value).collect();
        json!({"suite": "kbx", "row": row, "unit": if *better == "lower" { "ns/op" } else { "MB/s" }, "better": better, "values": values})
    };
    let results = json!({
        "schema": "kerntune-bench-results/1",
        "machine": "host",
        "kernel": {"release": "6.12.117", "version": version, "id": null},
        "started": "2026-11-22T08:00:00Z",
        "rows": rows.iter().map(row).collect::<Vec<_>>(),
    });
    let path = directory.path().join(name);
    std::fs::write(&path, results.to_string()).unwrap();
    path.display().to_string()
}

const AROUND_100: [f64; 6] = [100.0, 100.4, 99.8, 100.1, 99.6, 100.2];

fn times(by: f64) -> [f64; 6] {
    // Reordered, so that boots cannot be paired.
    let mut values = AROUND_100.map(|value| value * by);
    values.reverse();
    values
}

/// Writes files of the base kernel, the tuned kernel, and the base kernel again.
fn files(directory: &TempDir) -> [String; 3] {
    let wild = [100.0, 131.0, 88.0, 104.0, 79.0, 117.0];
    let rows = |pipe: [f64; 6], read: [f64; 6], fork: [f64; 6]| {
        [
            ("pipe", "lower", pipe),
            ("read", "higher", read),
            ("same", "lower", times(1.0)),
            ("fork", "lower", fork),
        ]
    };
    let [mut base, tuned] =
        [rows(AROUND_100, AROUND_100, wild), rows(times(0.9), times(0.9), times(0.95))].map(Vec::from);
    let again = write(directory, "again.json", "#1", &base);
    base.push(("gone", "lower", AROUND_100));
    [write(directory, "base.json", "#1", &base), write(directory, "tuned.json", "#2", &tuned), again]
}

#[test]
fn each_row_has_its_verdict() {
    let directory = tempfile::tempdir().unwrap();
    let [base, tuned, again] = files(&directory);
    let json = support::json(["bench", "compare", &base, &tuned, "--aa", &again, "--json"]);
    assert_eq!((&json["schema"], &json["machine"]), (&json!("kerntune-bench-comparison/2"), &json!("host")));
    let rows = json["rows"].as_array().unwrap();
    let said: Vec<_> =
        rows.iter().map(|row| (row["row"].as_str().unwrap(), row["verdict"].as_str().unwrap())).collect();
    assert_eq!(
        said,
        [("pipe", "faster"), ("read", "slower"), ("same", "equivalent"), ("fork", "inconclusive")]
    );
    let pipe = &rows[0];
    let figure = |key: &str| pipe[key].as_f64().unwrap();
    assert!((figure("change_percent") + 10.0).abs() < 1e-9);
    assert!(figure("low_percent") < -10.0 && figure("high_percent") > -10.0 && figure("high_percent") < -9.0);
    assert_eq!((&pipe["level"], &pipe["units"]), (&json!("boot"), &json!([6, 6])));
    assert_eq!((&pipe["aa"]["kind"], &pipe["aa"]["differs"]), (&json!("again"), &json!(false)));
    assert_eq!(
        (&json["left_out"][0]["row"], &json["left_out"][0]["why"]),
        (&json!("gone"), &json!("only the base kernel has it"))
    );
    // The output is deterministic.
    let call = ["bench", "compare", &base, &tuned, "--paper"];
    let text = run(call);
    assert_eq!(text, run(call));
    assert!(text.starts_with("4 rows: 1 faster, 1 slower, 1 equivalent, 1 inconclusive.\n"), "{text}");
    for words in
        ["95 % interval", "not compared: only the base kernel has it", "improvement", "11.1 %", "6 boots"]
    {
        assert!(text.contains(words), "{words:?} is not in:\n{text}");
    }
}

#[test]
fn several_files_are_one_side() {
    let directory = tempfile::tempdir().unwrap();
    let [base, tuned, again] = files(&directory);
    let json =
        support::json(["bench", "compare", &base, &tuned, "--base", &again, "--min-effect", "12%", "--json"]);
    assert_eq!(json["rows"][0]["units"], json!([12, 6]));
    assert_eq!(json["rows"][0]["verdict"], "equivalent");
    assert_eq!(json["base"]["files"].as_array().unwrap().len(), 2);
    assert_eq!(json["options"]["min_effect"], 0.12);
}

#[test]
fn what_cannot_be_used_is_said_with_file_and_place() {
    let directory = tempfile::tempdir().unwrap();
    let [base, tuned, _] = files(&directory);
    let compare = |arguments: &[&str], words: &[&str]| {
        let all = [&["bench", "compare"], arguments].concat();
        fails(&mut kerntune(all), 2, words);
    };
    let damaged = |name: &str, from: &str, to: &str| {
        let text = std::fs::read_to_string(&base).unwrap();
        assert!(text.contains(from), "{text}");
        let path = directory.path().join(name);
        std::fs::write(&path, text.replacen(from, to, 1)).unwrap();
        path.display().to_string()
    };
    compare(&[&base, "nowhere.json"], &["cannot read nowhere.json"]);
    compare(&[&base, &damaged("nan.json", "100.4", "NaN")], &["nan.json", "line 1"]);
    compare(
        &[&base, &damaged("negative.json", "100.4", "-1")],
        &["negative.json: row kbx/pipe: -1 at build 0, boot 1"],
    );
    compare(
        &[&damaged("old.json", "results/1", "results/9"), &tuned],
        &["old.json", "results/9", "bench run"],
    );
    compare(&[&base, &damaged("uml.json", "host", "uml")], &["on \"uml\"", "base.json"]);
    compare(&[&base, &tuned, "--aa", &tuned], &["tuned.json", "an A/A pair is of one kernel"]);
    compare(&[&base, &tuned, "--min-effect", "1"], &["--min-effect", "write it as 1%"]);
    compare(&[&base, &tuned, "--confidence", "100%"], &["confidence"]);
    let binary = directory.path().join("binary.json");
    std::fs::write(&binary, [0xff, 0xfe, 0]).unwrap();
    compare(&[&base, &binary.display().to_string()], &["binary.json", "UTF-8"]);
}
