//! A fleet's profiles are added up as by `profile merge`.

mod support;

use kerntune_fleet::{merge, query, Error, Fleet, FleetEntry, PartitionKey, ProfileFilter, Weights};
use kerntune_profile::{Profile, SamplingSummary, Ticks};
use kerntune_work::NoProgress;
use std::fs;
use support::{files, fleet, profile, saved};

/// Merges the same profiles as `profile merge` does.
fn at_once(entries: &[FleetEntry], weights: &Weights) -> Profile {
    let loaded: Vec<(Profile, u64)> =
        entries.iter().map(|entry| (entry.load().unwrap(), weights.of(&entry.location))).collect();
    let parts: Vec<(&Profile, u64)> = loaded.iter().map(|(profile, weight)| (profile, *weight)).collect();
    kerntune_profile::merge(&parts).unwrap()
}

#[test]
fn a_stream_comes_to_the_same_bytes_as_all_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let (_, all) = fleet(dir.path(), 70);
    let weights = Weights::parse(["host=web-3:0", "workload=redis:5"]).unwrap();
    for count in [1, 8, 9, 65, 70] {
        let some = &all[..count];
        let expected = files(&at_once(some, &weights));
        for threads in [1, 3] {
            let merged = merge(some, &weights, threads, &NoProgress).unwrap();
            assert!(files(&merged.profile) == expected, "{count} profiles, {threads} threads");
        }
    }
    let parts = merge(&all, &weights, 2, &NoProgress).unwrap().parts;
    assert_eq!(parts, all.iter().filter(|entry| entry.location.get(PartitionKey::Host) != "web-3").count());
}

#[test]
fn what_is_added_twice_is_there_once_and_a_changed_one_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (fleet, all) = fleet(dir.path(), 3);
    let first = saved(dir.path(), &profile(0));
    assert!(!fleet.add(&first, "web-0").unwrap().is_new);
    assert!(fleet.add(&first, "web-9").unwrap().is_new, "another host's");
    let mut changed = profile(1);
    changed.manifest.events += 1;
    let changed = saved(dir.path(), &changed);
    assert!(matches!(fleet.add(&changed, "web-1"), Err(Error::Another { .. })));
    assert_eq!(fleet.list(&ProfileFilter::default()).unwrap().len(), all.len() + 1);
    // Partial directories are cleaned up.
    assert_eq!(fs::read_dir(fleet.root().join(".partial")).unwrap().count(), 0);
}

#[test]
fn a_damaged_file_is_refused_by_its_name_and_adding_the_profile_again_mends_it() {
    let dir = tempfile::tempdir().unwrap();
    let (fleet, all) = fleet(dir.path(), 20);
    let broken = all[11].path.join("functions.parquet");
    let mut bytes = fs::read(&broken).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::remove_file(&broken).unwrap();
    fs::write(&broken, &bytes).unwrap();
    let error = merge(&all, &Weights::default(), 2, &NoProgress).unwrap_err().to_string();
    assert!(error.contains(&broken.display().to_string()) && error.contains("damaged"), "{error}");
    let (host, id) = (all[11].location.get(PartitionKey::Host).to_owned(), all[11].id.clone());
    assert!(fleet.add(&dir.path().join(&id), &host).unwrap().is_new);
    merge(&all, &Weights::default(), 2, &NoProgress).unwrap();
    // A renamed profile would count for another kernel.
    let other = all[3].path.with_file_name("profile=p9999");
    fs::rename(&all[3].path, &other).unwrap();
    let all = fleet.list(&ProfileFilter::default()).unwrap();
    let error = merge(&all, &Weights::default(), 1, &NoProgress).unwrap_err().to_string();
    assert!(error.contains("profile=p9999") && error.contains("misplaced"), "{error}");
}

#[test]
fn a_damaged_shared_table_is_not_handed_on() {
    let dir = tempfile::tempdir().unwrap();
    let (fleet, all) = fleet(dir.path(), 1);
    // Damage in the content directory affects every profile with this table, since they share the
    // file.
    let table = all[0].path.join("points.parquet");
    fs::write(&table, "nonsense").unwrap();
    assert!(all[0].load().is_err());
    let added = fleet.add(&saved(dir.path(), &profile(0)), "elsewhere").unwrap();
    added.entry.load().unwrap();
}

#[test]
fn gates_are_those_of_merge_and_name_what_was_added() {
    let dir = tempfile::tempdir().unwrap();
    let (fleet, _) = fleet(dir.path(), 30);
    let refused = || {
        let all = fleet.list(&ProfileFilter::default()).unwrap();
        merge(&all, &Weights::default(), 2, &NoProgress).unwrap_err().to_string()
    };
    let mut sampled = profile(100);
    sampled.manifest.sampled = Some(SamplingSummary {
        source: "clock".into(),
        samples: 1,
        sample_ns: Ticks(1_000_000),
        cpus: 1,
        wall_ns: Ticks(1_000_000),
        period: "1 ms".into(),
        bias: None,
        filter: None,
        calls: None,
        bound_bytes: 0,
    });
    let added = fleet.add(&saved(dir.path(), &sampled), "web-1").unwrap();
    assert!(refused().contains("profile p0100 was sampled"), "{}", refused());
    fs::remove_dir_all(added.entry.path).unwrap();
    let mut other = profile(101);
    other.manifest.kernel.id = "k2".into();
    fleet.add(&saved(dir.path(), &other), "web-1").unwrap();
    assert!(refused().contains("p0101 are of different kernels"), "{}", refused());
    let one = fleet.list(&ProfileFilter { build_id: Some("k1".into()), ..ProfileFilter::default() }).unwrap();
    merge(&one, &Weights::default(), 2, &NoProgress).unwrap();
    assert!(matches!(merge(&[], &Weights::default(), 2, &NoProgress), Err(Error::NothingFits { .. })));
}

#[test]
fn groups_sum_to_the_whole() {
    let dir = tempfile::tempdir().unwrap();
    let (fleet, all) = fleet(dir.path(), 40);
    let whole = &query(&all, &[], Some("tcp_sendmsg")).unwrap()[0];
    let by_host = query(&all, &[PartitionKey::Host, PartitionKey::Workload], Some("tcp_sendmsg")).unwrap();
    assert!(by_host.len() > 7);
    let sum = |of: fn(&kerntune_fleet::ProfileGroup) -> u64| by_host.iter().map(of).sum::<u64>();
    assert_eq!(sum(|group| group.profiles), 40);
    assert_eq!(sum(|group| group.busy), whole.busy);
    assert_eq!(sum(|group| group.function.unwrap().own), whole.function.unwrap().own);
    // The merged profile has the same sums.
    let merged = merge(&all, &Weights::default(), 2, &NoProgress).unwrap().profile.tables;
    let totals = merged.totals(|_| true);
    let net: u64 =
        totals.iter().filter(|t| merged.name(t.function) == "tcp_sendmsg").map(|t| t.self_ticks.get()).sum();
    assert_eq!(net, whole.function.unwrap().own);
    let filter = ProfileFilter { host: Some("web-2".into()), ..ProfileFilter::default() };
    let some = fleet.list(&filter).unwrap();
    assert!(!some.is_empty() && some.iter().all(|entry| entry.location.get(PartitionKey::Host) == "web-2"));
}

#[test]
fn what_does_not_belong_there_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let (fleet, _) = fleet(dir.path(), 1);
    fs::create_dir(fleet.root().join("backup")).unwrap();
    let error = fleet.list(&ProfileFilter::default()).unwrap_err().to_string();
    assert!(error.contains("backup") && error.contains("build_id="), "{error}");
    assert!(matches!(Fleet::existing(&dir.path().join("none")), Err(Error::NoFleet { .. })));
}
