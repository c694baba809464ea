//! The guest's clock is the count of instructions, even after exceptions, self-modifying code and
//! idle time.

use crate::support;
use std::path::Path;
use std::process::Command;

/// Compiles the program `faults/faults.c`.
fn program(directory: &Path) -> String {
    let (source, program) =
        (support::checkout().join("crates/cli/tests/faults/faults.c"), directory.join("faults"));
    let mut gcc = Command::new("gcc");
    gcc.args(["-std=gnu11", "-O2", "-static", "-Wall", "-Wextra", "-Werror"]);
    gcc.arg("-I").arg(support::checkout().join("embedded/guest")).arg(source).arg("-o").arg(&program);
    let output = gcc.output().unwrap();
    assert!(output.status.success(), "{}", support::said(&output));
    program.display().to_string()
}

#[test]
fn blocks_that_are_left_early_leave_no_difference() {
    let kernel = support::base_kernel();
    // The guest has its own /tmp.
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let program = program(directory.path());
    let step = format!("step]]\ncommand = [{program:?}]\n");
    let text =
        format!("description = \"faults\"\n[training]\n[[training.{step}[measured]\n[[measured.{step}");
    let workload = support::workload(&directory, &text);
    let ways: [&[&str]; 4] = [&["--no-edges"], &["--no-functions"], &["--weights"], &["--user", "faults"]];
    for options in ways {
        let record = ["record", "--kernel", &kernel, "--workload", &workload, "--json"];
        let summary = support::json(record.iter().chain(options));
        let health = &summary["health"];
        assert!(health["clock_checks"].as_u64().unwrap() > 31, "{options:?}: {health}");
        assert_eq!(health["clock_errors"], 0, "{options:?}: {health}");
        // The program sleeps in each of its regions.
        assert!(summary["idle_ns"].as_u64().unwrap() >= 31 * 900_000, "{options:?}: {summary}");
    }
}
