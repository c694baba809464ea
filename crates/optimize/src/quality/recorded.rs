//! Counts of a recording by address.

use super::LinkedCode;
use kerntune_profile::{EdgeKind, Tables};
use std::collections::BTreeMap;

/// Taken branch with its count.
#[derive(Debug, Clone, Copy)]
pub(super) struct TakenBranch {
    pub source: u64,
    pub target: u64,
    pub kind: EdgeKind,
    pub count: u64,
}

/// Executed code of a recording.
pub(super) struct RecordedCode {
    /// Executions of each instruction from this address up to the next one; by address.
    counts: Vec<(u64, u64)>,
    /// Taken branches by the function that they leave, then by address.
    branches: BTreeMap<usize, Vec<TakenBranch>>,
}

impl RecordedCode {
    /// Collects blocks and edges recorded on a kernel.
    pub fn of(tables: &Tables, kernel: &LinkedCode) -> Self {
        let mut changes: BTreeMap<u64, i128> = BTreeMap::new();
        for block in tables.blocks.iter().filter(|block| block.count > 0 && block.bytes > 0) {
            let start = block.start.get();
            *changes.entry(start).or_default() += i128::from(block.count);
            *changes.entry(start.saturating_add(block.bytes)).or_default() -= i128::from(block.count);
        }
        let mut now = 0i128;
        let sum = |(address, change): (u64, i128)| {
            now += change;
            (address, u64::try_from(now.max(0)).unwrap_or(u64::MAX))
        };
        let counts = changes.into_iter().map(sum).collect();
        let mut branches: BTreeMap<usize, Vec<TakenBranch>> = BTreeMap::new();
        for edge in tables.edges.iter().filter(|edge| edge.count > 0) {
            let (source, target) = (edge.source.get(), edge.target.get());
            if let Some(at) = kernel.symbols().lookup(source) {
                let branch = TakenBranch { source, target, kind: edge.kind, count: edge.count };
                branches.entry(at).or_default().push(branch);
            }
        }
        for list in branches.values_mut() {
            list.sort_unstable_by_key(|branch| (branch.source, branch.target, branch.kind));
        }
        Self { counts, branches }
    }

    /// Returns the executions of the instruction at an address.
    pub fn at(&self, address: u64) -> u64 {
        let after = self.counts.partition_point(|(begin, _)| *begin <= address);
        after.checked_sub(1).map_or(0, |at| self.counts[at].1)
    }

    /// Returns the taken branches of a function, by source and target.
    pub fn branches(&self, function: usize) -> &[TakenBranch] {
        self.branches.get(&function).map_or(&[], Vec::as_slice)
    }

    /// Returns the branches that were taken within a function, without its calls of itself.
    pub fn inner(&self, function: usize, kernel: &LinkedCode) -> Vec<(u64, u64)> {
        let inside = |branch: &&TakenBranch| {
            !matches!(branch.kind, EdgeKind::Call | EdgeKind::IndirectCall | EdgeKind::Return)
                && kernel.symbols().lookup(branch.target) == Some(function)
        };
        self.branches(function).iter().filter(inside).map(|branch| (branch.source, branch.target)).collect()
    }

    /// Returns how often a function called, or jumped to, each function at its first instruction.
    pub fn callees(&self, function: usize, kernel: &LinkedCode) -> BTreeMap<usize, u64> {
        let mut callees = BTreeMap::new();
        for branch in self.branches(function) {
            let Some(callee) = kernel.symbols().lookup(branch.target) else { continue };
            if callee != function && kernel.symbols().functions()[callee].address == branch.target {
                let sum: &mut u64 = callees.entry(callee).or_default();
                *sum = sum.saturating_add(branch.count);
            }
        }
        callees
    }
}

/// Returns `count * by / of`, rounded down; `count` if `of` is 0.
pub(super) fn scaled(count: u64, by: u64, of: u64) -> u64 {
    if by == of || of == 0 {
        return count;
    }
    u64::try_from(u128::from(count) * u128::from(by) / u128::from(of)).unwrap_or(u64::MAX)
}
