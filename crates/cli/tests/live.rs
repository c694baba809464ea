//! Profiling the kernel of this machine. Needs root and perf events; if the host does not allow
//! them, the error message is tested instead, and the test reports it. Needs redis, perf and
//! binutils.

use crate::support::{fails, said};
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// Returns a command that runs `kerntune` with its own work directory.
pub fn kerntune(work: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kerntune"));
    command.arg("--dir").arg(work).args(arguments);
    command
}

pub fn run(work: &Path, arguments: &[&str]) -> String {
    let output = kerntune(work, arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", said(&output));
    String::from_utf8(output.stdout).unwrap()
}

pub fn json(work: &Path, arguments: &[&str]) -> Value {
    serde_json::from_str(&run(work, &[arguments, &["--json"]].concat())).unwrap()
}

/// Returns true if this host allows profiling its kernel; otherwise checks the error message.
fn is_allowed() -> bool {
    let work = tempfile::tempdir().unwrap();
    let output =
        kerntune(work.path(), &["record", "--live", "--all", "--", "sleep", "0.2"]).output().unwrap();
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

/// A Redis server on loopback, stopped when dropped.
struct RedisServer(Child, String);

impl RedisServer {
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

impl Drop for RedisServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn a_commands_kernel_time_is_in_every_report() {
    if !is_allowed() {
        return;
    }
    let (dir, redis) = (tempfile::tempdir().unwrap(), RedisServer::start());
    let work = dir.path();
    let command = redis.benchmark("100000");
    let summary: Value = {
        let arguments =
            [&["record", "--live", "--all", "--rate", "2000", "--json", "--"][..], &command].concat();
        serde_json::from_str(&run(work, &arguments)).unwrap()
    };
    let sampled = &summary["sampled"];
    assert_eq!(summary["exact"], false);
    assert!(number(&sampled["samples"]) > 100 && number(&sampled["bound_bytes"]) < 100 << 20, "{sampled}");
    let source = sampled["source"].as_str().unwrap();
    assert!(["perf: cpu-clock", "perf: cycles"].contains(&source), "{source}");
    assert!(sampled["period"].as_str().unwrap().contains("random") && sampled["bias"].is_string());
    // All observed time is attributed.
    let functions = json(work, &["report", "latest", "functions"]);
    let net: u64 = functions["functions"].as_array().unwrap().iter().map(|row| number(&row["self"])).sum();
    let beside = number(&functions["user"]) + number(&functions["unattributed"]);
    assert_eq!(net + beside + number(&functions["idle_ns"]), number(&functions["elapsed_ns"]));
    let sample = number(&sampled["sample_ns"]);
    for row in functions["functions"].as_array().unwrap() {
        assert!(number(&row["self"]) % sample == 0 && row["calls"].is_null(), "{row}");
        assert!(number(&row["elapsed"]) >= number(&row["self"]), "{row}");
    }
    let threads = json(work, &["report", "latest", "threads"]);
    let all: u64 = threads["threads"].as_array().unwrap().iter().map(|row| number(&row["self"])).sum();
    assert_eq!(all, number(&threads["busy"]));
    // On any kernel the benchmark sends and receives over loopback.
    let total = |name: &str| {
        let rows = functions["functions"].as_array().unwrap();
        rows.iter().filter(|row| row["name"] == name).map(|row| number(&row["elapsed"])).sum::<u64>()
    };
    assert!(total("tcp_sendmsg") > 0 && total("tcp_v4_rcv") > 0, "{}", functions["functions"]);
    assert!(total("entry_SYSCALL_64") > total("tcp_sendmsg"));
    for report in ["functions", "flat", "graph", "subsystems", "threads", "interrupts", "switches", "summary"]
    {
        let text = run(work, &["report", "latest", report]);
        assert!(text.contains("Sampled, not exact:") && text.contains("Sampling counts no calls"), "{text}");
        assert!(text.contains('±') && text.contains("Bias: "), "{text}");
        let notes = |text: &str| -> Vec<String> {
            text.lines().filter(|line| line.starts_with("note ")).map(ToOwned::to_owned).collect()
        };
        assert!(notes(&text).iter().all(|note| note.chars().count() <= 120), "{text}");
        let whole = run(work, &["report", "latest", report, "-v"]);
        assert!(notes(&whole).len() + 1 == notes(&text).len() && whole.len() > text.len(), "{whole}");
        let head: Vec<&str> = text.lines().filter(|line| line.contains("calls")).collect();
        assert!(head.iter().all(|line| line.contains("Sampling counts no calls")), "{head:?}");
        let document = json(work, &["report", "latest", report]);
        assert_eq!(document["sampled"]["sample_ns"], sampled["sample_ns"], "{report}");
    }
    let interrupts = json(work, &["report", "latest", "interrupts"]);
    let counted = interrupts["counted"].as_array().unwrap();
    assert!(counted.iter().any(|row| row["source"] == "/proc/interrupts" && number(&row["count"]) > 0));
    assert!(counted.iter().any(|row| row["kind"] == "softirq"));
    let switches = json(work, &["report", "latest", "switches"]);
    assert!(number(&switches["count"]) > 0, "{switches}");
    let page = work.join("page.html");
    run(work, &["report", "latest", "html", "--output", page.to_str().unwrap()]);
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("Sampled, not exact:") && !page.contains("virtual time in regions"));
    // Compared with itself nothing changes; the error of an unchanged value is that of both.
    let id = summary["profile"].as_str().unwrap();
    let text = run(work, &["report", id, "diff", id]);
    assert!(text.contains('±') && text.contains("total"), "{text}");
    run(work, &["check"]);
}

/// Returns the shares of kernel functions in all samples, by name.
fn shares_of_kerntune(work: &Path) -> (BTreeMap<String, f64>, f64) {
    let functions = json(work, &["report", "latest", "functions"]);
    let elapsed = number(&functions["elapsed_ns"]) as f64;
    let rows = functions["functions"].as_array().unwrap();
    let share =
        |row: &Value| (row["name"].as_str().unwrap().to_string(), number(&row["self"]) as f64 / elapsed);
    let mut shares: BTreeMap<String, f64> = BTreeMap::new();
    rows.iter().map(share).for_each(|(name, part)| *shares.entry(name).or_default() += part);
    (shares, number(&functions["sampled"]["samples"]) as f64)
}

/// Returns the same shares as measured by perf.
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
    let (dir, redis) = (tempfile::tempdir().unwrap(), RedisServer::start());
    let (work, data) = (dir.path(), dir.path().join("perf.data"));
    let watched = ["perf", "record", "-q", "-a", "-g", "-F", "1499", "-o", data.to_str().unwrap(), "--"];
    let watched = [&watched[..], &redis.benchmark("300000")].concat();
    run(work, &[&["record", "--live", "-a", "--rate", "1500", "--"][..], &watched].concat());
    let (ours, our_samples) = shares_of_kerntune(work);
    let (theirs, their_samples) = shares_of_perf(&data);
    let mut top: Vec<(&String, f64)> = theirs.iter().map(|(name, share)| (name, *share)).collect();
    // kerntune counts halted CPUs as idle time, perf as a function.
    top.retain(|(name, _)| {
        !["native_safe_halt", "pv_native_safe_halt", "default_idle"].contains(&name.as_str())
    });
    top.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut apart = Vec::new();
    for (name, share) in top.into_iter().take(20) {
        let own = ours.get(name).copied().unwrap_or(0.0);
        // Both are samples, and their periods do not coincide exactly.
        let error = (share / their_samples + own / our_samples).sqrt();
        println!("{name:<40} perf {:.3} % ours {:.3} % ± {:.3}", 100.0 * share, 100.0 * own, 100.0 * error);
        if (own - share).abs() > 4.0 * error + 0.002 {
            apart.push(format!("{name}: perf {share:.5}, ours {own:.5}, standard error {error:.5}"));
        }
    }
    assert!(apart.is_empty(), "{apart:#?}");
}

#[test]
fn a_collector_outlives_its_terminal_and_is_asked() {
    if !is_allowed() {
        return;
    }
    let (dir, redis) = (tempfile::tempdir().unwrap(), RedisServer::start());
    let work = dir.path();
    fails(&mut kerntune(work, &["live", "status"]), 1, &["no collector runs"]);
    fails(&mut kerntune(work, &["live", "dump"]), 2, &["no collector runs", "live start"]);
    run(work, &["live", "start", "--rate", "2000"]);
    fails(&mut kerntune(work, &["live", "start"]), 2, &["a collector runs already", "live stop"]);
    fails(&mut kerntune(work, &["live", "start", "--foreground"]), 2, &["a collector runs already"]);
    let load = || {
        assert!(Command::new("sh")
            .args(["-c", &redis.benchmark("30000").join(" ")])
            .output()
            .unwrap()
            .status
            .success())
    };
    load();
    let status = json(work, &["live", "status"]);
    assert_eq!(
        (status["schema"].as_str(), status["runs"].as_bool()),
        (Some("kerntune-live-status/1"), Some(true))
    );
    assert!(number(&status["samples"]) > 50 && number(&status["resident_bytes"]) > 0, "{status}");
    let first = json(work, &["live", "dump", "--workload", "first"]);
    load();
    let both = json(work, &["live", "dump"]);
    run(work, &["live", "reset"]);
    load();
    let gmon = work.join("gmon.out");
    let after = json(work, &["live", "dump", "--gmon", gmon.to_str().unwrap()]);
    let samples = |of: &Value| number(&of["sampled"]["samples"]);
    assert!(samples(&both) > samples(&first) && samples(&after) < samples(&both), "{first} {both} {after}");
    assert_eq!(first["workload"], "first");
    gprof_agrees(work, &gmon);
    run(work, &["live", "stop"]);
    fails(&mut kerntune(work, &["live", "stop"]), 2, &["no collector runs"]);
    run(work, &["check"]);
    // Two profiles of one kernel can be merged; one that was not sampled cannot.
    let (a, b) = (first["profile"].as_str().unwrap(), after["profile"].as_str().unwrap());
    let merged = json(work, &["profile", "merge", a, b]);
    assert_eq!(samples(&merged["manifest"]), samples(&first) + samples(&after));
}

/// Checks that GNU gprof reads the dump, and that its flat profile equals ours.
fn gprof_agrees(work: &Path, gmon: &Path) {
    // Any program can be the image: all names come from the symbol list.
    let symbols = format!("{}.symbols", gmon.display());
    let output =
        Command::new("gprof").args(["-b", "-p", "-S", &symbols, "/bin/true"]).arg(gmon).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let flat = json(work, &["report", "latest", "flat"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut seconds: BTreeMap<String, f64> = BTreeMap::new();
    for line in text.lines().skip_while(|line| !line.contains("name")).skip(1) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [_, _, own, .., name] = words[..] {
            *seconds.entry(name.to_string()).or_default() += own.parse::<f64>().unwrap();
        }
    }
    // gprof prints microseconds with two decimals, or with fewer for large values.
    let mut ours: BTreeMap<String, f64> = BTreeMap::new();
    for row in flat["functions"].as_array().unwrap() {
        *ours.entry(row["name"].as_str().unwrap().to_string()).or_default() += number(&row["self"]) as f64;
    }
    let largest = ours.iter().max_by(|a, b| a.1.total_cmp(b.1)).unwrap();
    let theirs =
        seconds.get(largest.0).copied().unwrap_or_else(|| panic!("{} is not in:\n{text}", largest.0));
    let ratio = largest.1 / theirs;
    for (name, ns) in ours.iter().filter(|(_, ns)| **ns > 0.0) {
        let found = seconds.get(name).copied().unwrap_or(0.0) * ratio;
        assert!((found - ns).abs() <= 0.01 * ns + 2.0 * ratio, "{name}: ours {ns}, gprof's {found}\n{text}");
    }
}

fn process(work: &Path) -> String {
    json(work, &["live", "status"])["process"].to_string()
}

fn kill(process: &str) {
    assert!(Command::new("kill").args(["-9", process]).status().unwrap().success());
}

/// Returns processes of this work directory, and their children, that have a perf event open.
fn watchers(work: &Path) -> Vec<String> {
    let (mut found, work) = (Vec::new(), work.display().to_string());
    for process in std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path()) {
        let command = std::fs::read(process.join("cmdline")).unwrap_or_default();
        let Ok(files) = std::fs::read_dir(process.join("fd")) else { continue };
        let is_event = |file: std::fs::DirEntry| {
            std::fs::read_link(file.path()).is_ok_and(|to| to.to_string_lossy().contains("perf_event"))
        };
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        if command.contains(&work) && files.flatten().any(is_event) {
            found.push(command);
        }
    }
    found
}

#[test]
fn a_killed_collector_leaves_whole_dumps_or_none() {
    if !is_allowed() {
        return;
    }
    let (dir, redis) = (tempfile::tempdir().unwrap(), RedisServer::start());
    let work = dir.path();
    let mut load = Command::new("redis-benchmark");
    load.args(&redis.benchmark("100000000")[1..]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut load = load.spawn().unwrap();
    let since = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
    let seed = u64::try_from(since.as_nanos() & 0xffff_ffff).unwrap();
    println!("seed {seed}");
    let mut state = seed;
    // Random milliseconds less than `max`, with Knuth's generator.
    let mut random = |max: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Duration::from_millis((state >> 33) % max)
    };
    let (mut asked, mut whole) = (0, 0);
    for round in 0..20 {
        run(work, &["live", "start", "--rate", "4000"]);
        let collector = process(work);
        assert_eq!(watchers(work).len(), 1);
        std::thread::sleep(random(300));
        // Three of four are killed while a dump is made.
        let dump = (round % 4 > 0).then(|| {
            let mut dump = kerntune(work, &["live", "dump", "-q"]);
            dump.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
        });
        let moment = random(500);
        std::thread::sleep(moment);
        kill(&collector);
        let mut said = "no dump".to_string();
        if let Some(dump) = dump {
            let output = dump.wait_with_output().unwrap();
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            (asked, whole) = (asked + 1, whole + usize::from(output.status.success()));
            said = format!("{}: {text}", output.status);
            let is_told = output.status.code() == Some(6) && text.contains("was killed");
            assert!(output.status.success() || is_told, "{said}");
        }
        fails(&mut kerntune(work, &["live", "status"]), 1, &["was killed"]);
        fails(&mut kerntune(work, &["live", "dump"]), 6, &["was killed", "live start"]);
        assert_eq!(watchers(work), Vec::<String>::new());
        println!("killed {moment:?} after the dump began: {}", said.trim());
    }
    load.kill().unwrap();
    load.wait().unwrap();
    run(work, &["check"]);
    let listed = json(work, &["profile", "list"]);
    let count = listed.as_array().unwrap().len();
    println!("of {asked} dumps {whole} were answered; {count} profiles are there, and whole");
    assert!(count >= whole && count <= asked);
    for entry in listed.as_array().unwrap() {
        run(work, &["report", entry["path"].as_str().unwrap(), "flat"]);
    }
    // A stale socket must not prevent the start.
    run(work, &["live", "start"]);
    run(work, &["live", "stop"]);
    run(work, &["live", "start"]);
    run(work, &["live", "stop"]);
    assert_eq!(watchers(work), Vec::<String>::new());
}

/// A cgroup of the test, removed when dropped.
struct TestCgroup(PathBuf);

impl TestCgroup {
    /// `None` if this process may not create one.
    fn make(name: &str) -> Option<Self> {
        let mounts = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup/perf_event", "/sys/fs/cgroup"];
        let mount = mounts.iter().map(Path::new).find(|mount| mount.join("cgroup.procs").exists())?;
        let directory = mount.join(name);
        std::fs::create_dir(&directory).ok()?;
        Some(Self(directory))
    }
}

impl Drop for TestCgroup {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn one_cgroup_is_watched_and_nothing_else() {
    let name = format!("kerntune-test-{}", std::process::id());
    let Some(cgroup) = is_allowed().then(|| TestCgroup::make(&name)).flatten() else {
        eprintln!("no cgroup can be made and watched here: left out");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let spin = |name: &str, before: &str| {
        let shell = dir.path().join(name);
        std::os::unix::fs::symlink("/bin/sh", &shell).unwrap();
        let script = format!("{before} while :; do read line < /proc/self/stat; done");
        SpinnerProcess(Command::new(shell).args(["-c", &script]).spawn().unwrap())
    };
    let enter = format!("echo $$ > {};", cgroup.0.join("cgroup.procs").display());
    let spinners = [spin("kt-inside", &enter), spin("kt-outside", "")];
    let work = dir.path().join("work");
    // By its name and by its directory.
    for cgroup in [format!("/{name}"), cgroup.0.display().to_string()] {
        run(&work, &["record", "--live", "--cgroup", &cgroup, "--", "sleep", "2"]);
        let threads = json(&work, &["report", "latest", "threads"]);
        let rows = threads["threads"].as_array().unwrap();
        let own = |comm: &str| {
            rows.iter().filter(|row| row["comm"] == comm).map(|row| number(&row["self"])).sum::<u64>()
        };
        assert!(own("kt-inside") > 0 && own("kt-outside") == 0, "{threads}");
        // Interrupts, and values without samples, belong to no thread.
        let mut watched = rows.iter().filter(|row| row["kind"] == "thread" && row["pid"] != 0);
        assert!(watched.all(|row| row["comm"] == "kt-inside"), "{threads}");
        let functions = json(&work, &["report", "latest", "functions"]);
        assert_eq!((number(&functions["idle_ns"]), &functions["unit"]), (0, &"ns".into()));
    }
    drop(spinners);
}

/// A busy process, killed when dropped.
struct SpinnerProcess(Child);

impl Drop for SpinnerProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn what_cannot_be_watched_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let work = dir.path();
    let live = |more: &[&str]| kerntune(work, &[&["record", "--live"][..], more].concat());
    fails(&mut live(&[]), 2, &["COMMAND"]);
    fails(&mut live(&["--kernel", "x", "--", "true"]), 2, &["--kernel"]);
    fails(&mut live(&["--all", "--pid", "1", "--", "true"]), 2, &["--all"]);
    fails(&mut live(&["--command-only", "--calls", "macro", "--", "true"]), 2, &["--command-only"]);
    fails(
        &mut kerntune(work, &["record", "--kernel", "x", "--workload", "rr", "--rate", "5"]),
        2,
        &["--live"],
    );
    fails(&mut live(&["--", "/nonexistent/tool"]), 3, &["cannot run /nonexistent/tool"]);
    fails(&mut live(&["--cpu", "x", "--", "true"]), 2, &["`x` is not a list of CPUs"]);
    if !is_allowed() {
        return;
    }
    fails(&mut live(&["--cpu", "4095", "--", "true"]), 2, &["CPU 4095 is not online"]);
    fails(&mut live(&["--pid", "4194304", "--", "true"]), 2, &["there is no process 4194304"]);
    fails(&mut live(&["--cgroup", "/tmp", "--", "true"]), 2, &["/tmp is not a cgroup"]);
    let max = std::fs::read_to_string("/proc/sys/kernel/perf_event_max_sample_rate").unwrap();
    if max.trim().parse::<u64>().unwrap() < 100_000 {
        fails(
            &mut live(&["--rate", "100000", "--", "true"]),
            2,
            &["samples per second are more than the kernel allows"],
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
fn only_what_a_command_does_is_watched() {
    if !is_allowed() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let work = dir.path();
    let load = "i=0; while [ $i -lt 300 ]; do cat /proc/self/maps > /dev/null; i=$((i+1)); done";
    run(work, &["record", "--live", "--rate", "2000", "--", "sh", "-c", load]);
    let threads = json(work, &["report", "latest", "threads"]);
    let names: Vec<&str> =
        threads["threads"].as_array().unwrap().iter().map(|row| row["comm"].as_str().unwrap()).collect();
    let ours = ["sh", "cat", "[interrupt]", "[not sampled]"];
    assert!(names.contains(&"cat") && names.iter().all(|name| ours.contains(name)), "{names:?}");
    assert_eq!(threads["sampled"]["filter"].as_str().map(|text| text.contains("process ")), Some(true));
}

#[test]
fn call_chains_go_on_into_programs_if_asked() {
    if !is_allowed() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (work, source, program) = (dir.path(), dir.path().join("busy.c"), dir.path().join("busy"));
    let text = "#include <unistd.h>\n\
        static volatile long sink;\n\
        __attribute__((noinline)) void spin(void) { for (int i = 0; i < 200000; i++) sink += i; }\n\
        __attribute__((noinline)) void ask(void) { for (int i = 0; i < 200; i++) sink += getppid(); }\n\
        __attribute__((noinline)) void outer(void) { spin(); ask(); sink++; }\n\
        int main(void) { for (int i = 0; i < 2000; i++) outer(); return 0; }\n";
    std::fs::write(&source, text).unwrap();
    let mut gcc = Command::new("gcc");
    gcc.args(["-O0", "-o"]).arg(&program).arg(&source);
    assert!(gcc.status().unwrap().success());
    let program = program.to_str().unwrap();
    run(work, &["record", "--live", "--user-chains", "--", program]);
    let graph = json(work, &["report", "latest", "graph", "--function", "spin"]);
    let entry = &graph["entries"][0];
    assert_eq!(entry["parents"][0]["name"], "outer", "{entry}");
    let functions = json(work, &["report", "latest", "functions"]);
    let of = |name: &str| {
        let rows = functions["functions"].as_array().unwrap().iter();
        rows.filter(|row| row["name"] == name)
            .map(|row| (number(&row["self"]), number(&row["elapsed"])))
            .fold((0, 0), |sum, row| (sum.0 + row.0, sum.1 + row.1))
    };
    let (spin, outer, busy) = (of("spin"), of("outer"), number(&functions["busy"]));
    assert!(spin.0 * 2 > busy && outer.1 >= spin.1, "{spin:?} {outer:?} of {busy}");
    // System calls appear below the calling user function. The C library's function has no frame,
    // so the chain continues with the caller of `ask`.
    let children = |function: &str| -> Vec<String> {
        let graph = json(work, &["report", "latest", "graph", "--function", function]);
        let children = graph["entries"][0]["children"].as_array().unwrap().clone();
        children.iter().filter_map(|child| child["name"].as_str().map(str::to_string)).collect()
    };
    let (of_outer, of_getppid) = (children("outer"), children("getppid"));
    assert!(of_outer.contains(&"getppid".to_string()), "{of_outer:?}");
    assert!(of_getppid.iter().any(|name| name.to_lowercase().contains("syscall")), "{of_getppid:?}");
}

#[test]
fn branches_are_sampled_or_what_is_missing_is_named() {
    if !is_allowed() {
        return;
    }
    let work = tempfile::tempdir().unwrap();
    for arguments in [
        &["record", "--live", "--all", "--branches", "--", "sleep", "0.1"][..],
        &["live", "start", "--branches"],
    ] {
        let output = kerntune(work.path(), arguments).output().unwrap();
        let text = said(&output);
        // With branch records, the kernel of this machine is still not in an empty work directory.
        let (status, words) = match text.contains("records no branches") {
            true => (3, ["LBR (Intel)", "--calls"]),
            false => (2, ["not in the work directory", "kerntune kernel import"]),
        };
        assert_eq!(output.status.code(), Some(status), "{text}");
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
        assert_eq!(text.lines().filter(|line| line.starts_with("kerntune: ")).count(), 1, "{text}");
    }
    for other in ["--software-clock", "--user-chains", "--calls=macro"] {
        let mut both = kerntune(work.path(), &["record", "--live", "--branches", other, "--", "true"]);
        fails(&mut both, 2, &["--branches", "cannot be used with"]);
    }
    fails(&mut kerntune(work.path(), &["record", "--branches", "--", "true"]), 2, &["--live"]);
    fails(&mut kerntune(work.path(), &["live", "top", "--branches"]), 2, &["live top"]);
}
