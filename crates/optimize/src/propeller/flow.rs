//! Execution counts of a function's blocks, and of the transfers of control between them.

use kerntune_convert::propeller::MappedFunction;
use kerntune_layout::blocks::FlowJump;
use kerntune_profile::{EdgeKind, Tables};
use std::collections::{BTreeMap, HashMap};

/// All executed code of a recording.
pub(super) struct RecordedCounts {
    /// Execution count of each instruction from this address up to the next one; by address.
    counts: Vec<(u64, u64)>,
    /// End of straight code → its last instruction.
    last: HashMap<u64, u64>,
    /// Branch address → targets with counts.
    jumps: BTreeMap<u64, Vec<(u64, u64)>>,
}

/// Execution counts of one function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BlockFlow {
    /// Execution count of each block.
    pub counts: Vec<u64>,
    /// Transfers between blocks, by indices in the map.
    pub jumps: Vec<FlowJump>,
}

impl RecordedCounts {
    /// Collects blocks and edges of a recording. A recorder's block reaches from a branch target to
    /// the next branch.
    pub fn of(tables: &Tables) -> Self {
        let mut changes: BTreeMap<u64, i128> = BTreeMap::new();
        let mut last = HashMap::new();
        for block in tables.blocks.iter().filter(|block| block.count > 0 && block.bytes > 0) {
            let (start, end) = (block.start.get(), block.start.get().saturating_add(block.bytes));
            *changes.entry(start).or_default() += i128::from(block.count);
            *changes.entry(end).or_default() -= i128::from(block.count);
            last.insert(end, block.last.get());
        }
        let mut now = 0i128;
        let sum = |(address, change): (u64, i128)| {
            now += change;
            (address, u64::try_from(now).unwrap_or(if now < 0 { 0 } else { u64::MAX }))
        };
        let counts = changes.into_iter().map(sum).collect();
        let mut jumps: BTreeMap<u64, Vec<(u64, u64)>> = BTreeMap::new();
        let inside = |kind| matches!(kind, EdgeKind::Conditional | EdgeKind::Jump | EdgeKind::IndirectJump);
        for edge in tables.edges.iter().filter(|edge| edge.count > 0 && inside(edge.kind)) {
            jumps.entry(edge.source.get()).or_default().push((edge.target.get(), edge.count));
        }
        Self { counts, last, jumps }
    }

    /// Returns a function that gives for the address of a function the rounds of the region with
    /// the fewest rounds among those that called it. Functions without known calls (recorded
    /// without functions, or never called) get the fewest of all regions.
    pub fn rounds(tables: &Tables) -> impl Fn(u64) -> u64 + use<> {
        let of: HashMap<u32, u64> = (tables.regions.iter().filter(|row| row.operations > 0))
            .map(|row| (row.region, row.operations))
            .collect();
        // Regions of one name are added up.
        let names: HashMap<u32, &str> =
            tables.regions.iter().map(|row| (row.region, row.name.as_str())).collect();
        let mut sums: HashMap<&str, u64> = HashMap::new();
        for (region, operations) in &of {
            *sums.entry(names[region]).or_default() += operations;
        }
        let min = sums.values().copied().min().unwrap_or_default();
        let mut fewest: HashMap<u64, u64> = HashMap::new();
        for row in tables.functions.iter().filter(|row| row.calls > 0) {
            let symbol = tables.symbols.get(row.function.0 as usize);
            if let (Some(symbol), Some(name)) =
                (symbol, names.get(&row.region).filter(|_| of.contains_key(&row.region)))
            {
                let fewest = fewest.entry(symbol.address.get()).or_insert(u64::MAX);
                *fewest = sums[name].min(*fewest);
            }
        }
        move |address| fewest.get(&address).copied().unwrap_or(min)
    }

    /// Returns the execution count of the code at an address.
    fn at(&self, address: u64) -> u64 {
        let after = self.counts.partition_point(|(begin, _)| *begin <= address);
        after.checked_sub(1).map_or(0, |at| self.counts[at].1)
    }

    /// Returns the number of times that the branch at an address was taken.
    fn taken(&self, jump: u64) -> u64 {
        let targets = self.jumps.get(&jump).into_iter().flatten();
        targets.fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// Returns the counts of a function's blocks and of the transfers between them. A call does not
    /// end a block here; calls that do not return are not told apart.
    pub fn flow(&self, function: &MappedFunction) -> BlockFlow {
        let blocks = &function.blocks;
        // Of several blocks at one address all but the last are empty: control enters the first and
        // falls through.
        let mut starts: HashMap<u64, usize> = HashMap::new();
        for (at, block) in blocks.iter().enumerate() {
            starts.entry(block.address).or_insert(at);
        }
        let ran = |block: &kerntune_convert::propeller::MappedBlock| match block.bytes {
            0 if !block.falls_through => 0,
            _ => self.at(block.address),
        };
        let counts: Vec<u64> = blocks.iter().map(ran).collect();
        let mut jumps = Vec::new();
        for (from, block) in blocks.iter().enumerate() {
            for (_, targets) in self.jumps.range(block.address..block.end()) {
                for (target, count) in targets {
                    if let Some(&to) = starts.get(target) {
                        jumps.push(FlowJump { from, to, count: *count });
                    }
                }
            }
            let Some(next) = counts.get(from + 1).filter(|_| block.falls_through) else { continue };
            let falls = match block.bytes {
                0 => counts[from],
                _ => {
                    let taken = self.last.get(&block.end()).map_or(0, |last| self.taken(*last));
                    self.at(block.end() - 1).saturating_sub(taken)
                }
            };
            // A repeated string instruction counts each repetition.
            let count = falls.min(*next);
            if count > 0 {
                jumps.push(FlowJump { from, to: from + 1, count });
            }
        }
        BlockFlow { counts, jumps }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_convert::propeller::MappedBlock;
    use kerntune_profile::{
        Address, Block, Edge, FunctionIndex, FunctionStats, Instructions, RegionStats, Symbol, Ticks,
    };

    #[test]
    fn blocks_of_the_compiler_are_counted_from_those_of_the_recorder() {
        let block = |start: u64, last: u64, end: u64, count| {
            let instructions = Instructions(2);
            Block { start: Address(start), last: Address(last), count, instructions, bytes: end - start }
        };
        let edge = |source: u64, target: u64, count, kind| Edge {
            source: Address(source),
            target: Address(target),
            count,
            kind,
        };
        let tables = Tables {
            // A: a call inside, then a jump to C (30 of 100); B; an empty block; C, which the
            // recorder has together with B; D never ran.
            blocks: vec![
                block(0x100, 0x108, 0x10d, 100),
                block(0x10d, 0x110, 0x112, 100),
                block(0x112, 0x128, 0x12a, 70),
                block(0x120, 0x128, 0x12a, 30),
            ],
            edges: vec![
                edge(0x108, 0x900, 100, EdgeKind::Call),
                edge(0x908, 0x10d, 100, EdgeKind::Return),
                edge(0x110, 0x120, 30, EdgeKind::Conditional),
                edge(0x128, 0x100, 9, EdgeKind::Conditional),
                edge(0x128, 0x700, 91, EdgeKind::Jump),
            ],
            ..Tables::default()
        };
        let mapped = |id, address, bytes, falls_through| MappedBlock { id, address, bytes, falls_through };
        let function = MappedFunction {
            address: 0x100,
            blocks: vec![
                mapped(0, 0x100, 0x12, true),
                mapped(4, 0x112, 0xe, true),
                mapped(5, 0x120, 0, true),
                mapped(2, 0x120, 0xa, false),
                mapped(3, 0x12a, 0x10, false),
            ],
        };
        let flow = RecordedCounts::of(&tables).flow(&function);
        assert_eq!(flow.counts, [100, 70, 100, 100, 0]);
        let jump = |from, to, count| FlowJump { from, to, count };
        let mut expected =
            vec![jump(0, 2, 30), jump(0, 1, 70), jump(1, 2, 70), jump(2, 3, 100), jump(3, 0, 9)];
        let mut found = flow.jumps.clone();
        let key = |jump: &FlowJump| (jump.from, jump.to);
        expected.sort_by_key(key);
        found.sort_by_key(key);
        assert_eq!(found, expected);
    }

    #[test]
    fn a_function_has_the_rounds_of_the_rarest_region_that_calls_it() {
        let region = |region, name: &str, operations| RegionStats {
            region,
            name: name.into(),
            operations,
            ..RegionStats::default()
        };
        let symbol = |at: u32| Symbol {
            function: FunctionIndex(at),
            name: format!("f{at}"),
            address: Address(u64::from(at) << 8),
            size: 16,
            file: None,
            module: None,
        };
        let called = |region, function| FunctionStats {
            region,
            function: FunctionIndex(function),
            calls: 1,
            ended: 1,
            self_ticks: Ticks(1),
            ended_self_ticks: Ticks(1),
            total_ticks: Ticks(1),
            max_ticks: Ticks(1),
            min_ticks: Ticks(1),
            slowest_ticks: Ticks(1),
            slowest_at_ticks: Ticks(0),
        };
        let tables = Tables {
            // `send` twice, and a region without operations.
            regions: vec![
                region(0, "send", 400),
                region(1, "fork", 21),
                region(2, "send", 300),
                region(3, "x", 0),
            ],
            symbols: (0..4).map(symbol).collect(),
            functions: vec![called(0, 1), called(1, 2), called(2, 2), called(3, 3)],
            ..Tables::default()
        };
        let rounds = RecordedCounts::rounds(&tables);
        assert_eq!([0x000, 0x100, 0x200, 0x300].map(&rounds), [21, 700, 21, 21]);
        assert_eq!(RecordedCounts::rounds(&Tables::default())(0x100), 0);
    }
}
