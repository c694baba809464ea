//! `kerntune matrix`, `worker` and `fleet` on the real emulator.

use crate::support::{self, base_kernel, fails, json, kerntune, run};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

const WORKLOAD: &str =
    "[[measured.step]]\nregion = \"files\"\noperations = 1\ncommand = [\"ls\", \"/usr\"]\n";

/// Writes a plan of the base kernel with two small workloads.
fn plan(directory: &Path) -> String {
    for (name, program) in [("listed", "/usr"), ("counted", "/etc")] {
        let text = format!("name = \"{name}\"\n{}", WORKLOAD.replace("/usr", program));
        fs::write(directory.join(format!("{name}.toml")), text).unwrap();
    }
    let text = format!(
        "workloads = [\"./listed.toml\", \"./counted.toml\"]\n[[kernel]]\nname = \"base\"\nbuilt = \"{}\"\n",
        base_kernel()
    );
    let path = directory.join("small.toml");
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// Returns the results of a store, by name.
fn results(store: &str) -> Vec<(String, Vec<u8>)> {
    let mut all: Vec<_> = fs::read_dir(Path::new(store).join("results"))
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path()).unwrap()))
        .collect();
    all.sort();
    all
}

#[test]
fn a_worker_with_nothing_but_the_store_comes_to_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    let (plan, ours, theirs) = (plan(dir.path()), at("ours"), at("theirs"));
    let done = json(["matrix", "run", &plan, "--store", &ours, "--jobs", "2", "--json"]);
    let cells = done["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 2);
    let paths: Vec<u64> = cells
        .iter()
        .map(|cell| cell["figures"]["operations"][0]["counts"]["path_length"].as_u64().unwrap())
        .collect();
    assert!(paths.iter().all(|path| *path > 100_000), "{done}");

    // On another machine: another store and work directory, one CPU, and the kernel from the store.
    let planned = json(["matrix", "plan", &plan, "--store", &theirs, "--json"]);
    let id = planned["plan"].as_str().unwrap();
    assert_eq!(done["plan"], planned["plan"]);
    let mut worker = Command::new(env!("CARGO_BIN_EXE_kerntune"));
    worker.args(["--dir", &at("elsewhere"), "worker", "--store", &theirs, "--plan", &id[..8], "--jobs", "1"]);
    let output = worker.output().unwrap();
    assert!(output.status.success(), "{}", support::said(&output));
    assert_eq!(results(&ours), results(&theirs));

    let status = json(["matrix", "status", id, "--store", &theirs, "--json"]);
    for task in status["tasks"].as_array().unwrap() {
        assert_eq!((&task["state"], &task["computed"]), (&Value::from("done"), &Value::from(1)), "{task}");
    }
    let text = run(["matrix", "results", id, "--store", &theirs]);
    assert!(text.contains("base/-/-/none/listed") && text.contains("files"), "{text}");
    assert!(run(["matrix", "log", id, "2", "--store", &theirs]).contains("measure base counted"));
    // Results are found, and nothing is computed.
    let output = kerntune(["matrix", "run", &plan, "--store", &ours]).output().unwrap();
    let said = support::said(&output);
    assert!(output.status.success() && !said.contains("begun"), "{said}");
}

#[test]
fn what_a_user_gets_wrong_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    let (store, plan) = (at("store"), at("plan.toml"));
    let write = |text: &str| fs::write(&plan, text).unwrap();
    let matrix = |verb: &str| kerntune(["matrix", verb, &plan, "--store", &store]);
    write("workloads = 3\n");
    fails(&mut matrix("run"), 2, &["plan.toml", "workloads"]);
    write("workloads = [\"rr\"]\n[[kernel]]\nbuilt = \"no-such-kernel\"\n");
    fails(&mut matrix("plan"), 2, &["no-such-kernel"]);
    fails(&mut kerntune(["matrix", "status", "1f4a", "--store", &store]), 2, &["no plan \"1f4a\""]);
    fails(&mut kerntune(["worker", "--store", &store, "--plan", "1f4a"]), 2, &["no plan"]);
    fails(&mut kerntune(["matrix", "run", &plan, "--node-dir", "x"]), 2, &["--engine slurm"]);
    fails(&mut kerntune(["fleet", "query", &at("none")]), 2, &["has no profiles"]);
    fails(&mut kerntune(["fleet", "merge", &at("none"), "--weight", "redis:3"]), 2, &["not KEY=VALUE"]);
}

#[test]
fn a_command_of_a_plan_of_others_runs_only_where_it_is_trusted() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    let (store, plan, work) = (at("store"), at("plan.toml"), at("work"));
    fs::write(&plan, "[[command]]\nname = \"x\"\narguments = [\"fleet\", \"--help\"]\n").unwrap();
    let planned = json(["matrix", "plan", &plan, "--store", &store, "--json"]);
    let id = planned["plan"].as_str().unwrap();
    let worker = || kerntune(["--dir", &work, "worker", "--store", &store, "--plan", id]);
    fails(&mut worker(), 1, &["it runs `kerntune fleet --help`", "--trust-commands"]);
    assert!(!Path::new(&store).join("results").exists());
    let output = worker().arg("--trust-commands").output().unwrap();
    assert!(output.status.success(), "{}", support::said(&output));
    // Another machine trusts the result and reports this, until it has computed it itself.
    let elsewhere = at("elsewhere");
    let show = |command: &[&str]| {
        let output = kerntune(["--dir", &elsewhere, "matrix"])
            .args(command)
            .args([id, "--store", &store])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", support::said(&output));
        support::said(&output)
    };
    assert!(show(&["results"]).contains("1 of 1 results are what other machines say"));
    let confirmed = show(&["run", "--confirm", "--trust-commands", "--json"]);
    assert!(confirmed.contains("\"confirmed\": true"), "{confirmed}");
    // A digit changed on the disk is detected by all commands.
    let result = fs::read_dir(Path::new(&store).join("results")).unwrap().next().unwrap().unwrap().path();
    let text = fs::read_to_string(&result).unwrap();
    fs::write(&result, text.replace("fleet", "fleeT")).unwrap();
    fails(&mut kerntune(["matrix", "results", id, "--store", &store]), 6, &["is not what was written"]);
    fails(&mut kerntune(["--dir", &work, "check", "--store", &store]), 1, &["is not what was written"]);
    // Stores named for a check must exist, and are not created.
    let [empty, missing] = ["empty", "missing"].map(|name| format!("{work}/{name}"));
    fs::create_dir(&empty).unwrap();
    for place in [&empty, &missing] {
        fails(
            &mut kerntune(["--dir", &work, "check", "--store", place]),
            2,
            &["there is no store at", place],
        );
        fails(&mut kerntune(["--dir", &work, "check", "--fleet", place]), 2, &[place, "has no profiles"]);
    }
    assert!(!Path::new(&missing).exists() && fs::read_dir(&empty).unwrap().next().is_none());
}

#[test]
fn profiles_of_a_fleet_are_merged_as_profile_merge_does() {
    let dir = tempfile::tempdir().unwrap();
    let prefix = dir.path().join("fleet").display().to_string();
    let base = base_kernel();
    let ids: Vec<String> = ["/etc/apt", "/etc/default"]
        .iter()
        .map(|path| {
            let record = json(["record", "--kernel", &base, "--no-edges", "--json", "--", "ls", path]);
            record["profile"].as_str().or(record["id"].as_str()).unwrap().to_owned()
        })
        .collect();
    for (id, host) in ids.iter().zip(["web-1", "web-2"]) {
        let added = json(["fleet", "add", &prefix, id, "--host", host, "--json"]);
        assert_eq!(added["profiles"][0]["new"], true);
    }
    assert_eq!(
        json(["fleet", "add", &prefix, &ids[0], "--host", "web-1", "--json"])["profiles"][0]["new"],
        false
    );
    let groups = json(["fleet", "query", &prefix, "--by", "host", "--function", "do_syscall_64", "--json"]);
    assert_eq!(groups["groups"].as_array().unwrap().len(), 2);
    assert!(groups["groups"][0]["function"]["calls"].as_u64().unwrap() > 10, "{groups}");
    let views = run(["fleet", "query", &prefix, "--sql"]);
    assert!(views.contains("CREATE VIEW functions AS SELECT * FROM read_parquet("), "{views}");

    let ours = json(["fleet", "merge", &prefix, "--weight", "host=web-2:3", "--json"]);
    let entries = json(["fleet", "query", &prefix, "--by", "host", "--by", "workload", "--json"]);
    // Ordered by path: by day, then host.
    assert_eq!(entries["groups"][0]["values"][0], "web-1");
    let theirs = json(["profile", "merge", &format!("{}:1", ids[0]), &format!("{}:3", ids[1]), "--json"]);
    assert_eq!(ours["manifest"], theirs["manifest"]);
}

/// Runs a plan of one command with fake Slurm programs: `sbatch` does `what`, and the queue is
/// empty.
fn by_slurm(what: &str) -> std::process::Output {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    fs::create_dir(at("bin")).unwrap();
    let runs = "for script; do :; done\nSLURM_ARRAY_TASK_ID=0 sh \"$script\" >&2\n";
    for (program, text) in [("sbatch", &*[runs, what].concat()), ("squeue", ""), ("scancel", "")] {
        let path = Path::new(&at("bin")).join(program);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    let plan =
        "name = \"site\"\n[[command]]\nname = \"list\"\narguments = [\"workload\", \"list\", \"--json\"]\n";
    fs::write(at("plan.toml"), plan).unwrap();
    let path = format!("{}:{}", at("bin"), std::env::var("PATH").unwrap());
    let mut command = Command::new(env!("CARGO_BIN_EXE_kerntune"));
    command.args([
        "--dir",
        &at("work"),
        "matrix",
        "run",
        &at("plan.toml"),
        "--engine",
        "slurm",
        "--store",
        &at("store"),
    ]);
    command.env("PATH", path).output().unwrap()
}

#[test]
fn a_job_that_slurm_took_is_waited_for_whatever_the_site_says_beside_its_number() {
    for said in [
        "echo 103; echo 'job accepted, see https://hpc.example/limits' >&2",
        "echo 'job accepted, see https://hpc.example/limits' >&2; echo welcome; echo '103;cluster'",
    ] {
        let output = by_slurm(said);
        let text = support::said(&output);
        assert!(output.status.success(), "{said}: {text}");
        assert!(text.contains("sbatch: job accepted, see https://hpc.example/limits"), "{text}");
    }
}

#[test]
fn what_the_site_refuses_is_said_in_its_own_words() {
    let refusal = "sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified";
    let output = by_slurm(&format!("echo '{refusal}' >&2; exit 1"));
    let text = support::said(&output);
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.contains(refusal) && !text.contains("sinfo"), "{text}");
    let output = by_slurm("echo welcome");
    let text = support::said(&output);
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.contains("printed no number of a job, but welcome"), "{text}");
}
