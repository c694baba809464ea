//! Tests with a program in place of a kernel, linked by a small version of the kernel's script.

use super::*;
use crate::{test_kernel, PreparedResult, RecipeProof};
use kerntune_kernel::{Kernel, Symbols, ORDER_END, ORDER_START};
use kerntune_profile::{
    Address, Block, CallArc, Edge, EdgeKind, FunctionIndex, FunctionStats, Instructions, KernelId, Manifest,
    Profile, SamplingSummary, Symbol, Tables, Ticks,
};
use kerntune_work::WorkDir;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// Sixty functions, of which every third runs: `f0` calls `f3`, which calls `f6` …
const FUNCTIONS: u64 = 60;
const STEP: u64 = 3;

pub(super) struct Fixture {
    pub dir: TempDir,
    pub work: WorkDir,
    pub movable: Kernel,
}

/// Links the program with these functions first.
fn link(dir: &Path, order: &[String], image: &Path) {
    let mut source = String::from("int sink;\n");
    for i in 0..FUNCTIONS {
        writeln!(source, "__attribute__((noinline)) void f{i}(int x) {{ for (; x; x--) sink ^= {i}; }}")
            .unwrap();
    }
    source.push_str("void _start(void)\n{\n");
    (0..FUNCTIONS).for_each(|i| writeln!(source, "\tf{i}(1);").unwrap());
    source.push_str("}\n");
    let placed: String = order.iter().map(|name| format!("*(.text.{name}) ")).collect();
    let script = format!(
        "SECTIONS {{ .text 0x400000 : {{ _stext = .; {ORDER_START} = .; {placed} {ORDER_END} = .; *(.text .text.*) \
         _etext = .; }} }}\n"
    );
    fs::create_dir_all(image.parent().unwrap()).unwrap();
    fs::write(dir.join("all.c"), source).unwrap();
    fs::write(dir.join("all.ld"), script).unwrap();
    let output = Command::new("gcc")
        .current_dir(dir)
        .args([
            "-O2",
            "-ffunction-sections",
            "-nostdlib",
            "-static",
            "-no-pie",
            "-Wl,-T,all.ld",
            "all.c",
            "-o",
        ])
        .arg(image)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

impl Fixture {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut movable = test_kernel::kernel(&dir.path().join("kernel"), "k1", "6.12.117");
        movable.manifest.movable = true;
        link(dir.path(), &[], &movable.vmlinux());
        let work = WorkDir::open(dir.path().join("work")).unwrap();
        Self { dir, work, movable }
    }

    /// Recording in which every third function is called by the previous one, later ones more
    /// often.
    pub fn recording(&self) -> Profile {
        let table = Symbols::load(&self.movable.vmlinux()).unwrap();
        let at = |i: u64| table.functions().iter().find(|f| f.name == format!("f{i}")).unwrap();
        let entered: Vec<u64> = (0..FUNCTIONS).step_by(STEP as usize).collect();
        let blocks = entered.iter().map(|&i| Block {
            start: Address(at(i).address),
            last: Address(at(i).address + 4),
            count: 100 + i,
            instructions: Instructions(2),
            bytes: 8,
        });
        let edges = entered.windows(2).map(|pair| Edge {
            source: Address(at(pair[0]).address + 4),
            target: Address(at(pair[1]).address),
            count: 100 + pair[1],
            kind: EdgeKind::Call,
        });
        let symbols = table.functions().iter().zip(0..).map(|(f, number)| Symbol {
            function: FunctionIndex(number),
            name: f.name.clone(),
            address: Address(f.address),
            size: f.size,
            file: None,
            module: None,
        });
        let tables = Tables {
            symbols: symbols.collect(),
            blocks: blocks.collect(),
            edges: edges.collect(),
            ..Tables::default()
        };
        let id = self.movable.manifest.id.clone();
        let kernel = KernelId { id, label: "base".into(), version: "6.12.117".into() };
        Profile { manifest: Manifest::new("r1", kernel, "rr", "emulator"), tables }
    }

    /// The same calls as [`recording`](Self::recording) has, without blocks: of another kernel, that
    /// runs somewhere. With `counted` they were counted, else sampled, each sample standing for 10 ns.
    pub fn live(&self, counted: bool) -> Profile {
        let mut profile = self.recording();
        let edges = std::mem::take(&mut profile.tables.edges);
        // The call of `f0`, which is one byte long, is behind it.
        let of = |address: Address| {
            let before = profile.tables.symbols.iter().filter(|symbol| symbol.address <= address);
            before.max_by_key(|symbol| symbol.address).unwrap().function
        };
        let arcs: Vec<CallArc> = edges
            .iter()
            .map(|edge| CallArc {
                caller: of(edge.source),
                callee: of(edge.target),
                calls: if counted { edge.count } else { 0 },
                total_ticks: Ticks(10 * edge.count),
                ..CallArc::default()
            })
            .collect();
        let functions = arcs.iter().map(|arc| FunctionStats {
            function: arc.callee,
            calls: arc.calls,
            self_ticks: Ticks(10),
            total_ticks: arc.total_ticks,
            ..FunctionStats::default()
        });
        // The first one is called by code that is not traced.
        let first = FunctionStats {
            function: arcs[0].caller,
            calls: u64::from(counted) * 100,
            self_ticks: Ticks(10),
            total_ticks: Ticks(1000),
            ..FunctionStats::default()
        };
        profile.tables.functions = functions.chain([first]).collect();
        profile.tables.arcs = arcs;
        profile.tables.blocks.clear();
        // Addresses of another kernel mean nothing here.
        profile.tables.symbols.iter_mut().for_each(|symbol| symbol.address = Address(0x10));
        profile.manifest.kernel =
            KernelId { id: "build id".into(), label: "6.12-server".into(), version: "6.12-server".into() };
        profile.manifest.capture.functions = true;
        profile.manifest.sampled = Some(SamplingSummary {
            source: "perf: cpu-clock".into(),
            samples: 10_000,
            sample_ns: Ticks(10),
            cpus: 1,
            wall_ns: Ticks(1),
            period: String::new(),
            bias: None,
            filter: None,
            calls: counted.then(|| "kgmon: calls of all functions".into()),
            bound_bytes: 0,
        });
        profile
    }

    /// Links the same objects in an order.
    pub fn linked(&self, name: &str, order: &[String]) -> Kernel {
        let mut tuned = self.movable.clone();
        tuned.dir = self.dir.path().join(name);
        link(self.dir.path(), order, &tuned.vmlinux());
        tuned
    }
}

#[test]
fn what_calls_each_other_is_ordered_and_the_image_is_asked() {
    let fixture = Fixture::new();
    for algorithm in OrderAlgorithm::ALL {
        let order = prepare_order(&fixture.work, &fixture.recording(), &fixture.movable, algorithm).unwrap();
        let names = order.order.names();
        assert_eq!(names.len() as u64, FUNCTIONS / STEP, "{names:?}");
        let neighbors = names.windows(2).filter(|pair| {
            let number = |name: &String| name[1..].parse::<u64>().unwrap();
            number(&pair[0]).abs_diff(number(&pair[1])) == STEP
        });
        assert!(neighbors.count() > 15, "{}: {names:?}", algorithm.name());
        let [before, after] = order.summary.call_distance;
        assert!(after < before, "{:?}", order.summary);
        assert_eq!(PreparedOrder::load(&order.dir).unwrap(), order);

        let proof = prove(&fixture.movable, &order, &fixture.linked("tuned", names)).unwrap();
        assert_eq!((proof.in_place, proof.out_of_order), (20, 0), "{proof:?}");
        proof.verdict().unwrap();
        assert!(proof.to_string().contains("20 of 20 that ran stand in order"), "{proof}");

        let plain = prove(&fixture.movable, &order, &fixture.movable).unwrap();
        let refused = plain.verdict().unwrap_err().to_string();
        assert!(refused.contains("0 of 20 functions are where the order says"), "{refused}");

        let reversed: Vec<String> = names.iter().rev().cloned().collect();
        let proof = prove(&fixture.movable, &order, &fixture.linked("reversed", &reversed)).unwrap();
        assert!(proof.verdict().unwrap_err().to_string().contains("19 functions come before"), "{proof:?}");
    }
}

#[test]
fn what_cannot_be_ordered_is_refused() {
    let fixture = Fixture::new();
    let prepare = |recording: &Profile, kernel: &Kernel| {
        prepare_order(&fixture.work, recording, kernel, DEFAULT_ALGORITHM).unwrap_err().to_string()
    };
    let mut other = fixture.recording();
    other.manifest.kernel.id = "k2".into();
    assert!(prepare(&other, &fixture.movable).contains("not of label-of-k1"));
    let mut empty = fixture.recording();
    empty.tables.blocks.clear();
    assert!(prepare(&empty, &fixture.movable).contains("--no-edges"));
    let mut fixed = fixture.movable.clone();
    fixed.manifest.movable = false;
    assert!(prepare(&fixture.recording(), &fixed).contains("kernel build --movable"));
}

#[test]
fn calls_without_blocks_order_the_functions_of_another_kernel_by_name() {
    let fixture = Fixture::new();
    let exact =
        prepare_order(&fixture.work, &fixture.recording(), &fixture.movable, DEFAULT_ALGORITHM).unwrap();
    for (counted, counts) in [(true, "call counts by caller"), (false, "sampled call chains")] {
        let profile = fixture.live(counted);
        let order = prepare_order(&fixture.work, &profile, &fixture.movable, DEFAULT_ALGORITHM).unwrap();
        assert_eq!(order.order.names(), exact.order.names());
        assert_eq!(order.summary.counts.as_deref(), Some(counts));
        let quality = order.quality().unwrap().unwrap();
        let text = quality.to_string();
        assert!(text.contains("20 of 20 have their name in the kernel, 100.0 % of the"), "{text}");
        assert!(text.contains("100.0 % of the time in the kernel's image"), "{text}");
        assert!(text.ends_with("fit for use"), "{text}");
        let proof = prove(&fixture.movable, &order, &fixture.linked("live", order.order.names())).unwrap();
        proof.verdict().unwrap();
    }
}

#[test]
fn calls_are_judged_by_what_they_have() {
    let fixture = Fixture::new();
    let prepare =
        |profile: &Profile| prepare_order(&fixture.work, profile, &fixture.movable, DEFAULT_ALGORITHM);
    let refused = |profile: &Profile| prepare(profile).unwrap_err().to_string();

    // Functions of modules and of programs are of no image; the others are not in this kernel.
    let mut elsewhere = fixture.live(true);
    elsewhere.tables.symbols.iter_mut().skip(30).for_each(|symbol| symbol.name += "_v2");
    let text = refused(&elsewhere);
    assert!(text.contains("of its calls are of functions that kernel label-of-k1 has by name"), "{text}");
    let mut modules = fixture.live(true);
    modules.tables.symbols.iter_mut().for_each(|symbol| symbol.module = Some("tun".into()));
    assert!(refused(&modules).contains("no call between two functions"), "{}", refused(&modules));

    let mut few = fixture.live(false);
    few.manifest.sampled.as_mut().unwrap().samples = 10;
    assert!(refused(&few).contains("it has 10 samples, 1000 are needed"), "{}", refused(&few));
    let mut lossy = fixture.live(false);
    lossy.manifest.lost_events = 30_000;
    assert!(refused(&lossy).contains("75.0 % of its samples were lost"), "{}", refused(&lossy));
    let mut flat = fixture.live(false);
    flat.tables.arcs.truncate(1);
    assert!(refused(&flat).contains("whose samples have a caller"), "{}", refused(&flat));

    // Counts of few functions say less than samples of all.
    let mut some = fixture.live(true);
    some.tables.functions.iter_mut().skip(2).for_each(|row| row.calls = 0);
    some.tables.arcs.iter_mut().skip(2).for_each(|row| row.calls = 0);
    assert_eq!(prepare(&some).unwrap().summary.counts.as_deref(), Some("sampled call chains"));
    let mut full = fixture.live(true);
    full.tables.arcs[0].calls = u64::MAX;
    assert!(refused(&full).contains("overflowed"), "{}", refused(&full));
}
