//! `kerntune report PROFILE path` and `kerntune anatomy` on a profile with a small trace beside it.

use kerntune_profile::{
    Address, Block, FunctionIndex, FunctionStats, Instructions, KernelId, Manifest, Profile, Symbol, Tables,
    Ticks,
};
use kerntune_trace::{
    encode, files, CaptureSpec, ChunkHeader, ChunkState, EnterKind, Event, OpenStack, RecordedRegion,
    RecordedThread, Recording, RecordingHealth, TraceFileWriter, TraceHeader, VERSION,
};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const NAMES: [&str; 4] = ["tcp_sendmsg", "lock_sock_nested", "cleanup", "cleanup"];

/// Writes a profile in which `tcp_sendmsg` runs twice: 30 ns at 1,010 ns, 50 ns at 1,050 ns.
fn write(dir: &Path) {
    write_with(dir, false);
}

/// Writes the same profile; with `in_region`, inside a region without marked operations.
fn write_with(dir: &Path, in_region: bool) {
    let stack = OpenStack { thread: 0, running: true, frames: Vec::new() };
    let mut raw = Vec::new();
    ChunkState { user: true, regions: vec![], stacks: vec![stack], ..ChunkState::default() }.write(&mut raw);
    let state = raw.len() as u32;
    let call = |function| Event::Enter { function, how: EnterKind::Call };
    let mut events = vec![
        (10, call(0)),
        (5, call(1)),
        (15, Event::Exit),
        (10, Event::Exit),
        (10, call(0)),
        (50, Event::Exit),
    ];
    if in_region {
        events.insert(0, (0, Event::RegionBegin { region: 0 }));
        events.push((0, Event::RegionEnd { region: 0 }));
    }
    let marked = || RecordedRegion {
        name: "all".into(),
        begin_ns: 1_000,
        elapsed_ns: 100,
        idle_ns: 0,
        operations: 0,
        depth: 0,
        closed: true,
        kernel: Default::default(),
        user: Default::default(),
        model_events: vec![],
        cpus: Vec::new(),
    };
    events.iter().for_each(|&(delta, event)| encode::event(&mut raw, delta, event));
    let header = ChunkHeader {
        vcpu: 0,
        sequence: 0,
        events: events.len() as u32,
        begin: 1_000,
        end: 1_100,
        state,
        payload: raw.len() as u32 - state,
        compressed: 0,
    };
    let mut writer = TraceFileWriter::new(Vec::new(), TraceHeader { wide: false }).unwrap();
    writer.chunk(header, &raw).unwrap();
    let (trace, chunks) = writer.finish().unwrap();
    let recording = Recording {
        ran: Vec::new(),
        ran_since_boot: Vec::new(),
        version: VERSION,
        capture: CaptureSpec { functions: true, edges: false, weights: false },
        kernel_functions: NAMES.len() as u32,
        first_loaded: None,
        cpus: 1,
        per_cpu: Vec::new(),
        regions: in_region.then(marked).into_iter().collect(),
        threads: vec![RecordedThread { task: 1, pid: 57, tgid: 57, comm: "rr".into() }],
        chunks,
        events: events.len() as u64,
        health: RecordingHealth::default(),
        notes: vec![],
    };
    let run = dir.join("run");
    fs::create_dir(&run).unwrap();
    fs::write(run.join(files::TRACE), trace).unwrap();
    fs::write(run.join(files::RECORDING), serde_json::to_vec(&recording).unwrap()).unwrap();
    let symbol = |at: usize| Symbol {
        function: FunctionIndex(at as u32),
        name: NAMES[at].into(),
        address: Address(0x1000 + at as u64),
        size: 1,
        file: None,
        module: None,
    };
    let slowest = FunctionStats {
        region: 0,
        function: FunctionIndex(0),
        calls: 2,
        ended: 2,
        self_ticks: Ticks(65),
        ended_self_ticks: Ticks(65),
        total_ticks: Ticks(80),
        max_ticks: Ticks(50),
        min_ticks: Ticks(15),
        slowest_ticks: Ticks(50),
        slowest_at_ticks: Ticks(1_050),
    };
    let region = region();
    let tables = Tables {
        symbols: (0..NAMES.len()).map(symbol).collect(),
        functions: vec![slowest],
        regions: vec![region],
        ..Tables::default()
    };
    let kernel = KernelId { id: "k".into(), label: "k".into(), version: "6.12".into() };
    Profile { manifest: Manifest::new("p1", kernel, "rr", "emulator"), tables }.save(dir).unwrap();
}

fn region() -> kerntune_profile::RegionStats {
    kerntune_profile::RegionStats {
        name: "all".into(),
        begin_ticks: Ticks(1_000),
        elapsed_ticks: Ticks(100),
        busy_ticks: Ticks(100),
        user_ticks: Ticks(20),
        kernel_instructions: Default::default(),
        user_instructions: Default::default(),
        ..kerntune_profile::RegionStats::default()
    }
}

fn path(dir: &Path, options: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kerntune"));
    let work = dir.join("work");
    command.arg("--dir").arg(work).arg("report").arg(format!("{}/", dir.display())).arg("path");
    command.args(options).output().unwrap()
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn a_region_without_operations_is_shown_whole_and_its_head_is_of_all_of_it() {
    let dir = tempfile::tempdir().unwrap();
    write_with(dir.path(), true);
    let title = "Path of region all: all of it, as it marks no operations\n";
    for top in ["1000", "2"] {
        let text = said(&path(dir.path(), &["--top", top]));
        assert!(
            text.starts_with("profile p1: rr, training run, on kernel k (")
                && text.contains(&format!("\n\n{title}")),
            "{text}"
        );
        assert!(text.contains("Elapsed time         =          100 ns\n"), "{text}");
        assert!(text.contains("Calls                = 3 "), "{text}");
        let cut = text.contains("Entries shown        = the first 2 of ");
        assert_eq!(cut, top == "2", "{text}");
    }
    let whole: serde_json::Value = serde_json::from_slice(&path(dir.path(), &["--json"]).stdout).unwrap();
    let cut = path(dir.path(), &["--json", "--top", "2"]).stdout;
    let cut: serde_json::Value = serde_json::from_slice(&cut).unwrap();
    for field in ["begin_ns", "end_ns", "busy", "user", "calls", "depth"] {
        assert_eq!(whole[field], cut[field], "{field}");
    }
    let output = path(dir.path(), &["--nth", "2"]);
    assert_eq!(output.status.code(), Some(2));
    let words = "region \"all\" marks no operations, so it has no operation 2";
    assert!(said(&output).contains(words), "{}", said(&output));
}

#[test]
fn calls_are_found_and_what_is_not_there_is_said() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path());
    let lines = |options: &[&str]| {
        let text = said(&path(dir.path(), options));
        let is_entry = |line: &&str| line.starts_with("0:0");
        let entries: Vec<String> = text.lines().filter(is_entry).map(String::from).collect();
        assert!(!entries.is_empty(), "{text}");
        entries
    };
    assert_eq!(lines(&["--worst", "tcp_sendmsg"]), ["0:000 000 000  -> tcp_sendmsg (50 ns)"]);
    let first =
        ["0:000 000 000  -> tcp_sendmsg (15 ns, 30 total)", "0:000 000 005    -> lock_sock_nested (15 ns)"];
    assert_eq!(lines(&["--function", "tcp_sendmsg"]), first);
    assert_eq!(lines(&["--at", "1010"]), first);
    assert_eq!(lines(&["--function", "tcp_sendmsg", "--nth", "2", "--thread", "rr"]).len(), 1);
    assert_eq!(
        lines(&["--from", "1us", "--to", "1.04us"])[1..2],
        ["0:000 000 010  -> tcp_sendmsg (15 ns, 30 total)"]
    );
    let json = path(dir.path(), &["--worst", "tcp_sendmsg", "--json"]).stdout;
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(json["threads"][0]["entries"][0]["total"], 50);
    for (options, status, words) in [
        (vec!["--worst", "tcp_sendmesg"], 2, "did you mean tcp_sendmsg"),
        (vec!["--worst", "cleanup"], 2, "cleanup@0x1002, cleanup@0x1003"),
        (vec!["--worst", "lock_sock_nested"], 2, "no call of lock_sock_nested ended"),
        (vec![], 2, "no regions: choose a call or a window"),
        (vec!["--from", "1us", "--to", "2us", "--thread", "nginx"], 2, "it has rr [57]"),
        (vec!["--function", "tcp_sendmsg", "--nth", "9"], 2, "only 2 such calls"),
        (vec!["--from", "1us"], 2, "--to"),
        (vec!["--worst", "tcp_sendmsg", "--nth", "2"], 2, "cannot be used with"),
    ] {
        let output = path(dir.path(), &options);
        assert_eq!(output.status.code(), Some(status), "{options:?}: {}", said(&output));
        assert!(said(&output).contains(words), "{options:?}: {}", said(&output));
    }
    fs::remove_dir_all(dir.path().join("run")).unwrap();
    let output = path(dir.path(), &["--worst", "tcp_sendmsg"]);
    assert!(!output.status.success() && said(&output).contains("has no trace"), "{}", said(&output));
}

fn anatomy(dir: &Path, options: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kerntune"));
    let (work, profile) = (dir.join("work"), format!("{}/", dir.display()));
    command.arg("--dir").arg(work).arg("anatomy").args(["--profile", &profile]).args(options);
    command.output().unwrap()
}

/// Returns a changed copy of the profile.
fn changed(dir: &Path, change: impl Fn(&mut Profile)) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    let mut profile = Profile::load(dir).unwrap();
    change(&mut profile);
    fs::create_dir(copy.path().join("run")).unwrap();
    for file in [files::TRACE, files::RECORDING] {
        fs::copy(dir.join("run").join(file), copy.path().join("run").join(file)).unwrap();
    }
    profile.save(copy.path()).unwrap();
    copy
}

#[test]
fn an_operation_of_a_trace() {
    let dir = tempfile::tempdir().unwrap();
    write_with(dir.path(), true);
    let json = |options: &[&str]| -> serde_json::Value {
        let output = anatomy(dir.path(), &[options, &["--json"]].concat());
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", said(&output)))
    };
    let all = json(&["tcp_sendmsg", "--until", "lock_sock_nested"]);
    assert_eq!((&all["schema"], &all["calls_whole"]), (&"kerntune-anatomy/2".into(), &2.into()));
    assert_eq!((&all["all"]["elapsed"]["sum"], &all["worst"]["begin_ns"]), (&80.into(), &1_050.into()));
    let before = &all["before"];
    assert_eq!(
        (&before["reach"], &before["do_not"], &before["spreads"]["elapsed"]["sum"]),
        (&1.into(), &1.into(), &5.into())
    );
    // The worst call is the one that `report path` shows at that time.
    let path = path(dir.path(), &["--function", "tcp_sendmsg", "--at", "1050", "--json"]).stdout;
    let path: serde_json::Value = serde_json::from_slice(&path).unwrap();
    assert_eq!(path["threads"][0]["entries"][0]["total"], all["worst"]["elapsed"]);
    let text = said(&anatomy(dir.path(), &["tcp_sendmsg", "--region", "all"]));
    assert!(text.starts_with("Anatomy of tcp_sendmsg\n\nRegion               = all\n"), "{text}");
    // Compared with itself nothing differs.
    let itself = format!("{}/", dir.path().display());
    let both = json(&["tcp_sendmsg", "--against", &itself]);
    let rows = both["against"]["functions"].as_array().unwrap();
    assert!(rows.len() == 2 && rows.iter().all(|row| row["self"][0] == row["self"][1]), "{both}");
    let text = said(&anatomy(dir.path(), &["tcp_sendmsg", "--against", &itself]));
    assert!(text.contains("rest\n") && text.contains("total\n"), "{text}");
}

#[test]
fn an_anatomy_of_what_is_not_there_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    write_with(dir.path(), true);
    let fails = |dir: &Path, options: &[&str], status: i32, words: &str| {
        let output = anatomy(dir, options);
        assert_eq!(output.status.code(), Some(status), "{options:?}: {}", said(&output));
        assert!(said(&output).contains(words), "{options:?}: {}", said(&output));
        assert!(output.stdout.is_empty(), "{options:?}: {}", said(&output));
    };
    for (options, words) in [
        (&[][..], "<OPERATION>"),
        (&["tcp_sendmesg"], "did you mean tcp_sendmsg"),
        (&[""], "no function \"\""),
        (&["cleanup"], "cleanup@0x1002, cleanup@0x1003"),
        (&["cleanup@0x1002"], "no call of cleanup was seen from its entry to its exit"),
        (&["tcp_sendmsg", "--region", "udp_rr"], "no region \"udp_rr\"; it has all"),
        (&["tcp_sendmsg", "--until", "lock_sock_neste"], "did you mean lock_sock_nested"),
        (&["tcp_sendmsg", "--until", "net/"], "no function matches \"net/\""),
        (&["tcp_sendmsg", "--min-percent", "101"], "0 to 100"),
        (&["tcp_sendmsg", "--against", "nobody"], "no profile \"nobody\""),
    ] {
        fails(dir.path(), options, 2, words);
    }
    let empty = changed(dir.path(), |profile| profile.tables = Tables::default());
    fails(empty.path(), &["tcp_sendmsg"], 2, "no function \"tcp_sendmsg\"");
    let sampled = changed(dir.path(), |profile| {
        profile.manifest.sampled = Some(kerntune_profile::SamplingSummary {
            source: "perf: cpu-clock".into(),
            samples: 1,
            sample_ns: Ticks(1),
            cpus: 1,
            wall_ns: Ticks(1),
            period: "p".into(),
            bias: None,
            filter: None,
            calls: None,
            bound_bytes: 0,
        });
    });
    fails(sampled.path(), &["tcp_sendmsg"], 2, "was sampled, so it has no single calls");
    let damaged = changed(dir.path(), |_| {});
    let trace = damaged.path().join("run").join(files::TRACE);
    let mut bytes = fs::read(&trace).unwrap();
    let last = bytes.len() - 3;
    bytes[last] ^= 0xff;
    fs::write(&trace, bytes).unwrap();
    fails(damaged.path(), &["tcp_sendmsg"], 6, "the trace is damaged in chunk 0");
    fs::remove_dir_all(dir.path().join("run")).unwrap();
    fails(dir.path(), &["tcp_sendmsg"], 2, "has no trace");
}

#[test]
fn what_needs_a_damaged_kernel_or_run_says_so() {
    let dir = tempfile::tempdir().unwrap();
    write_with(dir.path(), true);
    let profile = changed(dir.path(), |profile| {
        let (start, last) = (Address(0x1000), Address(0x1000));
        profile.tables.blocks.push(Block { start, last, count: 2, instructions: Instructions(2), bytes: 1 });
    });
    let (work, name) = (tempfile::tempdir().unwrap(), format!("{}/", profile.path().display()));
    let page = work.path().join("page.html");
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kerntune"));
        command.arg("--dir").arg(work.path()).args(arguments).output().unwrap()
    };
    let html = || run(&["report", &name, "html", "-o", page.to_str().unwrap()]);
    // A missing kernel is not damage.
    assert_eq!(html().status.code(), Some(0), "{}", said(&html()));
    assert_eq!(run(&["advise", &name]).status.code(), Some(0));
    assert_eq!(run(&["kernel", "show", "k"]).status.code(), Some(2));
    fs::remove_file(&page).unwrap();
    let kernel = work.path().join("kernels/k");
    fs::create_dir_all(&kernel).unwrap();
    fs::write(kernel.join("result.json"), "{}").unwrap();
    let words = |output: &Output, words: &[&str]| {
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(7), "{}", said(output));
        assert!(words.iter().all(|word| text.contains(word)), "{words:?}: {text}");
    };
    let advice = run(&["advise", &name]);
    words(&advice, &["kernels/k/result.json", "is damaged", "rules were not asked: ", "timer-rate"]);
    assert!(String::from_utf8_lossy(&advice.stdout).contains(" of 44 rules apply"), "{}", said(&advice));
    words(&html(), &["kernels/k/result.json", "is damaged", "so the page has no source and code"]);
    assert!(page.is_file());
    words(&run(&["kernel", "show", "k"]), &["kernels/k/result.json"]);
    // A damaged trace is not a usage error, and the recorder's messages are part of the profile.
    let run_file = |file: &str| profile.path().join("run").join(file);
    let trace = fs::read(run_file(files::TRACE)).unwrap();
    let mut bytes = trace.clone();
    let last = bytes.len() - 3;
    bytes[last] ^= 0xff;
    fs::write(run_file(files::TRACE), bytes).unwrap();
    for output in [html(), run(&["report", &name, "path"])] {
        assert_eq!(output.status.code(), Some(6), "{}", said(&output));
    }
    fs::write(run_file(files::TRACE), trace).unwrap();
    let recording = fs::read_to_string(run_file(files::RECORDING)).unwrap();
    fs::write(run_file(files::RECORDING), recording.replace("57", "58")).unwrap();
    words(&html(), &["run/recording.json is not the file that was written"]);
    words(&run(&["report", &name, "path"]), &["run/recording.json is not the file that was written"]);
}
