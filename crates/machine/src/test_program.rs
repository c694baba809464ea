//! Test fixtures: a small program, compiled by the host's compiler, and a kernel without files.

use kerntune_kernel::{Arch, Kernel};
use std::path::PathBuf;
use std::process::Command;

const SOURCE: &str = "\
#include <stdio.h>

int work(int n);
__attribute__((noinline)) int work(int n)
{
	int sum = 0;
	for (int i = 0; i < n; i++)
		sum += i * n ^ sum;
	return sum;
}
static __attribute__((noinline)) int helper(int n) { return work(n) + 1; }
int main(int argc, char **argv)
{
	return printf(\"%d %s\", helper(argc), argv[0]) < 0;
}
";

/// Compiles the program with these flags.
pub fn build(dir: &tempfile::TempDir, flags: &[&str]) -> PathBuf {
    let source = dir.path().join("program.c");
    std::fs::write(&source, SOURCE).unwrap();
    let program = dir.path().join(format!("program{}", flags.concat()));
    let mut command = Command::new("gcc");
    command.args(flags).args(["-fcf-protection=full", "-o"]).arg(&program).arg(&source);
    assert!(command.status().unwrap().success());
    program
}

/// A kernel that has only a manifest.
pub fn kernel(arch: Arch) -> Kernel {
    let manifest = serde_json::json!({
        "schema": kerntune_kernel::SCHEMA, "id": "aa11", "label": "base", "version": "6.12.117", "arch": arch,
        "source": { "origin": "debian:6.12", "hash": "0" }, "config_hash": "1",
        "compiler": { "program": "/usr/bin/gcc", "version": "gcc 12.2.0" }, "cc": "gcc", "kcflags": [],
        "make_vars": [], "recipe": null, "profile_id": null, "base_id": null, "built": "2026-01-01T00:00:00Z",
        "build_seconds": 1.0, "objects": 1, "text_bytes": 1, "image_bytes": 1, "build_path": "/b",
        "task": { "pid_offset": 1, "tgid_offset": 2, "comm_offset": 3 }, "warnings": []
    });
    Kernel { dir: "/k".into(), manifest: serde_json::from_value(manifest).unwrap() }
}
