//! Placement of functions in an order.

use super::graph::{CallGraph, GraphArc};
use super::permutation::PlacementOrder;
use crate::{Error, Result};

/// Functions of a graph, laid out in an order from address 0 with their alignment. All scores use
/// it.
///
/// Address 0 stands for the beginning of a large page, where kernel text begins.
#[derive(Debug, Clone)]
pub struct Placement<'a> {
    pub(super) graph: &'a CallGraph,
    /// Function indices from first to last.
    pub(super) order: &'a [usize],
    /// Address of the first byte of each function.
    pub(super) address: Vec<u64>,
}

impl<'a> Placement<'a> {
    /// Lays out `graph` in `order`.
    ///
    /// # Errors
    /// [`Error::OtherGraph`] if the order has a different number of functions.
    pub fn new(graph: &'a CallGraph, order: &'a PlacementOrder) -> Result<Self> {
        let functions = graph.functions();
        let order = order.as_slice();
        if order.len() != functions.len() {
            return Err(Error::OtherGraph { ordered: order.len(), functions: functions.len() });
        }
        let mut address = vec![0; functions.len()];
        let mut end: u64 = 0;
        for &function in order {
            let start = end.next_multiple_of(functions[function].alignment);
            address[function] = start;
            end = start + functions[function].size;
        }
        Ok(Self { graph, order, address })
    }

    /// Returns the address of a function's first byte from the beginning of the layout; `None` if
    /// there is no such function.
    pub fn address(&self, function: usize) -> Option<u64> {
        self.address.get(function).copied()
    }

    /// Returns call site and target of each arc whose distance depends on the order.
    pub(super) fn calls(&self) -> impl Iterator<Item = PlacedCall> + '_ {
        let placed = |arc: &GraphArc| PlacedCall {
            from: self.address[arc.caller] + self.graph.call_offset(arc),
            to: self.address[arc.callee] + arc.target_offset,
            weight: arc.weight,
        };
        self.graph.arcs().iter().filter(|arc| !arc.is_recursive()).map(placed)
    }
}

/// Call with its addresses.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlacedCall {
    pub from: u64,
    pub to: u64,
    pub weight: u64,
}

impl PlacedCall {
    /// Returns the bytes between call site and target.
    pub fn distance(self) -> u64 {
        self.from.abs_diff(self.to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::GraphFunction;

    #[test]
    fn functions_lie_one_after_the_other_at_their_alignment() {
        let functions =
            vec![GraphFunction::new(10, 1).aligned(16), GraphFunction::new(0, 1), GraphFunction::new(7, 1)];
        let graph = CallGraph::new(functions, vec![]).expect("a graph");
        let order = PlacementOrder::new(vec![2, 0, 1]).expect("an order");
        let placement = Placement::new(&graph, &order).expect("a layout");
        assert_eq!([0, 1, 2].map(|f| placement.address(f)), [Some(16), Some(26), Some(0)]);
        assert_eq!(placement.address(3), None);
        let text =
            Placement::new(&graph, &PlacementOrder::new(vec![0]).expect("an order")).expect_err("refused");
        assert!(text.to_string().contains("1 function"), "{text}");
    }
}
