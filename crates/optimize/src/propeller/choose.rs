//! Selection and order of the blocks of a function.

use super::flow::BlockFlow;
use crate::Result;
use kerntune_convert::propeller::MappedFunction;
use kerntune_layout::blocks::{self, FlowBlock, FlowJump};

/// Blocks of one function in their new order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ChosenBlocks {
    /// Blocks that stand together, as indices in the map, in order; the entry is the first.
    pub order: Vec<usize>,
    /// Transfers of control between blocks of the function that are not fall-throughs: in the map's
    /// order, and in the new order.
    pub taken: [u64; 2],
}

/// Share of the rounds below which a block is rare.
const RARE_SHARE: f64 = 0.25;

/// Orders the frequent blocks of a function that ran. The rare blocks are split off with `splits`,
/// and otherwise follow in their old order, since code in a kernel section of its own has to stay
/// there.
///
/// `rounds` are those of the region with the fewest rounds of all that run the function: a block
/// that ran in fewer than a quarter of them is rare in each region, even if it ran in that one
/// alone. In a function that is rare as a whole every executed block counts as frequent.
///
/// `None` for a function that did not run.
pub(super) fn choose(
    function: &MappedFunction,
    flow: &BlockFlow,
    splits: bool,
    rounds: u64,
) -> Result<Option<ChosenBlocks>> {
    let all = 0..function.blocks.len();
    let usual = |count: u64| count as f64 >= RARE_SHARE * rounds as f64;
    let rare_itself = !flow.counts.first().is_some_and(|&entry| usual(entry));
    if flow.counts.iter().all(|&count| count == 0) {
        return Ok(None);
    }
    // The function's symbol is at the entry, so the entry always stays.
    let ran: Vec<usize> = all
        .clone()
        .filter(|&at| at == 0 || flow.counts[at] > 0 && (rare_itself || usual(flow.counts[at])))
        .collect();
    let number = |at: usize| ran.binary_search(&at).ok();
    let sizes = ran.iter().map(|&at| FlowBlock { size: function.blocks[at].bytes }).collect();
    let jumps = flow.jumps.iter().filter_map(|jump| {
        Some(FlowJump { from: number(jump.from)?, to: number(jump.to)?, count: jump.count })
    });
    let ordered = blocks::FunctionFlow::new(sizes, jumps)?.order();
    let mut order: Vec<usize> = ordered.into_iter().map(|at| ran[at]).collect();
    if !splits {
        let rest: Vec<usize> = all.clone().filter(|at| !order.contains(at)).collect();
        order.extend(rest);
    }
    let before = taken(&flow.jumps, &all.collect::<Vec<_>>());
    let after = taken(&flow.jumps, &order);
    Ok(Some(ChosenBlocks { order, taken: [before, after] }))
}

fn taken(jumps: &[FlowJump], order: &[usize]) -> u64 {
    let next: std::collections::HashMap<usize, usize> =
        order.windows(2).map(|pair| (pair[0], pair[1])).collect();
    let taken = jumps.iter().filter(|jump| next.get(&jump.from) != Some(&jump.to));
    taken.fold(0, |sum, jump| sum.saturating_add(jump.count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_convert::propeller::MappedBlock;

    #[test]
    fn what_ran_stands_together_and_the_entry_is_first() {
        let block = |at: u64| MappedBlock { id: at, address: 16 * at, bytes: 16, falls_through: true };
        let function = MappedFunction { address: 0, blocks: (0..5).map(block).collect() };
        let jump = |from, to, count| FlowJump { from, to, count };
        // 1 and 4 never ran; entered in the middle, before the recording began.
        let flow = BlockFlow { counts: vec![0, 0, 10, 9, 0], jumps: vec![jump(3, 2, 9), jump(2, 3, 9)] };
        let chosen = choose(&function, &flow, true, 10).unwrap().unwrap();
        assert_eq!(chosen, ChosenBlocks { order: vec![0, 2, 3], taken: [9, 9] });
        assert_eq!(choose(&function, &flow, false, 10).unwrap().unwrap().order, [0, 2, 3, 1, 4]);
        let never = BlockFlow { counts: vec![0; 5], jumps: Vec::new() };
        assert_eq!(choose(&function, &never, true, 10).unwrap(), None);
        let past = BlockFlow { counts: vec![10, 0, 10, 0, 10], jumps: vec![jump(0, 2, 10), jump(2, 4, 10)] };
        assert_eq!(
            choose(&function, &past, true, 10).unwrap().unwrap(),
            ChosenBlocks { order: vec![0, 2, 4], taken: [20, 0] }
        );
        // Three times in 16 rounds is rare if the entry is frequent; if the entry is rare, it is
        // all there is.
        let rarely = |entry| BlockFlow { counts: vec![entry, 0, 3, 4, 0], jumps: Vec::new() };
        assert_eq!(choose(&function, &rarely(16), true, 16).unwrap().unwrap().order, [0, 3]);
        assert_eq!(choose(&function, &rarely(3), true, 16).unwrap().unwrap().order, [0, 2, 3]);
    }
}
