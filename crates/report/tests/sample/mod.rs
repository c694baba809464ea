//! Handmade models for tests and for `examples/sample_page.rs`: the figures of the first prototype
//! (TCP_RR, UDP_RR, pipe, creat; Linux 6.12, clang -O2 and clang-autofdo), and a profile of a dozen
//! functions in the proportions of the base kernel's.
#![allow(dead_code)]

use kerntune_compare::{
    Comparison, ComparisonLabels, KernelRef, Measurement, Metric, ModelCosts, RegionFigures,
};
use kerntune_profile::{
    Address, CaptureSummary, FunctionIndex, FunctionStats, Instructions, KernelId, Manifest, Profile,
    RegionStats, Symbol, Tables, Ticks,
};
use kerntune_report::{Result, Style};
use kerntune_table::{render, Document};
use serde_json::Value;
use std::path::PathBuf;

/// Renders a document as text.
pub fn document_text(document: Result<Document>) -> String {
    render::text(&document.unwrap(), Style::PLAIN)
}

/// Renders a document as JSON, and parses it.
pub fn document_json(document: Result<Document>) -> Value {
    serde_json::from_str(&render::json(&document.unwrap())).unwrap()
}

/// Checks the output against the file of this name in `tests/golden`.
pub fn golden(name: &str, found: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, found).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(found, expected, "differs from {}; UPDATE_GOLDEN=1 rewrites it", path.display());
}

/// Name, operations; then per operation: instructions, branches, L1I misses, iTLB misses.
type SampleOperation = (&'static str, u64, [f64; 4]);

fn measurement(operations: &[SampleOperation]) -> Measurement {
    Measurement::from_regions(operations.iter().map(|&(name, operations, per)| {
        let counts = per.map(|figure| (figure * operations as f64).round() as u64);
        RegionFigures {
            name,
            depth: 0,
            closed: true,
            operations,
            counts: Metric::COUNTED.into_iter().zip(counts).collect(),
            events: Default::default(),
            whole_events: Default::default(),
        }
    }))
    .unwrap()
}

pub fn labels() -> ComparisonLabels {
    let kernel = |id: &str, label: &str, recipe: Option<&str>| KernelRef {
        id: id.into(),
        label: label.into(),
        version: "6.12.90".into(),
        compiler: "clang 19.1.4".into(),
        recipe: recipe.map(Into::into),
    };
    ComparisonLabels {
        workload: "rr".into(),
        machine: "emulator".into(),
        model: "generic".into(),
        costs: Some(ModelCosts {
            path_length: 0.25,
            taken_branches: 1.0,
            l1i_misses: 12.0,
            itlb_misses: 14.0,
            ..ModelCosts::default()
        }),
        base: kernel("3f9ac01d77e2", "clang -O2", None),
        tuned: kernel("b2047a5e91c4", "clang-autofdo", Some("clang-autofdo")),
    }
}

/// Ten operations: most are lower, one is unchanged within A/A, one is higher.
pub fn comparison() -> Comparison {
    let base = measurement(&[
        ("tcp_rr", 10_000, [20_396.4, 3_391.2, 1_011.4, 46.1]),
        ("udp_rr", 10_000, [14_981.0, 2_420.7, 702.6, 38.4]),
        ("pipe", 20_000, [1_630.2, 287.9, 61.2, 4.2]),
        ("socketpair", 20_000, [3_120.5, 540.1, 122.7, 7.9]),
        ("fork_exit", 500, [96_340.0, 14_822.0, 2_913.5, 211.0]),
        ("fork_exec", 200, [402_113.0, 66_210.0, 14_020.1, 903.3]),
        ("creat_close", 5_000, [3_975.3, 688.4, 160.3, 9.1]),
        ("stat", 20_000, [812.0, 141.0, 3.4, 0.02]),
        ("read_4k", 20_000, [1_248.7, 120.5, 8.1, 0.5]),
        ("getpid", 50_000, [61.0, 9.0, 0.0, 0.0]),
    ]);
    let again = measurement(&[
        ("tcp_rr", 10_000, [20_394.1, 3_391.0, 1_011.1, 46.1]),
        ("udp_rr", 10_000, [14_981.2, 2_420.7, 702.7, 38.4]),
        ("pipe", 20_000, [1_630.2, 287.9, 61.2, 4.2]),
        ("socketpair", 20_000, [3_120.5, 540.1, 122.8, 7.9]),
        ("fork_exit", 500, [96_371.0, 14_826.0, 2_921.5, 212.0]),
        ("fork_exec", 200, [402_110.0, 66_210.0, 14_019.1, 903.3]),
        ("creat_close", 5_000, [3_975.3, 688.4, 160.1, 9.1]),
        ("stat", 20_000, [812.0, 141.0, 3.5, 0.03]),
        ("read_4k", 20_000, [1_248.7, 120.5, 8.1, 0.5]),
        ("getpid", 50_000, [61.0, 9.0, 0.0, 0.0]),
    ]);
    let tuned = measurement(&[
        ("tcp_rr", 10_000, [17_985.3, 2_410.8, 470.9, 29.8]),
        ("udp_rr", 10_000, [12_760.1, 1_702.3, 331.5, 23.7]),
        ("pipe", 20_000, [1_479.0, 209.4, 28.3, 2.2]),
        ("socketpair", 20_000, [2_811.6, 402.0, 55.0, 4.1]),
        ("fork_exit", 500, [96_350.0, 12_011.0, 2_102.2, 160.0]),
        ("fork_exec", 200, [389_870.0, 55_421.0, 10_333.8, 704.3]),
        ("creat_close", 5_000, [3_463.2, 488.7, 71.2, 5.0]),
        ("stat", 20_000, [771.0, 98.0, 3.3, 0.02]),
        ("read_4k", 20_000, [1_254.9, 124.3, 7.0, 0.5]),
        ("getpid", 50_000, [61.0, 9.0, 0.0, 0.1]),
    ]);
    Comparison::new(&base, &again, &tuned, labels()).unwrap()
}

/// A comparison with user code, whose L1I misses the tuned kernel changes, over three seeds, and
/// with five random layouts of the base kernel.
pub fn whole_with_layouts() -> Comparison {
    let run = |kernel: u64, l1i: u64, user_l1i: u64| {
        let counts = [
            (Metric::PathLength, kernel),
            (Metric::TakenBranches, kernel / 6),
            (Metric::L1iMisses, l1i),
            (Metric::ItlbMisses, l1i / 9),
            (Metric::UserInstructions, 700_000),
            (Metric::UserL1iMisses, user_l1i),
            (Metric::UserItlbMisses, 120),
            (Metric::WholeInstructions, kernel + 700_000),
            (Metric::WholeTakenBranches, kernel / 6 + 90_000),
            (Metric::WholeL1iMisses, l1i + user_l1i),
            (Metric::WholeItlbMisses, l1i / 9 + 120),
        ];
        let region = RegionFigures {
            name: "get",
            depth: 0,
            closed: true,
            operations: 100,
            counts: counts.into(),
            events: Default::default(),
            whole_events: Default::default(),
        };
        Measurement::from_regions([region]).unwrap()
    };
    let seeds = |of: &dyn Fn(u64) -> Measurement| (0..3).map(|seed| vec![of(seed)]).collect::<Vec<_>>();
    let base = seeds(&|seed| run(2_000_000 + 10_000 * seed, 40_000 + 500 * seed, 9_000));
    let tuned = seeds(&|seed| run(1_860_000 + 9_300 * seed, 25_000 + 400 * seed, 8_100 + 30 * seed));
    let mut comparison = Comparison::from_runs(&base, &base[0][0], &tuned, labels()).unwrap();
    let orders = [44_000, 39_000, 41_500, 47_000, 42_200].map(|l1i| run(2_000_000, l1i, 9_000 + l1i / 100));
    let ids = (1..=orders.len()).map(|at| format!("{at:016x}")).collect();
    comparison.layouts = Some(comparison.place_among(&orders, ids, 1, labels().costs.as_ref()));
    let of_models = ["skylake", "skylake+next-line"].map(|model| {
        let mut of = comparison.clone();
        of.model = model.into();
        of
    });
    comparison.models = Some(Comparison::across_models(&of_models));
    comparison
}

/// A server that compiled its programs at other times on the tuned kernel, whose own path is
/// longer: one run of each kernel.
pub fn other_work() -> Comparison {
    let run = |kernel: u64, user: u64| {
        let counts = [
            (Metric::PathLength, kernel),
            (Metric::TakenBranches, kernel / 6),
            (Metric::UserInstructions, user),
            (Metric::WholeInstructions, kernel + user),
        ];
        let region = RegionFigures {
            name: "get",
            depth: 0,
            closed: true,
            operations: 100,
            counts: counts.into(),
            events: Default::default(),
            whole_events: Default::default(),
        };
        Measurement::from_regions([region]).unwrap()
    };
    let base = run(100_000, 900_000);
    Comparison::new(&base, &base, &run(100_200, 886_500), labels()).unwrap()
}

/// A comparison without any change.
pub fn unchanged() -> Comparison {
    let run = measurement(&[("getpid", 1_000, [61.0, 9.0, 0.0, 0.0])]);
    Comparison::new(&run, &run, &run, labels()).unwrap()
}

/// Name, file; calls, self, total, max, min (ns).
type SampleFunction = (&'static str, Option<&'static str>, [u64; 5]);

const BEFORE: &[SampleFunction] = &[
    ("entry_SYSCALL_64", Some("arch/x86/entry/entry_64.S"), [120_000, 9_120_000, 480_300_200, 84, 70]),
    ("tcp_sendmsg_locked", Some("net/ipv4/tcp.c"), [20_000, 17_440_120, 231_002_340, 1_402, 801]),
    ("tcp_ack", Some("net/ipv4/tcp_input.c"), [20_000, 16_204_000, 34_120_930, 2_013, 655]),
    ("__tcp_transmit_skb", Some("net/ipv4/tcp_output.c"), [20_011, 15_009_010, 180_344_002, 1_120, 701]),
    ("ip_finish_output2", Some("net/ipv4/ip_output.c"), [40_000, 11_921_480, 150_100_020, 420, 288]),
    (
        "__netif_receive_skb_core.constprop.0",
        Some("net/core/dev.c"),
        [40_000, 10_404_300, 120_233_120, 511, 240],
    ),
    ("schedule", Some("kernel/sched/core.c"), [40_080, 3_020_300, 399_873_002, 140, 71]),
    ("pick_next_entity", Some("kernel/sched/fair.c"), [40_071, 5_640_200, 9_332_010, 344, 101]),
    ("kmem_cache_alloc_node_noprof", Some("mm/slub.c"), [60_004, 8_140_000, 8_140_000, 2_091, 120]),
    ("copy_from_iter", Some("lib/iov_iter.c"), [40_000, 2_560_000, 2_560_000, 64, 64]),
    ("cleanup", Some("net/unix/garbage.c"), [12, 1_204, 1_204, 130, 90]),
    ("cleanup", Some("fs/pipe.c"), [7, 911, 2_030, 210, 88]),
    ("asm_sysvec_apic_timer_interrupt", None, [131, 40_220, 1_203_220, 402, 301]),
    ("cpu_idle_poll", Some("kernel/sched/idle.c"), [0, 12_001, 0, 0, 0]),
];

const AFTER: &[SampleFunction] = &[
    ("entry_SYSCALL_64", Some("arch/x86/entry/entry_64.S"), [120_000, 9_120_000, 410_300_200, 84, 70]),
    ("tcp_sendmsg_locked", Some("net/ipv4/tcp.c"), [20_000, 21_950_020, 190_002_340, 1_402, 901]),
    ("tcp_ack", Some("net/ipv4/tcp_input.c"), [20_000, 13_110_000, 28_120_930, 1_813, 555]),
    ("tcp_ack.cold", Some("net/ipv4/tcp_input.c"), [40, 9_120, 9_120, 333, 95]),
    ("__tcp_transmit_skb", Some("net/ipv4/tcp_output.c"), [20_011, 12_332_010, 150_344_002, 1_020, 601]),
    ("ip_finish_output2", Some("net/ipv4/ip_output.c"), [40_000, 9_101_480, 120_100_020, 399, 221]),
    ("__netif_receive_skb_core", Some("net/core/dev.c"), [40_000, 8_404_300, 100_233_120, 411, 200]),
    ("schedule", Some("kernel/sched/core.c"), [40_080, 7_911_300, 340_873_002, 340, 171]),
    ("kmem_cache_alloc_node_noprof", Some("mm/slub.c"), [60_004, 7_002_000, 7_002_000, 1_991, 110]),
    ("copy_from_iter", Some("lib/iov_iter.c"), [40_000, 2_560_000, 2_560_000, 64, 64]),
    ("skb_release_data", Some("net/core/skbuff.c"), [20_000, 902_000, 1_902_000, 101, 40]),
    ("cleanup", Some("net/unix/garbage.c"), [12, 1_104, 1_104, 120, 80]),
];

fn region(at: u32, name: &str, operations: u64, times: [u64; 4], kernel: [u64; 4]) -> RegionStats {
    let [elapsed, idle, user, begin] = times;
    let [instructions, branches, l1i, itlb] = kernel;
    RegionStats {
        region: at,
        name: name.into(),
        begin_ticks: Ticks(begin),
        elapsed_ticks: Ticks(elapsed),
        busy_ticks: Ticks(elapsed - idle),
        idle_ticks: Ticks(idle),
        user_ticks: Ticks(user),
        unattributed_ticks: Ticks(0),
        operations,
        depth: 0,
        kernel_instructions: Instructions(instructions),
        user_instructions: Instructions(user),
        kernel_taken_branches: branches,
        user_taken_branches: user / 9,
        kernel_l1i_misses: l1i,
        user_l1i_misses: user / 90,
        kernel_itlb_misses: itlb,
        user_itlb_misses: user / 900,
    }
}

fn profile(id: &str, kernel: KernelId, functions: &[SampleFunction], scale: u64) -> Profile {
    let mut manifest = Manifest::new(id, kernel, "rr", "emulator");
    manifest.model = Some("generic".into());
    manifest.recorded = "2025-06-01T12:00:00.000Z".into();
    manifest.capture =
        CaptureSummary { functions: true, edges: true, model: true, weights: false, ..Default::default() };
    manifest.exact = true;
    manifest.events = 28_060_412;
    let regions = vec![
        region(
            0,
            "tcp_rr",
            10_000,
            [214_272_000, 0, 10_308_000, 5_000_000_000],
            [203_964_000 * scale / 100, 33_912_000, 10_114_000, 461_000],
        ),
        region(1, "getpid", 50_000, [4_200_000, 0, 1_150_000, 5_300_000_000], [3_050_000, 450_000, 0, 0]),
        region(
            2,
            "tcp_rr",
            10_000,
            [278_800_000, 5_024_000, 12_000_600, 5_400_000_000],
            [203_960_000 * scale / 100, 33_908_000, 10_116_000, 461_100],
        ),
        region(3, "setup", 0, [1_200_300, 800_000, 100_000, 5_800_000_000], [300_300, 44_000, 9_000, 700]),
    ];
    let sum = |of: fn(&RegionStats) -> Ticks| regions.iter().map(of).sum::<Ticks>();
    manifest.elapsed_ticks = sum(|row| row.elapsed_ticks);
    manifest.idle_ticks = sum(|row| row.idle_ticks);
    manifest.busy_ticks = sum(|row| row.busy_ticks);
    let mut tables = Tables { regions, ..Tables::default() };
    for (at, &(name, file, [calls, net, elapsed, max, min])) in functions.iter().enumerate() {
        let function = FunctionIndex(at as u32);
        tables.symbols.push(Symbol {
            function,
            name: name.into(),
            address: Address(0xffff_ffff_8100_0000 + 0x400 * at as u64),
            size: 0x3f0,
            file: file.map(Into::into),
            module: None,
        });
        // Two thirds in the first region, the rest in the third.
        for (region, part) in [
            (0, [calls * 2 / 3, net * 2 / 3, elapsed * 2 / 3]),
            (2, [calls - calls * 2 / 3, net - net * 2 / 3, elapsed - elapsed * 2 / 3]),
        ] {
            let [calls, net, elapsed] = part;
            tables.functions.push(FunctionStats {
                region,
                function,
                calls,
                ended: calls,
                self_ticks: Ticks(net),
                ended_self_ticks: Ticks(if calls == 0 { 0 } else { net }),
                total_ticks: Ticks(elapsed),
                max_ticks: Ticks(if calls == 0 { 0 } else { max - u64::from(region) }),
                min_ticks: Ticks(if calls == 0 { 0 } else { min }),
                slowest_ticks: Ticks(elapsed.checked_div(calls).unwrap_or(0) * 2),
                slowest_at_ticks: Ticks(if calls == 0 { 0 } else { 5_000_000_000 + u64::from(region) }),
            });
        }
    }
    Profile { manifest, tables }
}

pub fn before() -> Profile {
    let kernel = KernelId { id: "3f9ac01d77e2".into(), label: "clang -O2".into(), version: "6.12.90".into() };
    let mut profile = profile("p-20250601-a1", kernel, BEFORE, 100);
    profile.manifest.health = [("unmatched_returns", 12), ("clock_checks", 4_120)]
        .map(|(what, count)| (what.to_string(), count))
        .into();
    profile
}

pub fn after() -> Profile {
    let kernel =
        KernelId { id: "b2047a5e91c4".into(), label: "clang-autofdo".into(), version: "6.12.90".into() };
    profile("p-20250601-b7", kernel, AFTER, 88)
}
