//! Anatomy of an operation as text and JSON, from two small handmade traces: disk reads in two
//! kernels.

use crate::sample::{document_json, document_text, golden};
use kerntune_analyze::anatomy::{anatomy, Anatomy};
use kerntune_analyze::TraceFile;
use kerntune_profile::{
    Address, CallArc, CallKind as Word, DataPath, FunctionIndex, FunctionStats, KernelId, Manifest, Profile,
    RegionStats, Symbol, Tables, Ticks,
};
use kerntune_report::anatomy::{document, AnatomyQuestion, AnatomyView};
use kerntune_table::Document;
use kerntune_trace::{
    encode, CaptureSpec, ChunkHeader, ChunkState, EnterKind, Event, ModeCounters, OpenStack, RecordedRegion,
    RecordedThread, Recording, RecordingHealth, TraceFileWriter, TraceHeader, VERSION,
};
use serde_json::Value;
use std::ops::ControlFlow;

const BEGIN: u64 = 5_000_000_000;

/// Name and file of each function.
type SymbolList = [(&'static str, &'static str)];

const BASE: &SymbolList = &[
    ("__x64_sys_read", "fs/read_write.c"),
    ("vfs_read", "fs/read_write.c"),
    ("rw_verify_area", "fs/read_write.c"),
    ("blkdev_direct_IO.constprop.0", "block/fops.c"),
    ("bio_alloc_bioset", "block/bio.c"),
    ("mempool_alloc", "mm/mempool.c"),
    ("kmem_cache_alloc", "mm/slub.c"),
    ("submit_bio", "block/blk-core.c"),
    ("blk_mq_submit_bio", "block/blk-mq.c"),
    ("filemap_read", "mm/filemap.c"),
    ("asm_sysvec_apic_timer_interrupt", "arch/x86/entry/entry_64.S"),
    ("asm_exc_page_fault", "arch/x86/entry/entry_64.S"),
    ("update_process_times", "kernel/time/timer.c"),
    ("[unknown code]", ""),
];

const OTHER: &SymbolList = &[
    ("__x64_sys_read", "fs/read_write.c"),
    ("vfs_read", "fs/read_write.c"),
    ("blkdev_direct_IO", "block/fops.c"),
    ("bio_alloc_bioset", "block/bio.c"),
    ("bio_init", "block/bio.c"),
    ("submit_bio", "block/blk-core.c"),
    ("blk_mq_submit_bio", "block/blk-mq.c"),
    ("filemap_read", "mm/filemap.c"),
    ("[unknown code]", ""),
];

/// Trace made from a script: `>name` calls, `=name` is a system call, `!name` an
/// interrupt, `?name` an exception, `<` a return, `.` the return of an interrupt or exception, `^`
/// the return to user code.
struct TestTrace {
    symbols: &'static SymbolList,
    bytes: Vec<u8>,
    recording: Recording,
}

fn trace(symbols: &'static SymbolList, calls: &[&str]) -> TestTrace {
    let stack = OpenStack { thread: 0, running: true, frames: Vec::new() };
    let mut raw = Vec::new();
    ChunkState { user: true, regions: vec![], stacks: vec![stack], ..ChunkState::default() }.write(&mut raw);
    let state = raw.len() as u32;
    let mut events = vec![(0, Event::RegionBegin { region: 0 })];
    for call in calls {
        for word in call.split_whitespace() {
            let (ns, what) = word.split_at(word.find(|c: char| !c.is_ascii_digit()).unwrap());
            let enter = |how| {
                let function = symbols.iter().position(|(name, _)| *name == &what[1..]).expect(word);
                Event::Enter { function: function as u32, how }
            };
            let event = match &what[..1] {
                ">" => enter(EnterKind::Call),
                "=" => enter(EnterKind::Syscall),
                "!" => enter(EnterKind::Interrupt),
                "?" => enter(EnterKind::Exception),
                "<" => Event::Exit,
                "." => Event::Resume,
                _ => Event::Leave,
            };
            events.push((ns.parse::<u64>().unwrap(), event));
        }
    }
    events.push((0, Event::RegionEnd { region: 0 }));
    events.iter().for_each(|&(delta, event)| encode::event(&mut raw, delta, event));
    let end = BEGIN + events.iter().map(|(delta, _)| delta).sum::<u64>();
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
    let region = RecordedRegion {
        name: "randread".into(),
        begin_ns: BEGIN,
        elapsed_ns: end - BEGIN,
        idle_ns: 0,
        operations: calls.len() as u64,
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
        kernel_functions: symbols.len() as u32 - 1,
        first_loaded: None,
        cpus: 1,
        per_cpu: Vec::new(),
        regions: vec![region],
        threads: vec![RecordedThread { task: 0x1000, pid: 57, tgid: 57, comm: "fio".into() }],
        events: events.len() as u64,
        chunks,
        health: RecordingHealth::default(),
        notes: Vec::new(),
    };
    TestTrace { symbols, bytes, recording }
}

/// Two direct reads, of which the second hits a page fault and a timer interrupt, and one read
/// served from memory.
fn base() -> TestTrace {
    let direct = |fault: &str| {
        format!(
            "50=__x64_sys_read 4>vfs_read 10>rw_verify_area 12< 6>blkdev_direct_IO.constprop.0 20>rw_verify_area 12< \
             8>bio_alloc_bioset 9>mempool_alloc 5>kmem_cache_alloc 30< 4< 16< 25>submit_bio {fault} 11>blk_mq_submit_bio \
             200< 7< 9< 3< 8^"
        )
    };
    let late = "1?asm_exc_page_fault 90. 2!asm_sysvec_apic_timer_interrupt 40>update_process_times 500< 60.";
    trace(
        BASE,
        &[
            &direct(""),
            &direct(late),
            "40=__x64_sys_read 4>vfs_read 10>rw_verify_area 12< 6>filemap_read 120< 3< 8^",
        ],
    )
}

/// The same in a kernel that checks once, and has no pool.
fn other() -> TestTrace {
    let direct = "50=__x64_sys_read 4>vfs_read 28>blkdev_direct_IO 20>bio_alloc_bioset 9>bio_init 15< 16< 25>submit_bio \
                  11>blk_mq_submit_bio 190< 7< 9< 3< 8^";
    trace(OTHER, &[direct, direct, "40=__x64_sys_read 4>vfs_read 28>filemap_read 120< 3< 8^"])
}

fn profile(trace: &TestTrace, label: &str) -> Profile {
    let symbol = |(at, (name, file)): (usize, &(&str, &str))| Symbol {
        function: FunctionIndex(at as u32),
        name: name.to_string(),
        address: Address(0xffff_ffff_8100_0000 + 0x100 * at as u64),
        size: 0x80,
        file: (!file.is_empty()).then(|| file.to_string()),
        module: None,
    };
    let row = |function: usize| FunctionStats {
        region: 0,
        function: FunctionIndex(function as u32),
        calls: 1,
        ended: 1,
        self_ticks: Ticks(1),
        ended_self_ticks: Ticks(1),
        total_ticks: Ticks(1),
        max_ticks: Ticks(1),
        min_ticks: Ticks(1),
        slowest_ticks: Ticks(1),
        slowest_at_ticks: Ticks(1),
    };
    let region = RegionStats {
        name: "randread".into(),
        begin_ticks: Ticks(BEGIN),
        elapsed_ticks: Ticks(1),
        busy_ticks: Ticks(1),
        operations: 3,
        ..RegionStats::default()
    };
    let kernel = KernelId { id: format!("id-of-{label}"), label: label.into(), version: "6.12.90".into() };
    let mut manifest = Manifest::new(format!("p-{label}"), kernel, "fio", "emulator");
    (manifest.exact, manifest.capture.functions) = (true, true);
    let tables = Tables {
        symbols: trace.symbols.iter().enumerate().map(symbol).collect(),
        functions: (0..trace.symbols.len() - 1).map(row).collect(),
        regions: vec![region],
        ..Tables::default()
    };
    Profile { manifest, tables }
}

/// Creates the misses of a path.
fn missed(path: &str, l1d_misses: u64) -> DataPath {
    DataPath {
        region: 0,
        path: path.into(),
        l1d_misses,
        l1d_store_misses: 0,
        l2_misses: l1d_misses / 3,
        l3_misses: 0,
        transfers: 0,
        dtlb_misses: 1,
        walks: 0,
    }
}

/// The base kernel's profile with data accesses.
fn with_data() -> Profile {
    let mut profile = profile(&base(), "base");
    profile.manifest.model = Some("skylake".into());
    profile.tables.arcs = vec![CallArc {
        region: 0,
        caller: FunctionIndex::NONE,
        callee: FunctionIndex(10),
        how: Word::Interrupt,
        calls: 1,
        ended: 1,
        total_ticks: Ticks(600),
    }];
    let entry = "main;entry_SYSCALL_64;__x64_sys_read;vfs_read";
    profile.tables.data_paths = vec![
        missed(&format!("{entry};filemap_read"), 9),
        missed(&format!("{entry};blkdev_direct_IO.constprop.0;bio_alloc_bioset"), 30),
        missed(&format!("{entry};asm_sysvec_apic_timer_interrupt;update_process_times"), 1_000),
        missed("main;entry_SYSCALL_64;__x64_sys_write", 1_000),
    ];
    profile
}

struct AnatomyCase<'a> {
    operation: &'a str,
    region: Option<&'a str>,
    until: Option<&'a str>,
    depth: Option<u32>,
    min_percent: f64,
}

const READ: AnatomyCase =
    AnatomyCase { operation: "read", region: None, until: Some("submit_bio"), depth: None, min_percent: 1.0 };

fn found(trace: &TestTrace, profile: &Profile, asked: &AnatomyCase) -> (Anatomy, AnatomyQuestion) {
    let question = AnatomyQuestion::new(profile, asked.operation, asked.region, asked.until).unwrap();
    let source = trace.bytes.as_slice();
    let file = TraceFile::open(&source, &trace.recording).unwrap();
    (anatomy(&file, &question.request(), &mut |_| ControlFlow::Continue(())).unwrap(), question)
}

fn shown<T>(
    trace: &TestTrace,
    profile: &Profile,
    asked: &AnatomyCase,
    act: impl FnOnce(&AnatomyView) -> T,
) -> T {
    let (anatomy, question) = found(trace, profile, asked);
    act(&AnatomyView {
        profile,
        recording: &trace.recording,
        anatomy: &anatomy,
        function: question.function,
        region: asked.region,
        until: asked.until,
        depth: asked.depth,
        top: None,
        min_percent: asked.min_percent,
    })
}

fn plain(shown: &AnatomyView) -> String {
    document_text(document(shown, None))
}

fn side_by_side<T>(asked: &AnatomyCase, act: impl FnOnce(&AnatomyView, &AnatomyView) -> T) -> T {
    let (base, other) = (base(), other());
    let (a, b) = (profile(&base, "base"), profile(&other, "other"));
    shown(&base, &a, asked, |a| shown(&other, &b, asked, |b| act(a, b)))
}

#[test]
fn all_of_it_as_text() {
    golden("anatomy.txt", &shown(&base(), &with_data(), &READ, plain));
    let short =
        AnatomyCase { until: None, depth: Some(2), min_percent: 20.0, region: Some("randread"), ..READ };
    golden("anatomy_depth_2.txt", &shown(&base(), &profile(&base(), "base"), &short, plain));
}

#[test]
fn figures_by_hand() {
    let json = shown(&base(), &profile(&base(), "base"), &READ, |of| document_json(document(of, None)));
    // A direct read: 4 + 10 + 12 + 6 + 20 + 12 + 8 + 9 + 5 + 30 + 4 + 16 + 25 before submit_bio, 11
    // + 200 + 7 + 9 + 3 + 8 after.
    assert_eq!(json["before"]["spreads"]["elapsed"]["sum"], 2 * 161);
    assert_eq!(json["before"]["after"]["sum"], 2 * 238 + 1 + 90 + 2);
    assert_eq!(json["all"]["elapsed"]["sum"], 2 * (161 + 238) + 93 + 163);
    // Seven functions in eight calls.
    assert_eq!(
        json["before"]["typical"]["before"],
        serde_json::json!({"elapsed": 161, "calls": 8, "functions": 7, "depth": 6})
    );
    assert_eq!((&json["before"]["reach"], &json["before"]["do_not"]), (&2.into(), &1.into()));
    assert_eq!((&json["typical"]["elapsed"], &json["worst"]["elapsed"]), (&399.into(), &492.into()));
    assert_eq!(json["repeated"][0]["function"], "rw_verify_area");
    assert_eq!((&json["repeated"][0]["times"], &json["repeated"][0]["elapsed"]), (&2.into(), &24.into()));
}

/// Sums a field over rows.
fn sum(rows: &Value, of: impl Fn(&Value) -> &Value) -> u64 {
    rows.as_array().unwrap().iter().map(|row| of(row).as_u64().unwrap()).sum()
}

#[test]
fn whatever_is_folded_sums_are_those_of_all_calls() {
    let (trace, profile) = (base(), profile(&base(), "base"));
    for (depth, min_percent) in [(None, 0.0), (None, 5.0), (None, 100.0), (Some(0), 0.0), (Some(2), 3.0)] {
        let asked = AnatomyCase { depth, min_percent, ..READ };
        let json = shown(&trace, &profile, &asked, |of| document_json(document(of, None)));
        let (tree, all) = (&json["tree"], &json["all"]);
        // The self time of a folded line is that of all its nodes.
        for (field, figure) in [("self", "elapsed"), ("calls", "calls")] {
            assert_eq!(sum(tree, |row| &row["all"][field]), all[figure]["sum"].as_u64().unwrap(), "{field}");
            for one in ["typical", "worst"] {
                assert_eq!(
                    sum(tree, |row| &row[one][field]),
                    json[one][figure].as_u64().unwrap(),
                    "{one} {field}"
                );
            }
        }
        let before = &json["before"];
        assert_eq!(
            sum(tree, |row| &row["before"]["self"]),
            before["spreads"]["elapsed"]["sum"].as_u64().unwrap()
        );
        let stages = &before["typical"]["stages"];
        for (field, figure) in [("self", "elapsed"), ("calls", "calls")] {
            assert_eq!(
                sum(stages, |row| &row[field]),
                before["typical"]["before"][figure].as_u64().unwrap(),
                "{field}"
            );
        }
    }
}

#[test]
fn two_kernels_side_by_side() {
    let against = |a: &AnatomyView, b: &AnatomyView| document_text(document(a, Some(b)));
    golden("anatomy_against.txt", &side_by_side(&READ, against));
    let json = side_by_side(&READ, |a, b| document_json(document(a, Some(b))));
    let (against, rows) = (&json["against"], json["against"]["functions"].as_array().unwrap());
    assert_eq!(against["rest"], serde_json::json!([0, 0]));
    let sum = |side: usize| rows.iter().map(|row| row["self"][side].as_u64().unwrap()).sum::<u64>();
    assert_eq!(sum(0), json["all"]["elapsed"]["sum"].as_u64().unwrap());
    assert_eq!(sum(1), against["all"]["elapsed"]["sum"].as_u64().unwrap());
    let row = |name: &str| rows.iter().find(|row| row["function"] == name).unwrap();
    assert_eq!(row("rw_verify_area")["only"], "A");
    assert_eq!(row("bio_init")["only"], "B");
    // A compiler's copy of a function is paired with it.
    let paired = row("blkdev_direct_IO");
    assert_eq!(
        (&paired["only"], &paired["symbols"][0][0]),
        (&Value::Null, &"blkdev_direct_IO.constprop.0".into())
    );
    let same = shown(&base(), &profile(&base(), "base"), &READ, |of| document_json(document(of, Some(of))));
    for row in same["against"]["functions"].as_array().unwrap() {
        assert_eq!(row["self"][0], row["self"][1]);
    }
}

#[test]
fn a_boundary_that_is_never_reached_and_an_operation_without_whole_calls() {
    let trace = base();
    let profile = profile(&trace, "base");
    let never = AnatomyCase { operation: "bio_alloc_bioset", until: Some("blk_*"), ..READ };
    shown(&trace, &profile, &never, |of| {
        assert_eq!(of.anatomy.before.spreads.ns.count, 0);
        let text = plain(of);
        assert!(text.contains("Before blk_*: no call gets there\n"), "{text}");
    });
    let fault = AnatomyCase { operation: "asm_exc_page_fault", ..READ };
    shown(&trace, &profile, &fault, |of| assert_eq!(of.anatomy.all.ns.count, 1));
    shown(&self::trace(BASE, &[]), &profile, &READ, |of| {
        let error = document(of, None).err().unwrap().to_string();
        assert_eq!(
            error,
            "no call of __x64_sys_read was seen from its entry to its exit: 0 began or ended where nothing was recorded, \
             0 ended in other regions"
        );
    });
}

/// Renders the documentation of the JSON form.
pub fn documentation(docs: impl Fn(&Document) -> String) -> String {
    shown(&base(), &profile(&base(), "base"), &READ, |of| docs(&document(of, None).unwrap()))
}
