//! Checks the dependencies of the workspace: compatible licenses, and no library twice without a
//! reason.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Licenses that require no more than a notice.
const LICENSES: [&str; 10] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Zlib",
];

/// Libraries with several versions, and the reason. An entry that is no longer needed fails the
/// test.
const TWICE: [(&str, &str); 7] = [
    ("cpufeatures", "sha2 has 0.2, blake3 0.3"),
    ("getrandom", "parquet's ahash has 0.3, tempfile 0.4"),
    ("hashbrown", "parquet has 0.16, indexmap 0.17, ratatui's lru 0.15"),
    ("linux-raw-sys", "comes with rustix"),
    ("rustix", "ratatui's crossterm has 0.38"),
    ("syn", "derive macros of two generations; no code of it is in the program"),
    ("unicode-width", "ratatui's unicode-truncate has 0.1"),
];

/// Packages that Cargo resolves for the supported platforms.
fn packages() -> Vec<Value> {
    let target = "x86_64-unknown-linux-gnu";
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--locked", "--format-version", "1", "--filter-platform", target])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    let nodes = all["resolve"]["nodes"].as_array().unwrap();
    let used: BTreeSet<&str> = nodes.iter().filter_map(|node| node["id"].as_str()).collect();
    let of_others =
        |package: &&Value| used.contains(package["id"].as_str().unwrap()) && !package["source"].is_null();
    all["packages"].as_array().unwrap().iter().filter(of_others).cloned().collect()
}

/// Checks whether an SPDX expression, or its older form with slashes, allows one of these licenses.
fn is_free(expression: &str) -> bool {
    let plain = expression.replace(['(', ')'], "").replace('/', " OR ");
    plain.split(" OR ").any(|choice| choice.split(" AND ").all(|part| LICENSES.contains(&part.trim())))
}

#[test]
fn every_license_goes_with_ours() {
    let packages = packages();
    assert!(packages.len() > 50);
    for package in packages {
        let license = package["license"].as_str().unwrap_or("none");
        assert!(is_free(license), "{} {}: {license}", package["name"], package["version"]);
    }
    assert!(is_free("(MIT OR Apache-2.0) AND Unicode-3.0") && is_free("Unlicense/MIT"));
    assert!(!is_free("GPL-3.0-only") && !is_free("MIT AND GPL-2.0-only") && !is_free("none"));
}

#[test]
fn no_library_is_there_twice_without_a_reason() {
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in packages() {
        let text = |key: &str| package[key].as_str().unwrap().to_string();
        versions.entry(text("name")).or_default().insert(text("version"));
    }
    versions.retain(|_, versions| versions.len() > 1);
    let known: BTreeSet<&str> = TWICE.iter().map(|(name, _)| *name).collect();
    let found: BTreeSet<&str> = versions.keys().map(String::as_str).collect();
    assert_eq!(found, known, "{versions:?}");
}

/// Features of every library, along the given kinds of edges.
fn features(edges: &str) -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--locked",
            "--workspace",
            "--prefix",
            "none",
            "--format",
            "{p}|{f}",
            "--edges",
            edges,
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut features: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in String::from_utf8(output.stdout).unwrap().lines().filter(|line| !line.is_empty()) {
        let (package, list) = line.split_once('|').unwrap();
        let name = package.split(" (").next().unwrap().to_string();
        let list = list.trim_end_matches(" (*)").split(',').filter(|feature| !feature.is_empty());
        features.entry(name).or_default().extend(list.map(str::to_string));
    }
    features
}

/// A library that tests use with another feature is compiled again for them, with all of our crates
/// that depend on it.
#[test]
fn tests_compile_no_library_again() {
    let (program, with_tests) = (features("normal,build"), features("normal,build,dev"));
    assert!(program.len() > 50 && with_tests.len() > program.len());
    let again: Vec<_> = with_tests
        .iter()
        .filter(|(name, with)| program.get(*name).is_some_and(|without| without != *with))
        .collect();
    assert!(again.is_empty(), "name these features among the ordinary dependencies of a crate: {again:?}");
}

/// Crates on top: the program, and the damaged input for the parsers of all crates.
const KNOW_ROOMS: [&str; 2] = ["kerntune-cli", "kerntune-attack"];

#[test]
fn no_crate_below_the_program_depends_on_an_optional_room() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--locked", "--no-deps", "--format-version", "1"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = all["packages"].as_array().unwrap();
    let dependencies = |package: &Value| package["dependencies"].as_array().unwrap().clone();
    let cli = packages.iter().find(|package| package["name"] == "kerntune-cli").unwrap();
    let optional = dependencies(cli).into_iter().filter(|dependency| dependency["optional"] == true);
    let rooms: Vec<Value> = optional.map(|dependency| dependency["name"].clone()).collect();
    assert_eq!(rooms.len(), 6, "{rooms:?}");
    for package in packages.iter().filter(|package| !KNOW_ROOMS.iter().any(|name| package["name"] == *name)) {
        let known = dependencies(package).into_iter().find(|dependency| rooms.contains(&dependency["name"]));
        assert!(known.is_none(), "{} knows {}", package["name"], known.unwrap_or_default()["name"]);
    }
}
