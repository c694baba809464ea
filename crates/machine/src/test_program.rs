//! A small program to try things on, compiled by the host's compiler.

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

/// The program, compiled with these flags.
pub fn build(dir: &tempfile::TempDir, flags: &[&str]) -> PathBuf {
    let source = dir.path().join("program.c");
    std::fs::write(&source, SOURCE).unwrap();
    let program = dir.path().join(format!("program{}", flags.concat()));
    let mut command = Command::new("gcc");
    command.args(flags).args(["-fcf-protection=full", "-o"]).arg(&program).arg(&source);
    assert!(command.status().unwrap().success());
    program
}
