//! Several CPUs: recordings are reproducible, and reports show the known behavior of threads and
//! locks.

#[path = "../../analyze/tests/support/lanes.rs"]
mod lanes;
use crate::support::{self, base_kernel, fails, json, kerntune, work_dir};
use kerntune_profile::{CpuFrontEndStats, Profile, SwitchKind};
use serde_json::Value;
use std::path::PathBuf;

/// Records a workload; returns the profile's id.
fn record(workload: &str, cpus: u32) -> String {
    let (kernel, cpus) = (base_kernel(), cpus.to_string());
    let summary = json(["record", "--kernel", &kernel, "--workload", workload, "--cpus", &cpus, "--json"]);
    assert_eq!(summary["lost_events"], 0);
    summary["profile"].as_str().unwrap().to_owned()
}

fn load(profile: &str) -> Profile {
    Profile::load(&work_dir().join("profiles").join(profile)).unwrap()
}

fn report(profile: &str, name: &str, region: &str) -> Value {
    json(["report", profile, name, "--region", region, "--json"])
}

fn sum(rows: &Value, key: &str, wanted: impl Fn(&Value) -> bool) -> u64 {
    let rows = rows.as_array().unwrap().iter().filter(|row| wanted(row));
    rows.map(|row| row[key].as_u64().unwrap()).sum()
}

#[test]
fn what_a_program_is_known_to_do_is_what_is_reported() {
    let id = record("smp", 2);
    let profile = load(&id);
    // The counts of each CPU equal those of the trace, in any order of turns.
    assert_eq!(profile.manifest.health["cpu_mismatch_ns"], 0);
    assert_eq!(profile.manifest.health["clock_errors"], 0, "{:?}", profile.manifest.health);
    for row in &profile.tables.cpus {
        let executed = row.kernel_instructions.0 + row.user_instructions.0;
        assert_eq!(row.busy_ticks.0, executed, "{row:?}");
    }
    // The front ends of the CPUs sum to the region's figures.
    for region in &profile.tables.regions {
        let of = |row: &&CpuFrontEndStats| row.region == region.region;
        let sum = |of_cpu: fn(&CpuFrontEndStats) -> u64| {
            profile.tables.cpu_front_ends.iter().filter(of).map(of_cpu).sum::<u64>()
        };
        let found = [
            (sum(|row| row.kernel_taken_branches), sum(|row| row.user_taken_branches)),
            (sum(|row| row.kernel_l1i_misses), sum(|row| row.user_l1i_misses)),
            (sum(|row| row.kernel_itlb_misses), sum(|row| row.user_itlb_misses)),
        ];
        let expected = [
            (region.kernel_taken_branches, region.user_taken_branches),
            (region.kernel_l1i_misses, region.user_l1i_misses),
            (region.kernel_itlb_misses, region.user_itlb_misses),
        ];
        assert_eq!(found, expected, "{}", region.name);
    }
    let run = work_dir().join("profiles").join(&id).join("run");
    let recording = serde_json::from_slice(&std::fs::read(run.join("recording.json")).unwrap()).unwrap();
    lanes::assert_lanes(&std::fs::read(run.join("trace.kt")).unwrap(), &recording, &profile.tables);

    // The thread changes its CPU 200 times.
    let scheduling = report(&id, "scheduling", "migrate");
    let mover = |row: &Value| row["thread"] == "mover";
    assert_eq!(sum(&scheduling["migrations"], "count", mover), 200);
    assert_eq!(sum(&scheduling["migrations"], "count", |row| mover(row) && row["reason"] == "affinity"), 200);
    for (from, to) in [(0, 1), (1, 0)] {
        assert_eq!(
            sum(&scheduling["migrations"], "count", |r| mover(r) && r["from"] == from && r["to"] == to),
            100
        );
    }

    // Each wakes the other 300 times, unless the answer arrives before it sleeps; neither migrates.
    let scheduling = report(&id, "scheduling", "wake");
    let slept = |thread: &str| -> u64 {
        let region = profile.tables.regions.iter().find(|row| row.name == "wake").unwrap().region;
        let rows =
            profile.tables.switches.iter().filter(|row| {
                row.region == region && row.from == thread && row.kind == SwitchKind::Voluntary
            });
        rows.map(|row| row.count).sum()
    };
    for (thread, waker) in [("pong", "ping"), ("ping", "pong")] {
        let row = |row: &Value| row["thread"] == thread && row["woken_by"] == waker;
        let woken = sum(&scheduling["delays"], "count", row);
        let slept = slept(thread);
        assert!((290..=300).contains(&woken) && woken == slept, "{thread}: {woken}, slept {slept}");
        assert_eq!(sum(&scheduling["migrations"], "count", |row| row["thread"] == thread), 0);
    }
    // Each wake-up is of a sleeping CPU, by an interrupt from the other.
    let cpus = report(&id, "cpus", "wake");
    for (from, to) in [(0, 1), (1, 0)] {
        let sent = sum(&cpus["sent"], "count", |row| {
            row["from"] == from && row["to"] == to && row["reason"] == "pipe_write"
        });
        assert!((290..=300).contains(&sent), "{from} to {to}: {sent}");
    }

    // 40 times one thread waits for the mutex of a terminal, which the other holds for at least 2
    // ms.
    let locks = report(&id, "locks", "mutex");
    let mutex = |row: &Value| row["kind"] == "mutex";
    assert_eq!(sum(&locks["locks"], "waits", mutex), 40, "{}", locks["locks"]);
    let row = locks["locks"].as_array().unwrap().iter().find(|row| mutex(row)).unwrap();
    assert_eq!(row["caller"], "n_tty_read");
    assert!(row["avg_ns"].as_u64().unwrap() > 1_000_000, "{row}");
    let of = |region: &str| sum(&report(&id, "locks", region)["locks"], "waits", mutex);
    assert_eq!(["migrate", "wake", "spinlock"].map(of), [0; 3]);

    // Two threads read the same page table, under its spinlock nearly all the time. Each call of
    // the slow path for spinlocks is a wait.
    let locks = report(&id, "locks", "spinlock");
    let all = sum(&locks["locks"], "waits", |row| row["kind"] == "spinlock");
    let ours = sum(&locks["locks"], "waits", |row| row["caller"] == "mincore_pte_range");
    assert!(ours >= 5 && ours == all, "{ours} of {all}: {}", locks["locks"]);
    assert_eq!(locks["locks"].as_array().unwrap().len(), 1, "{}", locks["locks"]);
    let functions = report(&id, "functions", "spinlock");
    let calls = sum(&functions["functions"], "calls", |row| {
        row["name"].as_str().unwrap().ends_with("queued_spin_lock_slowpath")
    });
    assert_eq!(calls, all);
}

#[test]
fn a_recording_of_four_cpus_repeats_to_the_byte() {
    let files = |profile: String| -> Vec<(PathBuf, Vec<u8>)> {
        let directory = work_dir().join("profiles").join(profile);
        let mut files: Vec<_> = std::fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|e| e == "parquet"))
            .map(|path| (path.file_name().unwrap().into(), std::fs::read(path).unwrap()))
            .collect();
        files.sort();
        files
    };
    let (one, two) = (files(record("rr", 4)), files(record("rr", 4)));
    assert!(one.len() > 15 && one.iter().any(|(name, _)| name.ends_with("cpus.parquet")));
    for (one, two) in one.iter().zip(&two) {
        assert!(one == two, "{} differs", one.0.display());
    }
    assert_eq!(one.len(), two.len());
}

#[test]
fn what_several_cpus_cannot_have_is_said() {
    let kernel = base_kernel();
    let record = |cpus: &str| kerntune(["record", "--kernel", &kernel, "--workload", "rr", "--cpus", cpus]);
    fails(&mut record("17"), 2, &["--cpus", "1..=16"]);
    fails(&mut record("0"), 2, &["--cpus"]);
    // The kernel supports four CPUs.
    fails(&mut record("8"), 5, &["4 of 8 CPUs", "CONFIG_NR_CPUS=8"]);
}

#[test]
fn a_kernel_without_nodes_or_named_options_is_refused_before_it_boots() {
    let (kernel, directory) = (base_kernel(), tempfile::tempdir().unwrap());
    let refused = |keys: &str, words: &[&str]| {
        let file = support::workload(&directory, &format!("{keys}\n[[measured.step]]\ncommand = [\"rr\"]\n"));
        fails(&mut kerntune(["record", "--kernel", &kernel, "--workload", &file]), 2, words);
    };
    refused(
        "cpus = 2\nnodes = 2",
        &["without CONFIG_NUMA=y, CONFIG_ACPI_NUMA=y, which a machine with several `nodes` needs"],
    );
    refused(
        "kernel_config = [\"CONFIG_SMP=y\", \"CONFIG_NFSD=y\"]",
        &["without CONFIG_NFSD=y, which the workload's `kernel_config` asks for", "--workload WORKLOAD"],
    );
}

/// A patch changes the choice of a CPU for a woken process; docs/results/wake-up.md has the
/// details.
#[test]
fn a_wake_up_that_looks_for_no_cpu_is_shorter_and_takes_a_line_less_of_the_other_ones_run_queue() {
    let patch = support::checkout().join("embedded/kernel/patches/6.12/wake/0001-previous-cpu.patch");
    let previous = support::kernel(&["--patch", &patch.display().to_string()], "wake-previous");
    let of = |kernel: &str| {
        let record = ["record", "--kernel", kernel, "--workload", "ipc", "--cpus", "2", "--data", "--json"];
        // The second of two rows, when both CPUs are busy: if both processes share one CPU, the
        // waiting one stays in its queue, and no CPU is chosen.
        let row = ["--", "ipc", "--only", "semop_rr,pipe_rr", "--scale", "0.2"];
        let id = json(record.iter().chain(&row))["profile"].as_str().unwrap().to_owned();
        let profile = load(&id);
        // Neither process migrates.
        assert_eq!(sum(&report(&id, "scheduling", "pipe_rr")["migrations"], "count", |_| true), 0);
        let functions = report(&id, "functions", "pipe_rr")["functions"].clone();
        let choice = |key: &str| sum(&functions, key, |row| row["name"] == "select_task_rq_fair");
        let transfers = sum(&report(&id, "data", "pipe_rr")["functions"], "transfers", |_| true);
        let region = profile.tables.regions.iter().find(|row| row.name == "pipe_rr").unwrap();
        (choice("calls"), choice("elapsed"), transfers, region.kernel_instructions.0)
    };
    let (base, without) = (of(&base_kernel()), of(&previous));
    println!("choices, what they take, transfers, path: {base:?}, without a search {without:?}");
    let choices = base.0;
    assert!(choices > 550 && without.0.abs_diff(choices) <= 2);
    // A choice takes 99 instructions, and 44 without a search; the path is shorter by the
    // difference.
    let saved = base.1 - without.1;
    assert!((50..60).contains(&(saved / choices)), "{saved}");
    assert!((base.3 - without.3).abs_diff(saved) < base.3 / 500);
    // The line that says whether the other CPU is idle is no longer read.
    assert!((base.2 - without.2).abs_diff(choices) < choices / 10);
}
