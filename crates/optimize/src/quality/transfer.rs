//! Transfer of one kernel's counts to another kernel.

use super::blocks::{inner_edges, straight_rows};
use super::matching::FunctionLikeness;
use super::pairs::{FunctionPair, FunctionPairs, PairedCode};
use super::recorded::RecordedCode;
use super::score::{score, TransferScore};
use super::LinkedCode;
use kerntune_profile::{Address, Block, Edge, EdgeKind, Instructions, Tables};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Number of functions and their executed instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ExecutedTotals {
    /// Number of functions.
    pub functions: u64,
    /// Executed instructions of these functions.
    pub instructions: u64,
}

impl ExecutedTotals {
    fn add(&mut self, instructions: u64) {
        self.functions += 1;
        self.instructions = self.instructions.saturating_add(instructions);
    }
}

/// Reason for which the counts of a function are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossReason {
    /// The other kernel's function of that name has other blocks.
    Changed,
    /// The other kernel has no function of that name: renamed, inlined everywhere, or configured
    /// out.
    Gone,
}

/// Function whose counts are lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnmatchedFunction {
    /// Name in the recorded kernel.
    pub name: String,
    /// Source file, if known.
    pub file: Option<String>,
    /// Reason of the loss.
    pub fate: LossReason,
    /// Executed instructions of the function whose counts are lost.
    pub instructions: u64,
}

/// Part of a recording that matches a kernel. Only executed code counts, each instruction as often
/// as it was executed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MatchedCode {
    /// Functions of the recorded kernel that ran.
    pub ran: ExecutedTotals,
    /// Functions with the same instructions here, except for addresses, offsets and constants.
    pub same: ExecutedTotals,
    /// Functions with other instructions in the same basic blocks.
    pub same_flow: ExecutedTotals,
    /// Functions with other basic blocks, whose counts are stale.
    pub changed: ExecutedTotals,
    /// Functions that this kernel lacks.
    pub gone: ExecutedTotals,
    /// Instructions outside of the recorded kernel's functions: modules, generated code.
    pub outside: u64,
    /// Executed straight runs of code within functions, each once.
    pub blocks: u64,
    /// Runs of `blocks` that have a place here.
    pub matched_blocks: u64,
    /// Executed instructions with counterparts here, as counted in the recorded kernel.
    pub matched_instructions: u64,
    /// Executed instructions by how their counts were found.
    #[serde(default)]
    pub score: TransferScore,
    /// Taken branches, each once, and those with both ends here.
    pub branches: [u64; 2],
    /// Lost functions, by executed instructions, most first.
    pub lost: Vec<UnmatchedFunction>,
}

/// Transfers the counts of `tables`, recorded on kernel `from`, to the addresses of kernel `to`:
/// symbols, blocks and edges. Functions of the same shape keep their rows. Of others the blocks that
/// match keep their counts, and a flow completes them ([`super::blocks`]). What is lost is listed.
pub(super) fn transfer(tables: &Tables, from: &LinkedCode, to: &LinkedCode) -> (Tables, MatchedCode) {
    let recorded = RecordedCode::of(tables, from);
    let mut matched = MatchedCode::default();
    let mut executed: BTreeMap<usize, u64> = BTreeMap::new();
    for block in tables.blocks.iter().filter(|block| block.count > 0) {
        let instructions = block.instructions.get().saturating_mul(block.count);
        let Some(at) = from.symbols().lookup(block.start.get()) else {
            matched.outside = matched.outside.saturating_add(instructions);
            continue;
        };
        let sum = executed.entry(at).or_default();
        *sum = sum.saturating_add(instructions);
        matched.blocks += 1;
    }
    let ends = tables.edges.iter().filter(|edge| edge.count > 0).flat_map(|edge| [edge.source, edge.target]);
    let mut functions: BTreeSet<usize> = ends.filter_map(|end| from.symbols().lookup(end.get())).collect();
    functions.extend(executed.keys());
    let pairs = FunctionPairs::of(from, to, &recorded, &functions);
    let mut rows = TransferredRows::default();
    for block in tables.blocks.iter().filter(|block| block.count > 0) {
        let Some(at) = from.symbols().lookup(block.start.get()) else { continue };
        let Some(pair) = pairs.of_function(at) else { continue };
        match &pair.code {
            PairedCode::Whole(_) => {
                let Some(moved) = whole_block(&pairs, pair, block) else { continue };
                rows.block(Block { count: pairs.scale(pair.to, moved.count), ..moved });
                matched.matched_blocks += 1;
            }
            PairedCode::Rebuilt(function) => {
                matched.matched_blocks += u64::from(function.places.contains_key(&block.start.get()));
            }
        }
    }
    for function in pairs.rebuilt() {
        for block in straight_rows(&function.graph, &function.flow) {
            rows.block(Block { count: pairs.scale(function.at, block.count), ..block });
        }
        for edge in inner_edges(&function.graph, &function.flow) {
            rows.edge(Edge { count: pairs.scale(function.at, edge.count), ..edge });
        }
    }
    for edge in tables.edges.iter().filter(|edge| edge.count > 0) {
        matched.branches[0] += 1;
        let ends = [edge.source, edge.target].map(|end| pairs.address(end.get()));
        let [Some(source), Some(target)] = ends else { continue };
        matched.branches[1] += 1;
        let pair = from.symbols().lookup(edge.source.get()).and_then(|at| pairs.of_function(at));
        let Some(pair) = pair else { continue };
        // Direct branches of a rebuilt function follow from its flow.
        let is_written = matches!(pair.code, PairedCode::Rebuilt(_))
            && matches!(edge.kind, EdgeKind::Conditional | EdgeKind::Jump | EdgeKind::Call);
        let inside = from.symbols().lookup(edge.target.get()) == Some(pair.from);
        if is_written || (inside && edge.kind == EdgeKind::IndirectJump && pair.is_rebuilt()) {
            continue;
        }
        let count = pairs.scale(pair.to, edge.count);
        rows.edge(Edge { source: Address(source), target: Address(target), count, kind: edge.kind });
    }
    for (at, instructions) in &executed {
        matched.ran.add(*instructions);
        match pairs.likeness(*at) {
            Some(FunctionLikeness::Instructions) => matched.same.add(*instructions),
            Some(FunctionLikeness::Flow) => matched.same_flow.add(*instructions),
            Some(FunctionLikeness::Name) => matched.changed.add(*instructions),
            None => matched.gone.add(*instructions),
        }
    }
    let (total, lost) = score(&executed, &pairs);
    matched.score = total;
    matched.matched_instructions = total.exact.saturating_add(total.loose);
    for (at, instructions) in lost {
        let function = &from.symbols().functions()[at];
        let fate = if pairs.of_function(at).is_some() { LossReason::Changed } else { LossReason::Gone };
        let (name, file) = (function.name.clone(), function.file.clone());
        matched.lost.push(UnmatchedFunction { name, file, fate, instructions });
    }
    matched.lost.sort_by(|a, b| (b.instructions, &a.name).cmp(&(a.instructions, &b.name)));
    (rows.into_tables(tables, to), matched)
}

/// Transfers a block of a function that matches as a whole. A block that continues in another
/// function must do so in the other kernel, too.
fn whole_block(pairs: &FunctionPairs, pair: &FunctionPair, block: &Block) -> Option<Block> {
    let PairedCode::Whole(whole) = &pair.code else { return None };
    let [start, last] = [block.start.get(), block.last.get()];
    let first = whole.counterpart(start)?;
    let end = pairs.function_at(last)?;
    if end != pair.from {
        let until = pairs.address(last)?;
        let same_distance = last.checked_sub(start)? == until.checked_sub(first)?;
        return same_distance.then_some(Block {
            start: Address(first),
            last: Address(until),
            ..block.clone()
        });
    }
    let until = whole.counterpart(last)?;
    let (instructions, bytes) = whole.extent(first, until)?;
    let moved = (whole.likeness == FunctionLikeness::Instructions).then_some(block.instructions);
    Some(Block {
        start: Address(first),
        last: Address(until),
        count: block.count,
        // The executed instructions count, not those of the image: the kernel patches its code.
        instructions: moved.unwrap_or(Instructions(instructions)),
        bytes,
    })
}

/// Sums of transferred rows, by address.
#[derive(Default)]
struct TransferredRows {
    blocks: BTreeMap<(Address, Address, u64, Instructions), u64>,
    edges: BTreeMap<(Address, Address, EdgeKind), u64>,
}

impl TransferredRows {
    fn block(&mut self, block: Block) {
        let sum = self.blocks.entry((block.start, block.last, block.bytes, block.instructions)).or_default();
        *sum = sum.saturating_add(block.count);
    }

    fn edge(&mut self, edge: Edge) {
        let sum = self.edges.entry((edge.source, edge.target, edge.kind)).or_default();
        *sum = sum.saturating_add(edge.count);
    }

    fn into_tables(self, recorded: &Tables, to: &LinkedCode) -> Tables {
        let blocks = self.blocks.into_iter().filter(|(_, count)| *count > 0);
        let blocks = blocks.map(|((start, last, bytes, instructions), count)| Block {
            start,
            last,
            count,
            instructions,
            bytes,
        });
        let edges = self.edges.into_iter().filter(|(_, count)| *count > 0);
        let edges = edges.map(|((source, target, kind), count)| Edge { source, target, count, kind });
        Tables {
            symbols: to.rows(),
            regions: recorded.regions.clone(),
            blocks: blocks.collect(),
            edges: edges.collect(),
            ..Tables::default()
        }
    }
}
