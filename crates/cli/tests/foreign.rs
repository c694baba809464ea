//! Files of other origin: special files, files that are too large, control characters for the
//! terminal, and files that cannot be parsed.

use crate::support::{self, fails, kerntune, said};
use std::fs;
use std::path::Path;

#[test]
fn devices_are_no_input() {
    for arguments in [
        &["workload", "check", "/dev/zero"][..],
        &["bench", "compare", "/dev/zero", "/dev/zero"],
        &["import", "gmon", env!("CARGO_BIN_EXE_kerntune"), "/dev/zero"],
    ] {
        fails(&mut kerntune(arguments), 2, &["/dev/zero", "not a regular file"]);
    }
}

#[test]
fn what_a_workload_file_says_does_nothing_to_the_terminal() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("x.toml");
    fs::write(&file, "\"a\\u001b[2J\" = 1\n[[measured.step]]\ncommand = [\"x\\u001b[31m\"]\n").unwrap();
    let output = kerntune(["workload", "check"]).arg(&file).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(!said(&output).contains('\u{1b}') && said(&output).contains("\\u{1b}[31m"), "{}", said(&output));
    let record = kerntune(["record", "--kernel", "none", "--workload"]).arg(&file).output().unwrap();
    assert!(!said(&record).contains('\u{1b}'), "{}", said(&record));
}

#[test]
fn a_file_that_the_guests_memory_does_not_hold_fails_the_check() {
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let (big, file) = (directory.path().join("big"), directory.path().join("x.toml"));
    fs::File::create(&big).unwrap().set_len(3 << 30).unwrap();
    let text = format!("files = [\"{}\"]\n[[measured.step]]\ncommand = [\"rr\"]\n", big.display());
    fs::write(&file, text).unwrap();
    fails(kerntune(["workload", "check"]).arg(&file), 1, &["x.toml:1:10: files:", "3072 MiB", "2 GiB"]);
}

#[test]
fn a_warning_alone_is_no_finding() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("x.toml");
    fs::write(&file, "[[measured.step]]\ncommand = [\"sh\", \"-c\", \"no-such-tool --x | cat\"]\n").unwrap();
    fails(kerntune(["workload", "check"]).arg(&file), 0, &["x.toml:2:11: warning:", "`no-such-tool`"]);
}

#[test]
fn a_recipe_says_that_it_needs_a_training() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("mine.toml");
    fs::write(&file, "[[measured.step]]\ncommand = [\"rr\"]\n").unwrap();
    let optimize = ["optimize", "--kernel", &support::base_kernel(), "--recipe", "gcc-pgo", "--workload"];
    fails(kerntune(optimize).arg(&file), 2, &["workload mine has no run `training`", "[[training.step]]"]);
}

/// Lines that are no samples are counted; a few are reported, many are rejected, and so are counts
/// that overflow.
#[test]
fn damaged_branch_records_are_counted_or_refused() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("samples.txt");
    let import = |text: &str, status: i32, words: &[&str]| {
        fs::write(&file, text).unwrap();
        let kernel = support::base_kernel();
        let mut command = kerntune(["import", "perf", "--kernel", &kernel, "--workload", "test"]);
        fails(command.arg(Path::new(&file)), status, words)
    };
    let sample = " 0x30/0x60/P/-/-/0 0x10/0x20/P/-/-/0\n";
    let words = ["samples.txt: 1 of its lines are not understood", "the first is line 2: no sample"];
    import(&format!("{sample}no sample\n{sample}"), 7, &words);
    import(&format!("99999999999999999999\n{sample}"), 7, &["line 1: the counts overflow 64 bits"]);
}
