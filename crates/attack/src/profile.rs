//! A profile's directory with one damaged table that matches its manifest.

use kerntune_profile::{load_manifest, Profile, MANIFEST_FILE, SCHEMA};
use kerntune_work::Hash;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

thread_local! {
    /// A complete profile for each table, in which only that table is damaged.
    static DIRECTORIES: RefCell<BTreeMap<&'static str, TempDir>> = const { RefCell::new(BTreeMap::new()) };
}

/// The first byte selects the table, the others are its file.
pub fn table(bytes: &[u8]) {
    let Some((which, bytes)) = bytes.split_first() else { return };
    let table = SCHEMA[usize::from(*which) % SCHEMA.len()].name;
    DIRECTORIES.with_borrow_mut(|directories| {
        let directory = directories.entry(table).or_insert_with(|| {
            let directory = tempfile::tempdir().expect("a temporary directory");
            crate::seeds::example_profile().save(directory.path()).expect("the example is written");
            directory
        });
        damage(directory.path(), table, bytes);
        let _ = Profile::load(directory.path());
    });
}

fn damage(dir: &Path, table: &str, bytes: &[u8]) {
    let path = dir.join(format!("{table}.parquet"));
    fs::write(&path, bytes).expect("the damaged table is written");
    let mut manifest = load_manifest(dir).expect("the manifest is read");
    let entry = manifest.tables.entry(table.to_owned()).or_insert_with(|| kerntune_profile::TableFile {
        rows: 0,
        bytes: 0,
        blake3: Hash::of(bytes),
    });
    entry.bytes = bytes.len() as u64;
    entry.blake3 = Hash::of(bytes);
    let text = serde_json::to_vec(&manifest).expect("a manifest is JSON");
    fs::write(dir.join(MANIFEST_FILE), text).expect("the manifest is written");
    // Sealed again, so that the readers behind the seal are tested.
    kerntune_work::seal(dir, "profiles", &manifest.id, &[]).expect("the directory is sealed");
}
