//! Paths: special characters in them, and programs of other owners.

use crate::support::{self, fails, kerntune, said};
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// QEMU splits options at commas and `=`.
#[test]
fn a_work_directory_and_a_recorder_with_comma_and_equals_sign_record() {
    let kernel = support::base_kernel();
    let dir = tempfile::tempdir().unwrap();
    let work = dir.path().join("a,b=c/kt,d");
    fs::create_dir_all(work.join("kernels")).unwrap();
    let from = support::work_dir().join("kernels").join(&kernel);
    let copied = Command::new("cp").arg("-a").args([&from, &work.join("kernels")]).status().unwrap();
    assert!(copied.success());
    let beside = Path::new(env!("CARGO_BIN_EXE_kerntune")).with_file_name("libkerntune_recorder.so");
    let recorder = work.join("r=s,t.so");
    fs::copy(std::env::var_os("KERNTUNE_RECORDER").map_or(beside, PathBuf::from), &recorder).unwrap();
    let mut command = kerntune(["record", "--json", "--kernel", &kernel, "--workload", "rr", "--"]);
    command.args(["rr", "--seed", "1", "--scale", "0.1", "--only", "getpid"]);
    let output = command.env("KERNTUNE_DIR", &work).env("KERNTUNE_RECORDER", &recorder).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let profile = work.join("profiles").join(summary["profile"].as_str().unwrap());
    assert!(profile.join("functions.parquet").is_file(), "{summary}");
}

/// Makes a directory like a kernel's, with a manifest changed by `change`.
fn foreign(dir: &Path, change: impl FnOnce(&mut serde_json::Value)) -> PathBuf {
    let kernel = dir.join("foreign");
    fs::create_dir_all(&kernel).unwrap();
    for file in ["vmlinux", "bzImage", "System.map", "config"] {
        fs::write(kernel.join(file), "").unwrap();
    }
    let mut manifest = json!({
        "schema": "kerntune-kernel/2", "id": "00aa11bb22cc33dd", "label": "theirs", "version": "6.12.117",
        "source": { "origin": "debian:6.12", "hash": "0" }, "config_hash": "0",
        "compiler": { "program": "gcc", "version": "gcc 12" }, "cc": "gcc", "kcflags": [], "make_vars": [],
        "recipe": null, "profile_id": null, "base_id": null, "built": "2026-01-01T00:00:00Z",
        "build_seconds": 1.0, "objects": 1, "text_bytes": 1, "image_bytes": 1, "build_path": "/b",
        "task": { "pid_offset": 1, "tgid_offset": 2, "comm_offset": 3 }, "warnings": [],
    });
    change(&mut manifest);
    fs::write(kernel.join("kernel.json"), manifest.to_string()).unwrap();
    kerntune_work::seal(&kernel, "kernels", "00aa11bb22cc33dd", &[]).unwrap();
    kernel
}

#[test]
fn a_kernel_from_elsewhere_makes_us_run_nothing_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let (program, ran) = (dir.path().join("gcc-12"), dir.path().join("ran"));
    fs::write(&program, format!("#!/bin/sh\ntouch {}\necho 'gcc 12'\n", ran.display())).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let program = program.to_str().unwrap();
    let shell = format!("$(shell {program})");
    let refused = |words: &[&str], change: &dyn Fn(&mut serde_json::Value)| {
        let kernel = foreign(dir.path(), change);
        let mut command = kerntune(["kernel", "reproduce", kernel.to_str().unwrap()]);
        let words: Vec<&str> =
            words.iter().copied().chain(["not of this work directory", "copy it to"]).collect();
        fails(command.env("KERNTUNE_DIR", dir.path().join("work")), 2, &words);
        assert!(!ran.exists(), "{words:?}");
    };
    refused(&["its compiler is", program], &|of| of["cc"] = json!(program));
    refused(&["make variable", "HOSTCC"], &|of| of["make_vars"] = json!([["HOSTCC", program]]));
    refused(&["make variable", "$(shell"], &|of| of["make_vars"] = json!([["CFLAGS_GCOV", shell]]));
    refused(&["compiler flag", "-fplugin"], &|of| of["kcflags"] = json!(["-fplugin=x.so"]));
    refused(&["its source is"], &|of| of["source"]["origin"] = json!(dir.path()));
}
