//! Counts of a function whose code changed: block by block, with callees that were inlined into it.

use super::blocks::{
    infer, match_blocks, BlockExit, BlockFlow, BlockLikeness, BlockMatch, CodeGraph, EdgeRole, KnownCount,
    KnownCounts,
};
use super::recorded::{scaled, RecordedCode};
use super::LinkedCode;
use kerntune_profile::source_name;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Levels of inlining that are followed.
const MAX_DEPTH: usize = 3;
/// Most functions whose blocks are looked for in one function.
const MAX_DONORS: usize = 48;

/// Both kernels, with what was recorded on the first.
pub(super) struct BothKernels<'a> {
    pub from: &'a LinkedCode,
    pub to: &'a LinkedCode,
    pub recorded: &'a RecordedCode,
    /// Functions of `from`, disassembled once.
    graphs: HashMap<usize, Option<CountedGraph>>,
    /// Functions of `from` that each one calls directly, or jumps to.
    direct: HashMap<usize, BTreeSet<usize>>,
}

/// Function of the recorded kernel with its counts.
#[derive(Debug, Clone)]
pub(super) struct CountedGraph {
    pub graph: CodeGraph,
    /// Executions of each block.
    pub counts: Vec<u64>,
    /// Executions of each edge, where known.
    pub edges: Vec<Option<u64>>,
}

impl CountedGraph {
    /// Returns the executed instructions.
    pub fn instructions(&self) -> u64 {
        let blocks = self.graph.blocks.iter().zip(&self.counts);
        blocks.fold(0u64, |sum, (block, count)| sum.saturating_add(block.instructions.saturating_mul(*count)))
    }

    /// Returns the executions of the first block.
    pub fn entry(&self) -> u64 {
        self.counts.first().copied().unwrap_or_default()
    }
}

impl<'a> BothKernels<'a> {
    pub fn new(from: &'a LinkedCode, to: &'a LinkedCode, recorded: &'a RecordedCode) -> Self {
        Self { from, to, recorded, graphs: HashMap::new(), direct: HashMap::new() }
    }

    /// Returns a function of the recorded kernel; `None` without its code.
    pub fn counted(&mut self, at: usize) -> Option<&CountedGraph> {
        let (from, recorded) = (self.from, self.recorded);
        self.graphs.entry(at).or_insert_with(|| counted(from, recorded, at)).as_ref()
    }

    /// Returns the functions that the code of a recorded one calls directly, or jumps to.
    pub fn direct(&mut self, at: usize) -> &BTreeSet<usize> {
        if !self.direct.contains_key(&at) {
            let from = self.from;
            let blocks = self.counted(at).map_or(&[][..], |counted| &counted.graph.blocks);
            let found = blocks.iter().filter_map(|block| match block.exit {
                BlockExit::Call(target) | BlockExit::Leave(target) | BlockExit::ConditionalLeave(target) => {
                    from.symbols().lookup(target)
                }
                _ => None,
            });
            let found = found.collect();
            self.direct.insert(at, found);
        }
        &self.direct[&at]
    }
}

fn counted(from: &LinkedCode, recorded: &RecordedCode, at: usize) -> Option<CountedGraph> {
    let graph = from.graph(at, &recorded.inner(at, from))?;
    let counts: Vec<u64> = graph.blocks.iter().map(|block| recorded.at(block.start)).collect();
    let mut taken: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    let mut sums: BTreeMap<u64, u64> = BTreeMap::new();
    for branch in recorded.branches(at) {
        let sum = taken.entry((branch.source, branch.target)).or_default();
        *sum = sum.saturating_add(branch.count);
        let sum = sums.entry(branch.source).or_default();
        *sum = sum.saturating_add(branch.count);
    }
    let edges = graph.edges.iter().map(|edge| {
        let block = &graph.blocks[edge.from];
        match (edge.role, block.exit) {
            (EdgeRole::Taken, BlockExit::Repeat) => None,
            (EdgeRole::Taken, _) => {
                Some(taken.get(&(block.last, graph.blocks[edge.to].start)).copied().unwrap_or_default())
            }
            (
                EdgeRole::Fall,
                BlockExit::Conditional | BlockExit::ConditionalLeave(_) | BlockExit::Patched,
            ) => {
                let taken = sums.get(&block.last).copied().unwrap_or_default();
                Some(counts[edge.from].saturating_sub(taken))
            }
            (EdgeRole::Fall, _) => None,
        }
    });
    let edges = edges.collect();
    Some(CountedGraph { graph, counts, edges })
}

/// Part of the code of a recorded function that another function has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct MatchedPart {
    /// Number of the recorded function.
    pub function: usize,
    /// Share of its executions, `by / of`.
    pub by: u64,
    pub of: u64,
    /// Executed instructions of blocks with the same instructions, and of others that match.
    pub exact: u64,
    pub loose: u64,
}

/// Function of the kernel to be tuned, with its counts.
#[derive(Debug, Clone)]
pub(super) struct RebuiltFunction {
    /// Number of the function.
    pub at: usize,
    pub graph: CodeGraph,
    pub flow: BlockFlow,
    /// Use of each recorded function.
    pub parts: Vec<MatchedPart>,
    /// Executed instructions of blocks without a counterpart.
    pub inferred: u64,
    /// Addresses in the recorded function and here: first and last instructions of matched blocks.
    pub places: BTreeMap<u64, u64>,
}

/// Recorded function whose blocks are looked for.
struct Donor {
    function: usize,
    /// Counts are multiplied by `by / of`.
    by: u64,
    of: u64,
    whole: bool,
}

impl RebuiltFunction {
    /// Transfers the counts of recorded function `from` to function `to`.
    pub fn of(kernels: &mut BothKernels, from: usize, to: usize) -> Option<Self> {
        let here = kernels.counted(from)?.clone();
        let entry = here.entry().max(1);
        let mut donors = vec![Donor { function: from, by: 1, of: 1, whole: true }];
        donors.extend(inlined(kernels, from, to, entry)?);
        fill(kernels, to, &donors, None)
    }

    /// Finds counts for function `to`, which is called `entry` times and is nobody's counterpart:
    /// from functions of its name, and from the recorded callers that had it inlined.
    pub fn split_off(
        kernels: &mut BothKernels,
        to: usize,
        entry: u64,
        callers: &BTreeSet<usize>,
    ) -> Option<Self> {
        let name = source_name(&kernels.to.symbols().functions()[to].name);
        let mut donors = Vec::new();
        for &namesake in kernels.from.namesakes(name.0, name.1) {
            let of = kernels.counted(namesake).map_or(0, CountedGraph::entry);
            if of > 0 && donors.is_empty() {
                donors.push(Donor { function: namesake, by: entry, of, whole: true });
            }
        }
        if donors.is_empty() {
            let callers = callers.iter().take(MAX_DONORS);
            donors.extend(callers.map(|&function| Donor { function, by: 1, of: 1, whole: false }));
        }
        fill(kernels, to, &donors, Some(entry))
    }

    /// Returns how often each function is called, or jumped to, at its first instruction.
    pub fn callees(&self, to: &LinkedCode) -> BTreeMap<usize, u64> {
        let mut callees = BTreeMap::new();
        for (block, (count, left)) in
            self.graph.blocks.iter().zip(self.flow.blocks.iter().zip(&self.flow.left))
        {
            let (target, count) = match block.exit {
                BlockExit::Call(target) => (target, *count),
                BlockExit::Leave(target) | BlockExit::ConditionalLeave(target) => (target, *left),
                _ => continue,
            };
            let Some(callee) = to.symbols().lookup(target) else { continue };
            if callee != self.at && to.symbols().functions()[callee].address == target {
                let sum: &mut u64 = callees.entry(callee).or_default();
                *sum = sum.saturating_add(count);
            }
        }
        callees
    }
}

/// Returns the functions that `from` calls and `to` does not, which are inlined there or gone, and
/// those that they call, with the number of these calls.
fn inlined(kernels: &mut BothKernels, from: usize, to: usize, entry: u64) -> Option<Vec<Donor>> {
    let there = kernels.to.graph(to, &[])?;
    let name =
        |kernel: &LinkedCode, at: usize| source_name(&kernel.symbols().functions()[at].name).0.to_string();
    let called: BTreeSet<&str> = (there.blocks.iter())
        .filter_map(|block| match block.exit {
            BlockExit::Call(target) | BlockExit::Leave(target) | BlockExit::ConditionalLeave(target) => {
                kernels.to.name_at(target)
            }
            _ => None,
        })
        .collect();
    let mut donors: Vec<Donor> = Vec::new();
    let mut known = BTreeSet::from([from]);
    let mut level = vec![(from, entry, entry)];
    for _ in 0..MAX_DEPTH {
        let mut next = Vec::new();
        for (function, by, of) in level {
            let direct = kernels.direct(function).clone();
            for (callee, calls) in kernels.recorded.callees(function, kernels.from) {
                if !direct.contains(&callee)
                    || donors.len() >= MAX_DONORS
                    || called.contains(name(kernels.from, callee).as_str())
                {
                    continue;
                }
                let calls = scaled(calls, by, of);
                let entries = kernels.counted(callee).map_or(0, CountedGraph::entry);
                if calls > 0 && entries > 0 && known.insert(callee) {
                    donors.push(Donor { function: callee, by: calls, of: entries, whole: false });
                    next.push((callee, calls, entries));
                }
            }
        }
        level = next;
    }
    Some(donors)
}

/// Looks for the blocks of `donors` in function `to`, and completes the counts. `entry` is the number
/// of its executions if known.
fn fill(
    kernels: &mut BothKernels,
    to: usize,
    donors: &[Donor],
    entry: Option<u64>,
) -> Option<RebuiltFunction> {
    let mut graph = kernels.to.graph(to, &[])?;
    let mut matches: Vec<Option<(usize, BlockMatch)>> = vec![None; graph.blocks.len()];
    let mut parts = Vec::new();
    let mut counts: Vec<Option<KnownCount>> = vec![None; graph.blocks.len()];
    for (number, donor) in donors.iter().enumerate() {
        let Some(there) = kernels.counted(donor.function) else { continue };
        let taken: Vec<bool> = matches.iter().map(Option::is_some).collect();
        let found = match_blocks(&there.graph, &graph, donor.whole, &taken, &[]);
        let mut part =
            MatchedPart { function: donor.function, by: donor.by, of: donor.of, exact: 0, loose: 0 };
        for (at, found) in found.into_iter().enumerate() {
            let Some(found) = found else { continue };
            matches[at] = Some((number, found));
            let count = scaled(there.counts[found.from], donor.by, donor.of);
            counts[at] = Some(KnownCount { count, likeness: found.likeness });
            // A scaled count stands for executions in several places; these are its own.
            let instructions = there.graph.blocks[found.from].instructions.saturating_mul(count);
            let sum = match found.likeness {
                BlockLikeness::Exact => &mut part.exact,
                _ => &mut part.loose,
            };
            *sum = sum.saturating_add(instructions);
        }
        if donor.whole {
            graph = with_seen_jumps(graph, there, number, &matches);
        }
        // A callee without a matched block is also inlined or gone: its calls come from here.
        parts.push(part);
    }
    // A function is entered as often as before, whatever it does first.
    let whole = donors.iter().find(|donor| donor.whole && donor.by == donor.of);
    let before = whole.and_then(|donor| Some(kernels.counted(donor.function)?.entry()));
    if let (Some(first), Some(count)) = (counts.first_mut(), entry.or(before)) {
        let is_free = matches.first().is_some_and(|found| found.is_none());
        if is_free || entry.is_some() {
            *first = Some(KnownCount { count, likeness: BlockLikeness::Loose });
        }
    }
    let edges = graph.edges.iter().map(|edge| {
        let [from, to] = [edge.from, edge.to].map(|at| matches[at]);
        let ((number, from), (same, to)) = (from?, to?);
        let donor = &donors[number];
        let there = kernels.counted(donor.function).filter(|_| number == same)?;
        let ways = there.graph.leaving[from.from].iter().filter(|at| there.graph.edges[**at].to == to.from);
        let count = ways.map(|at| there.edges[*at]).sum::<Option<u64>>()?;
        let is_edge = there.graph.leaving[from.from].iter().any(|at| there.graph.edges[*at].to == to.from);
        let likeness = from.likeness.max(to.likeness);
        is_edge.then_some(KnownCount { count: scaled(count, donor.by, donor.of), likeness })
    });
    let edges = edges.collect();
    let flow = infer(&graph, &KnownCounts { blocks: counts, edges });
    let new = graph.blocks.iter().zip(&flow.blocks).zip(&matches).filter(|(_, found)| found.is_none());
    let inferred = new
        .fold(0u64, |sum, ((block, count), _)| sum.saturating_add(block.instructions.saturating_mul(*count)));
    let mut places = BTreeMap::new();
    for (at, found) in matches.iter().enumerate() {
        let Some((0, found)) = found else { continue };
        let there = kernels.counted(donors[0].function)?;
        let (old, new) = (&there.graph.blocks[found.from], &graph.blocks[at]);
        places.insert(old.start, new.start);
        if old.exit.is_like(new.exit) {
            places.insert(old.last, new.last);
        }
    }
    if let (Some(there), Some(first)) = (kernels.counted(donors.first()?.function), graph.blocks.first()) {
        places.extend(there.graph.blocks.first().map(|block| (block.start, first.start)));
    }
    Some(RebuiltFunction { at: to, graph, flow, parts, inferred, places })
}

/// Adds the jumps that only a recording shows: through registers, and where the kernel replaced a
/// NOP.
fn with_seen_jumps(
    graph: CodeGraph,
    there: &CountedGraph,
    number: usize,
    matches: &[Option<(usize, BlockMatch)>],
) -> CodeGraph {
    let mut of: BTreeMap<usize, usize> = BTreeMap::new();
    for (at, found) in matches.iter().enumerate() {
        if let Some((_, found)) = found.filter(|(donor, _)| *donor == number) {
            of.insert(found.from, at);
        }
    }
    let mut more = Vec::new();
    for edge in there.graph.edges.iter().filter(|edge| edge.role == EdgeRole::Taken) {
        let (Some(&from), Some(&to)) = (of.get(&edge.from), of.get(&edge.to)) else { continue };
        if matches!(graph.blocks[from].exit, BlockExit::IndirectJump | BlockExit::Patched) {
            more.push((from, to));
        }
    }
    if more.is_empty() {
        return graph;
    }
    graph.with(more)
}
