//! Stored files of all versions: current ones can be read, others are rejected with a message that
//! names the file, the version found and the version supported. docs/ must list every schema.

use crate::support::checkout;
use kerntune_kernel::{KernelManifest, PackageManifest, PACKAGE_SCHEMA, SCHEMA as KERNEL_SCHEMA};
use kerntune_optimize::{bolt::BoltRewrite, gcc_pgo::GccPgoProfile, layout::PreparedOrder, PreparedResult};
use kerntune_stats::BenchResults;
use kerntune_tune::run_files::RunFiles;
use kerntune_work::{parse_sealed, read_versioned, seal, write_sealed, Seal};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};

/// A family of files: name, supported version, path in the result, and the function that reads it.
type SchemaFamily = (&'static str, u32, &'static str, fn(&Path) -> Result<(), String>);

const FAMILIES: [SchemaFamily; 10] = [
    ("bench-results", 1, "times.json", |dir| {
        let path = dir.join("times.json").display().to_string();
        done(BenchResults::parse(&path, &fs::read_to_string(&path).unwrap()))
    }),
    ("gcc-pgo", 1, "profile.json", |dir| done(GccPgoProfile::load(dir))),
    ("guest", 1, "manifest.json", |dir| done(kerntune_guest::GuestImage::open(dir))),
    ("kernel", 2, "kernel.json", |dir| {
        done(read_versioned::<KernelManifest>(&dir.join("kernel.json"), KERNEL_SCHEMA))
    }),
    ("order", 1, "order.json", |dir| done(PreparedOrder::load(dir))),
    ("package", 1, "package.json", |dir| {
        done(read_versioned::<PackageManifest>(&dir.join("package.json"), PACKAGE_SCHEMA))
    }),
    ("profile", 4, "manifest.json", |dir| done(kerntune_profile::load_manifest(dir))),
    ("recording", 4, "run/recording.json", |dir| done(RunFiles::open(dir))),
    ("result", 1, "result.json", |dir| done(Seal::read(dir))),
    ("rewrite", 1, "rewrite.json", |dir| done(BoltRewrite::load(dir))),
];

fn done<T>(result: Result<T, impl Display>) -> Result<(), String> {
    result.map(drop).map_err(|error| error.to_string())
}

fn directory() -> PathBuf {
    checkout().join("crates/cli/tests/schemas")
}

/// Puts `text` at the path of the family in a sealed result, and reads it.
fn read(&(_, _, file, read): &SchemaFamily, text: &str) -> Result<(), String> {
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path();
    let path = dir.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    // Other files that readers need.
    fs::write(dir.join("order.txt"), "vfs_read\n").unwrap();
    fs::create_dir_all(dir.join("run")).unwrap();
    fs::write(dir.join("run/trace.kt"), "").unwrap();
    if file != "result.json" {
        fs::write(&path, text).unwrap();
        seal(dir, "kernels", "00aa11bb22cc33dd", &[]).unwrap();
    } else if parse_sealed::<Value>(text.as_bytes(), &path).is_ok() {
        fs::write(&path, text).unwrap();
    } else {
        // Sealed again after the change.
        let value: Value = serde_json::from_str(text).unwrap();
        write_sealed(&path, &value["of"]).unwrap();
    }
    read(dir)
}

/// Changes the version in `text`.
fn of_version(text: &str, from: u32, to: u32) -> String {
    let changed = match text.contains("\"schema\"") {
        true => text.replacen(&format!("/{from}\""), &format!("/{to}\""), 1),
        false => text.replacen(&format!("\"version\": {from}"), &format!("\"version\": {to}"), 1),
    };
    assert_ne!(changed, text);
    changed
}

fn refused(family: &SchemaFamily, text: &str, found: u32) {
    let &(name, expected, file, _) = family;
    let message = read(family, text).expect_err(name);
    let file = Path::new(file).file_name().unwrap().to_str().unwrap();
    let versions = match name {
        "recording" => [format!("version {found}"), format!("reads {expected}")],
        _ => [format!("{name}/{found}"), format!("{name}/{expected}")],
    };
    for word in [file, &versions[0], &versions[1]] {
        assert!(message.contains(word), "{name}: {word} is not in: {message}");
    }
}

#[test]
fn files_of_every_version_are_read_or_refused_by_name() {
    let mut kept = BTreeSet::new();
    for entry in fs::read_dir(directory()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let Some((family, version)) = name.rsplit_once('-') else { continue };
        let family = FAMILIES.iter().find(|known| known.0 == family).expect(name);
        let version: u32 = version.parse().unwrap();
        let text = fs::read_to_string(&path).unwrap();
        if version != family.1 {
            refused(family, &text, version);
            continue;
        }
        read(family, &text).unwrap_or_else(|error| panic!("{name}: {error}"));
        kept.insert(family.0);
        for other in [0, version + 1] {
            refused(family, &of_version(&text, version, other), other);
        }
    }
    let all: BTreeSet<_> = FAMILIES.iter().map(|family| family.0).collect();
    assert_eq!(kept, all, "each family has a file of the version that is read");
}

/// Returns the schemas named in code, in quotes.
fn named(text: &str) -> impl Iterator<Item = &str> {
    text.split('"').filter(|word| {
        let name = word.strip_prefix("kerntune-").and_then(|word| word.split_once('/'));
        name.is_some_and(|(name, version)| !name.is_empty() && version.parse::<u32>().is_ok())
    })
}

/// Collects Rust files below a directory, without tests.
fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && !["tests", "target", "examples"].contains(&name) {
            sources(&path, found);
        } else if name.ends_with(".rs") && !name.ends_with("tests.rs") {
            found.push(path);
        }
    }
}

#[test]
fn the_documents_list_every_schema() {
    let docs =
        ["docs/json.md", "docs/store.md"].map(|file| fs::read_to_string(checkout().join(file)).unwrap());
    let mut files = Vec::new();
    sources(&checkout().join("crates"), &mut files);
    let mut missing = BTreeSet::new();
    for file in files {
        let text = fs::read_to_string(file).unwrap();
        // Schemas made up by tests are never stored.
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let unlisted =
            named(code).filter(|schema| !docs.iter().any(|text| text.contains(&format!("`{schema}`"))));
        missing.extend(unlisted.map(str::to_owned));
    }
    assert!(missing.is_empty(), "neither docs/json.md nor docs/store.md has {missing:?}");
}
