//! Waits, locks, system calls and cgroups of profiles of this machine's kernel. Needs root and perf
//! events with tracepoints; if the host does not allow them, the error message is tested instead.
//! Needs strace.

use crate::live::{json, kerntune, run};
use crate::support::{fails, said};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// One test at a time traces: of several sessions that read the same tracepoint, Linux 6.18 was seen to
/// leave out the events of single threads, without a record of it.
static TRACING: Mutex<()> = Mutex::new(());

/// Returns true if this host allows the events of an option; otherwise checks the error message.
fn is_allowed(option: &str) -> bool {
    let work = tempfile::tempdir().unwrap();
    let arguments = ["record", "--live", "--all", option, "--", "sleep", "0.2"];
    let output = kerntune(work.path(), &arguments).output().unwrap();
    if output.status.success() {
        return true;
    }
    let text = said(&output);
    assert_eq!(output.status.code(), Some(3), "{text}");
    let known = [
        "kernel.perf_event_paranoid",
        "no perf events",
        "kernel.kptr_restrict",
        "CONFIG_KALLSYMS",
        &format!("{option} needs tracepoints"),
    ];
    assert!(known.iter().any(|word| text.contains(word)), "{text}");
    eprintln!("this host does not let us read the events of {option}; only the message was tested: {text}");
    false
}

/// Returns a CPU whose idle task's events reach perf. Linux 6.18 was seen to drop those of one CPU
/// without a record of it: what wakes a thread there is in no tool's report.
fn observable_cpu() -> Option<String> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("perf.data");
    let file = file.to_str().unwrap();
    let is_observable = |cpu: &String| {
        let mut record = Command::new("perf");
        record.args(["record", "-q", "-C", cpu, "-o", file, "-e", "sched:sched_switch", "--"]);
        record.args(["taskset", "-c", cpu, "sh", "-c", "for i in 1 2 3 4 5; do sleep 0.01; done"]);
        let is_recorded = record.output().is_ok_and(|output| output.status.success());
        let listed = Command::new("perf").args(["script", "-i", file]).output();
        let idle = format!("prev_comm=swapper/{cpu} ");
        is_recorded
            && listed.is_ok_and(|listed| String::from_utf8_lossy(&listed.stdout).matches(&idle).count() >= 5)
    };
    let cpus = std::thread::available_parallelism().unwrap().get();
    let found = (0..cpus).map(|cpu| cpu.to_string()).find(is_observable);
    if found.is_none() {
        eprintln!("perf sees the switches of no idle task here; nothing was compared");
    }
    found
}

/// Records a command with `--off-cpu` until its three sleeps have their ends, at most eight times. A
/// recording that lacks some must say that the kernel left out context switches.
fn record_three_sleeps(work: &Path, command: &[&str]) -> Value {
    for attempt in 1.. {
        run(work, &[&["record", "--live", "--off-cpu", "--"][..], command].concat());
        let off = json(work, &["report", "latest", "off-cpu"]);
        let woken = |thread: &str, waker: &str| -> u64 {
            let rows = rows(&off, "blocked");
            let rows = rows.iter().filter(|row| row["thread"] == thread && row["woken_by"] == waker);
            rows.map(|row| number(&row["count"])).sum()
        };
        if woken("sh", "sleep") == 3 && woken("sleep", "[interrupt]") == 3 || attempt == 8 {
            return off;
        }
        let text = run(work, &["report", "latest"]);
        assert!(text.contains("context switches are missing"), "{text}\n{off}");
    }
    Value::Null
}

/// Returns true if a recording has a wake-up for each time that a thread of this name went to sleep.
fn has_every_wait(file: &str, comm: &str) -> bool {
    let listed =
        Command::new("perf").args(["script", "-i", file, "-G", "-F", "event,trace"]).output().unwrap();
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    let count =
        |words: [&str; 2]| text.lines().filter(|line| words.iter().all(|word| line.contains(word))).count();
    let out = format!("prev_comm={comm} ");
    let slept: usize = ["prev_state=S", "prev_state=D"].map(|state| count([&out, state])).iter().sum();
    slept >= 5 && slept == count(["sched:sched_waking", &format!(" comm={comm} ")])
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn rows(document: &Value, table: &str) -> Vec<Value> {
    document[table].as_array().unwrap_or_else(|| panic!("no {table}: {document}")).clone()
}

#[test]
fn blocked_time_is_that_of_the_sleeps_and_has_its_waker() {
    let _alone = TRACING.lock().unwrap_or_else(PoisonError::into_inner);
    if !is_allowed("--off-cpu") {
        return;
    }
    let Some(cpu) = observable_cpu() else { return };
    let dir = tempfile::tempdir().unwrap();
    let work = dir.path();
    // The loop takes a time sample or more.
    let script =
        "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; for i in 1 2 3; do sleep 0.1; done; true";
    let command = ["taskset", "-c", &cpu, "sh", "-c", script];
    let off = record_three_sleeps(work, &command);
    let blocked = rows(&off, "blocked");
    let path = |row: &Value| row["path"].as_array().unwrap().iter().any(|name| name == "do_nanosleep");
    let slept: Vec<&Value> = blocked.iter().filter(|row| row["thread"] == "sleep" && path(row)).collect();
    let waits: u64 = slept.iter().map(|row| number(&row["count"])).sum();
    let ns: u64 = slept.iter().map(|row| number(&row["blocked_ns"])).sum();
    assert_eq!(waits, 3, "{off}");
    assert!(ns >= 300_000_000, "{ns}");
    assert!(slept.iter().all(|row| row["woken_by"] == "[interrupt]"), "{off}");
    // The shell waits for its children, and the end of each wakes it.
    let waited = blocked.iter().filter(|row| row["thread"] == "sh" && row["woken_by"] == "sleep");
    assert_eq!(waited.map(|row| number(&row["count"])).sum::<u64>(), 3, "{off}");
    // Nothing but the command.
    let own = |row: &Value| ["sh", "sleep", "taskset"].contains(&row["thread"].as_str().unwrap());
    assert!(blocked.iter().all(own), "{off}");
    // Each wait for a CPU follows a wake-up, a start or a preemption.
    let scheduling = json(work, &["report", "latest", "scheduling"]);
    let delays: u64 = rows(&scheduling, "delays").iter().map(|row| number(&row["delay_ns"])).sum();
    assert_eq!(delays, number(&off["delay_ns"]));
    assert!(rows(&scheduling, "delays").iter().any(|row| row["woken_by"] == "[interrupt]"), "{scheduling}");
    let text = run(work, &["report", "latest", "scheduling"]);
    assert!(text.contains("Waits for a CPU") && !text.contains("one CPU"), "{text}");
    // Without the option a report says how to get it.
    run(work, &["record", "--live", "--all", "--", "sleep", "0.2"]);
    for (report, option) in [("off-cpu", "--off-cpu"), ("scheduling", "--off-cpu"), ("locks", "--locks")] {
        let text = run(work, &["report", "latest", report]);
        assert!(text.contains(option) && !text.contains("one CPU"), "{text}");
    }
}

#[test]
fn system_calls_are_those_of_strace_in_the_same_run() {
    let _alone = TRACING.lock().unwrap_or_else(PoisonError::into_inner);
    if !is_allowed("--syscalls") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (work, counts) = (dir.path(), dir.path().join("strace"));
    let strace = ["strace", "-c", "-U", "calls,errors,name", "-o", counts.to_str().unwrap()];
    let command = ["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=2000"];
    run(work, &[&["record", "--live", "--syscalls", "--"][..], &strace, &command].concat());
    let text = std::fs::read_to_string(&counts).unwrap();
    let mut expected: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some((Ok(calls), name)) = words.first().map(|word| word.parse()).zip(words.last()) else {
            continue;
        };
        let errors = if words.len() == 3 { words[1].parse().unwrap() } else { 0 };
        expected.insert((*name).to_string(), (calls, errors));
    }
    // The call that makes the child dd is still strace's.
    expected.retain(|name, _| !["total", "execve"].contains(&name.as_str()));
    assert!(expected["read"].0 >= 2000 && expected["write"].0 >= 2000, "{text}");
    let report = json(work, &["report", "latest", "syscalls", "--by-thread"]);
    let traced = rows(&report, "traced");
    let found: BTreeMap<String, (u64, u64)> = traced
        .iter()
        .filter(|row| row["thread"] == "dd" && number(&row["ended"]) > 0)
        .map(|row| (row["name"].as_str().unwrap().into(), (number(&row["calls"]), number(&row["errors"]))))
        .collect();
    assert_eq!(found, expected, "{report}");
    // It never returns.
    let exit = traced.iter().find(|row| row["thread"] == "dd" && row["name"] == "exit_group").unwrap();
    assert_eq!((number(&exit["calls"]), number(&exit["ended"])), (1, 0));
    assert!(traced.iter().all(|row| number(&row["elapsed_ns"]) >= number(&row["max_ns"])), "{report}");
    let text = run(work, &["report", "latest", "syscalls", "--thread", "dd"]);
    assert!(text.contains("returned an error") && text.contains("exit_group"), "{text}");
}

#[test]
fn waits_for_a_lock_have_a_path_and_a_time() {
    let _alone = TRACING.lock().unwrap_or_else(PoisonError::into_inner);
    if !is_allowed("--locks") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let work = dir.path();
    // Writers of one file wait for its inode's lock while one of them sleeps or is preempted in it.
    let file = dir.path().join("file");
    let write = format!("dd if=/dev/zero of={} bs=4M count=12 conv=notrunc 2> /dev/null", file.display());
    let script = format!("{write} & {write} & {write} & {write} & wait");
    run(work, &["record", "--live", "--locks", "--", "sh", "-c", &script]);
    let locks = json(work, &["report", "latest", "locks"]);
    let waiting = rows(&locks, "waiting");
    let inode = waiting.iter().filter(|row| {
        row["kind"] == "rwsem" && row["path"].as_array().unwrap().iter().any(|name| name == "vfs_write")
    });
    let (mut waits, mut ns) = (0, 0);
    for row in inode {
        (waits, ns) = (waits + number(&row["waits"]), ns + number(&row["wait_ns"]));
    }
    assert!(waits > 0 && ns >= waits, "{locks}");
    let sum = |table: &str| rows(&locks, table).iter().map(|row| number(&row["waits"])).sum::<u64>();
    assert_eq!(sum("waiting"), sum("locks"), "{locks}");
    let text = run(work, &["report", "latest", "locks"]);
    assert!(
        text.contains("Waits for locks") && text.contains("CPUs   ") && !text.contains("one CPU"),
        "{text}"
    );
}

#[test]
fn threads_have_their_cgroup() {
    let _alone = TRACING.lock().unwrap_or_else(PoisonError::into_inner);
    if !is_allowed("--off-cpu") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let work = dir.path();
    run(work, &["record", "--live", "--", "sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"]);
    let own = std::fs::read_to_string("/proc/self/cgroup").unwrap();
    let threads = json(work, &["report", "latest", "threads"]);
    let row = rows(&threads, "threads").into_iter().find(|row| row["comm"] == "sh").unwrap();
    let cgroup = row["cgroup"].as_str().unwrap();
    assert!(own.lines().any(|line| line.ends_with(&format!(":{cgroup}"))), "{cgroup}: {own}");
    let groups = json(work, &["report", "latest", "threads", "--by-cgroup"]);
    let row = rows(&groups, "threads").into_iter().find(|row| row["cgroup"] == cgroup).unwrap();
    assert!(row["pid"].is_null() || number(&row["threads"]) == 1, "{groups}");
    let all: u64 = rows(&groups, "threads").iter().map(|row| number(&row["self"])).sum();
    assert_eq!(all, number(&groups["busy"]));
}

#[test]
fn events_of_a_perf_data_give_the_times_of_perfs_own_report() {
    let _alone = TRACING.lock().unwrap_or_else(PoisonError::into_inner);
    if !is_allowed("--off-cpu") {
        return;
    }
    let Some(cpu) = observable_cpu() else { return };
    let dir = tempfile::tempdir().unwrap();
    let (work, file) = (dir.path().join("work"), dir.path().join("perf.data"));
    let file = file.to_str().unwrap();
    let mut perf = Command::new("perf");
    perf.args(["record", "-q", "-a", "-g", "-o", file, "-e", "cpu-clock/freq=499/"]);
    for event in ["sched:sched_switch", "sched:sched_waking", "sched:sched_wakeup_new"] {
        perf.args(["-e", event]);
    }
    // Names that nothing else on the machine has.
    let [shell, nap] = [("/bin/sh", "kt-shell"), ("/bin/sleep", "kt-nap")].map(|(program, name)| {
        std::fs::copy(program, dir.path().join(name)).unwrap();
        dir.path().join(name).display().to_string()
    });
    perf.args([
        "--",
        "taskset",
        "-c",
        &cpu,
        &shell,
        "-c",
        &format!("for i in 1 2 3 4 5; do {nap} 0.02; done; true"),
    ]);
    // Both reports are of what is in the file, but they fill gaps in different ways.
    let is_whole = (0..5).any(|_| {
        let output = perf.output().unwrap();
        if !output.status.success() {
            eprintln!("perf cannot record tracepoints here: {}", said(&output));
        }
        output.status.success() && ["kt-shell", "kt-nap"].iter().all(|comm| has_every_wait(file, comm))
    });
    if !is_whole {
        eprintln!("perf made no recording with every event; nothing was compared");
        return;
    }
    run(&work, &["import", file]);
    let off = json(&work, &["report", "latest", "off-cpu"]);
    let own = |row: &Value| ["kt-shell", "kt-nap"].contains(&row["thread"].as_str().unwrap());
    let off_cpu: u64 = rows(&off, "threads")
        .iter()
        .filter(|row| own(row))
        .map(|row| number(&row["blocked_ns"]) + number(&row["delay_ns"]))
        .sum();
    // perf's table: time, CPU, task[tid], time off the CPU, part of it after the wake-up, run time, in ms.
    let timehist = Command::new("perf").args(["sched", "timehist", "-i", file]).output().unwrap();
    let mut wait = 0.0;
    for line in String::from_utf8_lossy(&timehist.stdout).lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.get(2).is_some_and(|task| task.starts_with("kt-nap[") || task.starts_with("kt-shell[")) {
            let [off, delay] = [3, 4].map(|column| words[column].parse::<f64>().unwrap());
            // Before its first run, a thread has the delay alone.
            wait += if off > 0.0 { off } else { delay };
        }
    }
    let off_cpu = off_cpu as f64 / 1e6;
    assert!((off_cpu - wait).abs() < 2.0 + 0.02 * wait, "{off_cpu} {wait}: {}", said(&timehist));
    let slept = rows(&off, "blocked").into_iter().filter(|row| row["thread"] == "kt-nap");
    let slept = slept.filter(|row| row["path"].as_array().unwrap().iter().any(|name| name == "do_nanosleep"));
    assert_eq!(slept.map(|row| number(&row["count"])).sum::<u64>(), 5, "{off}");
}

#[test]
fn options_that_exclude_each_other_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let live = |more: &[&str]| kerntune(dir.path(), &[&["record", "--live"][..], more].concat());
    fails(&mut live(&["--off-cpu", "--cpu", "0", "--", "true"]), 2, &["--off-cpu", "--cpu"]);
    fails(&mut live(&["--off-cpu", "--cgroup", "/x", "--", "true"]), 2, &["--off-cpu", "--cgroup"]);
    let arguments = ["record", "--kernel", "x", "--workload", "rr", "--syscalls"];
    fails(&mut kerntune(dir.path(), &arguments), 2, &["--live"]);
}
