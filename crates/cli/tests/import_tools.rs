//! Traces and samples of other tools, imported by what they are.

use crate::support::{checkout, fails, kerntune, said};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

fn fixture(name: &str) -> PathBuf {
    checkout().join("crates/convert/fixtures/tracers").join(name)
}

/// Imports a file into a work directory of its own; returns the summary and the notes.
fn import(work: &Path, file: &Path, more: &[&str]) -> (Value, String) {
    let output = kerntune(["--dir".as_ref(), work.as_os_str(), "import".as_ref(), file.as_os_str()])
        .args(more)
        .arg("--json")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    (serde_json::from_slice(&output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_trace_of_trace_cmd_says_what_it_used_and_left_out() {
    let work = tempfile::tempdir().unwrap();
    let (summary, notes) = import(work.path(), &fixture("graph.dat"), &[]);
    assert!(notes.contains("used: ") && notes.contains("ftrace:funcgraph_entry"), "{notes}");
    let id = summary["profile"].as_str().unwrap();
    assert!(!notes.contains("it has no context switches"), "{notes}");
    let (_, notes) = import(work.path(), &fixture("lost.dat"), &[]);
    assert!(notes.contains("the tracer lost "), "{notes}");
    let latency = fixture("latency.dat");
    let mut refused =
        kerntune(["--dir".as_ref(), work.path().as_os_str(), "import".as_ref(), latency.as_os_str()]);
    fails(&mut refused, 2, &["latency.dat: it has no events"]);
    let report = |name: &str| {
        let output = kerntune([
            "--dir".as_ref(),
            work.path().as_os_str(),
            "report".as_ref(),
            id.as_ref(),
            name.as_ref(),
        ])
        .output()
        .unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(report("graph").contains("vfs_read"));
    assert!(report("threads").contains("work"));
}

#[test]
fn a_directory_of_uftrace_is_recognized() {
    let work = tempfile::tempdir().unwrap();
    let (_, notes) = import(work.path(), &fixture("sums.uftrace"), &[]);
    assert!(notes.contains("used: 86 entries and exits of functions"), "{notes}");
    let arguments = [
        "--dir".as_ref(),
        work.path().as_os_str(),
        "report".as_ref(),
        "latest".as_ref(),
        "functions".as_ref(),
    ];
    let output = kerntune(arguments).output().unwrap();
    assert!(said(&output).contains("pthread_join"), "{}", said(&output));
}

#[test]
fn samples_of_other_tools_are_recognized_by_their_form() {
    let work = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = work.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    };
    let text =
        b"sh 7 [000] 5.5: 1000000 cpu-clock: \n\tffffffff82252e5c vfs_read+0xc ([kernel.kallsyms])\n\n";
    let (summary, notes) = import(work.path(), &file("perf.txt", text), &[]);
    assert!(notes.contains("used: 1 samples of cpu-clock"), "{notes}");
    assert!(summary.to_string().contains("1000000"), "{summary}");
    let folded = file("stacks", b"rr;main;write_[k] 3\nrr;main 2\n");
    let (summary, notes) = import(work.path(), &folded, &["--sample-ns", "1000"]);
    assert!(notes.contains("used: 2 stacks with 5 counts"), "{notes}");
    assert!(summary.to_string().contains("5000"), "{summary}");
    let weights = file("weights", b"work:224:100\n 0: 100\n 1: 25 leaf:25\nleaf:0:25\n 1: 12\n");
    let (_, notes) = import(work.path(), &weights, &[]);
    assert!(notes.contains("2 functions with 137 counts") && notes.contains("1 targets of calls"), "{notes}");
}

#[test]
fn counters_are_named_with_the_command_that_uses_them() {
    let work = tempfile::tempdir().unwrap();
    let tree = work.path().join("gcov/fs");
    fs::create_dir_all(&tree).unwrap();
    fs::write(tree.join("read.gcda"), b"adcg*24B").unwrap();
    let mut directory = kerntune(["import".as_ref(), work.path().as_os_str()]);
    fails(&mut directory, 2, &["has 1 .gcda files", "optimize --recipe gcc-pgo --gcda"]);
    let object = tree.join("read.gcda");
    let mut object = kerntune(["import".as_ref(), object.as_os_str()]);
    fails(&mut object, 2, &["counters of one object", "--gcda DIR"]);
}
