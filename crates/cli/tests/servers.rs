//! Servers and load generators that fail: the error contains their last output, and there is no
//! figure.
//!
//! Shell scripts stand for them, so that no other programs are needed and a run takes one boot.
//! Other cases are tested beside the code that judges output (`crates/guest/src/output.rs`).

use crate::support::{self, fails, kerntune, workload};
use serde_json::json;
use std::fs;
use std::process::Command;
use tempfile::TempDir;

const SERVES: &str = "echo one; echo listening on port 80; touch /run/up; exec sleep 1000";

/// Writes a workload of a server and its load, both shell scripts; returns its file.
fn described(directory: &TempDir, server: &str, load: &str) -> String {
    let step = |region| {
        format!(
            "region = \"{region}\"\noperations = 4\ncommand = [\"busybox\", \"sh\", \"-c\", '{load}']\n\
             limit_seconds = 5\nfail = [\"[1-9][0-9]* errors\"]\nexpect = [\"4 requests\"]\n\
             metrics = [{{ name = \"rps\", regex = 'rate (\\S+)', unit = \"requests/s\", better = \"higher\" }}]\n"
        )
    };
    let text = format!(
        "description = \"x\"\nbinaries = [\"busybox\"]\n\n[texts]\n\"/srv/serve\" = '''\n#!/bin/sh\n{server}\n'''\n\n\
         [[service]]\nname = \"web\"\ncommand = [\"/srv/serve\"]\nready = {{ file = \"/run/up\", within_seconds = 5 }}\n\n\
         [training]\n[[training.step]]\n{}\n[measured]\n[[measured.step]]\n{}",
        step("train"),
        step("get")
    );
    workload(directory, &text)
}

/// Returns the command that records it.
fn record(directory: &TempDir, server: &str, load: &str) -> Command {
    let file = described(directory, server, load);
    kerntune(["record", "--kernel", &support::base_kernel(), "--workload", &file, "--no-functions", "--json"])
}

/// Returns the command that runs it on the running kernel, in namespaces.
fn on_host(directory: &TempDir, server: &str, load: &str) -> Command {
    let file = described(directory, server, load);
    kerntune(["bench", "run", &file, "--machine", "host", "--runs", "2", "--json"])
}

/// Returns true if workloads can be contained on this host, as root and most users can; otherwise
/// checks that a reason is given.
fn contained() -> bool {
    let namespaces =
        ["--user", "--map-root-user", "--mount", "--pid", "--net", "--fork", "--mount-proc", "true"];
    let output = Command::new("unshare").args(namespaces).output().unwrap();
    output.status.success()
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

#[test]
fn on_the_host_a_server_has_a_system_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let load = "[ $(hostname) = kerntune ] && [ ! -e /etc/hostname ] && [ $(ls /proc | grep -c [1-9]) -lt 20 ] || exit 1; \
                [ $(ls /sys/class/net) = lo ] && touch /tmp/x && echo x > /dev/null || exit 2; \
                (echo 1 > /proc/sys/vm/drop_caches) 2> /dev/null && exit 3; \
                mount | grep -q \"/sys .*ro[, ]\" || exit 4; echo 4 requests, 0 errors, rate 12.5";
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let mut run = on_host(&directory, SERVES, load);
    if !contained() {
        fails(&mut run, 3, &["does not let a workload be contained"]);
        return;
    }
    let output = run.output().unwrap();
    assert!(output.status.success(), "{}", support::said(&output));
    let results: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let row = &results["rows"][0];
    assert_eq!(
        (&row["row"], &row["unit"], &row["better"]),
        (&json!("get"), &json!("requests/s"), &json!("higher"))
    );
    let values: Vec<_> = row["values"].as_array().unwrap().iter().map(|v| (&v["run"], &v["value"])).collect();
    assert_eq!(values, [(&json!(0), &json!(12.5)), (&json!(1), &json!(12.5))]);
    assert_eq!(fs::read_to_string("/proc/sys/kernel/hostname").unwrap(), name);
}

#[test]
fn on_the_host_too_what_went_wrong_is_no_figure() {
    let directory = tempfile::tempdir().unwrap();
    let errors = "echo 4 requests, 3 errors, rate 12.5";
    if !contained() {
        fails(&mut on_host(&directory, SERVES, errors), 3, &["does not let a workload be contained"]);
        return;
    }
    let words = [
        "printed `4 requests, 3 errors, rate 12.5`",
        "the last words of service web: one | listening on port 80",
    ];
    fails(&mut on_host(&directory, SERVES, errors), 5, &words);
    let server = "echo cannot bind to port 80: in use; exit 3";
    let words = ["service web ended with status 3 before it was ready: cannot bind to port 80: in use"];
    fails(&mut on_host(&directory, server, "echo 4 requests"), 5, &words);
    let words = ["did not end within its 5 s: waiting for an answer"];
    fails(&mut on_host(&directory, SERVES, "echo waiting for an answer; exec sleep 1000"), 5, &words);
}
