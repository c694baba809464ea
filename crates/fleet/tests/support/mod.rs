//! Small random profiles.
#![allow(dead_code)] // each test program uses its own part

use kerntune_fleet::{Fleet, FleetEntry, ProfileFilter};
use kerntune_profile::{
    Address, CallArc, CallKind, FunctionIndex, FunctionStats, HistogramBucket, Instructions, KernelId,
    Manifest, PathKind, PathNode, Profile, RegionStats, Symbol, Tables, ThreadKind, ThreadStats, Ticks,
};
use std::path::Path;

const NAMES: [&str; 6] = ["do_syscall_64", "tcp_sendmsg", "tcp_v4_rcv", "schedule", "kfree", "memcpy"];

/// Reproducible pseudorandom numbers (SplitMix64).
pub struct TestRng(pub u64);

impl TestRng {
    pub fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below.max(1)
    }
}

/// Makes a profile of kernel `k1` with random functions, regions, threads and paths in random
/// order.
pub fn profile(number: u64) -> Profile {
    let mut numbers = TestRng(number);
    let mut of = |below| numbers.next(below);
    let first = of(3) as usize;
    let known = 3 + of(4) as usize;
    let symbol = |at: usize| {
        let which = (first + at) % NAMES.len();
        Symbol {
            function: FunctionIndex(at as u32),
            name: NAMES[which].into(),
            address: Address(0xffff_ffff_8100_0000 + 0x100 * which as u64),
            size: 0x80,
            file: (which % 2 == 0).then(|| format!("net/{}.c", NAMES[which])),
            module: None,
        }
    };
    let symbols: Vec<Symbol> = (0..known.min(NAMES.len())).map(symbol).collect();
    let regions: Vec<RegionStats> = (0..2 + of(3) as u32)
        .map(|region| RegionStats {
            region,
            name: ["tcp_rr", "udp_rr", "connect"][of(3) as usize].into(),
            operations: 1 + of(100),
            kernel_instructions: Instructions(1000 + of(100_000)),
            ..empty_region()
        })
        .collect();
    let mut tables = Tables { symbols, regions, ..Tables::default() };
    let functions = tables.symbols.len() as u64;
    let ns = Ticks;
    for region in 0..tables.regions.len() as u32 {
        for function in 0..functions as u32 {
            let (calls, net) = (1 + of(50), 100 + of(5000));
            tables.functions.push(FunctionStats {
                region,
                function: FunctionIndex(function),
                calls,
                ended: calls,
                self_ticks: ns(net),
                ended_self_ticks: ns(net),
                total_ticks: ns(net * 2),
                max_ticks: ns(net / 2),
                min_ticks: ns(net / 60),
                slowest_ticks: ns(net),
                slowest_at_ticks: ns(of(1_000_000)),
            });
            let caller = FunctionIndex(of(functions) as u32);
            tables.arcs.push(CallArc {
                region,
                caller,
                callee: FunctionIndex(function),
                how: CallKind::Call,
                calls,
                ended: calls,
                total_ticks: ns(net * 2),
            });
            tables.histograms.push(HistogramBucket {
                region,
                caller,
                function: FunctionIndex(function),
                bucket: of(20) as u32,
                count: calls,
                example_ticks: ns(of(1_000_000)),
            });
        }
        for thread in 0..1 + of(3) as u32 {
            tables.threads.push(ThreadStats {
                region,
                thread,
                kind: ThreadKind::Thread,
                pid: 100 + thread / 2,
                tgid: 100,
                comm: "redis".into(),
                self_ticks: ns(of(1000)),
                user_ticks: ns(of(1000)),
                switches_in: of(10),
            });
        }
        let root = tables.paths.len() as u32;
        tables.paths.push(path(region, root, PathNode::ROOT, FunctionIndex::NONE, PathKind::Thread));
        for at in 1..=of(4) as u32 {
            let parent = root + of(u64::from(at)) as u32;
            let function = FunctionIndex(of(functions) as u32);
            let node = path(region, root + at, parent, function, PathKind::Function);
            tables.paths.push(PathNode { calls: of(9), self_ticks: ns(of(500)), ..node });
        }
    }
    let kernel = KernelId { id: "k1".into(), label: "base".into(), version: "6.12.90".into() };
    let mut manifest =
        Manifest::new(format!("p{number:04}"), kernel, ["redis", "rr 2"][of(2) as usize], "emulator");
    manifest.recorded = format!("2026-11-{:02}T12:00:00.000Z", 1 + of(28));
    manifest.elapsed_ticks = ns(10_000 + of(1000));
    manifest.busy_ticks = ns(9_000);
    manifest.idle_ticks = manifest.elapsed_ticks - manifest.busy_ticks;
    manifest.events = of(100_000);
    manifest.exact = true;
    Profile { manifest, tables }
}

fn path(region: u32, path: u32, parent: u32, function: FunctionIndex, kind: PathKind) -> PathNode {
    PathNode { region, path, parent, kind, function, ..empty_path() }
}

/// Adds `count` profiles of several machines to a new fleet.
pub fn fleet(directory: &Path, count: u64) -> (Fleet, Vec<FleetEntry>) {
    let fleet = Fleet::open(&directory.join("fleet")).unwrap();
    for number in 0..count {
        let added = fleet.add(&saved(directory, &profile(number)), &format!("web-{}", number % 7)).unwrap();
        assert!(added.is_new);
    }
    let all = fleet.list(&ProfileFilter::default()).unwrap();
    assert_eq!(all.len() as u64, count);
    (fleet, all)
}

/// Writes a profile into a directory of its own.
pub fn saved(directory: &Path, profile: &Profile) -> std::path::PathBuf {
    let at = directory.join(&profile.manifest.id);
    std::fs::create_dir_all(&at).unwrap();
    profile.save(&at).unwrap();
    at
}

/// Returns all files of a profile.
pub fn files(profile: &Profile) -> Vec<(String, Vec<u8>)> {
    let dir = tempfile::tempdir().unwrap();
    profile.save(dir.path()).unwrap();
    let mut files: Vec<(String, Vec<u8>)> = std::fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), std::fs::read(entry.path()).unwrap()))
        .filter(|(name, _)| name != "result.json") // which says when it was made
        .collect();
    files.sort();
    files
}

fn empty_region() -> RegionStats {
    let (ns, none) = (Ticks::ZERO, Instructions::ZERO);
    RegionStats {
        begin_ticks: ns,
        elapsed_ticks: ns,
        busy_ticks: ns,
        idle_ticks: ns,
        user_ticks: ns,
        unattributed_ticks: ns,
        kernel_instructions: none,
        user_instructions: none,
        ..RegionStats::default()
    }
}

fn empty_path() -> PathNode {
    PathNode {
        path: 0,
        parent: PathNode::ROOT,
        kind: PathKind::Thread,
        comm: "redis".into(),
        ..PathNode::default()
    }
}
