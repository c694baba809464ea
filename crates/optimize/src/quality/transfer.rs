//! Transfer of one kernel's counts to another kernel.

use super::matching::{FunctionLikeness, NamesakePair};
use super::LinkedCode;
use kerntune_profile::{Address, Block, Edge, EdgeKind, Instructions, Tables};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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
    /// The other kernel's function of that name has another shape: the counts are stale.
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
    /// Executed instructions of the function.
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
    /// Executed instructions of `matched_blocks`, as counted in the recorded kernel.
    pub matched_instructions: u64,
    /// Taken branches, each once, and those with both ends here.
    pub branches: [u64; 2],
    /// Lost functions, by executed instructions, most first.
    pub lost: Vec<UnmatchedFunction>,
}

/// Transfers the counts of `tables`, recorded on kernel `from`, to the addresses of kernel `to`:
/// symbols, blocks and edges. Counts without a match are left out and listed.
pub(super) fn transfer(tables: &Tables, from: &LinkedCode, to: &LinkedCode) -> (Tables, MatchedCode) {
    let mut pairs = NamesakePairs { from, to, known: BTreeMap::new() };
    let mut matched = MatchedCode::default();
    let mut executed: BTreeMap<usize, u64> = BTreeMap::new();
    let mut blocks: BTreeMap<(Address, Address, u64, Instructions), u64> = BTreeMap::new();
    for block in tables.blocks.iter().filter(|block| block.count > 0) {
        let instructions = block.instructions.get().saturating_mul(block.count);
        let Some(at) = from.symbols().lookup(block.start.get()) else {
            matched.outside = matched.outside.saturating_add(instructions);
            continue;
        };
        let sum = executed.entry(at).or_default();
        *sum = sum.saturating_add(instructions);
        matched.blocks += 1;
        let Some(moved) = pairs.block(at, block) else { continue };
        matched.matched_blocks += 1;
        matched.matched_instructions = matched.matched_instructions.saturating_add(instructions);
        let key = (moved.start, moved.last, moved.bytes, moved.instructions);
        let sum = blocks.entry(key).or_default();
        *sum = sum.saturating_add(block.count);
    }
    let mut edges: BTreeMap<(Address, Address, EdgeKind), u64> = BTreeMap::new();
    for edge in tables.edges.iter().filter(|edge| edge.count > 0) {
        matched.branches[0] += 1;
        let ends = [edge.source, edge.target].map(|end| pairs.address(end.get()));
        let [Some(source), Some(target)] = ends else { continue };
        matched.branches[1] += 1;
        let sum = edges.entry((Address(source), Address(target), edge.kind)).or_default();
        *sum = sum.saturating_add(edge.count);
    }
    for (at, instructions) in executed {
        matched.ran.add(instructions);
        let likeness = pairs.pair(at).map(|pair| pair.likeness);
        let fate = match likeness {
            Some(FunctionLikeness::Instructions) => {
                matched.same.add(instructions);
                continue;
            }
            Some(FunctionLikeness::Flow) => {
                matched.same_flow.add(instructions);
                continue;
            }
            Some(FunctionLikeness::Name) => {
                matched.changed.add(instructions);
                LossReason::Changed
            }
            None => {
                matched.gone.add(instructions);
                LossReason::Gone
            }
        };
        let function = &from.symbols().functions()[at];
        let (name, file) = (function.name.clone(), function.file.clone());
        matched.lost.push(UnmatchedFunction { name, file, fate, instructions });
    }
    matched.lost.sort_by(|a, b| (b.instructions, &a.name).cmp(&(a.instructions, &b.name)));
    let transferred = Tables {
        symbols: to.rows(),
        regions: tables.regions.clone(),
        blocks: blocks
            .into_iter()
            .map(|((start, last, bytes, instructions), count)| Block {
                start,
                last,
                count,
                instructions,
                bytes,
            })
            .collect(),
        edges: edges
            .into_iter()
            .map(|((source, target, kind), count)| Edge { source, target, count, kind })
            .collect(),
        ..Tables::default()
    };
    (transferred, matched)
}

/// Cache of matched functions, so that each is disassembled once.
struct NamesakePairs<'a> {
    from: &'a LinkedCode,
    to: &'a LinkedCode,
    known: BTreeMap<usize, Option<NamesakePair>>,
}

impl NamesakePairs<'_> {
    fn pair(&mut self, at: usize) -> Option<&NamesakePair> {
        let (from, to) = (self.from, self.to);
        self.known.entry(at).or_insert_with(|| NamesakePair::of(from, at, to)).as_ref()
    }

    fn address(&mut self, address: u64) -> Option<u64> {
        self.pair(self.from.symbols().lookup(address)?)?.counterpart(address)
    }

    /// Transfers a block of function `at`. A block that continues in another function must do so in
    /// the other kernel, too.
    fn block(&mut self, at: usize, block: &Block) -> Option<Block> {
        let [start, last] = [block.start.get(), block.last.get()];
        let end = self.from.symbols().lookup(last)?;
        let first = self.pair(at)?.counterpart(start)?;
        if end != at {
            let until = self.pair(end)?.counterpart(last)?;
            let same_distance = last.checked_sub(start)? == until.checked_sub(first)?;
            return same_distance.then_some(Block {
                start: Address(first),
                last: Address(until),
                ..block.clone()
            });
        }
        let pair = self.pair(at)?;
        let until = pair.counterpart(last)?;
        let (instructions, bytes) = pair.extent(first, until)?;
        let moved = (pair.likeness == FunctionLikeness::Instructions).then_some(block.instructions);
        Some(Block {
            start: Address(first),
            last: Address(until),
            count: block.count,
            // The executed instructions count, not those of the image: the kernel patches its code.
            instructions: moved.unwrap_or(Instructions(instructions)),
            bytes,
        })
    }
}
