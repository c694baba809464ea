//! Untrusted profiles: names in their manifests, and fleets that somebody changed.

mod support;

use kerntune_fleet::{Fleet, PartitionKey, ProfileFilter, Weights};
use kerntune_stats::SplitMix64;
use kerntune_work::NoProgress;
use serde_json::{json, Value};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Writes a complete profile into a new directory.
fn saved(dir: &Path) -> PathBuf {
    fs::create_dir(dir).unwrap();
    support::profile(1).save(dir).unwrap();
    dir.to_owned()
}

/// Changes a manifest and seals the profile again, as a malicious author could.
fn forge(profile: &Path, change: impl FnOnce(&mut Value)) {
    let path = profile.join("manifest.json");
    let mut manifest: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    change(&mut manifest);
    fs::write(&path, serde_json::to_vec_pretty(&manifest).unwrap()).unwrap();
    let id = manifest["id"].as_str().unwrap().to_owned();
    kerntune_work::seal(profile, "profiles", &id, &[]).unwrap();
}

/// Reads the files below a directory.
fn tree(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => open.push(path),
                false => drop(found.insert(path.display().to_string(), fs::read(&path).unwrap())),
            }
        }
    }
    found
}

#[test]
fn a_manifest_whose_names_are_none_is_refused_and_nothing_is_written() {
    let dir = tempfile::tempdir().unwrap();
    type ManifestChange = Box<dyn Fn(&mut Value)>;
    let changes: Vec<(&str, ManifestChange)> = vec![
        ("a hash", Box::new(|of| of["tables"]["functions"]["blake3"] = "../precious".into())),
        ("a short hash", Box::new(|of| of["tables"]["functions"]["blake3"] = "ab".into())),
        (
            "a table",
            Box::new(|of| of["tables"]["extra"] = json!({"rows": 1, "bytes": 5, "blake3": "0".repeat(64)})),
        ),
        (
            "a table elsewhere",
            Box::new(|of| {
                of["tables"]["../../../x"] = json!({"rows": 1, "bytes": 5, "blake3": "0".repeat(64)})
            }),
        ),
    ];
    for (number, (what, change)) in changes.iter().enumerate() {
        let room = dir.path().join(number.to_string());
        fs::create_dir(&room).unwrap();
        fs::write(room.join("precious.parquet"), "my file").unwrap();
        let profile = saved(&room.join("profile"));
        fs::write(profile.join("extra.parquet"), "extra").unwrap();
        forge(&profile, change);
        let before = tree(&room);
        let fleet = Fleet::open(&room.join("fleet")).unwrap();
        let error = fleet.add(&profile, "h").unwrap_err().to_string();
        assert!(error.contains("manifest.json"), "{what}: {error}");
        assert_eq!(tree(&room), before, "{what}");
    }
}

#[test]
fn what_a_killed_process_left_goes_when_the_next_profile_is_added() {
    let dir = tempfile::tempdir().unwrap();
    let fleet = Fleet::open(&dir.path().join("fleet")).unwrap();
    let partial = fleet.root().join(".partial");
    fs::create_dir_all(partial.join("profile=dead.1-0")).unwrap();
    fs::write(partial.join("profile=dead.1-0/functions.parquet"), "half").unwrap();
    fs::write(partial.join(".profile=gone.2-0.lock"), "").unwrap();
    fs::create_dir(partial.join("of nobody")).unwrap();
    let held = kerntune_work::Lock::try_take(&partial.join(".profile=alive.3-0.lock")).unwrap().unwrap();
    fs::create_dir(partial.join("profile=alive.3-0")).unwrap();
    fleet.add(&saved(&dir.path().join("one")), "h").unwrap();
    let mut left: Vec<String> = fs::read_dir(&partial)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    left.sort();
    assert_eq!(left, [".profile=alive.3-0.lock", "of nobody", "profile=alive.3-0"]);
    drop(held);
}

#[test]
fn an_audit_names_what_was_changed() {
    let dir = tempfile::tempdir().unwrap();
    let fleet = Fleet::open(&dir.path().join("fleet")).unwrap();
    fleet.add(&saved(&dir.path().join("one")), "h").unwrap();
    assert_eq!(fleet.audit().unwrap(), (1, Vec::new()));
    let entry = fleet.list(&ProfileFilter::default()).unwrap().remove(0);
    let table = entry.path.join("functions.parquet");
    let bytes = fs::read(&table).unwrap();
    // The content directory has the other name of this file.
    fs::write(&table, b"changed").unwrap();
    let (profiles, found) = fleet.audit().unwrap();
    assert_eq!((profiles, found.len()), (1, 2), "{found:?}");
    fs::write(&table, bytes).unwrap();
    assert_eq!(fleet.audit().unwrap().1, []);
}

/// Changes or truncates a file that figures come from, or replaces it by another one: reports give
/// the same figures or an error. `KERNTUNE_ATTACK_MUTATIONS` is the number of changes; `make
/// attack` sets a higher one.
#[test]
fn no_change_of_a_fleets_file_gives_another_figure() {
    let dir = tempfile::tempdir().unwrap();
    let (fleet, _) = support::fleet(dir.path(), 3);
    let shown = || -> kerntune_fleet::Result<String> {
        let entries = fleet.list(&ProfileFilter::default())?;
        let sums = kerntune_fleet::query(&entries, &[PartitionKey::BuildId, PartitionKey::Workload], None)?;
        let function = kerntune_fleet::query(&entries, &[PartitionKey::Host], Some("schedule"))?;
        let merged = kerntune_fleet::merge(&entries, &Weights::default(), 1, &NoProgress)?;
        Ok(format!("{sums:?} {function:?} {:?}", merged.profile.tables))
    };
    let right = shown().unwrap();
    let files: Vec<(String, Vec<u8>)> = tree(fleet.root()).into_iter().collect();
    let before = tree(dir.path());
    let mut numbers = SplitMix64(12);
    let asked = std::env::var("KERNTUNE_ATTACK_MUTATIONS").ok().and_then(|text| text.parse().ok());
    let (mut refused, mut same) = (0, 0);
    for _ in 0..asked.unwrap_or(200) {
        let (path, whole) = &files[numbers.index(files.len())];
        let mut bytes = whole.clone();
        let at = numbers.index(bytes.len());
        match numbers.below(5) {
            _ if bytes.is_empty() => bytes.push(b'x'),
            0 => bytes.truncate(at),
            1 => bytes.insert(at, numbers.below(256) as u8),
            2 => bytes.clone_from(&files[numbers.index(files.len())].1),
            _ => bytes[at] ^= 1 << numbers.below(8),
        }
        if bytes == *whole {
            continue;
        }
        // A new file of this name: the old one has another name in the content directory.
        fs::remove_file(path).unwrap();
        fs::write(path, &bytes).unwrap();
        match shown() {
            Ok(shown) => {
                same += 1;
                assert_eq!(shown, right, "{path}");
            }
            Err(_) => refused += 1,
        }
        fs::remove_file(path).unwrap();
        fs::write(path, whole).unwrap();
    }
    assert_eq!(tree(dir.path()), before);
    println!("{refused} changes of a fleet refused, {same} not concerned");
}
