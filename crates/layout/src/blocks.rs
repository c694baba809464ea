//! Block order: computes an order of a function's basic blocks from the control flow between them.
//!
//! The objective is ext-TSP of Andy Newell and Sergey Pupyrev, "Improved Basic Block Reordering"
//! (IEEE Transactions on Computers, 2020), with the weights of LLVM's `CodeLayout.cpp`. A transfer
//! of control to the next block in memory is worth 1, or 1.05 if a jump would be needed otherwise;
//! a jump over a short distance is worth up to 0.1. As in LLVM, chains of blocks are merged
//! greedily by the largest gain, one into the other at any position. The result is usually but not
//! always the best order. For functions with few blocks all orders are tried.
//!
//! ```
//! use kerntune_layout::blocks::{FlowBlock, FlowJump, FunctionFlow};
//! // 0 goes to 2 nine times out of ten; both 1 and 2 go on to 3.
//! let blocks = vec![FlowBlock { size: 16 }; 4];
//! let jump = |from, to, count| FlowJump { from, to, count };
//! let jumps = vec![jump(0, 1, 10), jump(0, 2, 90), jump(1, 3, 10), jump(2, 3, 90)];
//! let flow = FunctionFlow::new(blocks, jumps)?;
//! assert_eq!(flow.order(), [0, 2, 3, 1]);
//! assert!(flow.score(&[0, 2, 3, 1])? > flow.score(&[0, 1, 2, 3])?);
//! # Ok::<(), kerntune_layout::Error>(())
//! ```

use crate::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};

/// Basic block of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowBlock {
    /// Size in bytes.
    pub size: u64,
}

/// Transfers of control from one block to another, by a branch or by falling through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowJump {
    /// Index of the source block.
    pub from: usize,
    /// Index of the target block.
    pub to: usize,
    /// Number of transfers.
    pub count: u64,
}

/// Blocks of one function and the control flow between them. Block 0 is the function's entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionFlow {
    blocks: Vec<FlowBlock>,
    /// Transfers with a count above 0 between different blocks, one per pair.
    jumps: Vec<FlowJump>,
    /// For each block, true if it has a single successor; unless that is next, the block needs a
    /// jump.
    one_way: Vec<bool>,
}

/// Worth of falling through to the next block, without and with a jump saved.
const FALL_THROUGH_WORTH: [f64; 2] = [1.0, 1.05];
/// Worth of a jump at distance 0, and the distance in bytes at which the worth reaches 0.
const FORWARD: (f64, f64) = (0.1, 1024.0);
const BACKWARD: (f64, f64) = (0.1, 640.0);
/// Longest chain that is split at any position. Longer ones are split only next to blocks that the
/// other chain reaches.
const MAX_FREE_SPLIT_BLOCKS: usize = 48;
/// Largest number of blocks for which all orders are tried (at most 5040).
const MAX_EXHAUSTIVE_BLOCKS: usize = 8;
/// Smallest relative gain that counts: sums in another order differ by rounding.
const EPSILON: f64 = 1e-9;

impl FunctionFlow {
    /// Creates the flow from blocks and transfers. Transfers of a block to itself are dropped,
    /// since they cost the same in every order.
    ///
    /// # Errors
    /// [`Error::NoSuchBlock`] if a transfer names a block that does not exist.
    pub fn new(blocks: Vec<FlowBlock>, jumps: impl IntoIterator<Item = FlowJump>) -> Result<Self> {
        let mut sums: BTreeMap<(usize, usize), u64> = BTreeMap::new();
        for jump in jumps {
            let block = jump.from.max(jump.to);
            if block >= blocks.len() {
                return Err(Error::NoSuchBlock { block, blocks: blocks.len() });
            }
            if jump.from != jump.to && jump.count > 0 {
                let sum = sums.entry((jump.from, jump.to)).or_default();
                *sum = sum.saturating_add(jump.count);
            }
        }
        let jumps: Vec<FlowJump> =
            sums.into_iter().map(|((from, to), count)| FlowJump { from, to, count }).collect();
        let mut ways = vec![0usize; blocks.len()];
        jumps.iter().for_each(|jump| ways[jump.from] += 1);
        let one_way = ways.into_iter().map(|ways| ways == 1).collect();
        Ok(Self { blocks, jumps, one_way })
    }

    /// Returns a good order of all blocks, with the entry first. It scores at least as high as the
    /// input order.
    pub fn order(&self) -> Vec<usize> {
        let mut best = self.merged();
        let mut worth = self.worth(&best);
        let mut attempt = |order: &[usize]| {
            let other = self.worth(order);
            // Keep the earlier of two equal orders, even if their sums differ by rounding.
            if other > worth * (1.0 + EPSILON) {
                (best, worth) = (order.to_vec(), other);
            }
        };
        let mut order: Vec<usize> = (0..self.blocks.len()).collect();
        attempt(&order);
        if order.len() <= MAX_EXHAUSTIVE_BLOCKS {
            each_order(&mut order, 1, &mut attempt);
        }
        best
    }

    /// Returns the order that greedy merging finds.
    fn merged(&self) -> Vec<usize> {
        let mut merger = ChainMerger::new(self);
        merger.merge_all();
        merger.concatenated()
    }

    /// Returns the objective's value for an order.
    ///
    /// # Errors
    /// [`Error::NoBlockOrder`] if the order does not contain each block once.
    pub fn score(&self, order: &[usize]) -> Result<f64> {
        let each: BTreeSet<usize> = order.iter().copied().collect();
        if order.len() != self.blocks.len() || !each.into_iter().eq(0..self.blocks.len()) {
            return Err(Error::NoBlockOrder { ordered: order.len(), blocks: self.blocks.len() });
        }
        Ok(self.worth(order))
    }

    fn worth(&self, order: &[usize]) -> f64 {
        let mut begins = vec![0; self.blocks.len()];
        let mut at = 0;
        for &block in order {
            begins[block] = at;
            at += self.blocks[block].size;
        }
        self.jumps.iter().map(|jump| self.worth_of(jump, begins[jump.from], begins[jump.to])).sum()
    }

    /// Returns the worth of a jump whose two blocks begin at `from` and `to`.
    fn worth_of(&self, jump: &FlowJump, from: u64, to: u64) -> f64 {
        let end = from + self.blocks[jump.from].size;
        let near = |(max, range): (f64, f64), distance: u64| max * (1.0 - distance as f64 / range).max(0.0);
        let each = match to {
            to if to == end => FALL_THROUGH_WORTH[usize::from(self.one_way[jump.from])],
            to if to > end => near(FORWARD, to - end),
            to => near(BACKWARD, end - to),
        };
        jump.count as f64 * each
    }
}

/// Calls `take` with every order that leaves the first `fixed` blocks in place.
fn each_order(order: &mut [usize], fixed: usize, take: &mut impl FnMut(&[usize])) {
    if fixed + 1 >= order.len() {
        take(order);
        return;
    }
    for at in fixed..order.len() {
        order.swap(fixed, at);
        each_order(order, fixed + 1, take);
        order.swap(fixed, at);
    }
}

/// Result of merging two chains.
#[derive(Debug, Clone, PartialEq)]
struct ChainMerge {
    gain: f64,
    blocks: Vec<usize>,
}

/// State of the algorithm. A chain is identified by its first original block.
struct ChainMerger<'a> {
    flow: &'a FunctionFlow,
    /// Blocks of each chain; empty if the chain was merged into another.
    chains: Vec<Vec<usize>>,
    chain_of: Vec<usize>,
    /// Worth of the jumps inside each chain.
    worth: Vec<f64>,
    /// Jumps out of and into each block.
    jumps_of: Vec<Vec<FlowJump>>,
    /// Best merge of each pair of chains (lower index first) that has a gain.
    merges: BTreeMap<(usize, usize), ChainMerge>,
    min_gain: f64,
    /// Scratch: start addresses of the blocks being examined.
    begins: Vec<u64>,
}

impl<'a> ChainMerger<'a> {
    fn new(flow: &'a FunctionFlow) -> Self {
        let count = flow.blocks.len();
        let mut jumps_of = vec![Vec::new(); count];
        for jump in &flow.jumps {
            jumps_of[jump.from].push(*jump);
            jumps_of[jump.to].push(*jump);
        }
        let all: f64 = flow.jumps.iter().map(|jump| jump.count as f64).sum();
        let mut merger = Self {
            flow,
            chains: (0..count).map(|block| vec![block]).collect(),
            chain_of: (0..count).collect(),
            worth: vec![0.0; count],
            jumps_of,
            merges: BTreeMap::new(),
            min_gain: all * EPSILON,
            begins: vec![0; count],
        };
        (0..count).for_each(|chain| merger.look_at(chain));
        merger
    }

    fn merge_all(&mut self) {
        // Among equal gains the first pair wins.
        let better =
            |best: Option<((usize, usize), f64)>, (pair, merge): (&(usize, usize), &ChainMerge)| match best {
                Some((_, gain)) if gain >= merge.gain => best,
                _ => Some((*pair, merge.gain)),
            };
        while let Some((pair, _)) = self.merges.iter().fold(None, better) {
            let Some(merge) = self.merges.remove(&pair) else { break };
            let (into, from) = pair;
            self.worth[into] += self.worth[from] + merge.gain;
            self.chains[from].clear();
            for &block in &merge.blocks {
                self.chain_of[block] = into;
            }
            self.chains[into] = merge.blocks;
            self.merges.retain(|&(one, other), _| ![one, other].iter().any(|at| [into, from].contains(at)));
            self.look_at(into);
        }
    }

    /// Recomputes the best merges of a chain with every chain connected to it.
    fn look_at(&mut self, chain: usize) {
        let jumps = self.chains[chain].iter().flat_map(|&block| &self.jumps_of[block]);
        let ends = jumps.flat_map(|jump| [self.chain_of[jump.from], self.chain_of[jump.to]]);
        let others: BTreeSet<usize> = ends.filter(|&other| other != chain).collect();
        for other in others {
            let pair = (chain.min(other), chain.max(other));
            match self.best(pair) {
                Some(merge) => drop(self.merges.insert(pair, merge)),
                None => drop(self.merges.remove(&pair)),
            }
        }
    }

    /// Returns the best merge of two chains, or `None` if no merge has a gain.
    fn best(&mut self, (one, other): (usize, usize)) -> Option<ChainMerge> {
        let of = |chain: usize| chain == one || chain == other;
        let members = || self.chains[one].iter().chain(&self.chains[other]).copied();
        let mut jumps: Vec<FlowJump> = Vec::new();
        let mut between: BTreeSet<usize> = BTreeSet::new();
        for block in members() {
            for jump in
                self.jumps_of[block].iter().filter(|jump| jump.from == block && of(self.chain_of[jump.to]))
            {
                jumps.push(*jump);
                if self.chain_of[jump.from] != self.chain_of[jump.to] {
                    between.extend([jump.from, jump.to]);
                }
            }
        }
        let entry = of(self.chain_of[0]);
        let apart = self.worth[one] + self.worth[other];
        let mut best: Option<ChainMerge> = None;
        let begins = &mut self.begins;
        let mut attempt = |parts: [&[usize]; 3]| {
            let blocks = || parts.iter().flat_map(|part| part.iter().copied());
            // The entry must stay first.
            if entry && blocks().next() != Some(0) {
                return;
            }
            let mut at = 0;
            for block in blocks() {
                begins[block] = at;
                at += self.flow.blocks[block].size;
            }
            let worth = |jump: &FlowJump| self.flow.worth_of(jump, begins[jump.from], begins[jump.to]);
            let gain = jumps.iter().map(worth).sum::<f64>() - apart;
            if gain > best.as_ref().map_or(self.min_gain, |best| best.gain + self.min_gain) {
                best = Some(ChainMerge { gain, blocks: blocks().collect() });
            }
        };
        for (whole, parted) in [(other, one), (one, other)] {
            let (whole, parted) = (&self.chains[whole][..], &self.chains[parted][..]);
            attempt([parted, whole, &[]]);
            for at in 1..parted.len() {
                // Split a long chain only next to a block that the other chain jumps to or from.
                if parted.len() > MAX_FREE_SPLIT_BLOCKS
                    && !between.contains(&parted[at])
                    && !between.contains(&parted[at - 1])
                {
                    continue;
                }
                let (head, tail) = parted.split_at(at);
                attempt([head, whole, tail]);
                attempt([whole, tail, head]);
                attempt([tail, head, whole]);
            }
        }
        best
    }

    /// Concatenates the chains: the entry's chain first, the others by incoming jumps per byte.
    fn concatenated(self) -> Vec<usize> {
        let density = |chain: &Vec<usize>| {
            let into = chain
                .iter()
                .flat_map(|&block| self.jumps_of[block].iter().filter(move |jump| jump.to == block));
            let size: u64 = chain.iter().map(|&block| self.flow.blocks[block].size).sum();
            into.map(|jump| jump.count as f64).sum::<f64>() / size.max(1) as f64
        };
        let mut chains: Vec<(bool, f64, &Vec<usize>)> =
            (self.chains.iter().filter(|chain| !chain.is_empty()))
                .map(|chain| (!chain.contains(&0), density(chain), chain))
                .collect();
        chains.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
        chains.into_iter().flat_map(|(_, _, chain)| chain.iter().copied()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn flow(sizes: &[u64], jumps: &[(usize, usize, u64)]) -> FunctionFlow {
        let blocks = sizes.iter().map(|&size| FlowBlock { size }).collect();
        FunctionFlow::new(blocks, jumps.iter().map(|&(from, to, count)| FlowJump { from, to, count }))
            .unwrap()
    }

    #[test]
    fn the_objective_is_that_of_the_paper() {
        let two_ways = flow(&[10, 20, 30], &[(0, 1, 100), (0, 2, 50), (2, 1, 7)]);
        // 0 falls through to 1 and jumps over 20 bytes to 2; the end of 2 jumps back over 50 bytes
        // to 1.
        let expected = 100.0 + 50.0 * 0.1 * (1.0 - 20.0 / 1024.0) + 7.0 * 0.1 * (1.0 - 50.0 / 640.0);
        assert!((two_ways.score(&[0, 1, 2]).unwrap() - expected).abs() < 1e-9);
        // 1 is the only successor of 2: without the fall-through, 2 would need a jump.
        let expected = 50.0 + 7.0 * 1.05 + 100.0 * 0.1 * (1.0 - 30.0 / 1024.0);
        assert!((two_ways.score(&[0, 2, 1]).unwrap() - expected).abs() < 1e-9);
        let far = flow(&[10, 2000, 10], &[(0, 2, 9), (2, 0, 9)]);
        assert_eq!(far.score(&[0, 1, 2]).unwrap(), 0.0, "too far either way");
    }

    #[test]
    fn what_is_no_flow_or_no_order_is_refused() {
        let text = FunctionFlow::new(vec![FlowBlock { size: 1 }], [FlowJump { from: 0, to: 1, count: 1 }])
            .unwrap_err();
        assert!(text.to_string().contains("block 1"), "{text}");
        for bad in [&[0, 0][..], &[0], &[0, 2], &[0, 1, 2]] {
            assert!(flow(&[1, 1], &[]).score(bad).is_err(), "{bad:?}");
        }
        assert_eq!(flow(&[1, 1, 1], &[]).order(), [0, 1, 2]);
        assert_eq!(flow(&[], &[]).order(), [0usize; 0]);
    }

    #[test]
    fn a_loop_is_turned_so_that_its_jump_back_is_the_conditional_one() {
        // As written: 0 → 1 (condition) → 2 (body) → 1, and out to 3. The condition is best after
        // the body.
        let rotated = flow(&[8, 8, 24, 8], &[(0, 1, 1), (1, 2, 99), (2, 1, 99), (1, 3, 1)]);
        let order = rotated.order();
        assert_eq!(order[0], 0);
        let at = |block| order.iter().position(|&at| at == block).unwrap();
        assert_eq!(at(2) + 1, at(1), "{order:?}: the body falls into the condition");
    }

    #[test]
    fn a_chain_is_parted_where_that_is_better() {
        // 0 → 1 → 3 is found first. 2 is worth more between 0 and 1 than at the end.
        let parted = flow(&[16, 16, 16, 16], &[(0, 1, 60), (1, 3, 100), (0, 2, 50), (2, 1, 40)]);
        let order = parted.order();
        assert_eq!(parted.score(&order).unwrap(), best(&parted), "{order:?}");
        assert_eq!(parted.merged(), order);
    }

    /// Returns the highest score of all orders that begin with the entry.
    fn best(flow: &FunctionFlow) -> f64 {
        let mut all = vec![vec![0]];
        for block in 1..flow.blocks.len() {
            let with = |order: &Vec<usize>| {
                let order = order.clone();
                (1..=order.len())
                    .map(move |at| [&order[..at], &[block], &order[at..]].concat())
                    .collect::<Vec<_>>()
            };
            all = all.iter().flat_map(with).collect();
        }
        all.iter().map(|order| flow.score(order).unwrap()).fold(0.0, f64::max)
    }

    /// Builds a function of `count` blocks, each of which continues to one of two later blocks or
    /// sometimes jumps back.
    fn made_up(count: usize, seed: &mut u64) -> FunctionFlow {
        let mut next = |below: u64| {
            *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (*seed >> 33) % below
        };
        let mut counts = vec![0u64; count];
        counts[0] = 1000;
        let mut jumps = Vec::new();
        for block in 0..count - 1 {
            let (here, part) = (counts[block], next(101));
            let near = block + 1 + next(2).min((count - block - 2) as u64) as usize;
            let far = block + 1 + next((count - block - 1) as u64) as usize;
            for (to, times) in [(near, here * part / 100), (far, here - here * part / 100)] {
                counts[to] += times;
                jumps.push((block, to, times));
            }
            if next(5) == 0 && block > 0 {
                jumps.push((block, next(block as u64) as usize, here / 2));
            }
        }
        let sizes: Vec<u64> = (0..count).map(|_| 4 + next(60)).collect();
        flow(&sizes, &jumps)
    }

    #[test]
    fn merging_alone_is_near_the_best_order() {
        let mut seed = 1;
        let shares = (0..100).map(|round| {
            let flow = made_up(3 + round % 5, &mut seed);
            let found = flow.score(&flow.merged()).unwrap();
            assert!(flow.score(&flow.order()).unwrap() >= found);
            found / best(&flow)
        });
        let shares: Vec<f64> = shares.collect();
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        let min = shares.iter().copied().fold(1.0, f64::min);
        assert!(mean > 0.99 && min > 0.8, "{mean} on average, {min} at least");
    }

    fn flows(max: usize) -> impl Strategy<Value = FunctionFlow> {
        (1..=max).prop_flat_map(|count| {
            let sizes = prop::collection::vec(0u64..200, count);
            let jumps = prop::collection::vec((0..count, 0..count, 0u64..1000), 0..=2 * count);
            (sizes, jumps).prop_map(|(sizes, jumps)| flow(&sizes, &jumps))
        })
    }

    proptest! {
        #[test]
        fn small_functions_have_the_best_order(flow in flows(6)) {
            let order = flow.order();
            let (found, best) = (flow.score(&order).unwrap(), best(&flow));
            prop_assert_eq!(order[0], 0);
            prop_assert!((found - best).abs() <= 1e-6 * best, "{} of {}", found, best);
        }

        #[test]
        fn large_ones_are_never_worse_than_as_given(flow in flows(90)) {
            let order = flow.order();
            let given: Vec<usize> = (0..order.len()).collect();
            prop_assert_eq!(order[0], 0);
            prop_assert!(flow.score(&order).unwrap() >= flow.score(&given).unwrap());
            prop_assert_eq!(order, flow.order(), "the same again");
        }
    }
}
