//! The document that the page's scripts read, column by column: `assets/data.js` is the other side.

use super::code::Code;
use super::groups::Groups;
use super::moments::{self, TimeData};
use super::numbers::{code, Index, Numbers, Strings, NONE};
use super::pack;
use super::tree::{trees, Key, Node, Tree};
use super::Timeline;
use crate::view::View;
use crate::Result;
use kerntune_profile::{FunctionTotals, How, Profile, Tables};
use kerntune_trace::Thread;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Nodes smaller than one part in so many of their region are not told apart.
const PARTS: u64 = 20_000;
/// Nodes of all trees together; with more, `PARTS` is made smaller.
const NODES: usize = 150_000;
/// Callers that a histogram tells apart; the others are one.
const HISTOGRAM_CALLERS: usize = 6;

#[derive(Serialize)]
pub(super) struct Document {
    pub id: String,
    /// Whether it counts instructions, and not time.
    pub exact: bool,
    /// What to call it beside another.
    pub label: String,
    operations: u64,
    /// Whether paths carry branches and misses.
    pub weights: bool,
    /// Time that a sample stands for, ns; 0 if times were measured.
    sample_ns: u64,
    /// Whether calls were counted.
    calls: bool,
    names: Vec<String>,
    /// By function: its number in the trace.
    symbol: Vec<u32>,
    /// By function: its row in `files`; none is -1.
    file: Vec<i64>,
    /// By function: its row in `modules`; none is -1.
    module: Vec<i64>,
    files: Vec<String>,
    modules: Vec<String>,
    comms: Vec<String>,
    hows: Vec<&'static str>,
    views: Vec<ViewData>,
    groups: Vec<Group>,
    pub time: Option<TimeData>,
    /// The timeline is the server's to tell.
    pub traced: bool,
    /// Functions whose source and machine code are on the page, in the order in which they are.
    code: Vec<i64>,
    /// What is said of the others' code.
    code_rest: String,
    /// A second profile, to be held against this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other: Option<Box<Document>>,
    #[serde(skip)]
    pub pruning: Pruning,
}

/// What was cut from the trees.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Pruning {
    pub nodes: usize,
    pub kept: usize,
    pub parts: u64,
}

#[derive(Serialize)]
struct ViewData {
    name: Option<String>,
    groups: Vec<u32>,
    elapsed: u64,
    busy: u64,
    idle: u64,
    user: u64,
}

#[derive(Serialize, Default)]
struct Group {
    tree: TreeColumns,
    functions: FunctionColumns,
    arcs: ArcColumns,
    histograms: HistogramColumns,
}

/// Preorder. `d` depth, `f` function or code, `h` how, `c` calls, `w` own weights.
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

/// Puts everything together. `threads` are those that the timeline will name, if it comes later.
pub(super) fn document(
    profile: &Profile,
    region: Option<&str>,
    timeline: Option<&Timeline>,
    threads: &[Thread],
) -> Result<(Document, Index)> {
    let tables = &profile.tables;
    let groups = Groups::new(profile, region)?;
    let (pruned, pruning) = pruned(tables, &groups);
    let (order, numbers) = numbers(tables, &groups, &pruned);
    let weights = profile.manifest.capture.weights;
    let mut index = Index { numbers, groups, comms: Strings::default(), weights };
    let out = columns(&mut index, tables, &pruned);
    for thread in threads {
        index.comms.at(&thread.comm);
    }
    index.comms.at(UNKNOWN);

    let (mut files, mut modules) = (Strings::default(), Strings::default());
    let symbol = |function: &u32| tables.symbols.get(*function as usize);
    let column = |strings: &mut Strings, of: fn(&kerntune_profile::Symbol) -> Option<&String>| {
        order.iter().map(|f| symbol(f).and_then(of).map_or(NONE, |text| strings.at(text))).collect()
    };
    let file = column(&mut files, |symbol| symbol.file.as_ref());
    let module = column(&mut modules, |symbol| symbol.module.as_ref());
    let document = Document {
        id: profile.manifest.id.clone(),
        exact: profile.manifest.exact,
        label: format!("{} on {}", profile.manifest.workload, profile.manifest.kernel.label),
        operations: tables.regions.iter().map(|row| row.operations).sum(),
        weights,
        sample_ns: profile.manifest.sampled.as_ref().map_or(0, |sampled| sampled.sample_ns.get()),
        calls: crate::sampled::has_calls(profile),
        names: order.iter().map(|f| tables.name(kerntune_profile::FunctionIndex(*f)).into()).collect(),
        symbol: order,
        file,
        module,
        files: files.all,
        modules: modules.all,
        hows: How::ALL.iter().map(|how| how.word()).collect(),
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

/// The trees of all groups, cut to what can be seen.
fn pruned<'a>(tables: &'a Tables, groups: &Groups) -> (Vec<Vec<Node<'a>>>, Pruning) {
    pruned_of(&trees(&tables.paths, groups))
}

fn pruned_of<'a>(trees: &[Tree<'a>]) -> (Vec<Vec<Node<'a>>>, Pruning) {
    let mut parts = PARTS;
    while parts > 100 && trees.iter().map(|tree| tree.visible(parts)).sum::<usize>() > NODES {
        parts /= 2;
    }
    let pruned: Vec<Vec<Node>> = trees.iter().map(|tree| tree.pruned(parts)).collect();
    let pruning = Pruning {
        nodes: trees.iter().map(|tree| tree.len()).sum(),
        kept: pruned.iter().flatten().filter(|node| node.key != Key::Smaller).count(),
        parts,
    };
    (pruned, pruning)
}

/// Tables by group, in columns.
fn columns(index: &mut Index, tables: &Tables, pruned: &[Vec<Node>]) -> Vec<Group> {
    let Index { numbers, groups, comms, weights } = index;
    let mut out: Vec<Group> = (0..groups.count).map(|_| Group::default()).collect();
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

/// What a stretch of time comes to; its regions are those of the whole.
pub(super) fn stretch(index: &mut Index, tables: &Tables) -> Stretch {
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
        add(row.region, 0, row.net_ns.get());
    }
    for row in &tables.regions {
        // Idle times are with those of regions within.
        let inner = tables.within(row.region).skip(1).filter_map(|at| tables.regions.get(at as usize));
        let inner: u64 =
            inner.filter(|inner| inner.depth == row.depth + 1).map(|inner| inner.idle_ns.get()).sum();
        add(row.region, 1, row.idle_ns.get().saturating_sub(inner));
        add(row.region, 2, row.user_ns.get());
    }
    Stretch { groups, times }
}

/// The same of trees that are there, tables in which a region stands for its group, and times.
pub(super) fn group_tables(
    index: &mut Index,
    trees: &[Tree],
    tables: &Tables,
    times: Vec<[u64; 3]>,
) -> Stretch {
    let (pruned, _) = pruned_of(trees);
    Stretch { groups: columns(index, tables, &pruned), times }
}

/// What a stretch of time comes to: tables by group; busy, idle and user time by group.
#[derive(Serialize)]
pub(super) struct Stretch {
    groups: Vec<Group>,
    times: Vec<[u64; 3]>,
}

/// What the analysis calls a thread that the trace does not name.
pub(super) const UNKNOWN: &str = "[unknown]";

impl Document {
    /// Names the functions whose code is on the page, and gives that code: a line for each.
    pub fn put_code(&mut self, code: &Code) -> String {
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

fn views(profile: &Profile, groups: &Groups) -> Result<Vec<ViewData>> {
    let view = |view: &super::groups::GroupView| {
        let times = View::new(profile, view.name.as_deref())?.times;
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

fn numbers(tables: &Tables, groups: &Groups, trees: &[Vec<Node>]) -> (Vec<u32>, Numbers) {
    let is_wanted = |region: u32| groups.group(region).is_some();
    let mut net: BTreeMap<u32, u64> =
        tables.totals(is_wanted).iter().map(|row| (row.function.get(), row.net_ns.get())).collect();
    let mut others: BTreeSet<u32> = BTreeSet::new();
    for arc in tables.arcs.iter().filter(|arc| is_wanted(arc.region)) {
        others.extend(arc.caller.known().map(|f| f.get()));
        others.insert(arc.callee.get());
    }
    for node in trees.iter().flatten() {
        if let Key::Function(function) = node.key {
            others.insert(function);
        }
    }
    for function in others {
        net.entry(function).or_insert(0);
    }
    let mut order: Vec<(u32, u64)> = net.into_iter().collect();
    order.sort_by_key(|&(function, net)| (std::cmp::Reverse(net), function));
    let order: Vec<u32> = order.into_iter().map(|(function, _)| function).collect();
    let numbers = Numbers::new(&order);
    (order, numbers)
}

fn tree_columns(nodes: &[Node], numbers: &Numbers, comms: &mut Strings, weights: bool) -> TreeColumns {
    let function = |node: &Node| match node.key {
        Key::Function(function) => numbers.of(function),
        Key::Thread(comm) => code::THREAD - comms.at(comm),
        Key::Interrupt => code::INTERRUPT,
        Key::Idle => code::IDLE,
        Key::User => code::USER,
        Key::Unattributed => code::UNATTRIBUTED,
        Key::Smaller => code::SMALLER,
    };
    let columns = if weights { super::tree::WEIGHTS } else { 1 };
    TreeColumns {
        d: nodes.iter().map(|node| node.depth).collect(),
        f: nodes.iter().map(function).collect(),
        h: nodes.iter().map(|node| node.how as u8).collect(),
        c: nodes.iter().map(|node| node.calls).collect(),
        w: (0..columns).map(|at| nodes.iter().map(|node| node.own[at]).collect()).collect(),
    }
}

fn function_columns(rows: &[FunctionTotals], numbers: &Numbers) -> FunctionColumns {
    let column = |of: fn(&FunctionTotals) -> u64| rows.iter().map(of).collect();
    FunctionColumns {
        f: rows.iter().map(|row| numbers.of(row.function.get())).collect(),
        calls: column(|row| row.calls),
        ended: column(|row| row.ended),
        net: column(|row| row.net_ns.get()),
        elapsed: column(|row| row.elapsed_ns.get()),
        slowest: column(|row| row.slowest_ns.get()),
        at: column(|row| row.slowest_at_ns.get()),
    }
}

fn arc_columns(tables: &Tables, groups: &Groups, numbers: &Numbers, out: &mut [Group]) {
    let rows = tables.arcs.iter().filter_map(|arc| {
        let caller = arc.caller.known().map_or(NONE, |f| numbers.of(f.get()));
        let key = (groups.group(arc.region)?, caller, numbers.of(arc.callee.get()), arc.how);
        Some((key, [arc.calls, arc.ended, arc.elapsed_ns.get()]))
    });
    for ((group, from, to, how), [calls, ended, elapsed]) in added_up(rows.collect()) {
        let Some(Group { arcs, .. }) = out.get_mut(group as usize) else { continue };
        arcs.from.push(from);
        arcs.to.push(to);
        arcs.h.push(how as u8);
        arcs.calls.push(calls);
        arcs.ended.push(ended);
        arcs.elapsed.push(elapsed);
    }
}

/// Rows by key, those of one key added up.
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

fn histogram_columns(tables: &Tables, groups: &Groups, numbers: &Numbers, out: &mut [Group]) {
    let rows = tables.histograms.iter().filter_map(|row| {
        let caller = row.caller.known().map_or(NONE, |f| numbers.of(f.get()));
        let key = (groups.group(row.region)?, numbers.of(row.function.get()), caller, row.bucket);
        Some((key, [row.count]))
    });
    for of_function in added_up(rows.collect()).chunk_by(|a, b| (a.0 .0, a.0 .1) == (b.0 .0, b.0 .1)) {
        // The callers that make the most calls keep their names.
        let mut callers: Vec<(u64, i64)> = of_function
            .chunk_by(|a, b| a.0 .2 == b.0 .2)
            .map(|of| (of.iter().fold(0, |sum: u64, row| sum.saturating_add(row.1[0])), of[0].0 .2))
            .collect();
        callers.sort_unstable_by_key(|&(calls, caller)| (std::cmp::Reverse(calls), caller));
        callers.truncate(HISTOGRAM_CALLERS);
        let buckets = of_function.iter().map(|&((group, function, caller, bucket), count)| {
            let is_named = callers.iter().any(|(_, named)| *named == caller);
            ((group, function, if is_named { caller } else { code::OTHERS }, bucket), count)
        });
        for ((group, function, caller, bucket), [count]) in added_up(buckets.collect()) {
            let Some(Group { histograms, .. }) = out.get_mut(group as usize) else { continue };
            histograms.f.push(function);
            histograms.c.push(caller);
            histograms.b.push(bucket);
            histograms.n.push(count);
        }
    }
}
