//! A workload's disk: it repeats, its path is seen, and what it lacks is said.

mod support;

use serde_json::Value;
use std::collections::BTreeMap;
use support::{fails, json, kerntune, workload};
use tempfile::TempDir;

/// Reads of a page, each of which waits for the disk, and a write that is synchronised.
const READS: u64 = 40;
const LATENCY_US: u64 = 500;

/// A workload with such a disk: its file.
fn described(directory: &TempDir, disk: &str) -> String {
    workload(
        directory,
        &format!(
            "description = \"x\"\nbinaries = [\"busybox\"]\nmemory_mb = 512\n[disk]\nfilesystem = \"ext4\"\n\
             files = [\"/etc/services\", \"/usr/lib/locale\"]\n{disk}\n\
             [[measured.step]]\nregion = \"read\"\noperations = {READS}\n\
             command = [\"dd\", \"if=/dev/kt-disk\", \"of=/dev/null\", \"bs=4k\", \"count={READS}\", \"iflag=direct\"]\n\
             expect = [\"{READS}\\\\+0 records out\"]\n\
             [[measured.step]]\nregion = \"write\"\noperations = 1\n\
             command = [\"busybox\", \"sh\", \"-c\", \"cat /data/services > /data/copy && sync && cmp /data/services /data/copy\"]\n"
        ),
    )
}

/// Calls of each function of a region.
fn calls(profile: &str, region: &str) -> BTreeMap<String, u64> {
    let report = json(["report", profile, "functions", "--region", region, "--json"]);
    let rows = report["functions"].as_array().unwrap().iter();
    rows.map(|row| (row["name"].as_str().unwrap().to_string(), row["calls"].as_u64().unwrap())).collect()
}

/// All that a summary says, but what is another one each time.
fn figures(mut summary: Value) -> Value {
    for key in ["profile", "recorded"] {
        summary.as_object_mut().unwrap().remove(key).unwrap();
    }
    summary
}

#[test]
fn a_disk_in_virtual_time_repeats_and_its_requests_are_seen_from_end_to_end() {
    let directory = tempfile::tempdir().unwrap();
    let disk = format!("kind = \"null_blk\"\nsize_mb = 64\nlatency_us = {LATENCY_US}");
    let (kernel, file) = (support::ftrace_kernel(), described(&directory, &disk));
    let record = || json(["record", "--kernel", &kernel, "--workload", &file, "--json"]);
    let (one, two) = (record(), record());
    let profile = one["profile"].as_str().unwrap().to_string();
    assert_ne!(one["profile"], two["profile"]);
    for region in ["read", "write"] {
        assert_eq!(calls(&profile, region), calls(two["profile"].as_str().unwrap(), region), "{region}");
    }
    assert_eq!((figures(one.clone()), &one["exact"]), (figures(two), &Value::Bool(true)));

    let read = calls(&profile, "read");
    for (function, why) in [
        ("submit_bio", "each read is a bio"),
        ("null_queue_rq", "which the driver is given"),
        ("null_cmd_timer_expired", "and completes by its timer"),
        ("blkdev_bio_end_io_simple", "or wakes who waits"),
    ] {
        if function != "blkdev_bio_end_io_simple" || read.contains_key(function) {
            assert_eq!(read.get(function), Some(&READS), "{function}: {why}");
        }
    }
    // Virtual time: the CPU is idle while the disk works.
    let region = one["regions"].as_array().unwrap().iter().find(|region| region["name"] == "read").unwrap();
    let idle_us = region["idle_ns"].as_u64().unwrap() / 1000;
    assert!(idle_us > READS * LATENCY_US * 9 / 10, "{region}");
    assert!(region["elapsed_ns"].as_u64().unwrap() / 1000 > READS * LATENCY_US, "{region}");
    // One path, from the system call to the disk and back.
    let path = support::run([
        "report",
        &profile,
        "path",
        "--region",
        "read",
        "--function",
        "__x64_sys_read",
        "--nth",
        "30",
        "--all",
    ]);
    for function in ["submit_bio", "null_queue_rq", "null_cmd_timer_expired", "wake_up"] {
        assert!(path.contains(function), "{function} is not in\n{path}");
    }
}

#[test]
fn a_kernel_without_the_driver_is_refused_with_what_to_build() {
    let directory = tempfile::tempdir().unwrap();
    let file = described(&directory, "kind = \"null_blk\"\nsize_mb = 64");
    let kernel = support::base_kernel();
    let words = [
        "was built without CONFIG_BLK_DEV_NULL_BLK, CONFIG_CONFIGFS_FS, which the workload's disk (null_blk) needs",
        "kerntune kernel build --workload",
    ];
    fails(&mut kerntune(["record", "--kernel", &kernel, "--workload", &file]), 2, &words);
}

#[test]
fn what_makes_the_file_system_is_quoted_if_it_fails() {
    let directory = tempfile::tempdir().unwrap();
    let file = described(
        &directory,
        "kind = \"virtio\"\nsize_mb = 64\nmkfs_options = [\"-O\", \"no_such_feature\"]",
    );
    let kernel = support::base_kernel();
    let words = [
        "setup 1 (kt-disk) ended with status 1",
        "no_such_feature",
        "kt-disk: mkfs.ext4 ended with status 1",
    ];
    fails(&mut kerntune(["record", "--kernel", &kernel, "--workload", &file]), 5, &words);
}

#[test]
fn a_disk_of_the_host_is_said_not_to_repeat() {
    let directory = tempfile::tempdir().unwrap();
    let file = described(&directory, "kind = \"virtio\"\nsize_mb = 64");
    let kernel = support::base_kernel();
    let output = kerntune(["record", "--kernel", &kernel, "--workload", &file, "--no-edges", "--json"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", support::said(&output));
    assert!(String::from_utf8_lossy(&output.stderr).contains("none of its figures repeats"));
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["exact"], false);
    assert!(summary["notes"].to_string().contains("figures differ from run to run"), "{summary}");
}
