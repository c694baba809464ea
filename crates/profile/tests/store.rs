//! Profiles survive saving and loading; changed files are rejected.

mod support;

use kerntune_profile::*;
use kerntune_work::{Key, WorkDir};
use std::fs;
use std::path::Path;
use support::sample;

fn put(work: &WorkDir, profile: &Profile) {
    let staged = work.stage_as(KIND, &profile.manifest.id, &Key::new("test/1", "")).unwrap();
    profile.save(staged.path()).unwrap();
    staged.publish().unwrap();
}

fn refusal(dir: &Path) -> String {
    let error = Profile::load(dir).unwrap_err().to_string();
    assert_eq!(verify(dir).unwrap_err().to_string(), error);
    error
}

#[test]
fn what_is_saved_is_loaded() {
    let dir = tempfile::tempdir().unwrap();
    let profile = sample("p");
    let manifest = profile.save(dir.path()).unwrap();
    let loaded = Profile::load(dir.path()).unwrap();
    assert_eq!(loaded.tables, profile.tables);
    assert_eq!(loaded.manifest, manifest);
    assert_eq!(load_manifest(dir.path()).unwrap(), manifest);
    assert_eq!(manifest.tables.len(), SCHEMA.len());
    assert_eq!((manifest.tables["functions"].rows, manifest.tables["edges"].rows), (3, 2));
}

#[test]
fn the_same_profile_makes_the_same_files() {
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [first, second] = dirs.each_ref().map(|dir| sample("p").save(dir.path()).unwrap());
    assert_eq!(first, second);
    assert_eq!(sample("p").save(dirs[0].path()).unwrap(), first, "over an earlier try");
}

#[test]
fn empty_tables_are_tables() {
    let dir = tempfile::tempdir().unwrap();
    let profile = Profile { tables: Tables::default(), ..sample("p") };
    let manifest = profile.save(dir.path()).unwrap();
    assert_eq!(Profile::load(dir.path()).unwrap().tables, Tables::default());
    // Tables that are rare have no file without rows, so that other profiles keep their files of
    // older versions.
    const RARE: [&str; 23] = [
        "model_events",
        "cpus",
        "cpu_front_ends",
        "cpu_model_events",
        "cpu_interrupts",
        "signals",
        "migrations",
        "delays",
        "blocked",
        "locks",
        "lock_paths",
        "system_calls",
        "thread_cgroups",
        "data_accesses",
        "data_paths",
        "data_places",
        "shared_lines",
        "io_requests",
        "packets",
        "distributions",
        "page_accesses",
        "footprints",
        "data_tlbs",
    ];
    assert_eq!(manifest.tables.len(), SCHEMA.len() - RARE.len());
    for table in RARE {
        let file = dir.path().join(format!("{table}.parquet"));
        assert!(!manifest.tables.contains_key(table) && !file.exists(), "{table}");
    }
}

#[test]
fn a_directory_without_a_manifest_is_no_profile() {
    let dir = tempfile::tempdir().unwrap();
    assert!(refusal(dir.path()).contains("is not a profile: it has no manifest.json"));
    assert!(refusal(&dir.path().join("none")).contains("is not a profile"));
}

#[test]
fn every_damaged_file_is_named() {
    for schema in SCHEMA {
        let dir = tempfile::tempdir().unwrap();
        sample("p").save(dir.path()).unwrap();
        let path = dir.path().join(format!("{}.parquet", schema.name));
        let whole = fs::read(&path).unwrap();

        fs::write(&path, &whole[..whole.len() - 1]).unwrap();
        let text = refusal(dir.path());
        assert!(text.contains(path.to_str().unwrap()) && text.contains("record again"), "{text}");
        assert!(text.contains(&format!("it has {} bytes", whole.len() - 1)), "{text}");

        let mut other = whole.clone();
        other[whole.len() / 2] ^= 1;
        fs::write(&path, other).unwrap();
        assert!(refusal(dir.path()).contains("another BLAKE3 hash"));

        fs::remove_file(&path).unwrap();
        assert!(refusal(dir.path()).contains("it is missing"));
    }
}

#[test]
fn a_file_of_another_profile_is_refused() {
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let mut other = sample("q");
    other.tables.functions[0].calls += 1;
    sample("p").save(dirs[0].path()).unwrap();
    other.save(dirs[1].path()).unwrap();
    fs::copy(dirs[1].path().join("functions.parquet"), dirs[0].path().join("functions.parquet")).unwrap();
    assert!(refusal(dirs[0].path()).contains("functions.parquet is damaged"));
}

#[test]
fn damaged_and_foreign_manifests_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    sample("p").save(dir.path()).unwrap();
    let path = dir.path().join(MANIFEST_FILE);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, &text[..text.len() / 2]).unwrap();
    assert!(refusal(dir.path()).contains("manifest.json is damaged"));
    fs::write(&path, text.replace(SCHEMA_NAME, "kerntune-profile/9")).unwrap();
    assert!(refusal(dir.path()).contains("is of schema \"kerntune-profile/9\""));
    fs::write(&path, text.replace(SCHEMA_NAME, "kerntune-profile/2")).unwrap();
    assert!(refusal(dir.path()).contains("another version made it; record again"));
    fs::write(&path, "[]").unwrap();
    assert!(refusal(dir.path()).contains("is of schema \"\""));
}

#[test]
fn no_number_of_a_manifest_can_be_another() {
    let dir = tempfile::tempdir().unwrap();
    let manifest = sample("p").save(dir.path()).unwrap();
    let path = dir.path().join(MANIFEST_FILE);
    let text = fs::read_to_string(&path).unwrap();
    let (from, to) =
        (format!("\"busy_ticks\": {}", manifest.busy_ticks.0), "\"busy_ticks\": 286000000".to_string());
    assert!(text.contains(&from), "{text}");
    fs::write(&path, text.replace(&from, &to)).unwrap();
    assert!(refusal(dir.path()).contains("manifest.json is not the file that was written"));
    // No manifest names this file: it is of an older version, or half copied.
    fs::write(&path, text).unwrap();
    Profile::load(dir.path()).unwrap();
    fs::remove_file(dir.path().join("result.json")).unwrap();
    assert!(refusal(dir.path()).contains("no result of this version"));
}

#[test]
fn rows_that_refer_to_nothing_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut profile = sample("p");
    profile.tables.arcs[1].caller = FunctionIndex(3);
    profile.save(dir.path()).unwrap();
    assert!(refusal(dir.path()).contains("refers to nothing"));
}

#[test]
fn profiles_are_listed_oldest_first_and_found() {
    let dir = tempfile::tempdir().unwrap();
    let work = WorkDir::open(dir.path()).unwrap();
    assert!(find(&work, "latest").unwrap_err().to_string().starts_with("no profiles yet: `kerntune record"));
    for (id, minute) in [("aa11", 3), ("aa22", 1), ("bb33", 2)] {
        let mut profile = sample(id);
        profile.manifest.recorded = format!("2025-06-01T12:0{minute}:00.000Z");
        put(&work, &profile);
    }
    let ids: Vec<String> = list(&work).unwrap().entries.into_iter().map(|e| e.manifest.id).collect();
    assert_eq!(ids, ["aa22", "bb33", "aa11"]);
    assert_eq!(find(&work, "latest").unwrap().manifest.id, "aa11");
    assert_eq!(find(&work, "latest~").unwrap().manifest.id, "bb33");
    assert_eq!(find(&work, "latest~2").unwrap().manifest.id, "aa22");
    let missing = |name: &str| find(&work, name).unwrap_err().to_string();
    assert!(missing("latest~3").contains("there is no profile \"latest~3\""));
    for slip in ["latesd", "latedt", "lateest~1"] {
        assert!(missing(slip).contains("did you mean `latest`?"), "{}", missing(slip));
    }
    assert!(!missing("cafe").contains("did you mean"));
    assert_eq!(find(&work, "b").unwrap().manifest.id, "bb33");
    assert_eq!(find(&work, "aa22").unwrap().manifest.id, "aa22");
    let path = work.find(KIND, "bb33").unwrap();
    assert_eq!(find(&work, path.to_str().unwrap()).unwrap().path, path);
    assert!(find(&work, "aa").unwrap_err().to_string().contains("may be any of aa11, aa22"));
    assert!(find(&work, "").is_err() && find(&work, "zz").is_err());
}

#[test]
fn damaged_profiles_are_listed_as_such_and_can_be_removed() {
    let dir = tempfile::tempdir().unwrap();
    let work = WorkDir::open(dir.path()).unwrap();
    put(&work, &sample("aa"));
    put(&work, &sample("bb"));
    fs::write(work.find(KIND, "aa").unwrap().join(MANIFEST_FILE), "{").unwrap();
    let listing = list(&work).unwrap();
    assert_eq!((listing.entries.len(), listing.damaged.len()), (1, 1));
    remove(&work, "aa").unwrap();
    assert!(list(&work).unwrap().damaged.is_empty());
    let elsewhere = dir.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    sample("cc").save(&elsewhere).unwrap();
    assert!(remove(&work, elsewhere.to_str().unwrap()).is_err() && elsewhere.is_dir());
    put(&work, &sample("cc"));
    remove(&work, work.find(KIND, "cc").unwrap().to_str().unwrap()).unwrap();
    remove(&work, "latest").unwrap();
    assert!(list(&work).unwrap().entries.is_empty());
    assert!(remove(&work, "../aa").is_err());
}

#[test]
fn the_documentation_has_every_column() {
    let text = include_str!("../../../docs/profile.md");
    for table in SCHEMA {
        let heading = format!("### `{}.parquet`", table.name);
        let (_, section) = text.split_once(&heading).unwrap_or_else(|| panic!("no section {heading}"));
        let section = section.split("\n### ").next().unwrap();
        for (name, kind) in table.columns {
            let line = format!("| `{name}` | {} |", kind.name());
            assert!(section.contains(&line), "docs/profile.md lacks {line:?} under {heading}");
        }
    }
}
