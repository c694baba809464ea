//! The main job, on real kernels: acceptance points 2 and 6 of the first issue.

mod support;

use serde_json::Value;
use std::process::Stdio;
use std::time::{Duration, Instant};
use support::{json, kerntune, run};

/// The change of a metric of an operation in percent.
fn change(result: &Value, operation: &str, metric: &str) -> f64 {
    let row = result["rows"].as_array().unwrap().iter();
    let mut row = row.filter(|row| row["operation"] == operation && row["metric"] == metric);
    row.next().unwrap()["change_percent"].as_f64().unwrap()
}

#[test]
fn rr_gets_faster_and_a_second_call_finds_everything() {
    let result = json(["tune", "--workload", "rr", "--json"]);
    assert_eq!(result["workload"], "rr");
    assert_eq!(result["machine"], "emulator");
    assert!(change(&result, "total", "taken_branches") <= -15.0, "{result}");
    assert!(change(&result, "total", "l1i_misses") <= -35.0, "{result}");
    assert!(change(&result, "tcp_rr", "path_length") <= -4.0, "{result}");
    // The contract: every operation has every metric, and an A/A difference beside it.
    for row in result["rows"].as_array().unwrap() {
        assert!(row["aa_percent"].as_f64().unwrap().abs() <= 0.05, "{row}");
        for key in ["unit", "base", "tuned", "change_percent"] {
            assert!(!row[key].is_null(), "{key} of {row}");
        }
    }

    let again = kerntune(["tune", "--workload", "rr", "--json"]).output().unwrap();
    let said = String::from_utf8_lossy(&again.stderr);
    assert_eq!(said.matches(": found ").count(), 10, "{said}");
    assert_eq!(serde_json::from_slice::<Value>(&again.stdout).unwrap(), result);
    // The same step by step is the same kernel.
    let base = result["base"]["id"].as_str().unwrap();
    let optimized = json(["optimize", "--kernel", base, "--workload", "rr", "--json"]);
    assert_eq!(optimized["tuned"], result["tuned"]["id"]);
    let plan = run(["tune", "--workload", "rr", "--dry-run"]);
    assert_eq!(plan.matches("done: ").count(), 10, "{plan}");
}

#[test]
fn redis_gets_faster_in_every_metric() {
    let result = json(["tune", "--workload", "redis", "--json"]);
    for operation in ["redis_set", "redis_get", "total"] {
        for metric in ["path_length", "taken_branches", "l1i_misses", "itlb_misses"] {
            let change = change(&result, operation, metric);
            assert!(change < 0.0, "{operation} {metric}: {change} %");
        }
    }
}

#[test]
fn a_killed_recording_is_taken_up_again() {
    let kernel = support::base_kernel();
    let directory = tempfile::tempdir().unwrap();
    // A command of its own, so that nobody has recorded it before.
    let marker = format!("{:?}", Instant::now());
    let workload = support::workload(
        &directory,
        &format!(
            "description = {marker:?}\nappend = \"kt.test={}\"\n[training]\n[[training.step]]\ncommand = [\"rr\", \"--only\", \"getpid\"]\n\
             [measured]\n[[measured.step]]\ncommand = [\"rr\", \"--only\", \"getpid,pipe_rr\", \"--scale\", \"3\"]\n",
            std::process::id()
        ),
    );
    let arguments = ["compare", &kernel, &kernel, "--workload", &workload, "--json"];
    let mut child = kerntune(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(4));
    child.kill().unwrap();
    child.wait().unwrap();
    let result = json(arguments);
    // A kernel against itself: nothing changes.
    for row in result["rows"].as_array().unwrap() {
        assert!(row["change_percent"].as_f64().unwrap().abs() <= 0.05, "{row}");
    }
}
