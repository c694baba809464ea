//! Counts of one kernel carried to another.

use super::matching::{Likeness, Pair};
use super::Image;
use kerntune_profile::{Address, Block, Edge, EdgeKind, Instructions, Tables};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Some functions, and what ran of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Ran {
    /// Number of functions.
    pub functions: u64,
    /// Instructions that were executed in them.
    pub instructions: u64,
}

impl Ran {
    fn add(&mut self, instructions: u64) {
        self.functions += 1;
        self.instructions = self.instructions.saturating_add(instructions);
    }
}

/// What became of the counts of functions that another kernel has otherwise or not at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fate {
    /// It has one of that name and of another shape: the counts are stale.
    Changed,
    /// It has none of that name: renamed, inlined everywhere, or configured out.
    Gone,
}

/// A function whose counts are lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    /// Its name in the kernel that was recorded.
    pub name: String,
    /// Its source file, where known.
    pub file: Option<String>,
    /// Why.
    pub fate: Fate,
    /// Instructions that were executed in it.
    pub instructions: u64,
}

/// What of a recording belongs to a kernel. Only code counts that ran, each instruction as often as it did.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Matched {
    /// Functions of the recorded kernel.
    pub ran: Ran,
    /// Of them those with the same instructions here, but for addresses, offsets and constants.
    pub same: Ran,
    /// Those with other instructions in the same basic blocks.
    pub same_flow: Ran,
    /// Those with other basic blocks: stale.
    pub changed: Ran,
    /// Those that are not here.
    pub gone: Ran,
    /// Instructions in no function of the recorded kernel's image: modules, generated code.
    pub outside: u64,
    /// Straight runs of code, each once, that ran in functions.
    pub blocks: u64,
    /// Of them those that have a place here.
    pub matched_blocks: u64,
    /// Executed instructions of the latter, counted in the recorded kernel.
    pub matched_instructions: u64,
    /// Taken branches, each once, and of them those with both ends here.
    pub branches: [u64; 2],
    /// The functions that were lost, the most instructions first.
    pub lost: Vec<Lost>,
}

/// The counts of `tables`, recorded on the kernel `from`, at the addresses of the kernel `to`: symbols, blocks and
/// edges. What does not match is left out and said.
pub(super) fn carry(tables: &Tables, from: &Image, to: &Image) -> (Tables, Matched) {
    let mut pairs = Pairs { from, to, known: BTreeMap::new() };
    let mut matched = Matched::default();
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
        let Some(carried) = pairs.block(at, block) else { continue };
        matched.matched_blocks += 1;
        matched.matched_instructions = matched.matched_instructions.saturating_add(instructions);
        let key = (carried.start, carried.last, carried.bytes, carried.instructions);
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
            Some(Likeness::Instructions) => {
                matched.same.add(instructions);
                continue;
            }
            Some(Likeness::Flow) => {
                matched.same_flow.add(instructions);
                continue;
            }
            Some(Likeness::Name) => {
                matched.changed.add(instructions);
                Fate::Changed
            }
            None => {
                matched.gone.add(instructions);
                Fate::Gone
            }
        };
        let function = &from.symbols().functions()[at];
        let (name, file) = (function.name.clone(), function.file.clone());
        matched.lost.push(Lost { name, file, fate, instructions });
    }
    matched.lost.sort_by(|a, b| (b.instructions, &a.name).cmp(&(a.instructions, &b.name)));
    let carried = Tables {
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
    (carried, matched)
}

/// The functions that were looked up, so that each is taken apart once.
struct Pairs<'a> {
    from: &'a Image,
    to: &'a Image,
    known: BTreeMap<usize, Option<Pair>>,
}

impl Pairs<'_> {
    fn pair(&mut self, at: usize) -> Option<&Pair> {
        let (from, to) = (self.from, self.to);
        self.known.entry(at).or_insert_with(|| Pair::of(from, at, to)).as_ref()
    }

    fn address(&mut self, address: u64) -> Option<u64> {
        self.pair(self.from.symbols().lookup(address)?)?.carry(address)
    }

    /// A block of function `at`. One that runs on into another function has to do so in the other kernel, too.
    fn block(&mut self, at: usize, block: &Block) -> Option<Block> {
        let [start, last] = [block.start.get(), block.last.get()];
        let end = self.from.symbols().lookup(last)?;
        let first = self.pair(at)?.carry(start)?;
        if end != at {
            let until = self.pair(end)?.carry(last)?;
            let same_distance = last.checked_sub(start)? == until.checked_sub(first)?;
            return same_distance.then_some(Block {
                start: Address(first),
                last: Address(until),
                ..block.clone()
            });
        }
        let pair = self.pair(at)?;
        let until = pair.carry(last)?;
        let (instructions, bytes) = pair.extent(first, until)?;
        let moved = (pair.likeness == Likeness::Instructions).then_some(block.instructions);
        Some(Block {
            start: Address(first),
            last: Address(until),
            count: block.count,
            // What ran counts, and not the image: the kernel patches its code.
            instructions: moved.unwrap_or(Instructions(instructions)),
            bytes,
        })
    }
}
