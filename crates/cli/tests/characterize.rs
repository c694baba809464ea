//! `kerntune characterize` on real recordings: its figures agree with the guest's /proc, its parts
//! sum to the whole, and figures that a profile cannot have are absent.

use crate::support::{self, base_kernel, checkout, fails, json, kerntune, run, work_dir, workload};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::sync::OnceLock;

/// Records a workload; returns the id of the profile.
fn record(workload: &str, options: &[&str]) -> String {
    let kernel = base_kernel();
    let line = ["record", "--kernel", &kernel, "--workload", workload, "--json"];
    json(line.iter().chain(options))["profile"].as_str().unwrap().to_owned()
}

/// Returns a profile of `rr`, shared by all tests.
fn rr() -> &'static str {
    static PROFILE: OnceLock<String> = OnceLock::new();
    PROFILE.get_or_init(|| record("rr", &[]))
}

fn characterize(profile: &str, options: &[&str]) -> Value {
    json(["characterize", profile, "--json"].iter().chain(options))
}

fn at(json: &Value, field: &str) -> u64 {
    json[field].as_u64().unwrap_or_else(|| panic!("{field}: {json}"))
}

fn row<'a>(rows: &'a Value, field: &str, name: &str) -> &'a Value {
    let found = rows.as_array().unwrap().iter().find(|row| row[field] == name);
    found.unwrap_or_else(|| panic!("no {name} in {rows}"))
}

fn counts(rows: &Value) -> u64 {
    rows.as_array().unwrap().iter().map(|row| at(row, "count")).sum()
}

/// Checks the invariants of every exact profile.
fn holds(json: &Value) {
    let split = json["split"].as_array().unwrap();
    let sum: i64 = split.iter().map(|share| share["ns"].as_i64().unwrap()).sum();
    assert_eq!(u64::try_from(sum).unwrap(), at(json, "elapsed_ns"), "{split:?}");
    assert!(split.iter().all(|share| share["part"] != "no_path"), "{split:?}");
    let syscalls = &json["syscalls"];
    assert_eq!(syscalls["entries"], syscalls["dispatched"], "{syscalls}");
    assert_eq!(counts(&syscalls["calls"]), at(syscalls, "dispatched"));
    assert!((2..=6).contains(&json["words"].as_array().unwrap().len()), "{}", json["words"]);
}

#[test]
fn parts_sum_to_the_whole_and_system_calls_to_entries() {
    let whole = characterize(rr(), &[]);
    holds(&whole);
    assert_eq!(whole["operations"], Value::Null, "of several kinds");
    let summary = json(["report", rr(), "--json"]);
    for region in summary["regions"].as_array().unwrap() {
        let name = region["name"].as_str().unwrap();
        let json = characterize(rr(), &["--region", name]);
        holds(&json);
        assert_eq!(json["operations"], region["operations"], "{name}");
        let figure = |figure: &str, mode: &str| {
            let rows = json["path"].as_array().unwrap();
            let row = rows.iter().find(|row| row["figure"] == figure && row["mode"] == mode).unwrap();
            row["per_operation"].as_f64().unwrap()
        };
        assert_eq!(figure("instructions", "kernel"), region["path_length"].as_f64().unwrap(), "{name}");
        assert_eq!(figure("instructions", "user"), region["user_path_length"].as_f64().unwrap(), "{name}");
        assert_eq!(figure("l1i_misses", "kernel"), region["l1i_misses"].as_f64().unwrap(), "{name}");
        let cycles = row(&json["cycles"], "mode", "kernel");
        assert!(cycles["per_instruction"].as_f64().unwrap() > 0.1, "{cycles}");
        for (report, field) in [("interrupts", "interrupts"), ("interrupts", "exceptions")] {
            let report = support::json(["report", rr(), report, "--region", name, "--json"]);
            assert_eq!(counts(&json[field]), counts(&report[field]), "{name}");
        }
        let switches = support::json(["report", rr(), "switches", "--region", name, "--json"]);
        assert_eq!(json["switches"]["all"]["count"], switches["count"], "{name}");
    }
    let getpid = characterize(rr(), &["--region", "getpid"]);
    let call = row(&getpid["syscalls"]["calls"], "name", "getpid");
    assert_eq!(call["count"], getpid["operations"], "one system call each");
    // A TCP round trip: a segment in each direction.
    let tcp = characterize(rr(), &["--region", "tcp_rr"]);
    let segments = row(&tcp["work"], "item", "tcp_segments_sent");
    assert!(at(segments, "count") >= 2 * at(&tcp, "operations"), "{segments}");
    assert_eq!(row(&tcp["work"], "item", "tcp_segments_received")["count"], segments["count"]);
}

#[test]
fn a_workload_is_like_itself_and_unlike_another() {
    let both = characterize(
        rr(),
        &["--region", "tcp_rr", "--against", rr(), "--against", &format!("{}:getpid", rr())],
    );
    let similarity = |at: usize, by: &str| both["beside"][at]["similarity"][by].as_f64().unwrap();
    for by in ["functions", "syscalls", "subsystems", "split"] {
        assert_eq!([similarity(0, by), similarity(1, by)], [100.0; 2], "{by}");
    }
    assert_eq!(similarity(2, "syscalls"), 0.0);
    assert!(similarity(2, "functions") < 20.0, "{}", both["beside"][2]);
    let udp = characterize(rr(), &["--region", "tcp_rr", "--against", &format!("{}:udp_rr", rr())]);
    let more = udp["beside"][1]["similarity"]["functions"].as_f64().unwrap();
    assert!(more > similarity(2, "functions"), "{more}");
    let text = run(["characterize", rr(), "--against", &format!("{}:", rr())]);
    assert!(text.contains("Beside each other") && text.contains("100.0"), "{text}");
}

#[test]
fn the_page_is_written_whole() {
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("page.html");
    let out = run(["characterize", rr(), "--region", "tcp_rr", "-o", page.to_str().unwrap()]);
    assert_eq!(out, "");
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("<h1>rr, region tcp_rr") && page.ends_with("</html>\n"), "{page}");
}

#[test]
fn what_is_asked_for_and_not_there_is_said() {
    fails(
        &mut kerntune(["characterize", rr(), "--region", "nothing"]),
        2,
        &["no region \"nothing\"", "tcp_rr"],
    );
    fails(&mut kerntune(["characterize", "zzzz"]), 2, &["zzzz"]);
    let beside = |other: &str| kerntune(["characterize", rr(), "--against", other]);
    fails(&mut beside("zzzz"), 2, &["--against zzzz", "kerntune profile list"]);
    fails(&mut beside(&format!("{}:nothing", rr())), 2, &["--against", "no region \"nothing\""]);
    let mut command = kerntune(["characterize", rr(), "-o", "/nowhere/page.html"]);
    fails(&mut command, 2, &["--output", "/nowhere"]);
    // Without functions, only instructions of user code and of the kernel are known.
    let plain = record("rr", &["--no-functions"]);
    let json = characterize(&plain, &["--region", "tcp_rr"]);
    let parts: Vec<&str> =
        json["split"].as_array().unwrap().iter().map(|share| share["part"].as_str().unwrap()).collect();
    assert_eq!(parts, ["user", "kernel", "idle"], "{json}");
    let text = run(["characterize", &plain]);
    assert!(text.contains("record without --no-functions") && !text.contains("Context switches"), "{text}");
    // With traced functions selected, missing calls mean nothing, but entries are counted.
    let some = record("rr", &["--only", "net/", "--edges"]);
    let json = characterize(&some, &["--region", "tcp_rr"]);
    assert!(row(&json["work"], "item", "page_faults")["count"].is_null());
    assert!(at(row(&json["work"], "item", "tcp_segments_sent"), "count") > 0);
    let sum: i64 = json["split"].as_array().unwrap().iter().map(|share| share["ns"].as_i64().unwrap()).sum();
    assert_eq!(sum as u64, at(&json, "elapsed_ns"));
}

/// Writes a workload that runs the program `characterize/witness.c`, with more lines for its file.
fn witness(directory: &tempfile::TempDir, argument: &str, rest: &str) -> String {
    let source = checkout().join("crates/cli/tests/characterize/witness.c");
    let program = directory.path().join("witness");
    let mut gcc = Command::new("gcc");
    gcc.args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-static"]);
    gcc.arg("-I").arg(checkout().join("embedded/guest")).arg(source).arg("-o").arg(&program);
    assert!(gcc.status().unwrap().success(), "{gcc:?}");
    let program = program.display().to_string();
    let command =
        if argument.is_empty() { format!("[{program:?}]") } else { format!("[{program:?}, {argument:?}]") };
    let text = format!(
        "description = \"x\"\nmemory_mb = 512\n{rest}\n[training]\n[[training.step]]\ncommand = {command}\n\
         [measured]\n[[measured.step]]\ncommand = {command}\n"
    );
    workload(directory, &text)
}

/// Returns the guest's readings of a /proc file before and after.
fn read(profile: &str, file: &str) -> [String; 2] {
    let log = work_dir().join("profiles").join(profile).join("run/guest/measured-1-witness.log");
    let text = fs::read_to_string(log).unwrap();
    ["before", "after"].map(|when| {
        let head = format!("==== {when} {file}\n");
        let rest = text.split_once(&head).unwrap_or_else(|| panic!("no {head} in {text}")).1;
        rest.split("\n==== ").next().unwrap().to_owned()
    })
}

/// The numbers of the line that begins with this word.
fn numbers(text: &str, word: &str) -> Vec<u64> {
    let line = text.lines().find(|line| line.split_whitespace().next() == Some(word));
    let line = line.unwrap_or_else(|| panic!("no {word} in {text}"));
    line.split_whitespace().skip(1).map_while(|number| number.parse().ok()).collect()
}

/// Returns the increase of the sum of a line's numbers.
fn more(texts: &[String; 2], word: &str) -> u64 {
    let [before, after] = [0, 1].map(|at| numbers(&texts[at], word).iter().sum::<u64>());
    after - before
}

/// Checks the guest kernel's counts between two readings of /proc: they must lie between the
/// profile's counts of the work alone and those including the readings; they must be equal if the
/// readings cause no such events.
fn agree(profile: &str, disk: bool) {
    let [work, all] = ["work", "all"].map(|region| characterize(profile, &["--region", region]));
    holds(&work);
    let (stat, vmstat, softirqs) =
        (read(profile, "stat"), read(profile, "vmstat"), read(profile, "softirqs"));
    let interrupts = read(profile, "interrupts");
    // The first number of the line is the sum of the others.
    let sum = |at: usize| numbers(&stat[at], "intr")[0];
    let item = |json: &Value, item: &str| at(row(&json["work"], "item", item), "count");
    let timer =
        |json: &Value| at(row(&json["interrupts"], "name", "asm_sysvec_apic_timer_interrupt"), "count");
    let mut pairs: Vec<(String, u64, [u64; 2])> = vec![
        (
            "interrupts, /proc/stat".into(),
            sum(1) - sum(0),
            [counts(&work["interrupts"]), counts(&all["interrupts"])],
        ),
        ("the timer's, /proc/interrupts".into(), more(&interrupts, "LOC:"), [timer(&work), timer(&all)]),
        (
            "context switches, /proc/stat".into(),
            more(&stat, "ctxt"),
            [&work, &all].map(|json| at(&json["switches"]["all"], "count")),
        ),
        ("forks, /proc/stat".into(), more(&stat, "processes"), [&work, &all].map(|json| item(json, "forks"))),
        (
            "page faults, /proc/vmstat".into(),
            more(&vmstat, "pgfault"),
            [&work, &all].map(|json| item(json, "page_faults")),
        ),
    ];
    for (word, name) in [
        ("TIMER:", "softirq_timer"),
        ("NET_RX:", "softirq_net_rx"),
        ("NET_TX:", "softirq_net_tx"),
        ("BLOCK:", "softirq_block"),
        ("TASKLET:", "softirq_tasklet"),
        ("SCHED:", "softirq_sched"),
        ("HRTIMER:", "softirq_hrtimer"),
        ("RCU:", "softirq_rcu"),
    ] {
        let ours = [&work, &all].map(|json| item(json, name));
        pairs.push((format!("softirq {word} /proc/softirqs"), more(&softirqs, word), ours));
    }
    packets_agree(profile, &work, &all);
    if disk {
        requests_agree(profile, &work, &all);
        // Completed reads and writes of all disks (Documentation/admin-guide/iostats.rst).
        let done = |text: &str| -> u64 {
            let fields = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
            fields
                .filter(|words| words.len() > 7)
                .map(|words| [3, 7].map(|at| words[at].parse::<u64>().unwrap()).iter().sum::<u64>())
                .sum()
        };
        let [before, after] = read(profile, "diskstats").map(|text| done(&text));
        let ours = [&work, &all].map(|json| item(json, "block_requests"));
        assert!(after - before >= 100, "{before} {after}");
        pairs.push(("block requests, /proc/diskstats".into(), after - before, ours));
    }
    let mut equal = BTreeMap::new();
    for (what, guest, [min, max]) in &pairs {
        println!("{what:36} guest {guest:6}  work {min:6}  with the readings {max:6}");
        assert!(min <= guest && guest <= max, "{what}: the guest says {guest}, the profile {min} to {max}");
        // The readings cost a fraction of the work.
        assert!(max - min <= 2, "{what}: {min} to {max}");
        equal.insert(what.as_str(), guest == min);
    }
    assert!(equal.values().filter(|equal| **equal).count() * 2 > equal.len(), "{equal:?}");
    assert!(at(&work["switches"]["all"], "count") >= 400 && item(&work, "page_faults") >= 64);
}

/// Compares bytes and packets on loopback. /proc/net/dev counts both directions without the 14-byte
/// link header, as packets are received.
fn packets_agree(profile: &str, work: &Value, all: &Value) {
    let [before, after] = read(profile, "net/dev").map(|text| numbers(&text, "lo:"));
    let more: Vec<u64> = [0, 1, 8, 9].map(|at| after[at] - before[at]).into();
    let lo = |json: &Value, direction: &str| {
        let rows = json["network"]["rows"].as_array().unwrap().iter();
        let row =
            rows.into_iter().find(|row| row["device"] == "lo" && row["direction"] == direction).unwrap();
        [at(&row["bytes"], "sum"), at(&row["bytes"], "count")]
    };
    let ([sent, packets], [received, taken]) = (lo(work, "sent"), lo(work, "received"));
    println!("lo: guest {more:?}, sent {sent} in {packets}, received {received} in {taken}");
    assert_eq!(more, [received, taken, received, taken]);
    // Datagrams of one byte: 20 bytes of IP, 8 of UDP, 1 of data, and 14 of the link.
    assert_eq!((sent, packets), (50 * 43, 50));
    assert_eq!((lo(all, "sent"), lo(all, "received")), (lo(work, "sent"), lo(work, "received")));
}

/// Compares disk reads: /proc/diskstats has their number, sectors and time; no request is pending
/// before or after.
fn requests_agree(profile: &str, work: &Value, all: &Value) {
    let fields = |text: &str| -> Vec<u64> {
        let disk = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let disk = disk.into_iter().find(|words| words.get(2) == Some(&"vda")).unwrap();
        disk[3..].iter().map(|word| word.parse().unwrap()).collect()
    };
    let [before, after] = read(profile, "diskstats").map(|text| fields(&text));
    let [reads, sectors, milliseconds] = [0, 2, 3].map(|field| after[field] - before[field]);
    assert_eq!([before[8], after[8]], [0, 0], "nothing is under way");
    for json in [work, all] {
        let rows = json["disk"]["rows"].as_array().unwrap();
        let [row] = &rows[..] else { panic!("{rows:?}") };
        assert_eq!((&row["device"], &row["operation"]), (&"vda".into(), &"read".into()));
        assert_eq!(at(row, "requests"), reads);
        assert_eq!(at(&row["bytes"], "sum"), sectors * 512);
        assert_eq!((at(&row["bytes"], "median"), at(&row["bytes"], "max")), (4096, 4096));
        assert_eq!(
            (at(&row["depth"], "max"), row["depth"]["mean"].as_f64()),
            (1, Some(1.0)),
            "one at a time"
        );
        // Block i × 7 mod 100 follows block (i − 1) × 7 mod 100: 6 blocks forward, or 94 backward,
        // from the end of the last request.
        assert_eq!((at(row, "sequential"), at(&row["seek_bytes"], "median")), (0, 6 * 4096));
        assert_eq!(at(&row["seek_bytes"], "max"), 94 * 4096);
        // The kernel measures from the creation of the request, and rounds.
        let ns = at(&row["time_ns"], "sum");
        println!("disk: guest {reads} reads, {sectors} sectors, {milliseconds} ms; ours {ns} ns, {row}");
        assert!(ns / 1_000_000 <= milliseconds + 1, "{ns} ns, {milliseconds} ms");
        assert_eq!(
            ["completed", "unfinished", "completed_later", "issued_before"].map(|f| at(row, f)),
            [reads, 0, 0, 0]
        );
    }
}

#[test]
fn counts_are_those_of_the_guests_own_proc() {
    let directory = tempfile::tempdir_in(work_dir()).unwrap();
    let workload = witness(&directory, "", "");
    agree(&record(&workload, &[]), false);
    let several = record(&workload, &["--cpus", "2"]);
    agree(&several, false);
    let json = characterize(&several, &["--region", "work"]);
    assert_eq!(at(&json, "cpus"), 2);
    assert!(at(&json["scheduling"]["waits"], "count") > 0 && json["locks"]["waits"].is_u64(), "{json}");
}

#[test]
fn block_requests_are_those_of_the_guests_own_diskstats() {
    let directory = tempfile::tempdir_in(work_dir()).unwrap();
    let disk = "[disk]\nkind = \"virtio\"\nsize_mb = 8\nfilesystem = \"none\"\n";
    agree(&record(&witness(&directory, "/dev/kt-disk", disk), &[]), true);
}

/// Records with readings of /proc around the steps. Every count that both sources have must be
/// equal, or the difference must be explained.
fn held(profile: &str) -> Value {
    let json = characterize(profile, &[]);
    holds(&json);
    let proc = json["proc"].as_array().unwrap();
    assert!(proc.len() >= 12, "{proc:?}");
    for row in proc {
        let [ours, readings, guest] =
            [at(row, "regions") + at(row, "beside"), at(row, "readings"), at(row, "guest")];
        assert_eq!(row["difference"].as_i64().unwrap(), guest as i64 - ours as i64, "{row}");
        match row["verdict"].as_str().unwrap() {
            "equal" => assert_eq!(guest, ours, "{row}"),
            "readings" => assert!(ours <= guest && guest <= ours + readings, "{row}"),
            "explained" => assert!(row["why"].as_str().is_some_and(|why| !why.is_empty()), "{row}"),
            other => panic!("{other}: {row}"),
        }
    }
    json
}

#[test]
fn counts_of_any_workload_are_held_against_proc_read_at_its_marks() {
    let idle = held(&record("idle", &["--proc"]));
    let timer = row(&idle["proc"], "key", "LOC");
    assert!(at(timer, "guest") >= 60 && timer["verdict"] != "explained", "{timer}");
    assert!(idle["footprint"].as_array().unwrap().is_empty(), "blocks of the readings are among them");
    // A program that marks its own regions does more work outside of them.
    let profile = record("rr", &["--proc"]);
    let json = held(&profile);
    let forks = row(&json["proc"], "key", "processes");
    assert!(at(forks, "regions") > 0 && at(forks, "beside") > 0, "{forks}");
    let text = run(["characterize", &profile]);
    assert!(text.contains("Compared with the guest's own /proc") && text.contains("equal"), "{text}");
    assert!(!text.contains("NOT KNOWN WHY"), "{text}");
    // Figures do not include the work of the readings.
    let names: Vec<&str> =
        json["regions"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert!(names.contains(&"tcp_rr") && !names.iter().any(|name| name.starts_with('[')), "{names:?}");
    let sum: u64 = json["regions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|name| at(&characterize(&profile, &["--region", name.as_str().unwrap()]), "elapsed_ns"))
        .sum();
    assert_eq!(sum, at(&json, "elapsed_ns"));
    // Without readings there is nothing to compare.
    assert!(characterize(rr(), &[])["proc"].as_array().unwrap().is_empty());
}

#[test]
fn a_profile_is_held_against_references_that_are_built_in() {
    let json = characterize(rr(), &["--against", "reference:rr", "--against", "reference:OLTP"]);
    let first = &json["references"][0];
    assert_eq!(first["reference"], "rr", "{first}");
    for by in ["functions", "syscalls", "subsystems", "split"] {
        let percent = first["similarity"][by].as_f64().unwrap();
        assert!(percent > 95.0, "{by}: {percent}");
    }
    let beside = json["beside"].as_array().unwrap();
    let names: Vec<&Value> = beside.iter().map(|column| &column["reference"]).collect();
    assert_eq!(names[..2], [&Value::Null, &"rr".into()]);
    assert!(names.len() >= 3 && beside[2]["similarity"]["functions"].as_f64().unwrap() < 80.0, "{beside:?}");
    let last = json["words"].as_array().unwrap().last().unwrap().as_str().unwrap();
    assert!(last.starts_with("Of the references it is most like rr ("), "{last}");
    let mut unknown = kerntune(["characterize", rr(), "--against", "reference:nothing"]);
    fails(&mut unknown, 2, &["reference:nothing", "rr (", "nginx (web)"]);
}

#[test]
fn a_reference_is_written_and_is_like_what_it_was_made_of() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("mine.toml");
    let file = file.to_str().unwrap();
    run(["characterize", rr(), "--save-reference", file, "--kind", "micro-operations"]);
    let text = fs::read_to_string(file).unwrap();
    assert!(text.starts_with("schema = \"kerntune-reference/1\"") && text.len() < 100 * 1024, "{text}");
    fails(&mut kerntune(["characterize", rr(), "--save-reference", file]), 2, &["--kind"]);
    let plain = record("rr", &["--no-functions"]);
    let mut without = kerntune(["characterize", &plain, "--save-reference", file, "--kind", "x"]);
    fails(&mut without, 2, &["record without --no-functions"]);
}
