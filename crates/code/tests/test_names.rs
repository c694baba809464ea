//! Checks that names of tests in documents and scripts exist, and that all test files are part of a
//! program.
//!
//! Cargo accepts a filter that matches no test, runs none, and exits with status 0; and it does not
//! compile a file that no `mod` names.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Checks whether a file under version control may name tests.
fn may_name_tests(path: &Path) -> bool {
    let directory = path.parent().and_then(Path::file_name).and_then(|name| name.to_str());
    let is_script = matches!(directory, Some("scripts" | ".ci"));
    let ending = path.extension().and_then(|ending| ending.to_str());
    is_script || path.ends_with("Makefile") || matches!(ending, Some("md" | "rs" | "yml" | "yaml" | "toml"))
}

/// Collects all files below `directory` that may name tests, without build output and kept files.
fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let (path, name) = (entry.path(), entry.file_name().into_string().unwrap());
        let kind = entry.file_type().unwrap();
        let is_kept = name == ".ci" || !(name.starts_with('.') || matches!(name.as_str(), "target" | "dist"));
        if kind.is_dir() && is_kept {
            files(&path, found);
        } else if kind.is_file() && may_name_tests(&path) {
            found.push(path);
        }
    }
}

/// Lists the names of a test program: of its modules, each with `::`, and of its functions, one per
/// line.
fn names_in(path: &Path, names: &mut String) {
    let text = fs::read_to_string(path).unwrap();
    for line in text.lines() {
        let line = line.trim_start();
        if let Some(rest) = line.strip_prefix("fn ").or_else(|| line.strip_prefix("pub fn ")) {
            names.extend([rest.split(['(', '<']).next().unwrap_or_default(), "\n"]);
        } else if let Some(module) = line.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(';')) {
            names.extend([module, "::\n"]);
        }
    }
}

/// Returns the name of the single program whose modules are the files of `tests/`, if the package
/// has one.
fn whole(manifest: &str) -> Option<&str> {
    manifest.split("[[test]]\nname = \"").nth(1)?.split('"').next()
}

/// Returns the test programs, each with its names.
fn programs() -> BTreeMap<String, String> {
    let mut programs = BTreeMap::new();
    for package in fs::read_dir(root().join("crates")).unwrap() {
        let package = package.unwrap().path();
        let manifest = fs::read_to_string(package.join("Cargo.toml")).unwrap();
        let Ok(entries) = fs::read_dir(package.join("tests")) else { continue };
        let whole = whole(&manifest);
        for entry in entries {
            let path = entry.unwrap().path();
            let main = path.join("main.rs");
            let source = if main.exists() { main } else { path.clone() };
            if source.extension().is_none_or(|ending| ending != "rs") {
                continue;
            }
            let own = path.file_stem().unwrap().to_str().unwrap();
            names_in(&source, programs.entry(whole.unwrap_or(own).to_owned()).or_default());
        }
    }
    programs
}

/// Splits a command line after `--test `: the program, and the filters of its tests.
fn named(rest: &str) -> (&str, Vec<&str>) {
    let ended = rest.find(['`', '|', '>', ';', '\'', '"']).map_or(rest, |end| &rest[..end]);
    let mut words = ended.split_whitespace();
    let program = words.next().unwrap_or_default();
    (program, words.filter(|word| !word.starts_with(['-', '\\'])).collect())
}

#[test]
fn every_test_that_is_named_is_there() {
    let programs = programs();
    assert!(programs.len() > 20 && programs["cli"].contains("tune::\n"), "{:?}", programs.keys());
    let mut all = Vec::new();
    files(&root(), &mut all);
    let (mut wrong, mut followed) = (Vec::new(), 0);
    for path in all {
        let text = fs::read_to_string(&path).unwrap();
        for (at, line) in text.lines().enumerate() {
            for rest in line.split("--test ").skip(1) {
                let (program, filters) = named(rest);
                // Not a name, but a loop variable, a format, or a search pattern.
                if !program.starts_with(|c: char| c.is_ascii_lowercase()) {
                    continue;
                }
                followed += 1;
                let place = format!("{}:{}", path.strip_prefix(root()).unwrap().display(), at + 1);
                let Some(names) = programs.get(program) else {
                    wrong.push(format!("{place}: no program of tests {program}"));
                    continue;
                };
                let lacking = filters.into_iter().find(|filter| !names.contains(filter));
                wrong.extend(lacking.map(|filter| format!("{place}: no test of {program} has {filter}")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(followed > 10, "{followed}");
}

#[test]
fn every_file_of_tests_is_a_module_of_its_program() {
    let mut looked_at = 0;
    for package in fs::read_dir(root().join("crates")).unwrap() {
        let package = package.unwrap().path();
        if whole(&fs::read_to_string(package.join("Cargo.toml")).unwrap()).is_none() {
            continue;
        }
        let main = fs::read_to_string(package.join("tests/main.rs")).unwrap();
        for entry in fs::read_dir(package.join("tests")).unwrap() {
            let path = entry.unwrap().path();
            let module = path.file_stem().unwrap().to_str().unwrap();
            if path.extension().is_some_and(|ending| ending == "rs") && module != "main" {
                looked_at += 1;
                let line = format!("mod {module};");
                assert!(
                    main.lines().any(|found| found == line),
                    "{}: no `{line}` in main.rs",
                    path.display()
                );
            }
        }
    }
    assert!(looked_at > 60, "{looked_at}");
}

#[test]
fn what_follows_the_program_chooses_tests() {
    assert_eq!(named("cli tune:: -- --nocapture` does"), ("cli", vec!["tune::"]));
    assert_eq!(named("cli -- in_a_browser"), ("cli", vec!["in_a_browser"]));
    assert_eq!(named("path` rewrites them"), ("path", vec![]));
    assert_eq!(named("cli || status=$?"), ("cli", vec![]));
}
