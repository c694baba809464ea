//! Graphs for which the papers' rules determine the order.

use kerntune_layout::order::{
    c3, cdsort, pettis_hansen, C3Config, CallGraph, CdsortConfig, GraphArc, GraphFunction, OrderAlgorithm,
    Placement, PlacementOrder,
};

/// Builds functions of 100 bytes; a function's weight is the number of calls to it, at least
/// `min`.
fn graph(functions: usize, min: u64, arcs: &[(usize, usize, u64)]) -> CallGraph {
    let mut weights = vec![0; functions];
    arcs.iter().for_each(|(_, callee, calls)| weights[*callee] += calls);
    let functions = weights.iter().map(|weight| GraphFunction::new(100, *weight.max(&min))).collect();
    CallGraph::new(functions, arcs.iter().map(|&(a, b, calls)| GraphArc::new(a, b, calls)).collect())
        .expect("a graph")
}

#[test]
fn pettis_hansen_joins_the_heaviest_edge_first_and_keeps_its_ends_together() {
    // The path 0 -5- 1 -10- 2 -7- 3: 1 2 first, then 3 beside 2, then 0 beside 1.
    let path = graph(4, 0, &[(0, 1, 5), (1, 2, 10), (2, 3, 7)]);
    assert_eq!(pettis_hansen(&path).as_slice(), [0, 1, 2, 3]);
    // The same path with other indices.
    let path = graph(4, 0, &[(3, 0, 5), (0, 2, 10), (2, 1, 7)]);
    assert_eq!(pettis_hansen(&path).as_slice(), [3, 0, 2, 1]);
}

#[test]
fn pettis_hansen_turns_chains_so_that_the_ends_of_the_heaviest_original_edge_are_nearest() {
    // Chains 0 1 and 2 3 (weight 100 each). Between them 0-3 with 10 and 1-2 with 9: the edge of the chains
    // weighs 19, but 0 and 3 have to be neighbors: 1 0 3 2.
    let square = graph(4, 0, &[(0, 1, 100), (2, 3, 100), (0, 3, 10), (1, 2, 9)]);
    let order = pettis_hansen(&square).into_vec();
    let at = |function: usize| order.iter().position(|&f| f == function).expect("placed") as i64;
    assert_eq!((at(0) - at(3)).abs(), 1, "{order:?}");
    assert_eq!((at(1) - at(2)).abs(), 3, "{order:?}");
    // 1 0 3 2, in the direction in which 0 -> 1 and 2 -> 3 go forward.
    assert_eq!(order, [2, 3, 0, 1]);
}

#[test]
fn pettis_hansen_adds_both_directions_and_all_call_sites_of_a_pair() {
    // 0-1 is 6 + 6, heavier than 1-2 with 10 and 0-2 with 11.
    let arcs = [(0, 1, 6), (1, 0, 6), (1, 2, 10), (0, 2, 11)];
    let order = pettis_hansen(&graph(3, 0, &arcs)).into_vec();
    // 0 and 1 first; 2 joins at 0, to which its edge is the heavier one.
    assert!(order == [1, 0, 2] || order == [2, 0, 1], "{order:?}");
}

#[test]
fn pettis_hansen_takes_turns_into_account() {
    // 0 and 2 do not call each other, but alternate more often than 0 calls 1.
    let functions = vec![GraphFunction::new(64, 1); 3];
    let turns = GraphArc { temporal_weight: 50, ..GraphArc::new(0, 2, 0) };
    let graph = CallGraph::new(functions, vec![GraphArc::new(0, 1, 10), GraphArc::new(1, 2, 20), turns])
        .expect("a graph");
    let order = pettis_hansen(&graph).into_vec();
    // 0-2 first, then 1 at 2.
    assert!(order == [0, 2, 1] || order == [1, 2, 0], "{order:?}");
}

#[test]
fn c3_appends_a_callee_to_its_caller_where_pettis_hansen_does_not_see_direction() {
    // The point of section 4 of the CGO paper: with calls 0 -> 1 (heavy) and 0 -> 2 (lighter), Pettis-Hansen puts 2
    // at the free end of the chain 0 1, which is before its caller; C3 after both.
    let hub = graph(3, 0, &[(0, 1, 100), (0, 2, 40)]);
    assert_eq!(c3(&hub, &C3Config::default()).as_slice(), [0, 1, 2]);
    assert_eq!(pettis_hansen(&hub).as_slice(), [2, 0, 1]);
}

#[test]
fn c3_follows_call_chains_by_decreasing_density() {
    // 4 (calls 1000) goes to 2, 2 (500) to 0, 3 (300) to 1, 1 (200) to 0: 0 | 2 4 | 1 3.
    let tree = graph(5, 0, &[(0, 1, 200), (0, 2, 500), (1, 3, 300), (2, 4, 1000)]);
    assert_eq!(c3(&tree, &C3Config::default()).as_slice(), [0, 2, 4, 1, 3]);
}

#[test]
fn c3_takes_the_most_likely_caller_over_all_its_call_sites() {
    // 1 calls 2 from two places, 6 each; 0 calls it 10 times from one.
    let arcs = [(0, 2, 10), (1, 2, 6), (1, 2, 6)];
    assert_eq!(c3(&graph(3, 1, &arcs), &C3Config::default()).as_slice(), [1, 2, 0]);
}

#[test]
fn c3_keeps_its_thresholds() {
    let pair = |size: u64| {
        let functions = vec![GraphFunction::new(size, 100), GraphFunction::new(size, 50)];
        CallGraph::new(functions, vec![GraphArc::new(1, 0, 100)]).expect("a graph")
    };
    // Together they would exceed the limit.
    let config = C3Config { max_cluster_bytes: 200, ..C3Config::default() };
    assert_eq!(c3(&pair(100), &config).as_slice(), [1, 0]);
    assert_eq!(c3(&pair(101), &config).as_slice(), [0, 1]);

    // A caller of 8 calls per byte, and a callee that reduces its cluster's density to an eighth,
    // or to less.
    let diluted = |callee_size: u64| {
        let functions = vec![
            GraphFunction::new(100, 800),
            GraphFunction::new(callee_size, 1),
            GraphFunction::new(10, 10),
        ];
        let order = c3(
            &CallGraph::new(functions, vec![GraphArc::new(0, 1, 1)]).expect("a graph"),
            &C3Config::default(),
        );
        order.into_vec()
    };
    assert_eq!(diluted(701), [0, 1, 2], "801 calls in 801 bytes: an eighth");
    assert_eq!(diluted(702), [0, 2, 1], "less than an eighth");

    // Each of ten callers makes a tenth of the calls to 2: none is likely.
    let even: Vec<_> = (0..11).filter(|&caller| caller != 2).map(|caller| (caller, 2, 7)).collect();
    assert_eq!(c3(&graph(11, 1, &even), &C3Config::default()).as_slice()[..3], [2, 0, 1]);
    let mut odd = even;
    odd[9].2 = 8;
    assert_eq!(c3(&graph(11, 1, &odd), &C3Config::default()).as_slice()[..3], [10, 2, 0]);
}

#[test]
fn cdsort_puts_callees_behind_their_call_sites() {
    let path = graph(4, 0, &[(3, 0, 500), (0, 2, 1000), (2, 1, 700)]);
    assert_eq!(cdsort(&path, &CdsortConfig::default()).as_slice(), [3, 0, 2, 1]);
}

#[test]
fn cdsort_knows_where_in_the_caller_the_call_is() {
    // 0 calls 1 from its very beginning: 1 before 0 is nearer (10 bytes) than after (1000).
    let functions = |_: ()| vec![GraphFunction::new(1000, 50), GraphFunction::new(10, 100)];
    let early =
        CallGraph::new(functions(()), vec![GraphArc::new(0, 1, 100).from_offset(0)]).expect("a graph");
    let late =
        CallGraph::new(functions(()), vec![GraphArc::new(0, 1, 100).from_offset(1000)]).expect("a graph");
    assert_eq!(cdsort(&early, &CdsortConfig::default()).as_slice(), [1, 0]);
    assert_eq!(cdsort(&late, &CdsortConfig::default()).as_slice(), [0, 1]);
    // The position of the target in the callee matters as well.
    let into = GraphArc { target_offset: 900, ..GraphArc::new(1, 0, 100).from_offset(0) };
    let into = CallGraph::new(functions(()), vec![into]).expect("a graph");
    assert_eq!(cdsort(&into, &CdsortConfig::default()).as_slice(), [0, 1]);
}

#[test]
fn cdsort_does_not_let_chains_grow_over_their_limit() {
    let arcs: Vec<_> = (0..9).map(|i| (i, i + 1, 1000 + i as u64)).collect();
    let path = graph(10, 0, &arcs);
    assert_eq!(cdsort(&path, &CdsortConfig::default()), PlacementOrder::of_input(&path));
    let config = CdsortConfig { max_chain_functions: 3, ..CdsortConfig::default() };
    // From the heavy end, three by three, densest first.
    assert_eq!(cdsort(&path, &config).as_slice(), [7, 8, 9, 4, 5, 6, 1, 2, 3, 0]);
}

#[test]
fn nothing_and_one_and_only_cold_functions_are_ordered() {
    for algorithm in OrderAlgorithm::ALL {
        let order = |graph: &CallGraph| algorithm.order(graph).into_vec();
        assert_eq!(order(&graph(0, 0, &[])), [0; 0]);
        assert_eq!(order(&graph(1, 0, &[(0, 0, 5)])), [0]);
        assert_eq!(order(&graph(3, 0, &[(2, 1, 0)])), [0, 1, 2]);
        let empty = CallGraph::new(
            vec![GraphFunction::new(0, 1), GraphFunction::new(0, 2)],
            vec![GraphArc::new(0, 1, 1)],
        );
        assert_eq!(order(&empty.expect("a graph")).len(), 2);
    }
}

/// Shows that Pettis-Hansen's result can be worse than its input by its own objective, because it
/// considers one edge at a time. In the square above, 0 next to 3 leaves 1 and 2 at the two ends;
/// next to each other they would be worth more.
#[test]
fn greedy_can_be_worse_than_a_lucky_input() {
    let square = graph(4, 0, &[(0, 1, 100), (2, 3, 100), (0, 3, 10), (1, 2, 9)]);
    let distance = |order: PlacementOrder| Placement::new(&square, &order).expect("a layout").call_distance();
    assert_eq!(distance(PlacementOrder::of_input(&square)), 12_950);
    assert_eq!(distance(pettis_hansen(&square)), 14_650);
}
