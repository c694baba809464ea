//! The kernel of this machine, profiled while it works. Needs root and perf events; where the host does not allow them, the
//! message that says so is what is tested, and the test says so. Needs redis, perf and binutils.

mod support;

use serde_json::Value;
use std::collections::BTreeMap;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;
use support::{fails, said};

/// `kerntune` with a work directory of its own.
fn kerntune(work: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kerntune"));
    command.arg("--dir").arg(work).args(arguments);
    command
}

fn run(work: &Path, arguments: &[&str]) -> String {
    let output = kerntune(work, arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", said(&output));
    String::from_utf8(output.stdout).unwrap()
}

fn json(work: &Path, arguments: &[&str]) -> Value {
    serde_json::from_str(&run(work, &[arguments, &["--json"]].concat())).unwrap()
}

/// Whether this host lets us profile its kernel. If not, the refusal has been looked at.
fn is_allowed() -> bool {
    let work = tempfile::tempdir().unwrap();
    let output = kerntune(work.path(), &["record", "--live", "--", "sleep", "0.2"]).output().unwrap();
    if output.status.success() {
        return true;
    }
    let text = said(&output);
    assert_eq!(output.status.code(), Some(3), "{text}");
    let known = ["kernel.perf_event_paranoid", "no perf events", "kernel.kptr_restrict", "CONFIG_KALLSYMS"];
    assert!(known.iter().any(|word| text.contains(word)), "{text}");
    eprintln!("this host does not let us profile its kernel; only the message was tested: {text}");
    false
}

/// A Redis on loopback, ended with the test.
struct Redis(Child, String);

impl Redis {
    fn start() -> Self {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let port = free.to_string();
        let child = Command::new("redis-server")
            .args(["--port", &port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let redis = Self(child, port);
        for _ in 0..500 {
            if TcpStream::connect(("127.0.0.1", free)).is_ok() {
                return redis;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("redis-server does not listen");
    }

    fn benchmark<'a>(&'a self, requests: &'a str) -> Vec<&'a str> {
        vec!["redis-benchmark", "-p", &self.1, "-n", requests, "-t", "set,get", "-q"]
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Shares of the kernel's functions in all samples, by name.
fn shares_of_kerntune(work: &Path) -> (BTreeMap<String, f64>, f64) {
    let functions = json(work, &["report", "latest", "functions"]);
    let elapsed = number(&functions["elapsed_ns"]) as f64;
    let rows = functions["functions"].as_array().unwrap();
    let share =
        |row: &Value| (row["name"].as_str().unwrap().to_string(), number(&row["net_ns"]) as f64 / elapsed);
    let mut shares: BTreeMap<String, f64> = BTreeMap::new();
    rows.iter().map(share).for_each(|(name, part)| *shares.entry(name).or_default() += part);
    (shares, number(&functions["sampled"]["samples"]) as f64)
}

/// The same as perf has it.
fn shares_of_perf(data: &Path) -> (BTreeMap<String, f64>, f64) {
    let output = Command::new("perf")
        .args([
            "report",
            "--stdio",
            "--no-children",
            "-g",
            "none",
            "--sort",
            "symbol",
            "-n",
            "-t",
            "\t",
            "-i",
        ])
        .arg(data)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut counts: BTreeMap<String, f64> = BTreeMap::new();
    let mut all = 0.0;
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [_, count, symbol] = fields[..] else { continue };
        let count: f64 = count.trim().parse().unwrap();
        all += count;
        if let Some(name) = symbol.trim().strip_prefix("[k] ") {
            *counts.entry(name.trim().to_string()).or_default() += count;
        }
    }
    counts.values_mut().for_each(|count| *count /= all);
    (counts, all)
}

#[test]
fn perf_says_the_same_of_the_same_time() {
    if !is_allowed() {
        return;
    }
    let (dir, redis) = (tempfile::tempdir().unwrap(), Redis::start());
    let (work, data) = (dir.path(), dir.path().join("perf.data"));
    let watched = ["perf", "record", "-q", "-a", "-g", "-F", "1499", "-o", data.to_str().unwrap(), "--"];
    let watched = [&watched[..], &redis.benchmark("300000")].concat();
    run(work, &[&["record", "--live", "--rate", "1500", "--"][..], &watched].concat());
    let (ours, our_samples) = shares_of_kerntune(work);
    let (theirs, their_samples) = shares_of_perf(&data);
    let mut top: Vec<(&String, f64)> = theirs.iter().map(|(name, share)| (name, *share)).collect();
    // Halted CPUs are idle time with us, and a function with perf.
    top.retain(|(name, _)| {
        !["native_safe_halt", "pv_native_safe_halt", "default_idle"].contains(&name.as_str())
    });
    top.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut apart = Vec::new();
    for (name, share) in top.into_iter().take(20) {
        let own = ours.get(name).copied().unwrap_or(0.0);
        // Both are samples; and the two do not begin and end at one moment.
        let error = (share / their_samples + own / our_samples).sqrt();
        println!("{name:<40} perf {:.3} % ours {:.3} % ± {:.3}", 100.0 * share, 100.0 * own, 100.0 * error);
        if (own - share).abs() > 4.0 * error + 0.002 {
            apart.push(format!("{name}: perf {share:.5}, ours {own:.5}, standard error {error:.5}"));
        }
    }
    assert!(apart.is_empty(), "{apart:#?}");
}

#[test]
fn what_cannot_be_watched_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let work = dir.path();
    let live = |more: &[&str]| kerntune(work, &[&["record", "--live"][..], more].concat());
    fails(&mut live(&[]), 2, &["COMMAND"]);
    fails(&mut live(&["--kernel", "x", "--", "true"]), 2, &["--kernel"]);
    fails(
        &mut kerntune(work, &["record", "--kernel", "x", "--workload", "rr", "--rate", "5"]),
        2,
        &["--live"],
    );
    fails(&mut live(&["--", "/nonexistent/tool"]), 3, &["cannot run /nonexistent/tool"]);
    fails(&mut live(&["--cpu", "x", "--", "true"]), 2, &["`x` is no list of CPUs"]);
    if !is_allowed() {
        return;
    }
    fails(&mut live(&["--cpu", "4095", "--", "true"]), 2, &["CPU 4095 is not online"]);
    fails(&mut live(&["--pid", "4194304", "--", "true"]), 2, &["there is no process 4194304"]);
    fails(&mut live(&["--cgroup", "/tmp", "--", "true"]), 2, &["/tmp is no cgroup"]);
    let most = std::fs::read_to_string("/proc/sys/kernel/perf_event_max_sample_rate").unwrap();
    if most.trim().parse::<u64>().unwrap() < 100_000 {
        fails(
            &mut live(&["--rate", "100000", "--", "true"]),
            2,
            &["samples per second are more than the kernel takes"],
        );
    }
}

#[test]
fn who_may_not_is_told_what_would_help() {
    let dir = tempfile::tempdir_in("/tmp").unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(dir.path(), open).unwrap();
    let program = dir.path().join("kerntune");
    std::fs::copy(env!("CARGO_BIN_EXE_kerntune"), &program).unwrap();
    let work = dir.path().join("work");
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&program);
    command.arg("--dir").arg(&work).args(["record", "--live", "--", "true"]);
    let output: Output = command.output().unwrap();
    if output.status.success() {
        eprintln!("anybody may profile the kernel of this host: there is no refusal to look at");
        return;
    }
    let text = fails(&mut command, 3, &[]);
    let known = ["kernel.perf_event_paranoid", "kernel.kptr_restrict"];
    assert!(known.iter().any(|word| text.contains(word)), "{text}");
}

#[test]
fn only_what_a_command_does_is_watched_if_asked() {
    if !is_allowed() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let work = dir.path();
    let load = "i=0; while [ $i -lt 300 ]; do cat /proc/self/maps > /dev/null; i=$((i+1)); done";
    run(work, &["record", "--live", "--command-only", "--rate", "2000", "--", "sh", "-c", load]);
    let threads = json(work, &["report", "latest", "threads"]);
    let names: Vec<&str> =
        threads["threads"].as_array().unwrap().iter().map(|row| row["comm"].as_str().unwrap()).collect();
    let ours = ["sh", "cat", "[interrupt]", "[not sampled]"];
    assert!(names.contains(&"cat") && names.iter().all(|name| ours.contains(name)), "{names:?}");
    assert_eq!(threads["sampled"]["filter"].as_str().map(|text| text.contains("processes")), Some(true));
}
