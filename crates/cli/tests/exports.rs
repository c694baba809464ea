//! Exports in other tools' formats: sums of every format must equal the figures of `kerntune
//! report`. `scripts/check-exports` checks that the tools can read them.

use crate::support::{self, fails, json, kerntune, said};
use kerntune_profile::{
    Address, FunctionIndex, KernelId, Manifest, PathKind, PathNode, Profile, SamplingSummary, Symbol, Tables,
    Ticks, KIND,
};
use kerntune_work::{Key, WorkDir};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Makes a small recording: a system call, and started programs.
fn recorded() -> String {
    let kernel = support::base_kernel();
    let arguments = ["record", "--json", "--kernel", &kernel, "--workload", "rr", "--"];
    let program = ["rr", "--seed", "1", "--scale", "0.1", "--only", "tcp_rr,fork_exec"];
    let summary = json(arguments.into_iter().chain(program));
    summary["profile"].as_str().unwrap().to_owned()
}

struct Exports {
    directory: tempfile::TempDir,
    profile: String,
}

impl Exports {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap(), profile: recorded() }
    }

    /// Exports a profile; returns the file and standard output.
    fn export(&self, format: &str, options: &[&str]) -> (PathBuf, String) {
        let path = self.directory.path().join(format!("{format}{}", options.join("").replace('/', "_")));
        let mut command = kerntune(["export", format, &self.profile, "--output", path.to_str().unwrap()]);
        let output = command.args(options).output().unwrap();
        assert!(output.status.success(), "{format}: {}", said(&output));
        (path, String::from_utf8(output.stdout).unwrap())
    }

    fn text(&self, format: &str, options: &[&str]) -> String {
        fs::read_to_string(self.export(format, options).0).unwrap()
    }

    /// Returns busy time and interrupt time from reports, for all regions or for some.
    fn busy(&self, region: &[&str]) -> u64 {
        let arguments = ["report", &self.profile, "functions", "--json"];
        json(arguments.into_iter().chain(region.iter().copied()))["busy"].as_u64().unwrap()
    }
}

fn folded(text: &str) -> u64 {
    text.lines().map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}

#[test]
fn every_format_sums_to_what_reports_say() {
    let all = Exports::new();
    for region in [&[][..], &["--region", "tcp_rr"]] {
        let busy = all.busy(region);
        assert!(busy > 100_000, "{busy}");
        assert_eq!(folded(&all.text("folded", region)), busy);

        let speedscope: Value = serde_json::from_str(&all.text("speedscope", region)).unwrap();
        let profile = &speedscope["profiles"][0];
        let weights = profile["weights"].as_array().unwrap();
        assert_eq!(weights.iter().map(|weight| weight.as_u64().unwrap()).sum::<u64>(), busy);
        assert_eq!((profile["endValue"].as_u64().unwrap(), profile["unit"].as_str()), (busy, Some("none")));

        let callgrind = all.text("callgrind", region);
        assert!(callgrind.contains(&format!("\nevents: Instructions\nsummary: {busy}\n")), "{region:?}");
        assert!(callgrind.ends_with(&format!("\ntotals: {busy}\n")), "{region:?}");

        let flames = all.text("flamegraph", region);
        assert!(flames.contains(&format!("data-total=\"{busy}\" data-unit=\"instructions\"")), "{region:?}");

        for (table, column) in [("functions", "self_instructions"), ("paths", "self_instructions")] {
            let text = all.text("csv", &[region, &["--table", table]].concat());
            assert_eq!(sum_of(&text, column), busy, "{table}");
        }
        let regions = all.text("csv", &[region, &["--table", "regions"]].concat());
        assert!(sum_of(&regions, "busy_instructions") >= busy);
    }
    let threads = all.text("csv", &["--table", "threads"]);
    assert_eq!(sum_of(&threads, "self_instructions"), all.busy(&[]));
}

/// Sums a column of a CSV table that has no quoted fields before it.
fn sum_of(text: &str, column: &str) -> u64 {
    let mut lines = text.lines();
    let head: Vec<&str> = lines.next().unwrap().split(',').collect();
    let from_end = head.len() - head.iter().position(|name| *name == column).unwrap() - 1;
    lines.map(|line| line.rsplit(',').nth(from_end).unwrap().parse::<u64>().unwrap()).sum()
}

#[test]
fn a_trace_sums_to_the_same_and_keeps_the_threads() {
    let all = Exports::new();
    let threads = json(["report", &all.profile, "threads", "--json"]);
    for region in [&["--region", "tcp_rr"][..], &[]] {
        let value: Value =
            serde_json::from_str(&all.text("firefox", &[region, &["--events", "9000000"]].concat())).unwrap();
        let rows = value["threads"].as_array().unwrap();
        let weight = |row: &Value| {
            let weights = row["samples"]["weight"].as_array().unwrap();
            weights.iter().map(|weight| weight.as_u64().unwrap()).sum::<u64>()
        };
        assert_eq!(rows.iter().map(weight).sum::<u64>(), all.busy(region), "{region:?}");
        let named = |name: &str| rows.iter().filter(|row| row["name"] == name).map(weight).sum::<u64>();
        assert!(named("rr") > 0 && rows.iter().any(|row| row["name"] == "CPU 0"));
        assert!(value["meta"]["extra"].to_string().contains("1 ns of the time axis is one instruction"));
        if region.is_empty() {
            let of = threads["threads"].as_array().unwrap();
            let interrupts = of.iter().filter(|row| row["kind"] == "interrupt");
            assert_eq!(
                named("[interrupt]"),
                interrupts.map(|row| row["self"].as_u64().unwrap()).sum::<u64>()
            );
        }
    }
    let (path, said) = all.export("firefox", &["--events", "1000"]);
    assert!(said.contains("cut after 1,000 events"), "{said}");
    let value: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    assert!(value["meta"]["extra"].to_string().contains("cut after 1,000 events"));
    // The viewer's title also contains the exported share.
    let product = value["meta"]["product"].as_str().unwrap();
    assert!(product.contains(", first 0.") && product.ends_with(" % only"), "{product}");

    let (path, said) = all.export("perfetto", &["--events", "1000"]);
    assert!(said.contains("cut after 1,000 events"), "{said}");
    let text = |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
    assert!(text(&path).contains(" % only") && text(&path).contains("[cut here]"));
    let small = fs::metadata(path).unwrap().len();
    let (path, said) = all.export("perfetto", &["--region", "tcp_rr"]);
    assert!(!text(&path).contains("[cut here]"));
    assert_eq!(said, "");
    assert!(fs::metadata(path).unwrap().len() > 10 * small);
}

#[test]
fn pprof_is_gzip_and_the_paths_of_a_trace_are_there_without_it() {
    let all = Exports::new();
    let (path, _) = all.export("pprof", &[]);
    assert_eq!(fs::read(path).unwrap()[..2], [0x1f, 0x8b]);
    let value: Value = serde_json::from_str(&all.text("firefox", &["--paths"])).unwrap();
    let sum = |row: &Value| {
        let weights = row["samples"]["weight"].as_array().unwrap();
        weights.iter().map(|weight| weight.as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!(value["threads"].as_array().unwrap().iter().map(sum).sum::<u64>(), all.busy(&[]));
    all.export("perfetto", &["--paths"]);
}

#[test]
fn a_difference_to_itself_is_none() {
    let all = Exports::new();
    let svg = all.text("flamegraph", &["--against", &all.profile]);
    assert!(svg.contains("rgb(240,240,240)") && !svg.contains("rgb(245,"), "a color where nothing differs");
}

#[test]
fn bad_input_is_one_clear_message() {
    let all = Exports::new();
    let export = |format: &str, options: &[&str]| {
        let mut command = kerntune(["export", format, &all.profile]);
        command.args(options);
        command
    };
    for format in ["folded", "flamegraph", "speedscope", "pprof", "callgrind", "csv", "firefox", "perfetto"] {
        fails(&mut export(format, &["-o", "/nowhere/file"]), 2, &["--output", "there is no directory"]);
        let directory = all.directory.path().to_str().unwrap();
        fails(&mut export(format, &["-o", directory]), 2, &["--output", "it is a directory"]);
        fails(&mut export(format, &["-o", "/dev/full"]), 6, &["No space left"]);
        fails(&mut export(format, &["-o", "/dev/null", "--region", "nobody"]), 2, &["nobody", "tcp_rr"]);
    }
    for format in ["firefox", "perfetto"] {
        let options = ["-o", "/dev/null", "--from", "2s", "--to", "1s"];
        fails(&mut export(format, &options), 2, &["--to", "not after the beginning"]);
        let options = ["-o", "/dev/null", "--from", "900000s", "--to", "900001s"];
        fails(&mut export(format, &options), 2, &["nothing was recorded in that part"]);
        fails(&mut export(format, &["-o", "/dev/null", "--events", "0"]), 2, &["--events"]);
    }
    fails(&mut export("flamegraph", &["--min-percent", "200"]), 2, &["--min-percent", "percentage"]);
    fails(&mut export("csv", &["--table", "nobody"]), 2, &["--table", "functions"]);
}

#[test]
fn autofdo_refuses_a_kernel_without_line_tables() {
    let all = Exports::new();
    let output = all.directory.path().join("counts.txt");
    let mut command = kerntune(["export", "autofdo", &all.profile, output.to_str().unwrap()]);
    fails(&mut command, 7, &["has no line tables", "-gmlt"]);
    assert!(!output.exists());
}

/// Makes a work directory with a profile of two samples, as of this machine.
fn live(directory: &Path, change: impl FnOnce(&mut Profile)) {
    let work = WorkDir::open(directory).unwrap();
    let staged = work.stage(KIND, &Key::new("test/1", "test")).unwrap();
    let path = |at: u32, parent: u32, kind: PathKind, own: u64| PathNode {
        path: at,
        parent,
        kind,
        comm: if kind == PathKind::Thread { "worker".into() } else { String::new() },
        function: if kind == PathKind::Function { FunctionIndex(0) } else { FunctionIndex::NONE },
        self_ticks: Ticks(own),
        ..PathNode::default()
    };
    let symbol = Symbol {
        function: FunctionIndex(0),
        name: "tcp_ack".into(),
        address: Address(0x1000),
        size: 16,
        file: None,
        module: None,
    };
    let region = kerntune_profile::RegionStats {
        name: "live".into(),
        elapsed_ticks: Ticks(3_000_000),
        busy_ticks: Ticks(3_000_000),
        user_ticks: Ticks(1_000_000),
        ..kerntune_profile::RegionStats::default()
    };
    let tables = Tables {
        symbols: vec![symbol],
        regions: vec![region],
        paths: vec![
            path(0, PathNode::ROOT, PathKind::Thread, 0),
            path(1, 0, PathKind::Function, 2_000_000),
            path(2, 0, PathKind::User, 1_000_000),
        ],
        ..Tables::default()
    };
    let mut manifest = Manifest::new("live", KernelId::default(), "live", "host");
    manifest.sampled = Some(SamplingSummary {
        source: "perf: cpu-clock".into(),
        samples: 3,
        sample_ns: Ticks(1_000_000),
        cpus: 1,
        wall_ns: Ticks(3_000_000),
        period: String::new(),
        bias: None,
        filter: None,
        calls: None,
        bound_bytes: 0,
    });
    let mut profile = Profile { manifest, tables };
    change(&mut profile);
    profile.save(staged.path()).unwrap();
    staged.publish().unwrap();
}

fn of_live(directory: &Path, format: &str, options: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kerntune"));
    let output = directory.join("out");
    command
        .arg("--dir")
        .arg(directory)
        .args(["export", format, "latest", "--output"])
        .arg(output)
        .args(options);
    command
}

#[test]
fn live_profiles_speak_of_time_and_of_samples() {
    let directory = tempfile::tempdir().unwrap();
    live(directory.path(), |_| {});
    let text = |format: &str, options: &[&str]| {
        let output = of_live(directory.path(), format, options).output().unwrap();
        assert!(output.status.success(), "{format}: {}", said(&output));
        fs::read(directory.path().join("out")).unwrap()
    };
    let words = |format, options| String::from_utf8(text(format, options)).unwrap();
    assert_eq!(words("folded", &[]), "worker;tcp_ack 2000000\nworker;[user] 1000000\n");
    assert!(words("speedscope", &[]).contains("\"unit\":\"nanoseconds\""));
    assert!(words("callgrind", &[]).contains("events: Nanoseconds\nsummary: 3000000\n"));
    assert!(words("csv", &["--table", "paths"]).contains("self_ns"));
    assert!(words("flamegraph", &[]).contains("width: 3,000,000 nanoseconds"));
    let firefox: Value = serde_json::from_slice(&text("firefox", &["--paths"])).unwrap();
    assert_eq!(firefox["threads"][0]["samples"]["weight"], serde_json::json!([2, 1]));
    text("perfetto", &["--paths"]);
    for format in ["firefox", "perfetto"] {
        fails(&mut of_live(directory.path(), format, &[]), 2, &["has no trace", "--paths"]);
    }
}

#[test]
fn an_empty_profile_is_refused() {
    let formats = ["folded", "flamegraph", "speedscope", "pprof", "callgrind"];
    let (nothing, bare) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    live(nothing.path(), |profile| {
        profile.tables.paths.iter_mut().for_each(|path| path.self_ticks = Ticks(0));
    });
    live(bare.path(), |profile| profile.tables.paths.clear());
    for format in formats {
        fails(&mut of_live(nothing.path(), format, &[]), 2, &["nothing ran"]);
        fails(&mut of_live(bare.path(), format, &[]), 2, &["no call paths"]);
    }
    fails(&mut of_live(bare.path(), "csv", &["--table", "paths"]), 2, &["no call paths"]);
}
