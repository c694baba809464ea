//! Properties of the orders that hold for every graph.

use kerntune_layout::order::{
    CallGraph, CdsortConfig, GraphArc, GraphFunction, OrderAlgorithm, Placement, PlacementOrder,
};
use proptest::prelude::*;

#[path = "support/synthetic.rs"]
mod synthetic;

/// Generates up to 40 functions and 120 arcs, many of them cold, recursive or duplicate.
fn graphs() -> impl Strategy<Value = CallGraph> {
    let function = (0..300_u64, prop_oneof![Just(0), 1..1000_u64], 0..6_u32)
        .prop_map(|(size, weight, shift)| GraphFunction::new(size, weight).aligned(1 << shift));
    prop::collection::vec(function, 1..40).prop_flat_map(|functions| {
        let ends = 0..functions.len();
        let arc =
            (ends.clone(), ends, prop_oneof![Just(0), 1..1000_u64], 0..=300_u64, any::<bool>(), 0..3_u64);
        prop::collection::vec(arc, 0..120).prop_map(move |arcs| {
            let arcs = arcs.into_iter().map(|(caller, callee, weight, offset, known, temporal_weight)| {
                let call_offset = known.then(|| offset.min(functions[caller].size));
                let target_offset = (offset / 7).min(functions[callee].size);
                GraphArc { caller, callee, weight, call_offset, target_offset, temporal_weight }
            });
            CallGraph::new(functions.clone(), arcs.collect()).expect("a graph")
        })
    })
}

/// Returns the functions that neither ran nor took part in calls.
fn cold(graph: &CallGraph) -> Vec<usize> {
    let took_part = |f: usize| {
        graph
            .arcs()
            .iter()
            .any(|arc| (arc.caller == f || arc.callee == f) && (arc.weight > 0 || arc.temporal_weight > 0))
    };
    (0..graph.functions().len()).filter(|&f| graph.functions()[f].weight == 0 && !took_part(f)).collect()
}

proptest! {
    #[test]
    fn an_order_has_each_function_once_is_repeatable_and_ends_with_the_cold(graph in graphs()) {
        for algorithm in OrderAlgorithm::ALL {
            let order = algorithm.order(&graph);
            prop_assert!(PlacementOrder::new(order.as_slice().to_vec()).is_ok(), "{:?}: {:?}", algorithm, order);
            prop_assert_eq!(order.as_slice().len(), graph.functions().len());
            prop_assert_eq!(&algorithm.order(&graph), &order);
            let cold = cold(&graph);
            let last = &order.as_slice()[order.as_slice().len() - cold.len()..];
            prop_assert_eq!(last, &cold[..], "{:?}", algorithm);
        }
    }

    /// The order of the arcs in the input only breaks ties between Pettis-Hansen's edges.
    #[test]
    fn splitting_an_arc_into_two_changes_nothing(graph in graphs()) {
        let arcs = graph.arcs().iter().flat_map(|&arc| {
            let some = arc.weight / 3;
            [GraphArc { weight: arc.weight - some, ..arc }, GraphArc { weight: some, temporal_weight: 0, ..arc }]
        });
        let split = CallGraph::new(graph.functions().to_vec(), arcs.collect()).expect("a graph");
        for algorithm in [OrderAlgorithm::PettisHansen, OrderAlgorithm::C3] {
            prop_assert_eq!(algorithm.order(&split), algorithm.order(&graph), "{:?}", algorithm);
        }
    }

    #[test]
    fn scores_are_within_their_bounds(graph in graphs()) {
        let calls: u64 =
            graph.arcs().iter().filter(|arc| arc.caller != arc.callee).map(|arc| arc.weight).sum();
        let weight: u64 = graph.functions().iter().map(|function| function.weight).sum();
        let order = OrderAlgorithm::C3.order(&graph);
        let placement = Placement::new(&graph, &order).expect("a layout");
        for page in [0, 1, 64, 4096, 1 << 21] {
            prop_assert!(placement.same_page_weight(page) <= calls);
            let expected = placement.expected_same_page_weight(page);
            prop_assert!((0.0..=calls as f64 + 1e-6).contains(&expected));
        }
        let locality = placement.cache_locality(&CdsortConfig::default());
        prop_assert!((0.0..=weight as f64 + 1e-6).contains(&locality.hits), "{:?}", locality);
        let [some, max, all] = [90, 99, 100].map(|percent| placement.footprint(percent));
        prop_assert!(some.lines <= max.lines && max.lines <= all.lines);
        prop_assert!(all.large_pages <= all.small_pages && all.small_pages <= all.lines);
    }
}

/// All three algorithms are greedy, so a lucky input can be better (see `order_by_hand.rs`). On
/// graphs like a kernel's, whose input order knows nothing of the profile, each is far better than
/// the input by its own objective.
#[test]
fn on_graphs_like_a_kernels_each_algorithm_beats_the_input_in_its_own_objective() {
    for seed in 0..20 {
        let graph = synthetic::kernel_like(seed, 1000, 3000, 0.3);
        let input = PlacementOrder::of_input(&graph);
        let input = Placement::new(&graph, &input).expect("a layout");
        let [ph, c3, cdsort] = OrderAlgorithm::ALL.map(|algorithm| algorithm.order(&graph));
        let [ph, c3, cdsort] = [&ph, &c3, &cdsort].map(|o| Placement::new(&graph, o).expect("a layout"));
        assert!(ph.call_distance() * 2 < input.call_distance(), "seed {seed}");
        let near = |placement: &Placement<'_>| placement.expected_same_page_weight(4096);
        assert!(near(&c3) > 2.0 * near(&input), "seed {seed}");
        let locality = |placement: &Placement<'_>| placement.cache_locality(&CdsortConfig::default()).total;
        assert!(locality(&cdsort) > 1.2 * locality(&input), "seed {seed}");
        assert!(cdsort.footprint(90).small_pages < input.footprint(90).small_pages, "seed {seed}");
    }
}
