//! `record --instructions` and `export champsim`: compares the instructions of a region with the
//! recorder's counts.

use crate::support::{self, fails, json, kerntune, said};
use serde_json::Value;
use std::collections::HashMap;
use std::fs;
use std::path::Path;

/// ChampSim's trace record, as its header defines it.
struct TraceRecord {
    address: u64,
    is_branch: bool,
    taken: bool,
    written: [u8; 2],
    read: [u8; 4],
    memory: [u64; 6],
}

fn records(path: &Path) -> Vec<TraceRecord> {
    let bytes = fs::read(path).unwrap();
    assert_eq!(bytes.len() % 64, 0);
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
    let record = |bytes: &[u8]| {
        assert!(bytes[8] <= 1 && bytes[9] <= bytes[8], "a branch is or is not, and only one is taken");
        TraceRecord {
            address: word(&bytes[..8]),
            is_branch: bytes[8] == 1,
            taken: bytes[9] == 1,
            written: [bytes[10], bytes[11]],
            read: [bytes[12], bytes[13], bytes[14], bytes[15]],
            memory: std::array::from_fn(|at| word(&bytes[16 + 8 * at..24 + 8 * at])),
        }
    };
    bytes.chunks_exact(64).map(record).collect()
}

fn recorded(kernel: &str, options: &[&str]) -> Value {
    let arguments = ["record", "--json", "--kernel", kernel, "--workload", "rr"];
    let program = ["--", "rr", "--seed", "1", "--scale", "0.02", "--only", "getpid,pipe_rr"];
    json(arguments.into_iter().chain(options.iter().copied()).chain(program))
}

/// Returns ChampSim's type of a branch, by the rules of its `inc/instruction.h`.
fn kind(record: &TraceRecord) -> &'static str {
    let (read, written) = (|n| record.read.contains(&n), |n| record.written.contains(&n));
    let other = record.read.iter().any(|n| ![0, 6, 25, 26].contains(n));
    match (read(6), read(26), read(25), written(6)) {
        _ if !written(26) => "none",
        (false, _, false, _) if !other => "jump",
        (false, false, false, _) => "indirect",
        (false, true, _, false) => "conditional",
        (true, true, false, true) if !other => "call",
        (true, true, false, true) => "indirect call",
        (true, false, _, true) => "return",
        _ => "another",
    }
}

#[test]
fn every_instruction_of_a_region_is_there_once() {
    let kernel = support::base_kernel();
    let summary = recorded(&kernel, &["--instructions", "50000000", "--instructions-of", "pipe_rr"]);
    let profile = summary["profile"].as_str().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name);
    let export = |name: &str, options: &[&str]| {
        let path = file(name);
        let output = kerntune(["export", "champsim", profile, "--output", path.to_str().unwrap()])
            .args(options)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", said(&output));
        path
    };
    let all = records(&export("all", &[]));
    let region =
        summary["regions"].as_array().unwrap().iter().find(|region| region["name"] == "pipe_rr").unwrap();
    let figure = |name: &str| region[name].as_u64().unwrap();
    let kernel_side = all.iter().filter(|record| record.address >> 63 == 1).count() as u64;
    assert_eq!(
        (kernel_side, all.len() as u64 - kernel_side),
        (figure("kernel_instructions"), figure("user_instructions"))
    );
    // Taken branches per operation, without those that enter or leave the kernel, as counted by the
    // recorder.
    let per_operation = region["taken_branches"].as_f64().unwrap();
    let counted = (per_operation * figure("operations") as f64).round();
    let taken = all.iter().filter(|record| record.taken && record.address >> 63 == 1).count() as f64;
    assert!((taken / counted - 1.0).abs() < 0.02, "{taken} and {counted}");

    // ChampSim's types are right: calls and returns pair, and a branch that is not taken continues
    // with the next instruction.
    let mut kinds: HashMap<&str, usize> = HashMap::new();
    for pair in all.windows(2) {
        let [one, next] = pair else { continue };
        *kinds.entry(kind(one)).or_default() += 1;
        assert_eq!(one.is_branch, kind(one) != "none", "{:x}", one.address);
        if kind(one) == "conditional" && !one.taken {
            let ahead = next.address.wrapping_sub(one.address);
            assert!((2..=9).contains(&ahead) || next.address >> 63 == 1, "{:x}", one.address);
        }
    }
    let of = |kind: &str| kinds.get(kind).copied().unwrap_or_default();
    let calls = of("call") + of("indirect call");
    assert!(calls > 1_000 && calls.abs_diff(of("return")) * 100 < calls, "{kinds:?}");
    assert!(of("conditional") > of("jump") && of("another") == 0, "{kinds:?}");
    // A call writes its return address, and a return reads it.
    let writes = all.iter().filter(|record| kind(record) == "call" && record.memory[0] != 0).count();
    assert_eq!(writes, all.iter().filter(|record| kind(record) == "call").count());

    // Each mode alone gives the same records as the full export.
    let kernel_alone = records(&export("kernel", &["--mode", "kernel"]));
    assert_eq!(kernel_alone.len() as u64, kernel_side);
    assert_eq!(records(&export("user", &["--mode", "user"])).len() as u64, figure("user_instructions"));
    // The compressed file has the same contents.
    let packed = export("all.gz", &[]);
    let unpacked = std::process::Command::new("gzip").arg("-dc").arg(&packed).output().unwrap();
    assert_eq!(unpacked.stdout, fs::read(file("all")).unwrap());

    // The option changes nothing else in the recording.
    let without = recorded(&kernel, &[]);
    assert_eq!(summary["regions"], without["regions"]);
    let profile = without["profile"].as_str().unwrap();
    let refused =
        ["export", "champsim", profile, "--output", file("none").to_str().unwrap()].map(String::from);
    fails(&mut kerntune(refused), 2, &["no instruction trace", "--instructions N"]);
}

#[test]
fn a_bound_is_kept_and_what_makes_no_sense_is_refused() {
    let kernel = support::base_kernel();
    let summary = recorded(&kernel, &["--instructions", "1000"]);
    let profile = summary["profile"].as_str().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace");
    let output = kerntune(["export", "champsim", profile, "-o", path.to_str().unwrap()]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let count = records(&path).len();
    assert!(count == 1000 || count == 999, "the last one is left out if nobody knows where it went: {count}");

    let record = ["record", "--kernel", &kernel, "--workload", "rr"];
    for (options, words) in [
        (&["--instructions", "0"][..], &["--instructions", "1.."][..]),
        (&["--instructions-of", "getpid"], &["--instructions"]),
        (&["--instructions", "5", "--cpus", "2"], &["one CPU", "--cpus 1"]),
    ] {
        fails(&mut kerntune(record.iter().chain(options)), 2, words);
    }
    // A damaged stream is rejected before anything is written.
    let stored = json(["profile", "list", "--json"]);
    let of = stored.as_array().unwrap().iter().find(|one| one["manifest"]["id"] == profile).unwrap();
    let copy = directory.path().join("copy");
    let from = of["path"].as_str().unwrap();
    assert!(std::process::Command::new("cp").args(["-r", from]).arg(&copy).status().unwrap().success());
    let stream = copy.join("run/instructions.kt");
    let mut bytes = fs::read(&stream).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    fs::write(&stream, bytes).unwrap();
    let (copy, none) = (copy.display().to_string(), directory.path().join("none"));
    let mut command = kerntune(["export", "champsim", &copy, "-o", none.to_str().unwrap()]);
    let output = command.output().unwrap();
    assert!(!output.status.success() && !none.exists(), "{}", said(&output));
}
