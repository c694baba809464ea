//! The quality gate for profiles (docs/quality.md), with a recording of the base kernel and a
//! kernel that differs in one function.

use crate::support::{self, fails, json, kerntune, workload};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A hot function: each round of `pipe_rr` writes twice.
const CHANGED: &str = "vfs_write";

/// Records the base kernel; returns the id.
fn recorded(kernel: &str, directory: &TempDir, rows: &str) -> String {
    let step = format!("command = [\"rr\", \"--only\", \"{rows}\"]\n");
    let text = format!(
        "description = \"{rows}\"\n[training]\n[[training.step]]\n{step}[measured]\n[[measured.step]]\n{step}"
    );
    let file = workload(directory, &text);
    let recording = ["record", "--kernel", kernel, "--workload", &file, "--no-functions", "--json"];
    json(recording)["profile"].as_str().unwrap().to_string()
}

/// Copies `kernel` with another id and without the code of [`CHANGED`]; returns the directory.
fn changed(kernel: &str, directory: &TempDir) -> PathBuf {
    let from = support::work_dir().join("kernels").join(kernel);
    let to = directory.path().join("changed");
    fs::create_dir(&to).unwrap();
    for name in ["System.map", "sources.tsv", "config", "bzImage"] {
        fs::copy(from.join(name), to.join(name)).unwrap();
    }
    let manifest = fs::read_to_string(from.join("kernel.json")).unwrap();
    fs::write(to.join("kernel.json"), manifest.replace(kernel, "changed0changed0")).unwrap();
    let mut image = fs::read(from.join("vmlinux")).unwrap();
    let (at, size) = file_range(&from, CHANGED);
    image[at..at + size].fill(0xcc);
    fs::write(to.join("vmlinux"), image).unwrap();
    kerntune_work::seal(&to, "kernels", "changed0changed0", &[]).unwrap();
    to
}

/// Returns the file offset of a `.text` function in the kernel's `vmlinux`, and the bytes to the next
/// symbol.
fn file_range(kernel: &Path, function: &str) -> (usize, usize) {
    let number = |text: &str| usize::from_str_radix(text, 16).unwrap();
    let map = fs::read_to_string(kernel.join("System.map")).unwrap();
    let line = map.lines().find(|line| line.ends_with(&format!(" {function}"))).unwrap();
    let output = Command::new("readelf").args(["-SW"]).arg(kernel.join("vmlinux")).output().unwrap();
    let sections = String::from_utf8(output.stdout).unwrap();
    let text = sections.lines().find(|line| line.contains(" .text ")).unwrap();
    let mut columns = text.split_whitespace().skip_while(|column| *column != ".text").skip(2);
    let (address, offset) = (number(columns.next().unwrap()), number(columns.next().unwrap()));
    let of = |line: &str| number(line.split_whitespace().next().unwrap());
    let start = of(line);
    let end = map.lines().map(of).filter(|symbol| *symbol > start).min().unwrap();
    (start - address + offset, end - start)
}

fn checks(quality: &Value) -> Vec<&str> {
    quality["findings"].as_array().unwrap().iter().map(|finding| finding["check"].as_str().unwrap()).collect()
}

#[test]
fn a_profile_is_fit_for_its_kernel_and_is_carried_to_another_with_what_is_the_same() {
    let kernel = support::base_kernel();
    let directory = tempfile::tempdir().unwrap();
    let profile = recorded(&kernel, &directory, "pipe_rr,stat");
    let own = json(["profile", "check", &profile, "--json"]);
    assert_eq!((&own["schema"], &own["verdict"]), (&"kerntune-quality/1".into(), &"fit".into()), "{own}");
    // Every instruction and branch of the regions has its count.
    assert_eq!((own["coverage"].as_f64(), own["usable"].as_f64()), (Some(1.0), Some(1.0)), "{own}");
    assert_eq!(own["taken"][0], own["taken"][1], "{own}");

    let other = changed(&kernel, &directory).display().to_string();
    let refused = kerntune(["profile", "check", &profile, "--kernel", &other, "--json"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(1), "{}", support::said(&refused));
    let quality: Value = serde_json::from_slice(&refused.stdout).unwrap();
    assert_eq!(checks(&quality), ["kernel"], "{quality}");
    let matched = &quality["matched"];
    let lost: Vec<_> = matched["lost"].as_array().unwrap().iter().map(|lost| &lost["name"]).collect();
    assert_eq!(lost, [CHANGED], "{matched}");
    assert_eq!(matched["changed"]["functions"], 1);
    // Recipes reject it and name the alternative.
    let mut order = kerntune(["kernel", "relink", &other, "--profile", &profile, "--label", "x"]);
    fails(&mut order, 7, &["is refused for kernel ", "(changed0changed0)", "kerntune profile transfer"]);

    let carry = |to: &str, at_least: &str| {
        kerntune(["profile", "transfer", &profile, "--to", to, "--min-percent", at_least, "--json"])
    };
    let carried = carry(&other, "50").output().unwrap();
    assert!(carried.status.success(), "{}", support::said(&carried));
    let carried: Value = serde_json::from_slice(&carried.stdout).unwrap();
    let carried = carried["manifest"]["id"].as_str().unwrap();
    let there = json(["profile", "check", carried, "--kernel", &other, "--json"]);
    assert_eq!(there["verdict"], "fit", "{there}");
    let of = |what: &Value| what.as_u64().unwrap();
    let [all, gone] = [of(&quality["executed"]), of(&matched["changed"]["instructions"])];
    assert_eq!(of(&there["counted"]), all - gone);
    let left = (all - gone) as f64 / all as f64;
    assert!((there["coverage"].as_f64().unwrap() - left).abs() < 1e-9, "{there}");

    fails(&mut carry(&kernel, "50"), 7, &["already"]);
    fails(&mut carry(&other, "100"), 7, &["100 % are needed", CHANGED, "--min-percent"]);
    assert!(kerntune(["profile", "remove", carried]).status().unwrap().success());
}

#[test]
fn halves_of_different_work_are_told() {
    let kernel = support::base_kernel();
    let directory = tempfile::tempdir().unwrap();
    let profile = recorded(&kernel, &directory, "pipe_rr,stat");
    let same = json(["profile", "check", &profile, "--against", &profile, "--json"]);
    assert_eq!(same["overlap"]["hot"][0]["overlap"].as_f64(), Some(1.0), "{same}");
    let other = recorded(&kernel, &directory, "fork_exit");
    let apart = kerntune(["profile", "check", &profile, "--against", &other, "--json"]).output().unwrap();
    assert_eq!(apart.status.code(), Some(1), "{}", support::said(&apart));
    let apart: Value = serde_json::from_slice(&apart.stdout).unwrap();
    assert_eq!(checks(&apart), ["halves"], "{apart}");
}

#[test]
fn branch_records_become_a_profile_and_say_which_cpus_are_missing() {
    let kernel = support::base_kernel();
    let directory = tempfile::tempdir().unwrap();
    let profile = recorded(&kernel, &directory, "pipe_rr,stat");
    let own = json(["profile", "check", &profile, "--json"]);
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (exported, sampled) = (path("exported.txt"), path("sampled.txt"));
    support::run(["export", "branches", &profile, &exported]);

    let imported = json(["import", "perf", &exported, "--kernel", &kernel, "--workload", "test", "--json"]);
    let imported = imported["profile"].as_str().unwrap();
    let there = json(["profile", "check", imported, "--against", &profile, "--json"]);
    assert_eq!(there["verdict"], "fit", "{there}");
    assert!(there["overlap"]["hot"][1]["overlap"].as_f64().unwrap() > 0.99, "{there}");
    // The image differs where the kernel has patched its code.
    let share = there["counted"].as_f64().unwrap() / own["counted"].as_f64().unwrap();
    assert!((0.95..=1.05).contains(&share), "{share}");

    // As samples of one CPU of two.
    let text = fs::read_to_string(&exported).unwrap().replace("\n 0", "\n [000] 0");
    fs::write(&sampled, format!("# nrcpus online : 2\n{text}")).unwrap();
    let import = |file: &str, more: &[&str]| {
        let arguments = ["import", "perf", file, "--kernel", &kernel, "--json"];
        kerntune(arguments.iter().chain(more))
    };
    let id = |output: std::process::Output| {
        assert!(output.status.success(), "{}", support::said(&output));
        let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
        summary["profile"].as_str().unwrap().to_string()
    };
    let half = id(import(&sampled, &[]).output().unwrap());
    fails(
        &mut kerntune(["profile", "check", &half]),
        1,
        &["the counts of 1 CPUs are missing", "--idle-cpus"],
    );
    let mut order = kerntune(["kernel", "relink", &kernel, "--profile", &half, "--label", "x"]);
    fails(&mut order, 7, &["the counts of 1 CPUs are missing"]);
    let all = id(import(&sampled, &["--idle-cpus"]).output().unwrap());
    support::run(["profile", "check", &all]);

    fs::write(&sampled, format!("# os release : 5.0.0\n{text}")).unwrap();
    fails(&mut import(&sampled, &[]), 7, &["sampled.txt", "Linux 5.0.0"]);
    fs::write(&sampled, "swapper 0 [000] 1.0: cycles: ffffffff81000000\n").unwrap();
    fails(&mut import(&sampled, &[]), 7, &["perf record -b"]);
    for profile in [imported, &half, &all] {
        support::run(["profile", "remove", profile]);
    }
}

#[test]
fn samples_drawn_from_exact_counts_become_a_profile() {
    let kernel = support::base_kernel();
    let directory = tempfile::tempdir().unwrap();
    let profile = recorded(&kernel, &directory, "pipe_rr,stat");
    let path = |name: &str| directory.path().join(name).display().to_string();
    let export = |name: &str, more: &[&str]| {
        let file = path(name);
        let output = kerntune([&["export", "perf", &profile, "-o", &file], more].concat()).output().unwrap();
        assert!(output.status.success(), "{}", support::said(&output));
        (file, support::said(&output))
    };
    let (drawn, said) = export("drawn.data", &["--period", "1000"]);
    assert!(said.contains("one in 1,000; kerntune import perf"), "{said}");
    let imported = json(["import", "perf", &drawn, "--kernel", &kernel, "--workload", "drawn", "--json"]);
    let imported = imported["profile"].as_str().unwrap();
    let there = json(["profile", "check", imported, "--against", &profile, "--json"]);
    assert_eq!(there["verdict"], "fit", "{there}");
    assert!(there["overlap"]["hot"][1]["overlap"].as_f64().unwrap() > 0.9, "{there}");
    support::run(["profile", "remove", imported]);
    // The same seed draws the same samples, another seed others.
    let bytes = |file: &str| fs::read(file).unwrap();
    assert_eq!(bytes(&drawn), bytes(&export("same.data", &["--period", "1000"]).0));
    assert_ne!(bytes(&drawn), bytes(&export("other.data", &["--period", "1000", "--seed", "2"]).0));
    // perf reads the file, too: a line for each sample, with as many branches as were asked for.
    let short = export("short.data", &["--period", "10000", "--depth", "16"]).0;
    let perf = |file: &str, fields: &str| {
        let output = Command::new("perf").args(["script", "-i", file, "-F", fields]).output().unwrap();
        assert!(output.status.success(), "{}", support::said(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let printed = perf(&short, "brstack");
    let branches: Vec<usize> = printed.lines().map(|line| line.matches("0x").count() / 2).collect();
    assert!(branches.len() > 50 && branches.iter().all(|count| *count == 16), "{branches:?}");
    let plain = export("plain.data", &["--period", "10000", "--no-branches"]).0;
    assert!(perf(&plain, "ip").lines().all(|line| line.trim().starts_with("ffffffff8")));
    // Instructions alone feed AutoFDO and nothing else.
    let many = export("many.data", &["--period", "500", "--no-branches"]).0;
    let import = |file: &str| json(["import", "perf", file, "--kernel", &kernel, "--instructions", "--json"]);
    let sampled = import(&many);
    let sampled = sampled["profile"].as_str().unwrap();
    let there = json(["profile", "check", sampled, "--against", &profile, "--json"]);
    assert_eq!(there["verdict"], "fit", "{there}");
    assert_eq!(checks(&there), ["branches"], "{there}");
    assert!(there["overlap"]["hot"][0]["overlap"].as_f64().unwrap() > 0.8, "{there}");
    let mut order = kerntune(["kernel", "relink", &kernel, "--profile", sampled, "--label", "x"]);
    fails(&mut order, 7, &["sampled instructions", "neither branches nor calls", "clang-autofdo"]);
    let few = import(&plain);
    let few = few["profile"].as_str().unwrap();
    fails(
        &mut kerntune(["profile", "check", few]),
        1,
        &["samples of the kernel's instructions", "are needed"],
    );
    for profile in [sampled, few] {
        support::run(["profile", "remove", profile]);
    }
    fails(&mut kerntune(["import", "perf", &plain, "--instructions"]), 2, &["--kernel"]);
    fails(
        &mut kerntune(["export", "perf", &profile, "--period", "99999999999", "-o", &plain]),
        2,
        &["no sample"],
    );
    fails(&mut kerntune(["export", "perf", &profile, "-o", &plain]), 2, &["--period"]);
}
