//! Simplest score: the cache lines and pages that the hot code occupies.

use super::placement::Placement;
use crate::{LARGE_PAGE_BYTES, SMALL_PAGE_BYTES};

/// Cache line size of x86-64, in bytes.
const LINE_BYTES: u64 = 64;

/// Fewest lines and pages that hold a given part of all execution. Less is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HotFootprint {
    /// Number of 64-byte cache lines.
    pub lines: u64,
    /// Number of 4-KiB pages.
    pub small_pages: u64,
    /// Number of 2-MiB pages.
    pub large_pages: u64,
}

impl Placement<'_> {
    /// Returns the fewest lines and pages that hold `percent` (up to 100) of the functions' weight.
    /// A function's weight is spread evenly over its bytes.
    pub fn footprint(&self, percent: u8) -> HotFootprint {
        HotFootprint {
            lines: self.units_holding(percent, LINE_BYTES),
            small_pages: self.units_holding(percent, SMALL_PAGE_BYTES),
            large_pages: self.units_holding(percent, LARGE_PAGE_BYTES),
        }
    }

    fn units_holding(&self, percent: u8, unit_bytes: u64) -> u64 {
        let mut weights = weights_of_units(self, unit_bytes);
        if percent >= 100 {
            return weights.len() as u64;
        }
        weights.sort_by(|a, b| b.total_cmp(a));
        // The tolerance keeps rounding from adding a unit.
        let wanted = weights.iter().sum::<f64>() * (f64::from(percent) / 100.0 - 1e-12);
        let mut held = 0.0;
        let fewer = |weight: &f64| {
            let more = held < wanted;
            held += weight;
            more
        };
        weights.iter().copied().take_while(fewer).count() as u64
    }
}

/// Returns the weights of all units of `unit_bytes` (at least 1) that have any, by address.
pub(super) fn weights_of_units(placement: &Placement<'_>, unit_bytes: u64) -> Vec<f64> {
    let unit_bytes = unit_bytes.max(1);
    let mut weights: Vec<f64> = Vec::new();
    let mut last_unit = None;
    for &index in placement.order {
        let function = placement.graph.functions()[index];
        if function.weight == 0 {
            continue;
        }
        let (mut at, size) = (placement.address[index], function.size.max(1));
        let end = at + size;
        while at < end {
            let unit = at / unit_bytes;
            let next = ((unit + 1) * unit_bytes).min(end);
            let weight = function.weight as f64 * ((next - at) as f64 / size as f64);
            match weights.last_mut() {
                Some(last) if last_unit == Some(unit) => *last += weight,
                _ => weights.push(weight),
            }
            last_unit = Some(unit);
            at = next;
        }
    }
    weights
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::{CallGraph, GraphFunction, PlacementOrder};

    #[test]
    fn the_hottest_lines_and_pages_are_counted() {
        // 90 in two lines, a cold page, 9 in one line, 1 in another page.
        let functions = vec![
            GraphFunction::new(128, 90),
            GraphFunction::new(4096, 0),
            GraphFunction::new(64, 9),
            GraphFunction::new(64, 1).aligned(4096),
        ];
        let graph = CallGraph::new(functions, vec![]).expect("a graph");
        let order = PlacementOrder::of_input(&graph);
        let placement = Placement::new(&graph, &order).expect("a layout");
        let counts = [50, 90, 99, 100].map(|percent| placement.footprint(percent));
        assert_eq!(counts.map(|f| f.lines), [2, 2, 3, 4]);
        assert_eq!(counts.map(|f| f.small_pages), [1, 1, 2, 3]);
        assert_eq!(counts.map(|f| f.large_pages), [1, 1, 1, 1]);
        let order = PlacementOrder::new(vec![0, 2, 1, 3]).expect("an order");
        let placement = Placement::new(&graph, &order).expect("a layout");
        assert_eq!([90, 99, 100].map(|percent| placement.footprint(percent).small_pages), [1, 1, 2]);
    }
}
