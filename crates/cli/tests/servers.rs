//! Servers and load generators that fail: an error with their own last words, never a figure.
//!
//! A shell script stands for each, so that nothing is needed that other tests do not need, and a run is a boot.
//! What else is told from what a program printed is tested where it is judged (`crates/guest/src/output.rs`).

mod support;

use serde_json::json;
use std::process::Command;
use support::{fails, kerntune, workload};
use tempfile::TempDir;

const SERVES: &str = "echo one; echo listening on port 80; touch /run/up; exec sleep 1000";

/// Recording a server and its load, both shell scripts.
fn record(directory: &TempDir, server: &str, load: &str) -> Command {
    let step = |region| {
        format!(
            "region = \"{region}\"\noperations = 4\ncommand = [\"busybox\", \"sh\", \"-c\", '{load}']\n\
             limit_seconds = 5\nfail = [\"[1-9][0-9]* errors\"]\nexpect = [\"4 requests\"]\n\
             metrics = [{{ name = \"rps\", regex = 'rate (\\S+)', unit = \"requests/s\", better = \"higher\" }}]\n"
        )
    };
    let text = format!(
        "description = \"x\"\nbinaries = [\"busybox\"]\n\n[[service]]\nname = \"web\"\n\
         command = [\"busybox\", \"sh\", \"-c\", '{server}']\nready = {{ file = \"/run/up\", within_seconds = 5 }}\n\n\
         [training]\n[[training.step]]\n{}\n[measured]\n[[measured.step]]\n{}",
        step("train"),
        step("get")
    );
    let file = workload(directory, &text);
    kerntune(["record", "--kernel", &support::base_kernel(), "--workload", &file, "--no-functions", "--json"])
}

#[test]
fn what_a_load_generator_printed_is_in_the_summary() {
    let directory = tempfile::tempdir().unwrap();
    let output = record(&directory, SERVES, "echo 4 requests, 0 errors, rate 12.5").output().unwrap();
    assert!(output.status.success(), "{}", support::said(&output));
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let figure = json!({ "name": "rps", "value": 12.5, "unit": "requests/s", "better": "higher" });
    assert_eq!(summary["figures"], json!([{ "step": "get", "figures": [figure] }]));
    assert_eq!(summary["regions"][0]["operations"], 4);
}

#[test]
fn errors_that_a_load_generator_reports_are_no_figures() {
    let directory = tempfile::tempdir().unwrap();
    let load = "echo 4 requests, 3 errors, rate 12.5";
    let words = [
        "measured step 1 (busybox) printed `4 requests, 3 errors, rate 12.5`",
        "the last words of service web: one | listening on port 80",
        "measured-1-busybox.log",
    ];
    fails(&mut record(&directory, SERVES, load), 5, &words);
}

#[test]
fn a_load_generator_that_fails_is_quoted_with_its_server() {
    let directory = tempfile::tempdir().unwrap();
    let load = "echo 2 of 4 requests lost; exit 1";
    let words = [
        "measured step 1 (busybox) ended with status 1: 2 of 4 requests lost",
        "the last words of service web: one | listening on port 80",
    ];
    fails(&mut record(&directory, SERVES, load), 5, &words);
}

#[test]
fn a_load_generator_without_end_is_quoted_with_its_server() {
    let directory = tempfile::tempdir().unwrap();
    let words =
        ["did not end within its 5 s: waiting for an answer", "service web: one | listening on port 80"];
    fails(&mut record(&directory, SERVES, "echo waiting for an answer; exec sleep 1000"), 5, &words);
}

#[test]
fn a_server_that_does_not_start_is_quoted() {
    let directory = tempfile::tempdir().unwrap();
    let server = "echo cannot bind to port 80: in use; exit 3";
    let words = ["service web ended with status 3 before it was ready: cannot bind to port 80: in use"];
    let text = fails(&mut record(&directory, server, "echo 4 requests"), 5, &words);
    assert!(!text.contains("last words of"), "said twice:\n{text}");
}
