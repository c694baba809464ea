//! Merging and difference of profiles.

mod support;

use kerntune_profile::*;
use proptest::prelude::*;
use support::{ns, region, sample, symbol};

#[test]
fn a_profile_merged_with_itself_is_doubled() {
    let one = sample("p");
    let two = merge(&[(&one, 1), (&one, 1)]).unwrap();
    assert_eq!(two.tables, merge(&[(&one, 2)]).unwrap().tables);
    assert_eq!(two.tables.functions[0].calls, 4);
    assert_eq!(two.tables.functions[0].max_ticks, one.tables.functions[0].max_ticks);
    assert_eq!(two.tables.regions.len(), 3, "the second tcp_rr is not the first");
    assert_eq!(two.tables.regions[2].elapsed_ticks, ns(100));
    assert_eq!(two.tables.threads.len(), 3);
    assert_eq!((two.manifest.elapsed_ticks, two.manifest.events), (ns(600), 14));
    assert_eq!(two.manifest.workload, "rr");
    assert_eq!(merge(&[(&one, 1)]).unwrap().tables.symbols, one.tables.symbols);
    // Footprints of several profiles cannot be added.
    assert_eq!(merge(&[(&one, 1)]).unwrap().tables.footprints, one.tables.footprints);
    assert!(two.tables.footprints.is_empty() && !one.tables.footprints.is_empty());
    assert_eq!(two.tables.data_tlbs, one.tables.data_tlbs);
}

#[test]
fn what_cannot_be_merged_is_said() {
    assert!(matches!(merge(&[]), Err(Error::NothingToMerge)));
    assert!(matches!(merge(&[(&sample("p"), 0)]), Err(Error::NothingToMerge)));
    let mut other = sample("q");
    other.manifest.kernel.id = "k2".into();
    let text = merge(&[(&sample("p"), 1), (&other, 1)]).unwrap_err().to_string();
    assert!(text.contains("p and q are of different kernels (k1 and k2)"), "{text}");
}

#[test]
fn functions_are_matched_by_address_and_name() {
    let one = sample("p");
    let mut other = sample("q");
    // The other recorder has one more symbol, before the others.
    for symbol in &mut other.tables.symbols {
        symbol.function.0 += 1;
    }
    other.tables.symbols.insert(0, symbol(0, "startup_64", 0xffff_ffff_80ff_0000));
    for row in &mut other.tables.functions {
        row.function.0 += 1;
    }
    other.tables.arcs.clear();
    other.tables.histograms.clear();
    let sum = merge(&[(&one, 1), (&other, 1)]).unwrap();
    assert_eq!(sum.tables.symbols.len(), 4);
    assert_eq!(sum.tables.functions.len(), 3);
    assert_eq!(sum.tables.functions[1].calls, 10);
    assert_eq!(sum.tables.name(sum.tables.functions[1].function), "show");
}

#[test]
fn paths_are_matched_from_the_root_and_weighted() {
    let row = |path, parent, kind, function, [calls, net, branches]: [u64; 3]| PathNode {
        path,
        parent,
        kind,
        comm: if kind == PathKind::Thread { "t17".into() } else { String::new() },
        function: FunctionIndex(function),
        calls,
        self_ticks: ns(net),
        taken_branches: branches,
        itlb_misses: 1,
        ..PathNode::default()
    };
    let root = |path| row(path, PathNode::ROOT, PathKind::Thread, u32::MAX, [0, 0, 0]);
    let (mut one, mut other) = (sample("p"), sample("q"));
    // t17 → 0 → 1, and another t17 in which 1 is called by 0, by 1, and by nobody.
    one.tables.paths = vec![
        root(0),
        row(1, 0, PathKind::Function, 0, [1, 10, 2]),
        row(2, 1, PathKind::Function, 1, [2, 20, 4]),
    ];
    other.tables.paths = vec![
        root(0),
        row(1, 0, PathKind::Function, 1, [5, 50, 10]),
        row(2, 1, PathKind::Function, 1, [6, 60, 12]),
        row(3, 0, PathKind::Function, 0, [7, 70, 14]),
        row(4, 3, PathKind::Function, 1, [8, 80, 16]),
    ];
    let sum = merge(&[(&one, 3), (&other, 2)]).unwrap().tables.paths;
    let rows: Vec<_> = (sum.iter())
        .map(|r| (r.parent, r.function.0, r.calls, r.self_ticks.0, r.taken_branches, r.itlb_misses))
        .collect();
    assert_eq!(
        rows,
        [
            (PathNode::ROOT, u32::MAX, 0, 0, 0, 5),
            (0, 0, 3 + 14, 30 + 140, 6 + 28, 5),
            (1, 1, 6 + 16, 60 + 160, 12 + 32, 5),
            (0, 1, 10, 100, 20, 2),
            (3, 1, 12, 120, 24, 2),
        ]
    );
}

#[test]
fn a_difference_is_by_name_over_all_regions() {
    let base = sample("p");
    let mut other = sample("q");
    other.tables.functions.remove(0);
    other.tables.functions[0].self_ticks = ns(25);
    let functions = difference(&base, &other).functions;
    assert_eq!(functions.len(), 2);
    assert_eq!((functions[0].name.as_str(), functions[0].totals[1]), ("do_syscall_64", None));
    assert_eq!(functions[0].self_change(), -60);
    assert_eq!(functions[1].name, "show");
    assert_eq!((functions[1].self_change(), functions[1].calls_change()), (-15, 0));
    assert_eq!(functions[1].totals[0].unwrap().calls, 6);
}

/// Functions of up to three regions with small numbers.
fn any_profile() -> impl Strategy<Value = Profile> {
    let row = (0u32..3, 0u32..3, 0u64..9, 0u64..1000);
    prop::collection::vec(row, 0..9).prop_map(|rows| {
        let mut profile = sample("p");
        profile.tables.edges.pop();
        profile.tables.regions = (0..3).map(|r| region(r, "same name", 0, 100)).collect();
        profile.tables.functions = (rows.into_iter())
            .map(|(region, function, calls, net)| FunctionStats {
                region,
                function: FunctionIndex(function),
                calls,
                ended: calls / 2,
                self_ticks: ns(net),
                ended_self_ticks: ns(if calls > 1 { net } else { 0 }),
                total_ticks: ns(2 * net),
                max_ticks: ns(net.min(calls * net)),
                min_ticks: ns(net.min(calls * net) / 2),
                slowest_ticks: ns(2 * net.min(calls * net)),
                slowest_at_ticks: ns(calls),
            })
            .collect();
        profile
    })
}

proptest! {
    #[test]
    fn parts_sum_exactly_to_the_total(parts in prop::collection::vec((any_profile(), 1u64..5), 1..4)) {
        let refs: Vec<_> = parts.iter().map(|(p, w)| (p, *w)).collect();
        let sum = merge(&refs).unwrap();
        let weigh = |of: &dyn Fn(&Tables) -> u64| parts.iter().map(|(p, w)| of(&p.tables) * w).sum::<u64>();
        for of in [
            (|t| t.functions.iter().map(|r| r.self_ticks.0).sum()) as fn(&Tables) -> u64,
            |t| t.functions.iter().map(|r| r.calls).sum(),
            |t| t.functions.iter().map(|r| r.ended).sum(),
            |t| t.functions.iter().map(|r| r.ended_self_ticks.0).sum(),
            |t| t.functions.iter().map(|r| r.total_ticks.0).sum(),
            |t| t.arcs.iter().map(|r| r.calls + r.ended + r.total_ticks.0).sum(),
            |t| t.threads.iter().map(|r| r.self_ticks.0 + r.switches_in).sum(),
            |t| t.regions.iter().map(|r| r.busy_ticks.0 + r.operations + r.user_itlb_misses).sum(),
            |t| t.edges.iter().map(|r| r.count).sum(),
            |t| t.blocks.iter().map(|r| r.count).sum(),
            |t| t.histograms.iter().map(|r| r.count).sum(),
            |t| t.paths.iter().map(|r| r.calls + r.self_ticks.0 + r.taken_branches + r.l1i_misses).sum(),
            |t| t.switches.iter().map(|r| r.count).sum(),
            |t| t.idles.iter().map(|r| r.count + r.idle_ticks.0).sum(),
            |t| t.points.iter().map(|r| r.count).sum(),
            |t| t.model_events.iter().map(|r| r.kernel + r.user).sum(),
            |t| t.cpus.iter().map(|r| r.kernel_instructions.0 + r.busy_ticks.0 + r.halted_ticks.0).sum(),
            |t| t.cpus.iter().map(|r| r.user_instructions.0 + r.interrupts + r.switches).sum(),
            |t| t.cpu_front_ends.iter().map(|r| r.kernel_taken_branches + r.user_taken_branches).sum(),
            |t| t.cpu_front_ends.iter().map(|r| r.kernel_l1i_misses + r.user_l1i_misses).sum(),
            |t| t.cpu_front_ends.iter().map(|r| r.kernel_itlb_misses + r.user_itlb_misses).sum(),
            |t| t.cpu_model_events.iter().map(|r| r.kernel + r.user).sum(),
            |t| t.cpu_interrupts.iter().map(|r| r.count).sum(),
            |t| t.signals.iter().map(|r| r.count).sum(),
            |t| t.migrations.iter().map(|r| r.count).sum(),
            |t| t.delays.iter().map(|r| r.count + r.delay_ticks.0).sum(),
            |t| t.blocked.iter().map(|r| r.count + r.blocked_ticks.0).sum(),
            |t| t.locks.iter().map(|r| r.count + r.wait_ticks.0).sum(),
            |t| t.lock_paths.iter().map(|r| r.count + r.wait_ticks.0).sum(),
            |t| t.system_calls.iter().map(|r| r.calls + r.ended + r.errors + r.elapsed_ticks.0).sum(),
            |t| t.thread_cgroups.iter().map(|r| r.self_ticks.0 + r.user_ticks.0).sum(),
            |t| t.data_accesses.iter().map(|r| r.loads + r.stores + r.l1d_misses + r.walks).sum(),
            |t| t.data_paths.iter().map(|r| r.l1d_store_misses + r.l2_misses + r.dtlb_misses).sum(),
            |t| t.data_places.iter().map(|r| r.l1d_misses + r.l3_misses + r.transfers).sum(),
            |t| t.shared_lines.iter().map(|r| r.loads + r.stores + r.transfers).sum(),
            |t| t.io_requests.iter().map(|r| r.requests + r.again + r.completed + r.completed_later).sum(),
            |t| t.io_requests.iter().map(|r| r.unfinished + r.issued_before + r.sequential).sum(),
            |t| t.packets.iter().map(|r| r.packets + r.bytes).sum(),
            |t| t.distributions.iter().map(|r| r.count).sum(),
            |t| t.page_accesses.iter().map(|r| r.loads + r.stores).sum(),
        ] {
            prop_assert_eq!(of(&sum.tables), weigh(&of));
        }
        let max = |t: &Tables| t.functions.iter().filter(|r| r.ended > 0).map(|r| r.max_ticks).max();
        prop_assert_eq!(max(&sum.tables), parts.iter().filter_map(|(p, _)| max(&p.tables)).max());
        let min = |t: &Tables| t.functions.iter().filter(|r| r.ended > 0).map(|r| r.min_ticks).min();
        prop_assert_eq!(min(&sum.tables), parts.iter().filter_map(|(p, _)| min(&p.tables)).min());
        // Sums of neighbors add up to the same tables.
        let half = |parts: &[(Profile, u64)]| {
            let mut sum = ProfileSum::default();
            parts.iter().for_each(|(part, weight)| sum.add(part.tables.clone(), *weight).unwrap());
            sum
        };
        let (first, later) = parts.split_at(parts.len() / 2);
        let mut halves = half(first);
        halves.append(half(later)).unwrap();
        prop_assert_eq!(halves.into_tables(), sum.tables.clone());
        // Subtracting a part by name leaves no rest.
        let none = difference(&sum, &sum).functions;
        prop_assert!(none.iter().all(|f| f.self_change() == 0));
    }
}
