//! Converts the counters of an analysis to the profile's tables.

use crate::accounts::{AccountKey, ArcAccount};
use crate::accumulators::{Accumulators, SortedCounts, ThreadAccount};
use crate::hash::BuildIntegerHasher;
use crate::known::{call_kind, is_idle, TraceContext, INTERRUPT, UNKNOWN};
use crate::stitch::RegionTimes;
use crate::AnalysisInput;
use crate::{cpu_rows, data_rows, io_rows, path_rows};
use kerntune_profile as profile;
use kerntune_profile::{
    Address, CallArc, FunctionIndex, FunctionStats, FunctionTotals, HistogramBucket, IdleStats, Instructions,
    ModelEvent, ModelEventStats, PointStats, RegionStats, SwitchKind, SwitchStats, Symbol, Tables,
    ThreadKind, ThreadStats, Ticks,
};
use kerntune_trace::counts::{BranchKind, ExecutionCounts};
use kerntune_trace::ModelEventCount;
use std::collections::{BTreeMap, HashSet};

/// Makes all tables. `trusted` decides for each region whether the recorder's times are used.
pub(crate) fn tables(
    mut sums: Accumulators,
    input: &AnalysisInput<'_>,
    known: &TraceContext,
    measured: &[RegionTimes],
    trusted: impl Fn(usize) -> bool,
) -> Tables {
    let regions = regions(&sums, input, measured, trusted);
    let rest = sums.take_sorted_counts();
    let mut multi_cpu = std::mem::take(&mut sums.multi_cpu);
    let threads = threads(&sums, input, known);
    let used = path_rows::used(&sums.tree);
    let paths = path_rows::rows(&sums.tree, &used, known);
    let nodes = sums.tree.nodes.iter().zip(&used).filter(|(_, used)| **used);
    let open: HashSet<AccountKey, BuildIntegerHasher> =
        nodes.filter_map(|(node, _)| sums.accounts.key(node.account)).collect();
    drop(sums.tree);
    let mut accounts = sums.accounts.sorted();
    accounts.retain(|((region, _), _)| *region < known.outside());
    let mut tables = Tables {
        functions: functions(&accounts),
        arcs: arcs(&accounts, &open),
        histograms: histograms(&accounts),
        symbols: input.symbols.to_vec(),
        threads,
        regions,
        model_events: model_events(input),
        paths,
        ..Tables::default()
    };
    drop(accounts);
    add_sorted_counts(&mut tables, rest, input, known);
    cpu_rows::add(&mut tables, &mut multi_cpu, input, known);
    data_rows::add(&mut tables, input);
    io_rows::add(&mut tables, input);
    name_the_unknown(&mut tables);
    if let Some(counts) = input.counts {
        add_counts(&mut tables, counts);
    }
    tables
}

fn functions(accounts: &[(AccountKey, ArcAccount)]) -> Vec<FunctionStats> {
    let mut totals: BTreeMap<(u32, u32), FunctionTotals> = BTreeMap::new();
    for ((region, arc), account) in accounts {
        let ArcAccount { sums, slowest_at, .. } = account;
        if !happened(account) {
            continue;
        }
        let function = FunctionIndex(arc.callee());
        let none = FunctionTotals::none(function);
        let part = FunctionTotals {
            calls: account.calls(),
            ended: account.ended(),
            self_ticks: Ticks(account.self_time()),
            ended_self_ticks: Ticks(account.ended_self_time()),
            total_ticks: Ticks(sums.total),
            max_ticks: Ticks(sums.max),
            min_ticks: Ticks(sums.min),
            slowest_ticks: Ticks(sums.slowest),
            slowest_at_ticks: Ticks(*slowest_at),
            ..none
        };
        totals.entry((*region, function.0)).or_insert(none).add(&part);
    }
    totals.into_iter().map(|((region, _), totals)| totals.row(region)).collect()
}

/// Checks whether an account has any counts: open frames get an account in every region that
/// begins, even if they never run there.
fn happened(account: &ArcAccount) -> bool {
    account.self_time() > 0 || account.calls() > 0 || account.ended() > 0
}

/// Makes the rows of arcs, including arcs over which calls were `open` while only their callees
/// ran.
fn arcs(
    accounts: &[(AccountKey, ArcAccount)],
    open: &HashSet<AccountKey, BuildIntegerHasher>,
) -> Vec<CallArc> {
    let called = accounts.iter().filter(|(key, account)| happened(account) || open.contains(key));
    let row = |((region, arc), account): &(AccountKey, ArcAccount)| CallArc {
        region: *region,
        caller: FunctionIndex(arc.caller()),
        callee: FunctionIndex(arc.callee()),
        how: call_kind(arc.how()),
        calls: account.calls(),
        ended: account.ended(),
        total_ticks: Ticks(account.sums.total),
    };
    called.map(row).collect()
}

fn histograms(accounts: &[(AccountKey, ArcAccount)]) -> Vec<HistogramBucket> {
    let mut rows = Vec::new();
    let who = |key: &AccountKey| (key.0, key.1.caller(), key.1.callee());
    // Arcs that differ only in the kind of entry are adjacent.
    for same in accounts.chunk_by(|(a, _), (b, _)| who(a) == who(b)) {
        let Some(((key, first), rest)) = same.split_first() else { continue };
        let mut sum = first.histogram.clone();
        rest.iter().for_each(|(_, account)| sum.merge(&account.histogram));
        let (region, caller, function) = who(key);
        rows.extend(sum.rows().map(|(bucket, (count, example))| HistogramBucket {
            region,
            caller: FunctionIndex(caller),
            function: FunctionIndex(function),
            bucket,
            count,
            example_ticks: Ticks(example),
        }));
    }
    rows
}

fn threads(sums: &Accumulators, input: &AnalysisInput<'_>, known: &TraceContext) -> Vec<ThreadStats> {
    let mut rows: Vec<((u32, u32), ThreadAccount)> = sums.threads.iter().map(|(k, a)| (*k, *a)).collect();
    rows.retain(|((region, _), _)| *region < known.outside());
    rows.sort_unstable_by_key(|(key, _)| *key);
    let row = |((region, number), account): ((u32, u32), ThreadAccount)| {
        let (kind, pid, tgid, comm) = match input.recording.threads.get(number as usize) {
            Some(t) if is_idle(t) => (ThreadKind::Idle, t.pid, t.tgid, t.comm.as_str()),
            Some(t) => (ThreadKind::Thread, t.pid, t.tgid, t.comm.as_str()),
            None if number as usize == known.interrupt() => (ThreadKind::Interrupt, 0, 0, INTERRUPT),
            None => (ThreadKind::Thread, 0, 0, UNKNOWN),
        };
        ThreadStats {
            region,
            thread: number,
            kind,
            pid,
            tgid,
            comm: comm.to_owned(),
            self_ticks: Ticks(account.self_time),
            user_ticks: Ticks(account.user),
            switches_in: account.switches_in,
        }
    };
    rows.into_iter().map(row).collect()
}

fn regions(
    sums: &Accumulators,
    input: &AnalysisInput<'_>,
    measured: &[RegionTimes],
    trusted: impl Fn(usize) -> bool,
) -> Vec<RegionStats> {
    let accounts = sums.regions.iter().zip(measured);
    let rows = input.recording.regions.iter().zip(accounts).enumerate();
    rows.map(|(number, (region, (account, measured)))| {
        let (elapsed, idle) = match trusted(number) {
            true => (region.elapsed_ns, region.idle_ns),
            false => (measured.busy.saturating_add(measured.idle), measured.idle),
        };
        let (kernel, user) = (region.kernel, region.user);
        RegionStats {
            region: number as u32,
            name: region.name.clone(),
            begin_ticks: Ticks(region.begin_ns),
            elapsed_ticks: Ticks(elapsed),
            busy_ticks: Ticks(elapsed.saturating_sub(idle)),
            idle_ticks: Ticks(idle),
            user_ticks: Ticks(account.user),
            unattributed_ticks: Ticks(account.unattributed),
            operations: region.operations,
            depth: region.depth,
            kernel_instructions: Instructions(kernel.instructions),
            user_instructions: Instructions(user.instructions),
            kernel_taken_branches: kernel.taken_branches,
            user_taken_branches: user.taken_branches,
            kernel_l1i_misses: kernel.l1i_misses,
            user_l1i_misses: user.l1i_misses,
            kernel_itlb_misses: kernel.itlb_misses,
            user_itlb_misses: user.itlb_misses,
        }
    })
    .collect()
}

/// Makes the rows of model events. Events that only a newer recorder knows are left out.
fn model_events(input: &AnalysisInput<'_>) -> Vec<ModelEventStats> {
    let regions = input.recording.regions.iter().zip(0..);
    let events = regions.flat_map(|(region, number)| region.model_events.iter().map(move |e| (number, e)));
    let row = |(region, counted): (u32, &ModelEventCount)| {
        let event = ModelEvent::from_name(&counted.event)?;
        Some(ModelEventStats { region, event, kernel: counted.kernel, user: counted.user })
    };
    events.filter_map(row).collect()
}

fn add_sorted_counts(
    tables: &mut Tables,
    rest: SortedCounts,
    input: &AnalysisInput<'_>,
    known: &TraceContext,
) {
    let inside = |region: u32| region < known.outside();
    let comm = |number: u32| known.comms.get(number as usize).cloned().unwrap_or_default();
    let kind = |taken| if taken { SwitchKind::Preempted } else { SwitchKind::Voluntary };
    let switches = rest.switches.into_iter().filter(|((region, ..), _)| inside(*region));
    tables.switches = switches
        .map(|((region, from, to, reason, taken), count)| SwitchStats {
            region,
            from: comm(from),
            to: comm(to),
            reason: FunctionIndex(reason),
            kind: kind(taken),
            count,
        })
        .collect();
    let idles = rest.idles.into_iter().filter(|((region, ..), _)| inside(*region));
    tables.idles = idles
        .map(|((region, waker, bucket), (count, ns))| IdleStats {
            region,
            waker: FunctionIndex(waker),
            bucket,
            count,
            idle_ticks: Ticks(ns),
        })
        .collect();
    let points = rest.points.into_iter().filter(|((region, _), _)| inside(*region));
    tables.points = points
        .filter_map(|((region, point), count)| {
            let (point, function) = input.points.get(point as usize)?.clone();
            Some(PointStats { region, point, function, count })
        })
        .collect();
}

/// Adds a symbol for code outside of all known functions if it ran; its number is the one after the
/// last symbol.
fn name_the_unknown(tables: &mut Tables) {
    let function = FunctionIndex(tables.symbols.len() as u32);
    let ran = tables.functions.iter().any(|row| row.function == function)
        || tables.arcs.iter().any(|row| row.caller == function || row.callee == function)
        || tables.paths.iter().any(|row| row.function == function)
        || tables.switches.iter().any(|row| row.reason == function)
        || tables.idles.iter().any(|row| row.waker == function)
        || tables.data_places.iter().any(|row| row.function == function)
        || cpu_rows::name(tables, function);
    if ran {
        let name = UNKNOWN.to_owned();
        let (address, size) = (Address(0), 0);
        tables.symbols.push(Symbol { function, name, address, size, file: None, module: None });
    }
}

fn add_counts(tables: &mut Tables, counts: &ExecutionCounts) {
    tables.edges = (counts.edges.iter())
        .map(|edge| profile::Edge {
            source: Address(edge.source),
            target: Address(edge.target),
            count: edge.count,
            kind: edge_kind(edge.kind),
        })
        .collect();
    tables.blocks = (counts.blocks.iter())
        .map(|block| profile::Block {
            start: Address(block.start),
            last: Address(block.last),
            count: block.count,
            instructions: Instructions(block.instructions.into()),
            bytes: block.bytes.into(),
        })
        .collect();
}

fn edge_kind(kind: BranchKind) -> profile::EdgeKind {
    match kind {
        BranchKind::Conditional => profile::EdgeKind::Conditional,
        BranchKind::Jump => profile::EdgeKind::Jump,
        BranchKind::IndirectJump => profile::EdgeKind::IndirectJump,
        BranchKind::Call => profile::EdgeKind::Call,
        BranchKind::IndirectCall => profile::EdgeKind::IndirectCall,
        BranchKind::Return => profile::EdgeKind::Return,
    }
}
