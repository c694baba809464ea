//! Profiles that are added one after the other, from memory and from disk.

mod support;

use kerntune_profile::*;
use std::fs;
use std::path::PathBuf;
use support::{ns, region, sample};
use tempfile::TempDir;

fn sum_of(parts: &[Profile]) -> ProfileSum {
    let mut sum = ProfileSum::default();
    for part in parts {
        sum.add(part.tables.clone(), 1).unwrap();
    }
    sum
}

/// Makes a profile with two threads of one name and ids, each of which ran in one region.
fn twins(regions: [&str; 2], ran: bool) -> Profile {
    let mut profile = sample("p");
    profile.tables = Tables {
        regions: (0..).zip(regions).map(|(at, name)| region(at, name, 0, 100)).collect(),
        ..Tables::default()
    };
    let thread = |at: u32| ThreadStats {
        region: at,
        thread: 7 + at,
        pid: 5,
        comm: "twin".into(),
        self_ticks: ns(10 + u64::from(at)),
        ..ThreadStats::default()
    };
    if ran {
        profile.tables.threads = vec![thread(0), thread(1)];
    }
    profile
}

#[test]
fn a_sum_of_later_profiles_is_appended_as_if_each_had_been_added() {
    // The second one makes a sum in which the second twin comes before the first.
    let parts = [twins(["b", "a"], true), twins(["a", "b"], false), twins(["b", "a"], true), sample("q")];
    let whole = sum_of(&parts).into_tables();
    let of_twins: Vec<_> = whole.threads.iter().map(|row| (row.region, row.thread, row.self_ticks)).collect();
    assert_eq!(of_twins[..2], [(0, 0, ns(20)), (1, 1, ns(22))]);
    for at in 0..=parts.len() {
        let mut sum = sum_of(&parts[..at]);
        sum.append(sum_of(&parts[at..])).unwrap();
        assert_eq!(sum.into_tables(), whole, "{at} and {}", parts.len() - at);
    }
}

#[test]
fn what_describes_one_machine_is_not_added_up() {
    let one = sample("p");
    let alone = sum_of(std::slice::from_ref(&one)).into_tables();
    assert_eq!((&alone.footprints, &alone.data_tlbs), (&one.tables.footprints, &one.tables.data_tlbs));
    assert!(!alone.footprints.is_empty() && !alone.data_tlbs.is_empty());
    let mut twice = ProfileSum::default();
    twice.add(one.tables.clone(), 2).unwrap();
    assert!(twice.into_tables().footprints.is_empty());
    let mut other = one.clone();
    other.tables.data_tlbs.clear();
    let parts = [one, other.clone(), other];
    for at in 0..=parts.len() {
        let mut sum = sum_of(&parts[..at]);
        sum.append(sum_of(&parts[at..])).unwrap();
        let tables = sum.into_tables();
        assert!(tables.footprints.is_empty() && tables.data_tlbs.is_empty(), "{at}");
    }
}

/// Stores two profiles with equal symbols; the second has another function's figures.
fn stored() -> (TempDir, [(PathBuf, Profile); 2]) {
    let dir = tempfile::tempdir().unwrap();
    let mut second = sample("q");
    second.tables.functions[2].calls = 70;
    let stored = [("one", sample("p")), ("two", second)].map(|(name, profile)| {
        let path = dir.path().join(name);
        fs::create_dir(&path).unwrap();
        let manifest = profile.save(&path).unwrap();
        (path, Profile { manifest, tables: profile.tables })
    });
    (dir, stored)
}

#[test]
fn stored_profiles_are_added_as_those_in_memory() {
    let (_dir, stored) = stored();
    let mut sum = ProfileSum::default();
    for (weight, (path, profile)) in (1..).zip(&stored) {
        sum.add_stored(path, &profile.manifest, weight).unwrap();
        sum.add_stored(path, &profile.manifest, 0).unwrap();
    }
    let [one, two] = stored.each_ref().map(|(_, profile)| profile);
    assert_eq!(sum.into_tables(), merge(&[(one, 1), (two, 2)]).unwrap().tables);
}

#[test]
fn known_symbols_are_checked_all_the_same() {
    let (_dir, [(first, one), (second, two)]) = stored();
    assert_eq!(one.manifest.tables["symbols"].blake3, two.manifest.tables["symbols"].blake3);
    let symbols = second.join("symbols.parquet");
    let whole = fs::read(&symbols).unwrap();
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    for damaged in [&flipped, &whole[..whole.len() - 1]] {
        fs::write(&symbols, damaged).unwrap();
        let mut sum = ProfileSum::default();
        sum.add_stored(&first, &one.manifest, 1).unwrap();
        let error = sum.add_stored(&second, &two.manifest, 1).unwrap_err().to_string();
        assert!(error.contains(&symbols.display().to_string()), "{error}");
        let mut named = NamedFunctions::new("show");
        named.totals(&first, &one.manifest).unwrap();
        let error = named.totals(&second, &two.manifest).unwrap_err().to_string();
        assert!(error.contains(&symbols.display().to_string()), "{error}");
    }
    fs::remove_file(&symbols).unwrap();
    let error = NamedFunctions::new("show").totals(&second, &two.manifest).unwrap_err().to_string();
    assert!(error.contains("it is missing"), "{error}");
}

#[test]
fn functions_of_a_name_have_the_figures_of_the_whole_profile() {
    let (_dir, stored) = stored();
    for name in ["show", "do_syscall_64", "none"] {
        let mut named = NamedFunctions::new(name);
        for (path, profile) in &stored {
            let tables = &profile.tables;
            let mut expected = tables.totals(|_| true);
            expected.retain(|totals| tables.name(totals.function) == name);
            assert_eq!(named.totals(path, &profile.manifest).unwrap(), expected, "{name}");
        }
    }
}
