//! Code paths as text and JSON, from a small handmade trace: a reader that blocks in a read, the
//! network interrupt that brings its data, and the context switch back to it.

use crate::sample::golden;
use kerntune_analyze::path::{collect, CallStart, CodePath, PathSelection, PathSpan};
use kerntune_analyze::TraceFile;
use kerntune_profile::{
    bucket_of, Address, FunctionIndex, FunctionStats, HistogramBucket, KernelId, Manifest, Profile,
    RegionStats, Symbol, Tables, Ticks,
};
use kerntune_report::path::{json, text, typical, worst, PathView};
use kerntune_report::{names, Style};
use kerntune_trace::{
    encode, CaptureSpec, ChunkHeader, ChunkState, EnterKind, Event, ModeCounters, OpenStack, RecordedRegion,
    RecordedThread, Recording, RecordingHealth, TraceFileWriter, TraceHeader, VERSION,
};
use serde_json::Value;

const NAMES: [&str; 20] = [
    "entry_SYSCALL_64",
    "ksys_read",
    "sock_read_iter",
    "lock_sock_nested",
    "schedule",
    "release_sock",
    "asm_sysvec_call_function_single",
    "net_rx_action",
    "tcp_v4_rcv",
    "tcp_v4_do_rcv",
    "sock_def_readable",
    "skb_copy_datagram_iter",
    "copyout",
    "asm_exc_page_fault",
    "exc_page_fault",
    "__check_object_size",
    "kfree_skb_list",
    "skb_release_data",
    "[unknown code]",
    "main",
];
const BEGIN: u64 = 5_000_000_000;

fn function(name: &str) -> u32 {
    NAMES.iter().position(|known| *known == name).unwrap() as u32
}

/// Events with their distances in time; `+name` calls, `-` returns.
fn script() -> Vec<(u64, Event)> {
    let enter = |name, how| Event::Enter { function: function(name), how };
    let call = |name| enter(name, EnterKind::Call);
    let mut events = vec![
        (0, Event::RegionBegin { region: 0 }),
        (30, call("main")),
        (450, enter("entry_SYSCALL_64", EnterKind::Syscall)),
        (40, call("ksys_read")),
        (35, enter("sock_read_iter", EnterKind::Jump)),
        (60, call("lock_sock_nested")),
        (31, Event::Exit),
        (22, call("schedule")),
        (180, Event::Switch { thread: 0 }),
        (95, Event::Idle { ns: 12_000 }),
        (0, enter("asm_sysvec_call_function_single", EnterKind::Interrupt)),
        (50, call("net_rx_action")),
        (70, call("tcp_v4_rcv")),
        (90, call("tcp_v4_do_rcv")),
        (120, call("sock_def_readable")),
        (44, Event::Exit),
        (8, Event::Exit),
        (9, Event::Exit),
        (30, Event::Exit),
        (20, Event::Resume),
        (60, Event::Switch { thread: 1 }),
        (75, Event::Exit),
        (18, call("skb_copy_datagram_iter")),
    ];
    for (turn, took) in [(0, 90), (1, 70), (2, 74)] {
        events.extend([(9, call("__check_object_size")), (20 + turn, Event::Exit)]);
        events.extend([(4, call("copyout")), (took, Event::Exit), (0, Event::Point { point: 0 })]);
    }
    events.extend([
        (7, call("copyout")),
        (31, enter("asm_exc_page_fault", EnterKind::Exception)),
        (40, call("exc_page_fault")),
        (620, Event::Exit),
        (12, Event::Resume),
        (52, Event::Exit),
        (6, Event::Exit),
        (10, call("kfree_skb_list")),
    ]);
    for took in [33, 29, 29, 41] {
        events.extend([(5, call("skb_release_data")), (took, Event::Exit)]);
    }
    events.extend([
        (3, Event::Exit),
        (11, call("release_sock")),
        (4, enter("asm_sysvec_call_function_single", EnterKind::Interrupt)),
        (40, Event::Resume),
        (26, Event::Exit),
        (19, Event::Exit),
        (17, Event::Leave),
        (200, Event::Exit),
        (15, Event::Operation),
        (5, Event::RegionEnd { region: 0 }),
    ]);
    events
}

fn trace() -> (Vec<u8>, Recording) {
    let stack = OpenStack { thread: 1, running: true, frames: Vec::new() };
    let mut raw = Vec::new();
    ChunkState { user: true, regions: Vec::new(), stacks: vec![stack], ..ChunkState::default() }
        .write(&mut raw);
    let state = raw.len() as u32;
    let mut end = BEGIN;
    let events = script();
    for &(delta, event) in &events {
        end += delta + if let Event::Idle { ns } = event { ns } else { 0 };
        encode::event(&mut raw, delta, event);
    }
    let header = ChunkHeader {
        vcpu: 0,
        sequence: 0,
        events: events.len() as u32,
        begin: BEGIN,
        end,
        state,
        payload: raw.len() as u32 - state,
        compressed: 0,
    };
    let mut writer = TraceFileWriter::new(Vec::new(), TraceHeader { wide: false }).unwrap();
    writer.chunk(header, &raw).unwrap();
    let (bytes, chunks) = writer.finish().unwrap();
    let thread = |pid, comm: &str| RecordedThread { task: 0x1000, pid, tgid: pid, comm: comm.into() };
    let region = RecordedRegion {
        name: "tcp_rr".into(),
        begin_ns: BEGIN,
        elapsed_ns: end - BEGIN,
        idle_ns: 12_000,
        operations: 1,
        depth: 0,
        closed: true,
        kernel: ModeCounters::default(),
        user: ModeCounters::default(),
        model_events: Vec::new(),
        cpus: Vec::new(),
    };
    let recording = Recording {
        ran: Vec::new(),
        ran_since_boot: Vec::new(),
        version: VERSION,
        capture: CaptureSpec { functions: true, edges: false, weights: false },
        kernel_functions: function("[unknown code]"),
        first_loaded: None,
        cpus: 1,
        per_cpu: Vec::new(),
        regions: vec![region],
        threads: vec![thread(0, "swapper/0"), thread(57, "rr")],
        events: events.len() as u64,
        chunks,
        health: RecordingHealth::default(),
        notes: Vec::new(),
    };
    (bytes, recording)
}

/// Creates the row of a function's only call and its bucket.
fn one_call(name: &str, begin_ns: u64, took: u64) -> (FunctionStats, HistogramBucket) {
    let function = FunctionIndex(function(name));
    let stats = FunctionStats {
        region: 0,
        function,
        calls: 1,
        ended: 1,
        self_ticks: Ticks(took),
        ended_self_ticks: Ticks(took),
        total_ticks: Ticks(took),
        max_ticks: Ticks(took),
        min_ticks: Ticks(took),
        slowest_ticks: Ticks(took),
        slowest_at_ticks: Ticks(begin_ns),
    };
    let bucket = HistogramBucket {
        region: 0,
        caller: FunctionIndex::NONE,
        function,
        bucket: bucket_of(Ticks(took)),
        count: 1,
        example_ticks: Ticks(begin_ns),
    };
    (stats, bucket)
}

fn profile() -> Profile {
    let symbol = |(at, name): (usize, &&str)| Symbol {
        function: FunctionIndex(at as u32),
        name: name.to_string(),
        address: Address(0xffff_ffff_8100_0000 + 0x100 * at as u64),
        size: 0x80,
        file: None,
        module: (*name == "main").then(|| "/usr/bin/rr".into()),
    };
    let region = RegionStats {
        name: "tcp_rr".into(),
        begin_ticks: Ticks(BEGIN),
        elapsed_ticks: Ticks(15_127),
        busy_ticks: Ticks(3_127),
        idle_ticks: Ticks(12_000),
        user_ticks: Ticks(50),
        operations: 1,
        kernel_instructions: Default::default(),
        user_instructions: Default::default(),
        ..RegionStats::default()
    };
    // ksys_read begins 520 ns after the region; its time is in the golden files.
    let (stats, bucket) = one_call("ksys_read", BEGIN + 520, READ_TOOK);
    let kernel = KernelId { id: "3f9ac01d77e2".into(), label: "gcc -O2".into(), version: "6.12.90".into() };
    let mut manifest = Manifest::new("p-20250601-a1", kernel, "rr", "emulator");
    manifest.exact = true;
    let tables = Tables {
        symbols: NAMES.iter().enumerate().map(symbol).collect(),
        regions: vec![region],
        functions: vec![stats],
        histograms: vec![bucket],
        ..Tables::default()
    };
    Profile { manifest, tables }
}

/// Total time of the read, added up by hand from [`script`]: 35 + 60 + 31 + 22 + 180 before the
/// switch; 75 + 18 after it; the copies 9·3 + (20 + 21 + 22) + 4·3 + (90 + 70 + 74); the page fault
/// and its copy 7 + 31 + 40 + 620 + 12 + 52; then 6 + 10; 4·5 + (33 + 29 + 29 + 41) + 3; 11 + 4 +
/// 26 + 19.
const READ_TOOK: u64 = 328 + 93 + (27 + 63 + 12 + 234) + 762 + 16 + 155 + 60;

fn path(selection: &PathSelection) -> CodePath {
    let (bytes, recording) = trace();
    let source = bytes.as_slice();
    collect(&TraceFile::open(&source, &recording).unwrap(), NAMES.len(), selection).unwrap()
}

fn shown<T>(selection: &PathSelection, title: &str, fold: bool, act: impl Fn(&PathView) -> T) -> T {
    let (profile, recording, path) = (profile(), trace().1, path(selection));
    let points = ["skb_copy_datagram_iter+0x1f".to_string()];
    act(&PathView { profile: &profile, recording: &recording, path: &path, points: &points, title, fold })
}

fn plain(shown: &PathView) -> String {
    text(shown, Style::PLAIN)
}

fn read() -> PathSelection {
    let start = worst(&profile(), FunctionIndex(function("ksys_read")), None).unwrap().start;
    PathSelection { span: PathSpan::Call(start), ..PathSelection::default() }
}

#[test]
fn the_slowest_call() {
    golden("path_call.txt", &shown(&read(), "ksys_read: the slowest of 1 call", true, plain));
    golden("path_call_no_fold.txt", &shown(&read(), "ksys_read: call 1", false, plain));
    let shallow = PathSelection { depth: Some(2), limit: 8, ..read() };
    golden("path_call_depth_2_top_8.txt", &shown(&shallow, "ksys_read: call 1", true, plain));
}

#[test]
fn an_operation_of_all_threads() {
    golden("path_operation.txt", &shown(&PathSelection::default(), "operation 1", true, plain));
}

#[test]
fn a_window_within_calls() {
    let window = PathSpan::Window { begin_ns: BEGIN + 600, end_ns: BEGIN + 14_000 };
    let selection = PathSelection { span: window, thread: Some("rr".into()), ..PathSelection::default() };
    golden("path_window.txt", &shown(&selection, "a window", true, plain));
}

#[test]
fn color_changes_no_word() {
    let colored =
        shown(&read(), "x", true, |s| text(s, Style { color: true, width: Some(20), ..Style::PLAIN }));
    let mut bare = String::new();
    let mut escape = false;
    for c in colored.chars() {
        match c {
            '\x1b' => escape = true,
            'm' if escape => escape = false,
            c if !escape => bare.push(c),
            _ => {}
        }
    }
    assert_eq!(bare, shown(&read(), "x", true, plain));
}

/// Sums a field over all entries and those within them.
fn sum(entries: &Value, field: &str) -> u64 {
    let all = entries.as_array().unwrap().iter();
    let own = |e: &Value| if e["kind"] == "repeat" { 0 } else { e[field].as_u64().unwrap() };
    all.map(|e| own(e) + sum(&e["children"], field)).sum()
}

#[test]
fn json_holds_every_entry_once() {
    for selection in [PathSelection::default(), read()] {
        let of =
            |fold| -> Value { serde_json::from_str(&shown(&selection, "x", fold, json).unwrap()).unwrap() };
        let (folded, all) = (of(true), of(false));
        assert_eq!(folded["schema"], "kerntune-path/3");
        for (folded, all) in
            folded["threads"].as_array().unwrap().iter().zip(all["threads"].as_array().unwrap())
        {
            for field in ["count", "self", "total"] {
                assert_eq!(sum(&folded["entries"], field), sum(&all["entries"], field), "{field}");
            }
        }
    }
    let text = shown(&read(), "ksys_read: the slowest of 1 call", true, json).unwrap();
    golden(
        "path.json",
        &(serde_json::to_string_pretty(&serde_json::from_str::<Value>(&text).unwrap()).unwrap() + "\n"),
    );
}

#[test]
fn calls_are_chosen_by_the_profile() {
    let profile = profile();
    let read = FunctionIndex(function("ksys_read"));
    let picked = worst(&profile, read, Some("tcp_rr")).unwrap();
    assert_eq!(picked.why, "the slowest of 1 call");
    let picked = typical(&profile, read, None).unwrap();
    assert_eq!(picked.why, "the median of 1 call lies between 1.54 us and 1.79 us");
    let CallStart::At { elapsed_ns: Some(between), .. } = &picked.start else { panic!("{picked:?}") };
    assert!(between.contains(&READ_TOOK));
    let path = path(&PathSelection { span: PathSpan::Call(picked.start), ..PathSelection::default() });
    assert_eq!(path.call_ns(), READ_TOOK);
    let error = worst(&profile, FunctionIndex(function("schedule")), None).unwrap_err();
    assert_eq!(error.to_string(), "no call of schedule ended: there is none to show");
    let error = typical(&profile, read, Some("udp_rr")).unwrap_err();
    assert_eq!(error.to_string(), "the profile has no region \"udp_rr\"; it has tcp_rr");
    assert_eq!(names::function(&profile.tables, "main"), Ok(FunctionIndex(function("main"))));
}

#[test]
fn the_median_is_over_all_callers() {
    let mut profile = profile();
    let row = |caller: u32, took: u64, count: u64, example: u64| HistogramBucket {
        region: 0,
        caller: FunctionIndex(caller),
        function: FunctionIndex(3),
        bucket: bucket_of(Ticks(took)),
        count,
        example_ticks: Ticks(example),
    };
    // 3 at 100 ns, 4 at 200 ns (two callers), 2 at 900 ns: the fifth of nine took 200 ns.
    profile.tables.histograms =
        vec![row(1, 900, 2, 50), row(1, 200, 1, 900), row(2, 100, 3, 10), row(2, 200, 3, 700)];
    let picked = typical(&profile, FunctionIndex(3), None).unwrap();
    assert_eq!(picked.why, "the median of 9 calls lies between 192 ns and 223 ns");
    let CallStart::At { begin_ns, .. } = picked.start else { panic!() };
    assert_eq!(begin_ns, 700);
}
