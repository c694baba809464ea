//! Disks of workloads: runs are reproducible, paths through the disk are visible, and missing parts
//! are reported.

use crate::support::{self, checkout, fails, json, kerntune, workload};
use serde_json::{json, Value};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use tempfile::TempDir;

/// Number of page reads, each of which waits for the disk; a synchronous write follows.
const READS: u64 = 40;
const LATENCY_US: u64 = 500;

/// Writes a workload with such a disk; returns its file.
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

/// Returns calls by function in a region.
fn calls(profile: &str, region: &str) -> BTreeMap<String, u64> {
    let report = json(["report", profile, "functions", "--region", region, "--json"]);
    let rows = report["functions"].as_array().unwrap().iter();
    rows.map(|row| (row["name"].as_str().unwrap().to_string(), row["calls"].as_u64().unwrap())).collect()
}

/// Removes the values of a summary that differ in every run.
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
    // In virtual time the CPU is idle while the disk works.
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

/// Returns the single row of a region's requests.
fn requests(profile: &str, region: &str) -> Value {
    let report = json(["report", profile, "io", "--region", region, "--json"]);
    assert_eq!(report["seen"], true);
    let rows = report["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!(rows[0]["device"], "nullb0", "{rows:?}");
    rows[0].clone()
}

#[test]
fn requests_are_what_a_program_asks_for() {
    let directory = tempfile::tempdir_in(support::work_dir()).unwrap();
    let program = directory.path().join("requests");
    let mut gcc = Command::new("gcc");
    gcc.args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-static"]);
    gcc.arg("-I")
        .arg(checkout().join("embedded/guest"))
        .arg(checkout().join("crates/cli/tests/disk/requests.c"));
    assert!(gcc.arg("-o").arg(&program).status().unwrap().success(), "{gcc:?}");
    let file = workload(
        &directory,
        &format!(
            "description = \"x\"\nmemory_mb = 512\n[disk]\nkind = \"null_blk\"\nsize_mb = 64\nlatency_us = {LATENCY_US}\n\
             filesystem = \"none\"\n[[measured.step]]\ncommand = [{:?}, \"/dev/kt-disk\"]\n",
            program.display().to_string()
        ),
    );
    let kernel = support::ftrace_kernel();
    let profile = json(["record", "--kernel", &kernel, "--workload", &file, "--json"])["profile"]
        .as_str()
        .unwrap()
        .to_owned();
    let latency_ns = LATENCY_US * 1000;
    // Operation, requests, bytes, sequential, seeks, depths.
    type Expected = (&'static str, &'static str, u64, Value, u64, Value, Value);
    const KIB: u64 = 1024;
    let each: Vec<[u64; 2]> = (1..=8).map(|depth| [depth, 10]).collect();
    let expected: [Expected; 4] = [
        ("sequential", "read", 40, json!([[16 * KIB, 40]]), 40, Value::Null, json!([[1, 40]])),
        ("apart", "write", 30, json!([[4 * KIB, 30]]), 0, json!([[64 * KIB, 30]]), json!([[1, 30]])),
        (
            "deep",
            "read",
            80,
            json!([[8 * KIB, 80]]),
            0,
            json!([[1016 * KIB, 70], [2044 * KIB, 1], [7176 * KIB, 9]]),
            json!(each),
        ),
        (
            "early",
            "read",
            4,
            json!([[4 * KIB, 4]]),
            0,
            json!([[1020 * KIB, 3], [7176 * KIB, 1]]),
            json!([[1, 1], [2, 1], [3, 1], [4, 1]]),
        ),
    ];
    for (region, operation, count, bytes, sequential, seeks, depths) in expected {
        let row = requests(&profile, region);
        println!("{region}: {row}");
        assert_eq!((&row["operation"], &row["requests"]), (&json!(operation), &json!(count)), "{region}");
        assert_eq!(row["bytes"]["values"], bytes, "{region}");
        assert_eq!(row["sequential"], sequential, "{region}");
        assert_eq!(row["seek_bytes"]["values"], seeks, "{region}");
        assert_eq!(row["depth"]["values"], depths, "{region}");
        let [completed, later] = if region == "early" { [0, 4] } else { [count, 0] };
        assert_eq!(
            [&row["completed"], &row["completed_later"]],
            [&json!(completed), &json!(later)],
            "{region}"
        );
        assert_eq!([&row["unfinished"], &row["again"]], [&json!(0), &json!(0)], "{region}");
        // The timer is set after the request is issued and data is copied, and its interrupt
        // handler takes some instructions.
        let time = &row["time_ns"];
        let [median, max] = ["median", "max"].map(|figure| time[figure].as_u64().unwrap());
        assert!(time["values"][0][0].as_u64().unwrap() > latency_ns, "{region}: {time}");
        assert!(median < latency_ns * 11 / 10 && max < latency_ns * 2, "{region}: {time}");
        assert_eq!(time["count"], count, "{region}");
    }
    // Requests issued before the region are completed inside, and count in no figure.
    let late = requests(&profile, "late");
    assert_eq!((&late["requests"], &late["issued_before"]), (&json!(0), &json!(4)), "{late}");
    let text = support::run(["report", &profile, "io", "--region", "late"]);
    assert!(text.contains("4 more completed in a region in which they were not issued"), "{text}");
    // In total each request is counted once.
    let all = json(["report", &profile, "io", "--json"]);
    assert_eq!(all["all"]["requests"], 40 + 30 + 80 + 4);
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

/// The host takes 50 ms for each request; the guest's clock must wait.
#[test]
fn a_slow_disk_of_the_host_uses_up_none_of_the_guests_time() {
    let directory = tempfile::tempdir().unwrap();
    let file = described(&directory, "kind = \"virtio\"\nsize_mb = 64");
    let kernel = support::base_kernel();
    let qemu = "qemu-system-x86_64";
    let found = Command::new("sh").args(["-c", &format!("command -v {qemu}")]).output().unwrap();
    let found = String::from_utf8(found.stdout).unwrap();
    let slow = format!(
        "#!/bin/bash\nexec {} \"${{@/,if=none,id=disk/,if=none,id=disk,throttling.iops-total=20}}\"\n",
        found.trim()
    );
    let program = directory.path().join(qemu);
    fs::write(&program, slow).unwrap();
    fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", directory.path().display(), std::env::var("PATH").unwrap());
    let output = kerntune([
        "record",
        "--kernel",
        &kernel,
        "--workload",
        &file,
        "--no-edges",
        "--no-functions",
        "--json",
    ])
    .env("PATH", path)
    .output()
    .unwrap();
    assert!(output.status.success(), "{}", support::said(&output));
}
