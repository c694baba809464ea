//! Scores for orders, one for each objective.

use super::cache_model::{miss_probability, worth_of_call};
use super::cdsort::CdsortConfig;
use super::footprint::weights_of_units;
use super::placement::Placement;

/// Objective of [`cdsort`](super::cdsort()). More is better.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CacheLocality {
    /// Sum over all calls of weight times distance to the minus `distance_power`.
    pub calls: f64,
    /// Hits in the modeled cache: the part of the functions' weight that does not miss.
    pub hits: f64,
    /// `calls + frequency_scale * hits`.
    pub total: f64,
}

impl Placement<'_> {
    /// Returns Pettis and Hansen's objective: the sum over all calls of weight times bytes from
    /// call site to target. Less is better. All scores ignore recursive calls.
    pub fn call_distance(&self) -> u128 {
        self.calls().map(|call| u128::from(call.weight) * u128::from(call.distance())).sum()
    }

    /// Returns the weight of the calls whose two ends are on one page of this layout. More is
    /// better. A page size of 0 counts as 1.
    pub fn same_page_weight(&self, page_bytes: u64) -> u64 {
        let page = |address: u64| address / page_bytes.max(1);
        self.calls().filter(|call| page(call.from) == page(call.to)).map(|call| call.weight).sum()
    }

    /// Returns C3's objective: the expected weight of calls within one page if pages began
    /// anywhere. A call over `d` bytes stays within a page with probability `1 - d / page_bytes`,
    /// at least 0. More is better.
    pub fn expected_same_page_weight(&self, page_bytes: u64) -> f64 {
        let near = self.calls().filter(|call| call.distance() < page_bytes);
        near.map(|call| call.weight as f64 * (1.0 - call.distance() as f64 / page_bytes as f64)).sum()
    }

    /// Returns the objective of cache-directed sort, with the cache lines of this layout. A
    /// function's weight is spread evenly over its bytes.
    pub fn cache_locality(&self, config: &CdsortConfig) -> CacheLocality {
        let calls = self.calls().filter(|call| call.weight > 0);
        let calls = calls
            .map(|call| call.weight as f64 * worth_of_call(call.distance(), config.distance_power))
            .sum();
        let total = self.graph.functions().iter().map(|function| function.weight).sum();
        let lines = weights_of_units(self, config.cache_line_bytes);
        let hits = lines
            .into_iter()
            .map(|line| line * (1.0 - miss_probability(line, total, config.cache_entries)))
            .sum();
        CacheLocality { calls, hits, total: calls + config.frequency_scale * hits }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::{CallGraph, GraphArc, GraphFunction, PlacementOrder};

    /// Builds two functions of 100 bytes: one call from byte 60 of the first to byte 10 of the
    /// second, and one back.
    fn graph() -> CallGraph {
        let functions = vec![GraphFunction::new(100, 30), GraphFunction::new(100, 10)];
        let there = GraphArc { target_offset: 10, ..GraphArc::new(0, 1, 3).from_offset(60) };
        CallGraph::new(functions, vec![there, GraphArc::new(1, 0, 5), GraphArc::new(1, 1, 99)])
            .expect("a graph")
    }

    #[test]
    fn scores_are_what_their_definitions_say() {
        let graph = graph();
        let order = PlacementOrder::of_input(&graph);
        let placement = Placement::new(&graph, &order).expect("a layout");
        // 60 -> 110 is 50 bytes, 150 -> 0 is 150.
        assert_eq!(placement.call_distance(), 3 * 50 + 5 * 150);
        assert_eq!(placement.same_page_weight(100), 0);
        assert_eq!(placement.same_page_weight(128), 3);
        assert_eq!(placement.same_page_weight(4096), 8);
        assert_eq!(placement.expected_same_page_weight(100), 3.0 * 0.5);
        assert_eq!(placement.expected_same_page_weight(200), 3.0 * 0.75 + 5.0 * 0.25);
    }

    #[test]
    fn the_cache_is_one_of_lines_found_by_their_weight() {
        let graph = graph();
        let order = PlacementOrder::of_input(&graph);
        let placement = Placement::new(&graph, &order).expect("a layout");
        let config = CdsortConfig {
            cache_entries: 2,
            cache_line_bytes: 100,
            distance_power: 0.5,
            ..CdsortConfig::default()
        };
        let locality = placement.cache_locality(&config);
        assert!((locality.calls - (3.0 / 50_f64.sqrt() + 5.0 / 150_f64.sqrt())).abs() < 1e-12);
        // Total weight 40: a line of weight 30 hits unless the last two accesses both went to the
        // other line.
        let hits = 30.0 * (1.0 - 0.25 * 0.25) + 10.0 * (1.0 - 0.75 * 0.75);
        assert!((locality.hits - hits).abs() < 1e-12);
        assert_eq!(locality.total, locality.calls + 0.25 * locality.hits);
        // A single line that holds everything never misses.
        let all = placement.cache_locality(&CdsortConfig { cache_line_bytes: 256, ..config });
        assert!((all.hits - 40.0).abs() < 1e-9, "{}", all.hits);
    }
}
