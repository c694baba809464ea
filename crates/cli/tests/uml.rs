//! The machine `uml`: a kernel that is a process; timing it, and its failures.

use crate::support::{self, fails, json, kerntune, workload};
use serde_json::Value;
use std::path::Path;

fn uml_kernel() -> String {
    support::kernel(&["--arch", "um"], "uml")
}

/// Writes a workload whose runs have one step.
fn one_step(directory: &tempfile::TempDir, special: &str, command: &str) -> String {
    let step = format!("command = {command}\n");
    let text = format!(
        "description = \"x\"\n{special}\n[training]\n[[training.step]]\n{step}[measured]\n[[measured.step]]\n{step}"
    );
    workload(directory, &text)
}

#[test]
fn a_kernel_that_is_a_process_does_what_a_kernel_has_to_do() {
    let checked = json(["kernel", "selftest", &uml_kernel(), "--json"]);
    let checks = checked["checks"].as_array().unwrap();
    let failed: Vec<&Value> = checks.iter().filter(|check| check["result"] == "failed").collect();
    assert!(checks.len() >= 75 && failed.is_empty(), "{failed:?}");
    let ok = checks.iter().filter(|check| check["result"] == "ok").count();
    assert!(checks.len() - ok <= 3, "{checked}");
}

#[test]
fn kernels_are_timed_in_turn_and_the_first_of_them_twice() {
    let kernel = uml_kernel();
    let directory = tempfile::tempdir().unwrap();
    let file = one_step(&directory, "", "[\"batched\", \"--only\", \"nop,tcp_rr_1,openat_close\"]");
    let out = directory.path().join("times");
    let time = |scale: &str| {
        let mut command =
            kerntune(["time", &kernel, "--workload", &file, "--boots", "2", "--iterations", "3"]);
        command.args(["--scale", scale, "--json", "-o"]).arg(&out);
        command
    };
    let output = time("0.5").output().unwrap();
    assert!(output.status.success(), "{}", support::said(&output));
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let label = printed[0]["label"].as_str().unwrap();
    for (times, name) in printed.as_array().unwrap().iter().zip([label, &format!("{label}-again")]) {
        assert_eq!(times["label"], name);
        assert_eq!(times, &read(&out.join(format!("{name}.json"))));
        assert_eq!(
            (&times["schema"], &times["machine"]),
            (&"kerntune-bench-results/1".into(), &"uml".into())
        );
        assert_eq!(times["kernel"]["id"], kernel.as_str());
        assert!(times["kernel"]["release"].as_str().unwrap().starts_with("6."), "{times}");
        let rows = times["rows"].as_array().unwrap();
        let names: Vec<&Value> = rows.iter().map(|row| &row["row"]).collect();
        assert_eq!(names, ["nop", "tcp_rr_1", "openat_close"]);
        for row in rows {
            let values = row["values"].as_array().unwrap();
            let places: Vec<_> =
                values.iter().map(|v| (v["boot"].as_u64(), v["iteration"].as_u64())).collect();
            let all = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)];
            assert_eq!(places, all.map(|(boot, iteration)| (Some(boot), Some(iteration))));
            assert!(values.iter().all(|value| value["value"].as_f64().unwrap() > 0.0), "{row}");
        }
    }
    // The same command has nothing left to do; a different one does not overwrite its times.
    let again = time("0.5").output().unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&again.stdout).unwrap(), printed);
    fails(&mut time("1"), 2, &["is there already"]);
}

/// Checks the row of a command: each value is its elapsed time, of which its CPU time is a part.
fn check_command_row(results: &Value, machine: &str, values: usize) {
    assert_eq!(results["machine"], machine);
    let row = &results["rows"][0];
    assert_eq!(
        (&row["row"], &row["unit"], &row["better"]),
        (&"command".into(), &"ns/op".into(), &"lower".into())
    );
    let nanoseconds: Vec<f64> =
        row["values"].as_array().unwrap().iter().map(|value| value["value"].as_f64().unwrap()).collect();
    assert_eq!(nanoseconds.len(), values);
    // The command sleeps so long.
    assert!(nanoseconds.iter().all(|time| *time >= 30e6), "{nanoseconds:?}");
    let cpu = row["cpu"].as_array().unwrap();
    let sum = |part: &str| cpu.iter().map(|one| one[part].as_f64().unwrap()).sum::<f64>();
    // The host samples a process of User-Mode Linux by its tick, which may see none of it.
    assert!(machine == "uml" || sum("kernel") + sum("programs") > 0.0, "{row}");
    assert!(sum("kernel") + sum("programs") <= sum("seconds"), "{row}");
}

#[test]
fn a_workload_as_workload_new_wrote_it_is_timed() {
    let kernel = uml_kernel();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("new.toml");
    let file = file.to_str().unwrap();
    let command = ["sh", "-c", "sleep 0.03; gzip -c /usr/share/common-licenses/GPL-3 > /dev/null"];
    let output = kerntune([&["workload", "new", "-o", file, "--"][..], &command].concat()).output().unwrap();
    assert!(output.status.success(), "{}", support::said(&output));
    let uml = ["bench", "run", file, "--machine", "uml", "--kernel", &kernel, "--boots", "2", "--json"];
    check_command_row(&json(uml), "uml", 2);
    let host = ["bench", "run", file, "--machine", "host", "--runs", "3"];
    check_command_row(&json([&host[..], &["--json"]].concat()), "host", 3);
    let text = support::run(host);
    for heading in ["95 % LOW", "3 runs", "ON THE CPU"] {
        assert!(text.contains(heading), "{text}");
    }
}

#[test]
fn one_kernel_is_timed_by_itself_and_what_is_no_row_there_is_said() {
    let kernel = uml_kernel();
    let run = ["bench", "run", "batched", "kbx", "--machine", "uml", "--kernel", &kernel, "--scale", "0.5"];
    let rows =
        ["--row", "batched/nop", "--row", "pipe_20", "--row", "getpid", "--boots", "2", "--iterations", "2"];
    let results = json([&run[..], &rows, &["--json"]].concat());
    assert_eq!((&results["machine"], &results["kernel"]["id"]), (&"uml".into(), &kernel.as_str().into()));
    let named: Vec<&Value> = results["rows"].as_array().unwrap().iter().map(|row| &row["row"]).collect();
    assert_eq!(named, ["nop", "pipe_20"]);
    let values = results["rows"][1]["values"].as_array().unwrap();
    let places: Vec<_> = values.iter().map(|v| (v["boot"].as_u64(), v["iteration"].as_u64())).collect();
    assert_eq!(places, [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(b, i)| (Some(b), Some(i))));
    let skipped = &results["skipped"][0];
    assert_eq!((&skipped["suite"], &skipped["row"]), (&"kbx".into(), &"getpid".into()));
    assert!(skipped["reason"].as_str().unwrap().contains("only batched rows"), "{skipped}");
    fails(&mut kerntune([&run[..], &["--runs", "2"]].concat()), 2, &["--runs is for the host"]);
}

#[test]
fn servers_are_timed_by_their_load_generators_and_it_is_said_whose_time_it_was() {
    let kernel = uml_kernel();
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("times");
    let mut time =
        kerntune(["time", &kernel, "--workload", "redis", "--boots", "1", "--iterations", "2", "-o"]);
    let output = time.arg(&out).output().unwrap();
    let said = support::said(&output);
    assert!(output.status.success(), "{said}");
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(table.contains("requests/s of guest time") && table.contains("HOST FOR KERNEL"), "{table}");
    assert!(said.contains("enter the kernel by ptrace"), "{said}");
    let files: Vec<_> = std::fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 2, "the kernel and its A/A partner");
    for times in files.iter().map(|path| read(path)) {
        // The tests' kernel is too old for the other entry method.
        assert_eq!((&times["machine"], &times["entry"]), (&"uml".into(), &"ptrace".into()));
        let rows = times["rows"].as_array().unwrap();
        let names: Vec<&Value> = rows.iter().map(|row| &row["row"]).collect();
        assert_eq!(names, ["redis_set", "redis_get"]);
        for row in rows {
            assert_eq!((&row["suite"], &row["better"]), (&"redis".into(), &"higher".into()));
            let values = row["values"].as_array().unwrap();
            let iterations: Vec<_> = values.iter().map(|value| value["iteration"].as_u64()).collect();
            assert_eq!(iterations, [Some(0), Some(1)]);
            assert!(values.iter().all(|value| value["value"].as_f64().unwrap() > 0.0), "{row}");
            let cpu = row["cpu"].as_array().unwrap();
            assert_eq!((cpu.len(), &cpu[0]["boot"]), (1, &0.into()), "{row}");
            let parts = ["kernel", "programs", "host_for_kernel", "host_for_programs"];
            let parts = parts.map(|part| cpu[0][part].as_f64().unwrap());
            assert!(parts.iter().all(|part| *part >= 0.0) && parts.iter().sum::<f64>() > 0.0, "{row}");
        }
    }
    let run = [
        "bench",
        "run",
        "redis",
        "mariadb-disk",
        "--machine",
        "uml",
        "--kernel",
        &kernel,
        "--boots",
        "1",
        "--json",
    ];
    let results = json([&run[..], &["--row", "redis_get", "--row", "mariadb-disk/tpcc"]].concat());
    assert_eq!((&results["rows"][0]["row"], &results["rows"][1]), (&"redis_get".into(), &Value::Null));
    assert!(results["skipped"][0]["reason"].as_str().unwrap().contains("a disk of its own"), "{results}");
}

#[test]
fn booting_ends_when_the_intervals_are_narrow_or_the_time_is_up() {
    let kernel = uml_kernel();
    let directory = tempfile::tempdir().unwrap();
    let file = one_step(&directory, "", "[\"batched\", \"--only\", \"nop\"]");
    let until = |width: &str, max: &str, out: &str| {
        let time = ["time", &kernel, "--workload", &file, "--iterations", "1", "--scale", "0.2"];
        let mut command = kerntune(time);
        command
            .args(["--until-width", width, "--interval", "hodges-lehmann", "--boots", max, "--json", "-o"])
            .arg(directory.path().join(out));
        let output = command.output().unwrap();
        let said = support::said(&output);
        assert!(output.status.success(), "{said}");
        let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
        (printed[0]["rows"][0]["values"].as_array().unwrap().len(), said)
    };
    // Any interval is narrow enough: the smallest number of boots, and one more check.
    let (boots, said) = until("100000%", "20", "wide");
    assert!(boots == 8 && said.contains("narrow enough"), "{boots} {said}");
    // No interval is narrow enough: the largest number of boots.
    let (boots, said) = until("0.0001%", "5", "narrow");
    assert!(
        boots == 5 && said.contains("boots are needed") && !said.contains("narrow enough"),
        "{boots} {said}"
    );
    let budget = ["time", &kernel, "--budget", "5", "-o", "x"];
    fails(&mut kerntune(budget), 2, &["--until-width"]);
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn what_fails_on_it_fails_with_its_last_words() {
    let kernel = uml_kernel();
    let directory = tempfile::tempdir().unwrap();
    let timing_fails = |special: &str, command: &str, status: i32, words: &[&str]| {
        let out = tempfile::tempdir().unwrap();
        let file = one_step(&directory, special, command);
        let mut time = kerntune(["time", &kernel, "--workload", &file, "--boots", "1", "-o"]);
        fails(time.arg(out.path().join("times")), status, words);
    };
    let no_init = "append = \"rdinit=/nonexistent root=/dev/nonexistent\"";
    timing_fails(no_init, "[\"batched\"]", 5, &["panicked", "last lines of the console"]);
    let hangs = "binaries = [\"sleep\"]\ntime_limit_seconds = 5";
    timing_fails(hangs, "[\"sleep\", \"1000\"]", 5, &["5 s", "last lines of the console"]);
    timing_fails("", "[\"batched\", \"--only\", \"udp\"]", 5, &["there is no row \"udp\""]);
    timing_fails("binaries = [\"true\"]", "[\"true\"]", 2, &["it is empty", "batched"]);
}

#[test]
fn other_machines_refuse_it_and_it_refuses_what_is_theirs() {
    let kernel = uml_kernel();
    let record = ["record", "--kernel", &kernel, "--workload", "rr"];
    fails(&mut kerntune(record), 2, &["User-Mode Linux", "--arch um"]);
    let compare = ["compare", &kernel, &kernel, "--workload", "rr"];
    fails(&mut kerntune(compare), 2, &["User-Mode Linux"]);
    let time = ["time", &kernel, &support::base_kernel(), "-o", "/nonexistent/times"];
    fails(&mut kerntune(time), 2, &["another machine", "--arch um"]);
    let optimize = ["optimize", "--kernel", &kernel, "--workload", "batched", "--recipe"];
    for (recipe, word) in [("clang-autofdo+propeller", "machine code"), ("bolt", "no machine records")] {
        let recipe = [&optimize[..], &[recipe]].concat();
        fails(&mut kerntune(recipe), 2, &["--arch um", word, "There are gcc-pgo, clang-autofdo,"]);
    }
    let clang = [&optimize[..], &["clang-autofdo"]].concat();
    fails(&mut kerntune(clang), 2, &["needs Clang 19"]);
    fails(&mut kerntune(["package", &kernel]), 2, &["a package cannot be had", "um"]);
    fails(&mut kerntune(["kernel", "build", "--arch", "arm"]), 2, &["x86-64", "um"]);
}
