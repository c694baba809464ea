//! Document that the page's scripts read, in columns; `scripts/types.d.ts` has its types.

use super::code::PageCode;
use super::groups::RegionGroups;
use super::moments::{self, TimeData};
use super::numbers::{code, FunctionNumbers, PageIndex, StringTable, NONE};
use super::pack;
use super::tree::{trees, GroupTree, TreeNode};
use super::TraceTimeline;
use crate::view::ScopeView;
use crate::Result;
use kerntune_profile::{CallKind, FunctionTotals, PathFrame, Profile, Symbol, Tables};
use kerntune_trace::RecordedThread;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Nodes smaller than one in this many parts of their region are merged.
const MAX_PARTS: u64 = 20_000;
/// Largest number of nodes of all trees together; with more, `MAX_PARTS` is reduced.
const MAX_NODES: usize = 150_000;
/// Number of callers that a histogram distinguishes; the others are merged.
const MAX_HISTOGRAM_CALLERS: usize = 6;

#[derive(Serialize)]
pub(super) struct PageDocument {
    pub id: String,
    /// Ticks are instructions, not nanoseconds.
    pub exact: bool,
    /// Name beside another profile.
    pub label: String,
    pub operations: u64,
    /// Paths have taken branches and cache misses.
    pub weights: bool,
    /// Time that a sample stands for, in ns; 0 if times were measured.
    sample_ns: u64,
    /// Begin of the page's first region, from which the page counts moments.
    origin: u64,
    /// Calls were counted.
    calls: bool,
    /// By function; those that only the second profile has are the last.
    pub names: Vec<String>,
    /// By function of the first profile: its number in the trace.
    symbol: Vec<u32>,
    /// By function: its row in `files`, or -1.
    pub file: Vec<i64>,
    /// By function: its row in `modules`, or -1.
    pub module: Vec<i64>,
    pub files: Vec<String>,
    pub modules: Vec<String>,
    /// Rows of `modules` that the kernel loaded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub loaded: Vec<usize>,
    pub comms: Vec<String>,
    hows: Vec<&'static str>,
    pub views: Vec<ViewData>,
    pub groups: Vec<GroupTables>,
    pub time: Option<TimeData>,
    /// The server provides the timeline.
    pub traced: bool,
    /// Functions whose code is on the page, in the order of the code.
    code: Vec<i64>,
    /// Text shown for the code of other functions.
    code_rest: String,
    /// Second profile for comparison.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other: Option<SecondProfile>,
    #[serde(skip)]
    pub pruning: TreePruning,
}

/// Second profile, in the first one's numbers of functions and threads.
#[derive(Serialize)]
pub(super) struct SecondProfile {
    pub label: String,
    pub operations: u64,
    pub views: Vec<ViewData>,
    pub groups: Vec<GroupTables>,
}

/// Extent to which the trees were cut.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct TreePruning {
    pub nodes: usize,
    pub kept: usize,
    pub parts: u64,
}

#[derive(Serialize)]
pub(super) struct ViewData {
    name: Option<String>,
    groups: Vec<u32>,
    elapsed: u64,
    busy: u64,
    idle: u64,
    user: u64,
}

#[derive(Serialize, Default)]
pub(super) struct GroupTables {
    tree: TreeColumns,
    functions: FunctionColumns,
    arcs: ArcColumns,
    histograms: HistogramColumns,
}

impl GroupTables {
    /// Returns all columns of functions' numbers and codes.
    pub fn codes(&mut self) -> [&mut Vec<i64>; 6] {
        let Self { tree, functions, arcs, histograms } = self;
        [&mut tree.f, &mut functions.f, &mut arcs.from, &mut arcs.to, &mut histograms.f, &mut histograms.c]
    }
}

/// Nodes in preorder: `d` depth, `f` function or code, `h` entry kind, `c` calls, `w` self weights.
#[derive(Serialize, Default)]
struct TreeColumns {
    d: Vec<u32>,
    f: Vec<i64>,
    h: Vec<u8>,
    c: Vec<u64>,
    w: Vec<Vec<u64>>,
}

#[derive(Serialize, Default)]
struct FunctionColumns {
    f: Vec<i64>,
    calls: Vec<u64>,
    ended: Vec<u64>,
    net: Vec<u64>,
    elapsed: Vec<u64>,
    slowest: Vec<u64>,
    at: Vec<u64>,
}

#[derive(Serialize, Default)]
struct ArcColumns {
    from: Vec<i64>,
    to: Vec<i64>,
    h: Vec<u8>,
    calls: Vec<u64>,
    ended: Vec<u64>,
    elapsed: Vec<u64>,
}

/// `f` function, `c` caller, `b` bucket, `n` calls.
#[derive(Serialize, Default)]
struct HistogramColumns {
    f: Vec<i64>,
    c: Vec<i64>,
    b: Vec<u32>,
    n: Vec<u64>,
}

/// Assembles the document. `threads` are those that the timeline will name, even if it is computed
/// later.
pub(super) fn document(
    profile: &Profile,
    region: Option<&str>,
    timeline: Option<&TraceTimeline>,
    threads: &[RecordedThread],
) -> Result<(PageDocument, PageIndex)> {
    let tables = &profile.tables;
    let groups = RegionGroups::new(profile, region)?;
    let (pruned, pruning) = pruned(tables, &groups);
    let (order, numbers) = numbers(tables, &groups, &pruned);
    let weights = profile.manifest.capture.weights;
    let mut index = PageIndex { numbers, groups, comms: StringTable::default(), weights };
    let out = columns(&mut index, tables, &pruned);
    for thread in threads {
        index.comms.at(&thread.comm);
    }
    index.comms.at(UNKNOWN);

    let (mut files, mut modules) = (StringTable::default(), StringTable::default());
    let symbol = |function: &u32| tables.symbols.get(*function as usize);
    let column = |strings: &mut StringTable, of: fn(&Symbol) -> Option<&String>| {
        order.iter().map(|f| symbol(f).and_then(of).map_or(NONE, |text| strings.at(text))).collect()
    };
    let regions = tables.regions.iter().filter(|row| region.is_none_or(|name| row.name == name));
    let origin = regions.map(|row| row.begin_ticks.get()).min().unwrap_or(0);
    let file = column(&mut files, |symbol| symbol.file.as_ref());
    let module = column(&mut modules, |symbol| symbol.module.as_ref());
    let loaded: HashSet<&str> = tables.symbols.iter().filter_map(Symbol::loaded_module).collect();
    let document = PageDocument {
        id: profile.manifest.id.clone(),
        exact: profile.manifest.exact,
        label: format!("{} on {}", profile.manifest.workload, profile.manifest.kernel.label),
        operations: tables.regions.iter().map(|row| row.operations).sum(),
        weights,
        sample_ns: profile.manifest.sampled.as_ref().map_or(0, |sampled| sampled.sample_ns.get()),
        origin,
        calls: crate::sampled::has_calls(profile),
        names: order.iter().map(|f| tables.name(kerntune_profile::FunctionIndex(*f)).into()).collect(),
        symbol: order,
        file,
        module,
        files: files.all,
        loaded: modules
            .all
            .iter()
            .enumerate()
            .filter(|(_, name)| loaded.contains(name.as_str()))
            .map(|(at, _)| at)
            .collect(),
        modules: modules.all,
        hows: CallKind::ALL.iter().map(|how| how.as_str()).collect(),
        views: views(profile, &index.groups)?,
        groups: out,
        time: timeline.map(|timeline| moments::columns(timeline, profile, &mut index)),
        comms: index.comms.all.clone(),
        traced: false,
        code: Vec::new(),
        code_rest: String::new(),
        other: None,
        pruning,
    };
    Ok((document, index))
}

/// Builds the trees of all groups, cut to visible nodes.
fn pruned<'a>(tables: &'a Tables, groups: &RegionGroups) -> (Vec<Vec<TreeNode<'a>>>, TreePruning) {
    pruned_of(&trees(&tables.paths, groups))
}

fn pruned_of<'a>(trees: &[GroupTree<'a>]) -> (Vec<Vec<TreeNode<'a>>>, TreePruning) {
    let mut parts = MAX_PARTS;
    while parts > 100 && trees.iter().map(|tree| tree.visible(parts)).sum::<usize>() > MAX_NODES {
        parts /= 2;
    }
    let pruned: Vec<Vec<TreeNode>> = trees.iter().map(|tree| tree.pruned(parts)).collect();
    let pruning = TreePruning {
        nodes: trees.iter().map(|tree| tree.len()).sum(),
        kept: pruned.iter().flatten().filter(|node| node.frame.is_some()).count(),
        parts,
    };
    (pruned, pruning)
}

/// Converts each group's tables to columns.
fn columns(index: &mut PageIndex, tables: &Tables, pruned: &[Vec<TreeNode>]) -> Vec<GroupTables> {
    let PageIndex { numbers, groups, comms, weights } = index;
    let mut out: Vec<GroupTables> = (0..groups.count).map(|_| GroupTables::default()).collect();
    for (group, nodes) in out.iter_mut().zip(pruned) {
        group.tree = tree_columns(nodes, numbers, comms, *weights);
    }
    for (at, group) in out.iter_mut().enumerate() {
        let is_of = |region: u32| groups.group(region) == Some(at as u32);
        group.functions = function_columns(&tables.totals(is_of), numbers);
    }
    arc_columns(tables, groups, numbers, &mut out);
    histogram_columns(tables, groups, numbers, &mut out);
    out
}

/// Builds the tables of a stretch of time; its regions are those of the whole trace.
pub(super) fn stretch(index: &mut PageIndex, tables: &Tables) -> StretchTables {
    let (pruned, _) = pruned(tables, &index.groups);
    let groups = columns(index, tables, &pruned);
    let mut times = vec![[0u64; 3]; groups.len()];
    let mut add = |region: u32, at: usize, ns: u64| {
        let group = index.groups.group(region).and_then(|group| times.get_mut(group as usize));
        if let Some(sum) = group.and_then(|times| times.get_mut(at)) {
            *sum = sum.saturating_add(ns);
        }
    };
    for row in &tables.paths {
        add(row.region, 0, row.self_ticks.get());
    }
    for row in &tables.regions {
        // The idle time of a region includes that of regions within it.
        let inner = tables.within(row.region).skip(1).filter_map(|at| tables.regions.get(at as usize));
        let inner: u64 =
            inner.filter(|inner| inner.depth == row.depth + 1).map(|inner| inner.idle_ticks.get()).sum();
        add(row.region, 1, row.idle_ticks.get().saturating_sub(inner));
        add(row.region, 2, row.user_ticks.get());
    }
    StretchTables { groups, times }
}

/// Builds the tables from existing trees, from tables in which a region stands for its group, and
/// from times.
pub(super) fn group_tables(
    index: &mut PageIndex,
    trees: &[GroupTree],
    tables: &Tables,
    times: Vec<[u64; 3]>,
) -> StretchTables {
    let (pruned, _) = pruned_of(trees);
    StretchTables { groups: columns(index, tables, &pruned), times }
}

/// Tables of a stretch of time by group; busy, idle and user time by group.
#[derive(Serialize)]
pub(super) struct StretchTables {
    groups: Vec<GroupTables>,
    times: Vec<[u64; 3]>,
}

/// Name that the analysis gives to a thread missing in the trace.
pub(super) const UNKNOWN: &str = "[unknown]";

impl PageDocument {
    /// Records the functions whose code is on the page; returns the code, a line for each.
    pub fn put_code(&mut self, code: &PageCode) -> String {
        let numbers: HashMap<u32, i64> = self.symbol.iter().copied().zip(0..).collect();
        let mut lines = Vec::new();
        for (symbol, bytes) in &code.functions {
            if let Some(number) = numbers.get(symbol) {
                self.code.push(*number);
                lines.push(pack::text(bytes));
            }
        }
        self.code_rest = code.rest.clone();
        lines.join("\n")
    }
}

fn views(profile: &Profile, groups: &RegionGroups) -> Result<Vec<ViewData>> {
    let view = |view: &super::groups::GroupView| {
        let times = ScopeView::new(profile, view.name.as_deref())?.times;
        Ok(ViewData {
            name: view.name.clone(),
            groups: view.groups.clone(),
            elapsed: times.elapsed,
            busy: times.busy,
            idle: times.idle,
            user: times.user,
        })
    };
    groups.views.iter().map(view).collect()
}

fn numbers(tables: &Tables, groups: &RegionGroups, trees: &[Vec<TreeNode>]) -> (Vec<u32>, FunctionNumbers) {
    let is_wanted = |region: u32| groups.group(region).is_some();
    let mut net: BTreeMap<u32, u64> =
        tables.totals(is_wanted).iter().map(|row| (row.function.get(), row.self_ticks.get())).collect();
    let mut others: BTreeSet<u32> = BTreeSet::new();
    for arc in tables.arcs.iter().filter(|arc| is_wanted(arc.region)) {
        others.extend(arc.caller.known().map(|f| f.get()));
        others.insert(arc.callee.get());
    }
    for node in trees.iter().flatten() {
        if let Some(PathFrame::Function(function)) = node.frame {
            others.insert(function.get());
        }
    }
    for function in others {
        net.entry(function).or_insert(0);
    }
    let mut order: Vec<(u32, u64)> = net.into_iter().collect();
    order.sort_by_key(|&(function, net)| (std::cmp::Reverse(net), function));
    let order: Vec<u32> = order.into_iter().map(|(function, _)| function).collect();
    let numbers = FunctionNumbers::new(&order);
    (order, numbers)
}

fn tree_columns(
    nodes: &[TreeNode],
    numbers: &FunctionNumbers,
    comms: &mut StringTable,
    weights: bool,
) -> TreeColumns {
    let function = |node: &TreeNode| match node.frame {
        Some(PathFrame::Function(function)) => numbers.of(function.get()),
        Some(PathFrame::Thread(comm)) => code::THREAD - comms.at(comm),
        Some(PathFrame::Interrupt) => code::INTERRUPT,
        Some(PathFrame::Idle) => code::IDLE,
        Some(PathFrame::User) => code::USER,
        Some(PathFrame::Unattributed) => code::UNATTRIBUTED,
        None => code::SMALLER,
    };
    let columns = if weights { super::tree::WEIGHTS } else { 1 };
    TreeColumns {
        d: nodes.iter().map(|node| node.depth).collect(),
        f: nodes.iter().map(function).collect(),
        h: nodes.iter().map(|node| node.how as u8).collect(),
        c: nodes.iter().map(|node| node.calls).collect(),
        w: (0..columns).map(|at| nodes.iter().map(|node| node.self_weights[at]).collect()).collect(),
    }
}

fn function_columns(rows: &[FunctionTotals], numbers: &FunctionNumbers) -> FunctionColumns {
    let column = |of: fn(&FunctionTotals) -> u64| rows.iter().map(of).collect();
    FunctionColumns {
        f: rows.iter().map(|row| numbers.of(row.function.get())).collect(),
        calls: column(|row| row.calls),
        ended: column(|row| row.ended),
        net: column(|row| row.self_ticks.get()),
        elapsed: column(|row| row.total_ticks.get()),
        slowest: column(|row| row.slowest_ticks.get()),
        at: column(|row| row.slowest_at_ticks.get()),
    }
}

fn arc_columns(tables: &Tables, groups: &RegionGroups, numbers: &FunctionNumbers, out: &mut [GroupTables]) {
    let rows = tables.arcs.iter().filter_map(|arc| {
        let caller = arc.caller.known().map_or(NONE, |f| numbers.of(f.get()));
        let key = (groups.group(arc.region)?, caller, numbers.of(arc.callee.get()), arc.how);
        Some((key, [arc.calls, arc.ended, arc.total_ticks.get()]))
    });
    for ((group, from, to, how), [calls, ended, elapsed]) in added_up(rows.collect()) {
        let Some(GroupTables { arcs, .. }) = out.get_mut(group as usize) else { continue };
        arcs.from.push(from);
        arcs.to.push(to);
        arcs.h.push(how as u8);
        arcs.calls.push(calls);
        arcs.ended.push(ended);
        arcs.elapsed.push(elapsed);
    }
}

/// Adds up rows with equal keys.
fn added_up<K: Ord, const N: usize>(mut rows: Vec<(K, [u64; N])>) -> Vec<(K, [u64; N])> {
    rows.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    rows.dedup_by(|next, kept| {
        let is_same = next.0 == kept.0;
        if is_same {
            kept.1.iter_mut().zip(next.1).for_each(|(sum, figure)| *sum = sum.saturating_add(figure));
        }
        is_same
    });
    rows
}

fn histogram_columns(
    tables: &Tables,
    groups: &RegionGroups,
    numbers: &FunctionNumbers,
    out: &mut [GroupTables],
) {
    let rows = tables.histograms.iter().filter_map(|row| {
        let caller = row.caller.known().map_or(NONE, |f| numbers.of(f.get()));
        let key = (groups.group(row.region)?, numbers.of(row.function.get()), caller, row.bucket);
        Some((key, [row.count]))
    });
    for of_function in added_up(rows.collect()).chunk_by(|a, b| (a.0 .0, a.0 .1) == (b.0 .0, b.0 .1)) {
        // The callers with the most calls keep their names.
        let mut callers: Vec<(u64, i64)> = of_function
            .chunk_by(|a, b| a.0 .2 == b.0 .2)
            .map(|of| (of.iter().fold(0, |sum: u64, row| sum.saturating_add(row.1[0])), of[0].0 .2))
            .collect();
        callers.sort_unstable_by_key(|&(calls, caller)| (std::cmp::Reverse(calls), caller));
        callers.truncate(MAX_HISTOGRAM_CALLERS);
        let buckets = of_function.iter().map(|&((group, function, caller, bucket), count)| {
            let is_named = callers.iter().any(|(_, named)| *named == caller);
            ((group, function, if is_named { caller } else { code::OTHERS }, bucket), count)
        });
        for ((group, function, caller, bucket), [count]) in added_up(buckets.collect()) {
            let Some(GroupTables { histograms, .. }) = out.get_mut(group as usize) else { continue };
            histograms.f.push(function);
            histograms.c.push(caller);
            histograms.b.push(bucket);
            histograms.n.push(count);
        }
    }
}
