//! Benchmark suites: all rows in the emulator, short ones on the host; unsupported rows are
//! reported first.

use crate::support::{self, base_kernel, fails, json, kerntune};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

/// Rows of the tables of Speer, Kumar and Partridge, and the sum of McKusick's rows.
const SUITES: [(&str, usize); 4] = [("kbx", 26), ("osbench", 19), ("netperf", 20), ("mckusick", 39)];

fn rows(document: &Value) -> &[Value] {
    document["rows"].as_array().unwrap()
}

/// Returns the rows by `suite/row`.
fn by_name(document: &Value) -> BTreeMap<String, &Value> {
    let name = |row: &Value| format!("{}/{}", row["suite"].as_str().unwrap(), row["row"].as_str().unwrap());
    rows(document).iter().map(|row| (name(row), row)).collect()
}

#[test]
fn every_row_is_listed_with_its_machines() {
    let list = json(["bench", "list", "--json"]);
    assert_eq!(list["schema"], "kerntune-bench-rows/1");
    for (suite, count) in SUITES {
        assert_eq!(rows(&list).iter().filter(|row| row["suite"] == suite).count(), count, "{suite}");
    }
    let by_name = by_name(&list);
    assert_eq!(by_name.len(), rows(&list).len(), "names are unique");
    for (name, unit, better, machines) in [
        ("kbx/fork_exec_args1000", "ns/op", "lower", vec!["emulator", "kvm", "host"]),
        ("osbench/read", "MB/s", "higher", vec!["emulator", "kvm", "host"]),
        ("netperf/veth_udp_rr_16", "transactions/s", "higher", vec!["emulator", "kvm", "host"]),
        ("mckusick/aggregate", "ns/op", "lower", vec!["emulator", "kvm", "host"]),
        ("rr/tcp_rr", "ns/op", "lower", vec!["emulator", "kvm", "host"]),
        ("batched/tcp_rr_1", "ns/op", "lower", vec!["emulator", "kvm", "uml", "host"]),
        ("paths/nic_rr", "ns/op", "lower", vec!["emulator"]),
        ("redis/redis_set", "requests/s of guest time", "higher", vec!["emulator", "kvm", "uml", "host"]),
    ] {
        let row = by_name[name];
        assert_eq!((&row["unit"], &row["better"]), (&unit.into(), &better.into()), "{name}");
        assert_eq!(row["machines"], Value::from(machines), "{name}");
    }
}

#[test]
fn every_row_of_the_suites_has_exact_figures_on_the_emulator() {
    let kernel = base_kernel();
    let run = ["bench", "run", "--kernel", &kernel, "--scale", "0.05", "--model", "skylake", "--json"];
    let results = json(run.iter().copied().chain(SUITES.map(|(suite, _)| suite)));
    assert_eq!(
        (&results["machine"], &results["kernel"]["id"]),
        (&"emulator".into(), &kernel.as_str().into())
    );
    assert!(results["kernel"]["release"].as_str().unwrap().starts_with("6."), "{}", results["kernel"]);
    assert_eq!(results["skipped"], Value::Array(vec![]));
    let by_name = by_name(&results);
    assert_eq!(by_name.len(), SUITES.iter().map(|(_, count)| count).sum::<usize>());
    for (name, row) in &by_name {
        assert_eq!((&row["unit"], &row["better"]), (&"instructions/op".into(), &"lower".into()));
        let figures = &row["values"][0]["figures"];
        assert_eq!(figures["path_length"], row["values"][0]["value"]);
        for metric in ["path_length", "taken_branches", "l1i_misses", "itlb_misses"] {
            let figure = figures[metric].as_f64().unwrap();
            assert!(figure > 0.0 || metric.ends_with("misses"), "{name} {metric} {figure}");
        }
    }
    // Rows with more work have longer paths; otherwise the kernel would not have done the work.
    let path = |name: &str| by_name[name]["values"][0]["value"].as_f64().unwrap();
    for order in [
        ["kbx/getpid", "kbx/pipe_20", "kbx/pipe_8192", "kbx/pipe_switch_20", "kbx/inet_socket_20"],
        ["kbx/vfork_exit", "kbx/fork_exit", "kbx/vfork_exec", "kbx/fork_exec", "kbx/fork_exec_args1000"],
        [
            "osbench/getpid",
            "osbench/select_1_0",
            "osbench/select_10_0",
            "osbench/select_15_0",
            "osbench/cwcor_16K",
        ],
        [
            "netperf/udp_rr_1",
            "netperf/veth_udp_rr_1",
            "netperf/tcp_rr_1",
            "kbx/fork_exit",
            "mckusick/aggregate",
        ],
        ["mckusick/syscall", "mckusick/signocsw", "mckusick/csw", "mckusick/forks_0", "mckusick/execs_big_0"],
    ] {
        let paths = order.map(path);
        assert!(paths.is_sorted(), "{order:?}: {paths:?}");
    }
}

#[test]
fn figures_repeat_and_a_row_by_itself_is_the_row() {
    let kernel = base_kernel();
    let run = |rows: &[&str]| {
        let mut arguments =
            vec!["bench", "run", "kbx", "--kernel", &kernel, "--scale", "0.1", "--boots", "2", "--json"];
        rows.iter().for_each(|row| arguments.extend(["--row", row]));
        json(arguments)
    };
    let results = run(&["umask", "kbx/pipe_20"]);
    let names: Vec<String> = by_name(&results).into_keys().collect();
    assert_eq!(names, ["kbx/pipe_20", "kbx/umask"]);
    for row in rows(&results) {
        let values = row["values"].as_array().unwrap();
        assert_eq!((&values[0]["boot"], &values[1]["boot"]), (&0.into(), &1.into()));
        assert_eq!(values[0]["figures"], values[1]["figures"], "{row}");
    }
}

#[test]
fn a_kernel_without_an_option_runs_no_row_that_needs_it() {
    let kernel = base_kernel();
    let directory = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(support::work_dir().join("kernels").join(&kernel)).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            fs::copy(&path, directory.path().join(path.file_name().unwrap())).unwrap();
        }
    }
    let config = directory.path().join("config");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.replace("CONFIG_VETH=y", "# CONFIG_VETH is not set")).unwrap();
    kerntune_work::seal(directory.path(), "kernels", &kernel, &[]).unwrap();
    let copy = format!("{}/", directory.path().display());
    let run = ["bench", "run", "netperf", "--kernel", &copy, "--row", "veth_tcp_rr_1"];
    let reason = "netperf/veth_tcp_rr_1: the kernel was built without CONFIG_VETH";
    fails(&mut kerntune(run), 3, &["`emulator`", reason]);
}

/// Every `tcp_sendmsg` executes 100 more instructions on 13 additional cache lines: 1 % of a round
/// trip. The change must appear in the affected row and in no other.
#[test]
fn a_planted_regression_of_one_per_cent_is_found_where_it_is() {
    const FREE: [&str; 6] = ["udp_rr", "pipe_rr", "socketpair_rr", "creat_close", "stat", "getpid"];
    let planted = support::planted_kernel();
    // Four times the usual work, so that one-time differences are a quarter of the figure.
    let text = format!(
        "description = \"Rows that a regression hits, and others\"\n[training]\n[[training.step]]\ncommand = [\"rr\"]\n\
         [measured]\n[[measured.step]]\ncommand = [\"rr\", \"--scale\", \"4\", \"--only\", \"tcp_rr,{}\"]\n",
        FREE.join(",")
    );
    let directory = tempfile::tempdir().unwrap();
    let workload = support::workload(&directory, &text);
    let comparison = json(["compare", &base_kernel(), &planted, "--workload", &workload, "--json"]);
    let change = |row: &str, metric: &str| {
        let is = |r: &&Value| r["operation"] == row && r["metric"] == metric;
        let row = rows(&comparison).iter().find(is).unwrap();
        assert_eq!(row["aa_percent"], 0.0, "{row}");
        (
            row["change_percent"].as_f64().unwrap(),
            row["tuned"].as_f64().unwrap() - row["base"].as_f64().unwrap(),
        )
    };
    let (percent, instructions) = change("tcp_rr", "path_length");
    assert!((0.9..1.1).contains(&percent), "{percent} %, {instructions} instructions");
    // 26 lines per round trip that do not stay in the cache.
    let (_, misses) = change("tcp_rr", "l1i_misses");
    assert!(misses > 10.0, "{misses}");
    for row in FREE {
        let (percent, instructions) = change(row, "path_length");
        // Observed: 0.006 % in a row of two processes, and 0 in rows of one process.
        assert!(percent.abs() < 0.02, "{row}: {percent} %, {instructions} instructions");
    }
}

/// A bundle contains everything to repeat the proof, and reports whether the results are the same.
#[test]
fn a_proof_is_repeated_from_its_bundle() {
    let (base, tuned) = (base_kernel(), support::planted_kernel());
    let directory = tempfile::tempdir().unwrap();
    let text = "[[measured.step]]\ncommand = [\"rr\", \"--only\", \"tcp_rr,stat\", \"--scale\", \"0.2\"]\n";
    let workload = support::workload(&directory, text);
    let place = |name: &str| directory.path().join(name).display().to_string();
    let prove = |output: &str| {
        let place = place(output);
        let asked = [
            "prove",
            &base,
            &tuned,
            "--workload",
            &workload,
            "--machine",
            "emulator",
            "--runs",
            "2",
            "--interval",
            "hodges-lehmann",
            "--json",
        ];
        [&asked[..], &["-o", &place]].concat().iter().map(|word| word.to_string()).collect::<Vec<_>>()
    };
    let proof = json(prove("proof"));
    assert_eq!((&proof["schema"], &proof["machine"]), (&"kerntune-proof/1".into(), &"emulator".into()));
    assert_eq!((&proof["timed"], &proof["exact"]["runs"]), (&Value::Null, &2.into()));
    let paragraph = proof["paragraph"].as_str().unwrap();
    assert!(paragraph.contains("Whole path") && paragraph.contains("not time"), "{paragraph}");
    // The script repeats the options of the command.
    assert!(fs::read_to_string(place("proof/repeat.sh"))
        .unwrap()
        .contains("--runs 2 --interval hodges-lehmann"));
    let repeat = || {
        Command::new(place("proof/repeat.sh"))
            .arg(place("again"))
            .env("KERNTUNE", env!("CARGO_BIN_EXE_kerntune"))
            .env("KERNTUNE_DIR", support::work_dir())
            .output()
            .unwrap()
    };
    let again = repeat();
    let said = String::from_utf8_lossy(&again.stdout);
    assert!(again.status.success() && said.contains("every exact figure is the same"), "{again:?}");
    // Changed figures.
    let exact = place("proof/results/exact.json");
    fs::write(&exact, fs::read_to_string(&exact).unwrap().replacen("\"base\": ", "\"base\": 1", 2)).unwrap();
    let again = repeat();
    assert!(
        String::from_utf8_lossy(&again.stderr).contains("exact figures differ") && !again.status.success()
    );
    // A changed kernel; a directory of another owner.
    let image = place("proof/tuned/bzImage");
    let mut bytes = fs::read(&image).unwrap();
    bytes[4096] ^= 1;
    fs::write(&image, bytes).unwrap();
    let again = repeat();
    assert!(
        !again.status.success() && String::from_utf8_lossy(&again.stderr).contains("bzImage"),
        "{again:?}"
    );
    fs::create_dir(place("mine")).unwrap();
    fs::write(place("mine/file"), "").unwrap();
    fails(&mut kerntune(prove("mine")), 2, &["is not empty"]);
}

#[test]
fn the_host_runs_rows_under_the_kernel_that_is_booted() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("results.json").display().to_string();
    let run = ["bench", "run", "--machine", "host", "--runs", "2", "--scale", "0.1", "--json", "-o", &file];
    let chosen =
        ["kbx", "osbench", "rr", "--row", "getpid", "--row", "osbench/read", "--row", "kbx/fork_exec"];
    let results = json(run.iter().copied().chain(chosen));
    let written: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(results, written);
    assert_eq!(
        (&results["schema"], &results["machine"]),
        (&"kerntune-bench-results/1".into(), &"host".into())
    );
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert_eq!(results["kernel"]["release"], release.trim());
    let names: Vec<String> = by_name(&results).into_keys().collect();
    assert_eq!(names, ["kbx/fork_exec", "kbx/getpid", "osbench/getpid", "osbench/read", "rr/getpid"]);
    for row in rows(&results) {
        let values = row["values"].as_array().unwrap();
        let runs: Vec<&Value> = values.iter().map(|value| &value["run"]).collect();
        assert_eq!(runs, [0, 1], "{row}");
        assert!(values.iter().all(|v| v["value"].as_f64().unwrap() > 0.0 && v["figures"].is_null()), "{row}");
    }
}

#[test]
fn what_the_host_cannot_do_is_said_and_has_no_figure() {
    let on_host = ["bench", "run", "--machine", "host", "--runs", "1", "--scale", "0.1"];
    let run = |rest: &[&str]| {
        let all = on_host.iter().chain(rest).copied();
        // Root without these capabilities, or the user of the tests, who has none.
        if fs::read_to_string("/proc/self/status").unwrap().contains("Uid:\t0\t") {
            let kerntune = kerntune(all);
            let mut command = Command::new("setpriv");
            command.args(["--bounding-set", "-sys_admin,-net_admin,-setuid"]).arg(kerntune.get_program());
            command.args(kerntune.get_args()).current_dir(support::checkout());
            command.env("KERNTUNE_DIR", support::work_dir());
            command
        } else {
            kerntune(all)
        }
    };
    let output = run(&["netperf", "--row", "udp_rr_2", "--row", "veth_udp_rr_2", "--json"]).output().unwrap();
    assert!(output.status.success(), "{}", support::said(&output));
    let results: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(by_name(&results).into_keys().collect::<Vec<_>>(), ["netperf/udp_rr_2"]);
    let skipped = &results["skipped"][0];
    assert_eq!(skipped["row"], "veth_udp_rr_2");
    assert!(skipped["reason"].as_str().unwrap().contains("CAP_SYS_ADMIN"), "{skipped}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("not on host: netperf/veth_udp_rr_2: "), "{said}");

    fails(&mut run(&["netperf", "--row", "veth_tcp_rr_1"]), 3, &["`host`", "netperf/veth_tcp_rr_1: "]);
    fails(&mut run(&["paths"]), 3, &["paths/nic_rr: it takes network cards"]);
    fails(&mut run(&["redis"]), 3, &["redis/redis_set: the host does not let a workload be contained"]);
}

#[test]
fn arguments_that_cannot_be_meant_are_refused() {
    for (arguments, words) in [
        (vec!["kbx", "--machine", "host", "--row", "getpit"], vec!["no row \"getpit\"", "kbx: getpid, "]),
        (vec!["tagged"], vec!["workload tagged has no rows", "bench list"]),
        (vec!["batched", "--machine", "uml", "--kernel", "x", "--runs", "2"], vec!["--boots"]),
        (vec!["kbx", "--machine", "host", "--boots", "2"], vec!["--runs"]),
        (vec!["kbx", "--machine", "host", "--kernel", "x"], vec!["the kernel that is booted"]),
        (vec!["kbx", "--machine", "host", "--scale", "0"], vec!["--scale"]),
        (vec!["kbx", "--machine", "host", "-o", "/nowhere/x.json"], vec!["no directory /nowhere"]),
    ] {
        fails(&mut kerntune(["bench", "run"].into_iter().chain(arguments)), 2, &words);
    }
}
