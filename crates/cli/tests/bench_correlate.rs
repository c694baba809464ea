//! `kerntune bench correlate` on synthetic files with known results.

use crate::support::{self, fails, kerntune, run};
use serde_json::{json, Value};
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

/// Writes times of the rows in four boots.
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
    // Ranks 5 2 3 …: the last row is first by time and last in the model.
    assert_eq!(
        (&cycles(&all)["figure"], &cycles(&all)["correlation"]["rho"]),
        (&json!("model_cycles"), &json!(0.0))
    );
    assert_eq!(all["correlations"][0]["correlation"], Value::Null, "path length is the same in all");
    assert_eq!(all["rows"][0]["predicted_percent"][2], Value::Null, "nothing misses");
    // Without the row for which the machines run different code, the ranks agree.
    let skipped = call.into_iter().chain(["--skip", "batched/odd"]);
    let rest = support::json(skipped.clone().chain(["--json"]));
    assert_eq!(cycles(&rest)["correlation"]["rho"], json!(1.0));
    assert_eq!(rest["left_out"][0]["row"], "odd");
    let text = run(skipped);
    for words in ["batched/d", "-30.0", "model cycles", "+1.00", "odd: asked to be left out", "model zen4"] {
        assert!(text.contains(words), "{words:?} is not in:\n{text}");
    }
}

/// Two models give a range, which contains the timed change or not; several boots count as one
/// kernel.
#[test]
fn several_models_make_a_range() {
    let directory = tempfile::tempdir().unwrap();
    let base = timed(&directory, "base.json", [1000.0; 5]);
    let more = timed(&directory, "more.json", [1000.0; 5]);
    let tuned = timed(&directory, "tuned.json", [990.0, 900.0, 800.0, 700.0, 100.0]);
    let [zen4_base, skylake_base] =
        ["zen4", "skylake"].map(|model| exact(&directory, &format!("{model}.json"), model, [100.0; 5]));
    let zen4 = exact(&directory, "zen4-tuned.json", "zen4", [98.0, 85.0, 75.0, 65.0, 99.0]);
    let skylake = exact(&directory, "skylake-tuned.json", "skylake", [99.5, 95.0, 90.0, 75.0, 99.0]);
    let picture = directory.path().join("clock.svg").display().to_string();
    let both = format!("{base},{more}");
    let call = ["bench", "correlate", "--timed", &both, &tuned, "--exact", &zen4_base, &zen4, "--exact"];
    let call = call.into_iter().chain([&*skylake_base, &*skylake]);
    let found = support::json(call.clone().chain(["--json", "--picture", &picture]));
    let of = &found["under_models"];
    assert_eq!((&of["models"], &of["points"]), (&json!(["zen4", "skylake"]), &json!(5)));
    // Timed changes are -1, -10, -20, -30 and -90 %; the ranges are -2 … -0.5, -15 … -5, -25 … -10,
    // -35 … -25 and -1.
    let inside: Vec<bool> = found["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["range"]["inside"].as_bool().unwrap())
        .collect();
    assert_eq!(inside, [true, true, true, true, false]);
    assert_eq!((&of["inside"], &of["by_model"].as_array().unwrap().len()), (&json!(4), &2));
    let drawn = std::fs::read_to_string(&picture).unwrap();
    assert!(
        drawn.starts_with("<svg")
            && drawn.contains("batched/odd")
            && !drawn.contains("http://www.w3.org/1999")
    );
    let text = run(call.clone());
    for words in
        ["under 2 front-end models", "lies in the models' range in 4 of 5 (80 %)", "below", "skylake"]
    {
        assert!(text.contains(words), "{words:?} is not in:\n{text}");
    }
    // One model gives no range to draw, and kernels are not files.
    let one = ["bench", "correlate", "--timed", &base, &tuned, "--exact", &zen4_base, &zen4];
    fails(&mut kerntune(one.iter().chain(&["--picture", &picture])), 2, &["--picture", "several models"]);
    fails(&mut kerntune(one.iter().chain(&["--kernels", "a", "b"])), 2, &["--kernels"]);
    fails(&mut kerntune(one.iter().chain(&["--models", "zen4"])), 2, &["--models"]);
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
