//! Every report of a recording, and the equations between them.

use crate::support;
use serde_json::Value;
use std::sync::OnceLock;

/// Records a workload; returns the id of the profile.
fn recorded(kernel: &str, workload: &str) -> String {
    let summary =
        support::json(["record", "--kernel", kernel, "--workload", workload, "--no-edges", "--json"]);
    summary["profile"].as_str().unwrap().to_string()
}

/// Returns a profile of a kernel that works, then sleeps.
fn profile() -> &'static str {
    static PROFILE: OnceLock<String> = OnceLock::new();
    PROFILE.get_or_init(|| {
        let kernel = support::base_kernel();
        let directory = tempfile::tempdir().unwrap();
        let file = support::workload(
            &directory,
            "description = \"TCP, then sleep\"\n[training]\n[[training.step]]\ncommand = [\"rr\"]\n\
             [measured]\n[[measured.step]]\nregion = \"tcp\"\noperations = 1000\n\
             command = [\"rr\", \"--only\", \"tcp_rr\"]\n\
             [[measured.step]]\nregion = \"nap\"\noperations = 1\ncommand = [\"sleep\", \"0.05\"]\n",
        );
        recorded(&kernel, &file)
    })
}

fn report(kind: &[&str]) -> Value {
    support::json(["report", profile()].iter().chain(kind).chain(&["--json"]))
}

fn sum(rows: &Value, field: &str) -> u64 {
    rows.as_array().unwrap().iter().map(|row| row[field].as_u64().unwrap()).sum()
}

fn at(json: &Value, field: &str) -> u64 {
    json[field].as_u64().unwrap()
}

const WHERE: [&[&str]; 3] = [&[], &["--region", "tcp"], &["--region", "nap"]];

fn with<'a>(kind: &[&'a str], more: &[&'a str]) -> Value {
    report(&[kind, more].concat())
}

#[test]
fn times_of_all_reports_add_up() {
    // The guest's clock equals the counted time, even across idle time.
    let health = &support::json(["report", profile(), "--json"])["health"];
    assert!(at(health, "clock_checks") > 0 && at(health, "clock_errors") == 0, "{health}");
    for part in WHERE {
        let functions = with(&["functions"], part);
        let busy = at(&functions, "busy");
        let beside = at(&functions, "user") + at(&functions, "unattributed");
        assert_eq!(sum(&functions["functions"], "self") + beside, busy);

        for depth in [&[][..], &["--depth", "1"], &["--depth", "3"]] {
            let groups = with(&[&["subsystems"], depth].concat(), part);
            assert_eq!(sum(&groups["groups"], "self"), busy - beside, "{part:?} {depth:?}");
            assert_eq!(at(&groups, "busy"), busy);
        }
        for kind in [&["threads"][..], &["threads", "--by-comm"]] {
            let threads = with(kind, part);
            assert_eq!(sum(&threads["threads"], "self"), busy, "{part:?} {kind:?}");
            assert_eq!(sum(&threads["threads"], "user"), at(&functions, "user"));
        }
        let threads = with(&["threads"], part);
        assert_eq!(sum(&threads["threads"], "switches_in"), at(&with(&["switches"], part), "count"));

        let idle = with(&["idle"], part);
        assert_eq!(at(&idle, "idle_ns"), at(&functions, "idle_ns"));
        assert_eq!(sum(&idle["wakers"], "idle_ns"), at(&functions, "idle_ns"));
        assert_eq!(sum(&idle["wakers"], "count"), sum(&idle["buckets"], "count"));
    }
    let nap = with(&["idle"], &["--region", "nap"]);
    assert!(at(&nap, "idle_ns") >= 45_000_000, "{nap}");
    assert!(nap["wakers"].as_array().unwrap().iter().any(|w| w["waker"].as_str().is_some()), "{nap}");
}

#[test]
fn threads_apart_are_the_whole() {
    let everybody = |kind: &[&str], part: &[&str]| {
        let mut all = with(kind, part);
        let mut each = with(&[kind, &["--thread", "*"]].concat(), part);
        assert_eq!(each["threads"], serde_json::json!(["*"]));
        for field in ["threads", "elapsed_ns", "idle_ns", "events"] {
            for json in [&mut all, &mut each] {
                json.as_object_mut().unwrap().remove(field);
            }
        }
        assert_eq!(all, each, "{kind:?} {part:?}");
    };
    for part in WHERE {
        everybody(&["functions"], part);
        everybody(&["syscalls"], part);
    }
    everybody(&["histogram", "tcp_sendmsg", "--by-caller"], &[]);
    everybody(&["flat"], &[]);
    everybody(&["graph"], &[]);

    // For a single thread: its time equals that of the threads' report, and all threads together
    // have all calls.
    let threads = report(&["threads"]);
    let threads = threads["threads"].as_array().unwrap();
    let functions = report(&["functions"]);
    let calls = |json: &Value| sum(&json["functions"], "calls");
    let mut sum_of_calls = 0;
    for thread in threads {
        let who = match thread["kind"].as_str().unwrap() {
            "thread" if thread["pid"] != 0 => thread["pid"].to_string(),
            _ => thread["comm"].as_str().unwrap().to_string(),
        };
        let own = report(&["functions", "--thread", &who]);
        assert_eq!(own["busy"], thread["self"], "{who}");
        let user = at(&own, "user") + at(&own, "unattributed");
        assert_eq!(sum(&own["functions"], "self") + user, at(thread, "self"), "{who}");
        sum_of_calls += calls(&own);
    }
    assert_eq!(sum_of_calls, calls(&functions));

    let rr = report(&["functions", "--program", "rr", "--function", "net/ipv4"]);
    let files = rr["functions"].as_array().unwrap().iter().map(|row| row["file"].as_str().unwrap());
    assert!(files.into_iter().all(|file| file.starts_with("net/ipv4/")), "{rr}");
    let profile = profile();
    for (wanted, words) in [
        (["--thread", "rrr"], ["no thread \"rrr\" ran", "did you mean rr"]),
        (["--program", "nginx"], ["no program \"nginx\" ran", ""]),
        (["--function", "tcp_sendmesg"], ["no function \"tcp_sendmesg\"", "did you mean tcp_sendmsg"]),
        (["--function", "drivers/gpu"], ["no function matches", "directory of the source"]),
    ] {
        let line = ["report", profile, "functions"].into_iter().chain(wanted);
        support::fails(&mut support::kerntune(line), 2, &words);
    }
}

#[test]
fn system_calls_are_counted_as_they_are_entered() {
    for part in WHERE {
        let calls = with(&["syscalls"], part);
        let functions = with(&["functions"], part);
        let rows = functions["functions"].as_array().unwrap();
        for call in calls["syscalls"].as_array().unwrap() {
            let name = format!("__x64_sys_{}", call["name"].as_str().unwrap());
            let Some(function) = rows.iter().find(|row| row["name"] == name.as_str()) else { continue };
            for (ours, theirs) in [("calls", "calls"), ("self", "self"), ("elapsed", "elapsed")] {
                assert_eq!(call[ours], function[theirs], "{name}");
            }
        }
        assert!(sum(&calls["syscalls"], "calls") <= at(&calls, "entered"), "{calls}");
    }
    // A ping-pong is a write and a read on each side.
    let tcp = with(&["syscalls"], &["--region", "tcp"]);
    let call =
        |name: &str| tcp["syscalls"].as_array().unwrap().iter().find(|row| row["name"] == name).cloned();
    let sent = ["write", "sendto"].into_iter().find_map(call).expect("something is sent");
    assert!(at(&sent, "calls") >= 2_000, "{tcp}");
    let text = support::run(["report", profile(), "syscalls", "--sort", "calls"]);
    assert!(text.contains("failed calls are not distinguished"), "{text}");
}

#[test]
fn source_paths_are_whole_and_make_the_groups() {
    let functions = report(&["functions"]);
    let rows = functions["functions"].as_array().unwrap();
    let file = |name: &str| rows.iter().find(|row| row["name"] == name).unwrap()["file"].clone();
    assert_eq!(file("tcp_sendmsg"), "net/ipv4/tcp.c");
    assert_eq!(file("tcp_v4_rcv"), "net/ipv4/tcp_ipv4.c");
    assert_eq!(file("entry_SYSCALL_64"), "arch/x86/entry/entry_64.S");
    let with_path = rows.iter().filter(|row| row["file"].as_str().is_some_and(|file| file.contains('/')));
    assert!(with_path.count() * 100 >= rows.len() * 99);
    let groups = report(&["subsystems", "--matrix"]);
    let names: Vec<_> =
        groups["groups"].as_array().unwrap().iter().map(|g| g["group"].as_str().unwrap()).collect();
    for group in ["net/ipv4", "net/core", "kernel/sched", "arch/x86", "mm"] {
        assert!(names.contains(&group), "{names:?}");
    }
    let matrix = groups["matrix"].as_array().unwrap();
    assert!(matrix.iter().any(|p| p["from"] == "net" && p["to"] == "net/ipv4"), "{matrix:?}");
}

#[test]
fn histograms_and_interrupts_count_the_calls_of_functions() {
    let functions = report(&["functions"]);
    let rows = functions["functions"].as_array().unwrap();
    for name in ["tcp_sendmsg", "tcp_v4_rcv", "asm_sysvec_apic_timer_interrupt"] {
        let function = rows.iter().find(|row| row["name"] == name).unwrap();
        let histogram = report(&["histogram", name, "--by-caller"]);
        for field in ["calls", "elapsed"] {
            assert_eq!(histogram[field], function[field], "{name}");
            assert_eq!(sum(&histogram["callers"], field), at(function, field), "{name}");
        }
        assert_eq!(sum(&histogram["buckets"], "count"), at(function, "calls"), "{name}");
        let last = histogram["buckets"].as_array().unwrap().last().unwrap();
        let slowest = at(&histogram, "slowest");
        assert!(at(last, "from") <= slowest && slowest <= at(last, "to"), "{histogram}");
    }
    let interrupts = report(&["interrupts"]);
    let timer = interrupts["interrupts"].as_array().unwrap().iter();
    let timer = timer.clone().find(|row| row["function"] == "asm_sysvec_apic_timer_interrupt").unwrap();
    let function = rows.iter().find(|row| row["name"] == "asm_sysvec_apic_timer_interrupt").unwrap();
    assert_eq!(timer["count"], function["calls"]);
    // All time in interrupts, including those that had not ended.
    assert!(at(&interrupts, "interrupt") >= sum(&interrupts["interrupts"], "elapsed"));
    let threads = report(&["threads"]);
    let pseudo = threads["threads"].as_array().unwrap().iter().find(|t| t["kind"] == "interrupt").unwrap();
    assert_eq!(at(pseudo, "self"), at(&interrupts, "interrupt"));
}

#[test]
fn a_profile_does_not_differ_from_itself_and_parts_of_it_do() {
    for paths in [&[][..], &["--paths"]] {
        let same = report(&[&["diff", profile()], paths].concat());
        assert_eq!(same["change"], 0);
        assert!(same["rows"].as_array().unwrap().iter().all(|row| row["self_change"] == 0));
    }
    let other = {
        let kernel = support::base_kernel();
        let directory = tempfile::tempdir().unwrap();
        let file = support::workload(
            &directory,
            "description = \"UDP\"\n[training]\n[[training.step]]\ncommand = [\"rr\"]\n[measured]\n\
             [[measured.step]]\nregion = \"tcp\"\noperations = 1000\ncommand = [\"rr\", \"--only\", \"udp_rr\"]\n",
        );
        recorded(&kernel, &file)
    };
    for options in
        [&[][..], &["--paths"], &["--region", "tcp"], &["--region", "tcp", "--paths", "--top", "5"]]
    {
        let diff = report(&[&["diff", other.as_str()], options].concat());
        let [base, now] = ["base", "other"].map(|side| diff[side]["elapsed_ns"].as_i64().unwrap());
        assert_eq!(diff["change"].as_i64().unwrap(), now - base);
        let rows = diff["rows"].as_array().unwrap().iter();
        let shown: i64 = rows.map(|row| row["self_change"].as_i64().unwrap()).sum();
        assert_eq!(shown + diff["more_change"].as_i64().unwrap(), now - base, "{options:?}");
    }
    let tcp = report(&["diff", &other, "--region", "tcp", "--top", "400"]);
    let row = |name: &str| tcp["rows"].as_array().unwrap().iter().find(|row| row["name"] == name).cloned();
    assert_eq!(row("tcp_sendmsg").unwrap()["calls"][1], 0);
    assert_eq!(row("udp_sendmsg").unwrap()["calls"][0], 0);
    let text = support::run(["report", profile(), "diff", &other, "--region", "tcp", "--per-operation"]);
    assert!(
        text.contains("more functions (--top)") && text.contains("  total, idle ns included\n"),
        "{text}"
    );
}

#[test]
fn options_before_the_kind_are_not_ignored() {
    let mut command = support::kerntune(["report", profile(), "--region", "tcp", "threads"]);
    support::fails(&mut command, 2, &["kerntune report PROFILE KIND --region NAME"]);
    let mut command = support::kerntune(["report", profile(), "--json", "--top", "3"]);
    support::fails(&mut command, 2, &["--top", "functions --json"]);
}

#[test]
fn groups_of_ones_own_are_a_file_of_patterns() {
    let directory = tempfile::tempdir().unwrap();
    let groups = directory.path().join("groups.txt");
    std::fs::write(&groups, "mine: tcp_* net/ipv4/\nno colon\n").unwrap();
    let groups = groups.to_str().unwrap();
    let mut command = support::kerntune(["report", profile(), "subsystems", "--groups", groups]);
    support::fails(&mut command, 2, &["groups.txt, line 2: there is no colon"]);
    std::fs::write(groups, "mine: tcp_* net/ipv4/\n").unwrap();
    let text = support::run(["report", profile(), "subsystems", "--groups", groups]);
    assert!(text.contains("  mine\n") && text.contains("  [other]\n"), "{text}");
}

#[test]
fn explain_and_compare_have_one_total() {
    let kernel = support::base_kernel();
    let both = |command: &str| support::json([command, &kernel, &kernel, "--workload", "rr", "--json"]);
    let compared = both("compare");
    let rows = compared["rows"].as_array().unwrap();
    let total =
        rows.iter().find(|row| row["operation"] == "total" && row["metric"] == "path_length").unwrap();
    let explained = both("explain");
    let functions = explained["functions"].as_array().unwrap();
    for (side, name) in ["base", "tuned"].iter().enumerate() {
        let instructions = explained["instructions"][side].as_u64().unwrap();
        assert_eq!(total[name].as_f64().unwrap(), instructions as f64);
        let sum: u64 = functions.iter().map(|row| row["instructions"][side].as_u64().unwrap()).sum();
        assert_eq!(sum as i64 + explained["elsewhere"][side].as_i64().unwrap(), instructions as i64);
    }
}

#[test]
fn calls_that_never_return_have_callers_and_no_average() {
    let kernel = support::base_kernel();
    let id = recorded(&kernel, "rr");
    let report = |kind: &[&str]| support::json(["report", &id].iter().chain(kind).chain(&["--json"]));
    let functions = report(&["functions"]);
    let functions = functions["functions"].as_array().unwrap();
    for row in functions {
        assert!(at(row, "min") <= at(row, "avg") && at(row, "avg") <= at(row, "max"), "{row}");
    }
    let exit = functions.iter().find(|row| row["name"] == "do_exit").unwrap();
    assert!(at(exit, "calls") > 0 && at(exit, "ended") == 0, "{exit}");
    let graph = report(&["graph", "--function", "do_exit"]);
    let entry = graph["entries"].as_array().unwrap().iter().find(|row| row["name"] == "do_exit").unwrap();
    let parents = entry["parents"].as_array().unwrap();
    assert!(parents.iter().all(|parent| parent["name"].is_string()), "{entry}");
    assert_eq!(sum(&entry["parents"], "calls"), at(exit, "calls"));
    let handed = sum(&entry["parents"], "self") + sum(&entry["parents"], "descendants");
    assert_eq!(handed, at(entry, "self") + at(entry, "descendants"), "{entry}");
}
