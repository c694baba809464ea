//! `kerntune hints`: three planted wrong hints are found, counted and corrected.

use crate::support::{checkout, fails, json, kerntune, run, said};
use serde_json::Value;
use std::fs;

/// File, number of the line, function.
const PLANTED: [(&str, u64, &str); 3] = [
    ("fs/read_write.c", 553, "vfs_read"),
    ("fs/read_write.c", 667, "vfs_write"),
    ("fs/open.c", 1420, "do_sys_openat2"),
];

#[test]
fn planted_wrong_hints_are_found_and_counted_exactly() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out").display().to_string();
    let patch = checkout().join("crates/cli/tests/planted/hints.patch").display().to_string();
    let found = json(["hints", "--workload", "rr", "--patch", &patch, "-o", &out, "--json"]);
    assert_eq!(found["schema"], "kerntune-hints/1");
    let hints = found["hints"].as_array().unwrap();
    let find = |(file, line, _): (&str, u64, &str)| {
        let is_meant = |hint: &&Value| hint["file"] == file && hint["line"] == line;
        hints.iter().find(is_meant).unwrap_or_else(|| panic!("{file}:{line}: {hints:#?}"))
    };

    // Each is as often as its function was called: the functions of the same run say so.
    let kernel = found["kernel"].as_str().unwrap();
    run(["record", "--kernel", kernel, "--workload", "rr"]);
    let profile = format!("latest:workload=rr,kernel={kernel}");
    let functions = json(["report", &profile, "functions", "--json"]);
    for planted in PLANTED {
        let hint = find(planted);
        let of = functions["functions"].as_array().unwrap().iter().find(|row| row["name"] == planted.2);
        let calls = of.unwrap_or_else(|| panic!("{} is not in it", planted.2))["calls"].as_u64().unwrap();
        let counts = ["wrong", "right"].map(|name| hint[name].as_u64().unwrap());
        assert_eq!(counts[0] + counts[1], calls, "{hint:#}");
        assert!(counts[0] > 100 && counts[0] >= 99 * counts[1], "{hint:#}");
        assert_eq!(hint["functions"][0][0], planted.2, "{hint:#}");
        let new = hint["correction"]["new"].as_str().unwrap();
        let (is, was) =
            if planted.2 == "do_sys_openat2" { ("likely(", "unlikely(") } else { ("unlikely(", "likely(") };
        assert!(new.contains(is) && hint["text"].as_str().unwrap().contains(was), "{hint:#}");
    }
    let saved = |hint: &Value| hint["wrong"].as_u64().unwrap() - hint["right"].as_u64().unwrap();
    assert!(hints.windows(2).all(|pair| saved(&pair[0]) >= saved(&pair[1])));

    // The changes are ones that `ablate` takes.
    let changes = format!("{out}/changes.toml");
    assert!(fs::read_to_string(&changes).unwrap().contains("-open-c-1420"));
    let ablate = ["ablate", &changes, "--workload", "rr", "--patch", &patch, "--dry-run"];
    let output = kerntune(ablate).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
}

#[test]
fn a_kernel_without_a_patch_is_named() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("Makefile"), "VERSION = 4\nPATCHLEVEL = 4\nSUBLEVEL = 1\nEXTRAVERSION =\n")
        .unwrap();
    fs::write(dir.path().join("Kconfig"), "").unwrap();
    let source = dir.path().display().to_string();
    fails(&mut kerntune(["hints", "--workload", "rr", "--source", &source]), 2, &["6.12 and 7.3", "4.4.1"]);
}
