//! `kerntune bench correlate` on files whose truth is known.

mod support;

use serde_json::{json, Value};
use support::{fails, kerntune, run};
use tempfile::TempDir;

const ROWS: [&str; 5] = ["a", "b", "c", "d", "odd"];

fn write(directory: &TempDir, name: &str, results: Value) -> String {
    let path = directory.path().join(name);
    std::fs::write(&path, results.to_string()).unwrap();
    path.display().to_string()
}

fn results(machine: &str, model: Option<&str>, rows: Vec<Value>) -> Value {
    let mut results = json!({
        "schema": "kerntune-bench-results/1",
        "machine": machine,
        "kernel": {"release": "6.12.117", "version": "#1", "id": null},
        "started": "2026-11-22T08:00:00Z",
        "rows": rows,
    });
    if let Some(model) = model {
        results["model"] = model.into();
    }
    results
}

/// Times of the rows in four boots.
fn timed(directory: &TempDir, name: &str, times: [f64; 5]) -> String {
    let value = |time: f64, boot: u32| json!({"build": 0, "boot": boot, "run": 0, "iteration": 0, "value": time + f64::from(boot)});
    let row = |(row, time): (&str, f64)| {
        let values: Vec<Value> = (0..4).map(|boot| value(time, boot)).collect();
        json!({"suite": "batched", "row": row, "unit": "ns/op", "better": "lower", "values": values})
    };
    write(directory, name, results("uml", None, ROWS.into_iter().zip(times).map(row).collect()))
}

fn exact(directory: &TempDir, name: &str, model: &str, cycles: [f64; 5]) -> String {
    let row = |(row, cycles): (&str, f64)| {
        let figures = json!({"path_length": 100.0, "taken_branches": 1.0, "l1i_misses": 0.0, "itlb_misses": 0.0, "model_cycles": cycles});
        let values =
            json!([{"build": 0, "boot": 0, "run": 0, "iteration": 0, "value": 100.0, "figures": figures}]);
        json!({"suite": "batched", "row": row, "unit": "instructions/op", "better": "lower", "values": values})
    };
    write(directory, name, results("emulator", Some(model), ROWS.into_iter().zip(cycles).map(row).collect()))
}

#[test]
fn the_model_is_held_against_the_clock() {
    let directory = tempfile::tempdir().unwrap();
    let base = timed(&directory, "base.json", [1000.0; 5]);
    let tuned = timed(&directory, "tuned.json", [990.0, 900.0, 800.0, 700.0, 100.0]);
    let [exact_base, exact_tuned] = [[100.0; 5], [98.0, 90.0, 70.0, 60.0, 99.0]]
        .map(|cycles| exact(&directory, &format!("e{}.json", cycles[0]), "zen4", cycles));
    let call = ["bench", "correlate", "--timed", &base, &tuned, "--exact", &exact_base, &exact_tuned];
    let all = support::json(call.into_iter().chain(["--json"]));
    assert_eq!((&all["schema"], &all["model"]), (&json!("kerntune-bench-prediction/1"), &json!("zen4")));
    let cycles = |json: &Value| json["correlations"][4].clone();
    // 5 2 3 … the last row is first on the clock and last in the model.
    assert_eq!(
        (&cycles(&all)["figure"], &cycles(&all)["correlation"]["rho"]),
        (&json!("model_cycles"), &json!(0.0))
    );
    assert_eq!(all["correlations"][0]["correlation"], Value::Null, "path length is the same in all");
    assert_eq!(all["rows"][0]["predicted_percent"][2], Value::Null, "nothing misses");
    // Without it, in which the two machines do other things, the order is the same.
    let skipped = call.into_iter().chain(["--skip", "batched/odd"]);
    let rest = support::json(skipped.clone().chain(["--json"]));
    assert_eq!(cycles(&rest)["correlation"]["rho"], json!(1.0));
    assert_eq!(rest["left_out"][0]["row"], "odd");
    let text = run(skipped);
    for words in ["batched/d", "-30.0", "model cycles", "+1.00", "odd: asked to be left out", "model zen4"] {
        assert!(text.contains(words), "{words:?} is not in:\n{text}");
    }
}

#[test]
fn what_does_not_belong_together_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let base = timed(&directory, "base.json", [1000.0; 5]);
    let tuned = timed(&directory, "tuned.json", [900.0; 5]);
    let zen4 = exact(&directory, "zen4.json", "zen4", [100.0; 5]);
    let skylake = exact(&directory, "skylake.json", "skylake", [90.0; 5]);
    let predict = |arguments: &[&str], words: &[&str]| {
        fails(&mut kerntune([&["bench", "correlate"], arguments].concat()), 2, words);
    };
    let timed = ["--timed", &base, &tuned];
    predict(&[&timed[..], &["--exact", &zen4, &skylake]].concat(), &["skylake.json", "\"zen4\"", "--model"]);
    predict(&[&timed[..], &["--exact", &base, &tuned]].concat(), &["no exact figures", "emulator"]);
    let twice = [&timed[..], &timed, &["--exact", &zen4, &zen4]].concat();
    predict(&twice, &["2 pair(s) of --timed and 1 of --exact"]);
    predict(&[&timed[..], &["--exact", &zen4, &zen4, "--skip", "z"]].concat(), &["no row \"z\""]);
    predict(&["--timed", &base, "--exact", &zen4, &zen4], &["--timed"]);
}
