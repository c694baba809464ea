//! Hand-made graphs with the arithmetic in comments, and random ones checked against plain
//! recursion.

use super::*;
use proptest::prelude::*;

fn node(name: &str, self_ns: u64) -> GraphNode {
    GraphNode { name: name.into(), self_ns, ..GraphNode::default() }
}

fn arc(caller: Option<usize>, callee: usize, calls: u64, elapsed_ns: Option<u64>) -> GraphArc {
    GraphArc { caller, callee, calls, ended: calls, elapsed_ns, ..GraphArc::default() }
}

/// 0 main calls 1 short (10 calls, 1 ns each) and 2 long (1 call); both call 3 leaf: short's ten
/// calls of it take 10 ns together, long's one call takes 90.
fn unequal() -> (Vec<GraphNode>, Vec<GraphArc>) {
    let nodes = vec![node("main", 5), node("short", 10), node("long", 20), node("leaf", 100)];
    let arcs = vec![
        arc(None, 0, 1, Some(135)),
        arc(Some(0), 1, 10, Some(20)),
        arc(Some(0), 2, 1, Some(110)),
        arc(Some(1), 3, 10, Some(10)),
        arc(Some(2), 3, 1, Some(90)),
    ];
    (nodes, arcs)
}

#[test]
fn exact_knows_which_calls_were_long_and_counts_do_not() {
    let (nodes, arcs) = unequal();
    let exact = CallGraph::new(nodes.clone(), arcs.clone(), Propagation::Exact).unwrap();
    let descendants =
        |graph: &CallGraph| graph.functions.iter().map(|f| f.descendants_ns).collect::<Vec<_>>();
    assert_eq!(descendants(&exact), [130, 10, 90, 0]);
    let counts = CallGraph::new(nodes, arcs, Propagation::Counts).unwrap();
    // leaf's 100 ns by 10/11 and 1/11: 90 (rounded down) and the rest.
    assert_eq!(descendants(&counts), [130, 90, 10, 0]);
    assert_eq!((exact.total_ns, counts.total_ns), (135, 135));
    assert!(counts.functions.iter().all(|f| !f.is_idle()));
}

#[test]
fn what_calls_ran_though_nothing_is_counted_of_it() {
    // Of leaf's 100 ns one call of a thousand is entry's: a tenth, less than one nanosecond.
    // `never` does nothing.
    let nodes = vec![node("entry", 0), node("main", 5), node("leaf", 100), node("never", 0)];
    let arcs = vec![
        arc(Some(0), 2, 1, None),
        arc(None, 1, 1, None),
        arc(Some(1), 2, 999, None),
        arc(Some(3), 2, 0, None),
    ];
    let graph = CallGraph::new(nodes, arcs, Propagation::Counts).unwrap();
    assert_eq!([0, 1, 2, 3, 4].map(|at| graph.ran(at)), [true, true, true, false, false]);
    assert_eq!(graph.functions[0].descendants_ns, 0);
    assert!(graph.functions[0].is_idle());
}

#[test]
fn a_cycle_is_one_and_nothing_counts_twice() {
    // main → a ⇄ b, b → b, b → leaf. One call of a from outside: a 3, b 4 (outer), inner a 5 … Self
    // times: a 8, b 6, leaf 30; the arc main → a took 44 = 8 + 6 + 30.
    let nodes = vec![node("main", 1), node("a", 8), node("b", 6), node("leaf", 30)];
    let arcs = vec![
        arc(Some(0), 1, 1, Some(44)),
        arc(Some(1), 2, 2, Some(60)),
        arc(Some(2), 1, 1, Some(25)),
        arc(Some(2), 2, 3, Some(33)),
        arc(Some(2), 3, 7, Some(30)),
    ];
    for propagation in [Propagation::Exact, Propagation::Counts] {
        let graph = CallGraph::new(nodes.clone(), arcs.clone(), propagation).unwrap();
        let [cycle] = &graph.cycles[..] else { panic!("{:?}", graph.cycles) };
        assert_eq!((cycle.self_ns, cycle.descendants_ns, cycle.calls, cycle.inner_calls), (14, 30, 1, 3));
        assert_eq!(cycle.members, [2, 1], "b's 36 before a's 8");
        let b = &graph.functions[2];
        assert_eq!((b.calls, b.self_calls, b.descendants_ns), (2, 3, 30));
        assert_eq!(graph.functions[0].descendants_ns, 44);
        let inner: Vec<_> = graph.arcs.iter().filter(|arc| graph.is_inner(arc)).collect();
        assert_eq!(inner.len(), 3);
        assert!(inner.iter().all(|arc| arc.total_ns() == 0));
        assert_eq!((graph.calls_from_outside(1), graph.calls_from_outside(3)), (1, 7));
        let enters = graph.arcs.iter().find(|arc| arc.caller == Some(0)).unwrap();
        assert_eq!((enters.self_ns, enters.descendants_ns), (14, 30));
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let nodes = vec![node("f", 1)];
    let no_node = CallGraph::new(nodes.clone(), [arc(None, 1, 1, None)], Propagation::Counts).unwrap_err();
    assert_eq!(no_node, GraphError::NoNode { node: 1, nodes: 1 });
    let not_timed = CallGraph::new(nodes.clone(), [arc(None, 0, 1, None)], Propagation::Exact).unwrap_err();
    assert!(not_timed.to_string().contains("\"f\" were counted but not timed"), "{not_timed}");
    assert!(CallGraph::new(nodes, [arc(None, 0, 0, None)], Propagation::Exact).is_ok());
}

/// high → low a thousand times, and low → high ten times: ten calls join both into one cycle.
#[test]
fn what_few_calls_bind_is_cut_and_what_many_bind_is_not() {
    let nodes = || vec![node("main", 1), node("high", 10), node("low", 20), node("a", 5), node("b", 5)];
    let tables = |auto| {
        let mut arcs = merged(
            5,
            [(0, 1, 100), (1, 2, 1_000), (2, 1, 10), (0, 3, 7), (3, 4, 50), (4, 3, 49)]
                .map(|(from, to, calls)| arc(Some(from), to, calls, None)),
        )
        .unwrap();
        ArcChanges { auto, ..ArcChanges::default() }.apply(5, &mut arcs).unwrap();
        CallGraph::new(nodes(), arcs, Propagation::Counts).unwrap()
    };
    assert_eq!(tables(None).cycles.len(), 2);
    let graph = tables(Some(AutoCut::default()));
    let cuts: Vec<_> = graph.cuts().map(|cut| (cut.caller, cut.callee, cut.calls)).collect();
    assert_eq!(cuts, [(Some(2), 1, 10)]);
    assert_eq!(graph.cycles.len(), 1, "a and b call each other in turns");
    // gprof's method: the ten calls are gone, and high's time is main's.
    let high = &graph.functions[1];
    assert_eq!((high.calls, high.descendants_ns), (100, 20));
    assert_eq!(graph.functions[0].descendants_ns, 40);
    assert_eq!(tables(Some(AutoCut { max_percent: 50 })).cycles.len(), 0);
}

#[test]
fn what_is_cut_out_of_measured_times_must_have_been_measured() {
    let cut = GraphArc { tie: ArcBinding::Cut(CutReason::Name), ..arc(Some(0), 1, 2, Some(5)) };
    let nodes = || vec![node("f", 1), node("g", 9)];
    let error = CallGraph::new(nodes(), [cut], Propagation::Exact).unwrap_err();
    assert!(error.to_string().contains("the calls of \"g\" cannot be cut"), "{error}");
    let cut = GraphArc { total_ns: Some(9), self_ns: Some(9), ..cut };
    let graph = CallGraph::new(nodes(), [cut], Propagation::Exact).unwrap();
    assert_eq!((graph.functions[0].descendants_ns, graph.arcs[0].total_ns()), (0, 9));
    assert_eq!(graph.functions[1].calls, 2);
}

#[test]
fn arcs_of_the_code_bind_only_if_they_are_asked_to() {
    let code = [
        CodeArc { caller: 1, callee: 0, calls: 1, jumps: 0 },
        CodeArc { caller: 0, callee: 1, calls: 2, jumps: 0 },
    ];
    let graph = |binds| {
        let mut arcs = vec![arc(Some(0), 1, 3, None)];
        let changes = ArcChanges { code: &code, code_binds: binds, ..ArcChanges::default() };
        changes.apply(2, &mut arcs).unwrap();
        CallGraph::new(vec![node("f", 1), node("g", 2)], arcs, Propagation::Counts).unwrap()
    };
    let loose = graph(false);
    assert_eq!((loose.cycles.len(), loose.arcs.len(), loose.functions[0].descendants_ns), (0, 2, 2));
    assert_eq!(graph(true).cycles.len(), 1);
    let mut arcs = vec![];
    let changes = ArcChanges {
        code: &[CodeArc { caller: 0, callee: 7, ..CodeArc::default() }],
        ..ArcChanges::default()
    };
    assert_eq!(changes.apply(2, &mut arcs), Err(GraphError::NoNode { node: 7, nodes: 2 }));
}

/// A large cycle, bound by few calls each time: cutting is fast and complete.
#[test]
fn a_great_cycle_falls_apart() {
    let count = 3_000;
    let arcs = (0..count).flat_map(|at| {
        [(at, (at + 1) % count, 100), (at, (at * 7 + 3) % count, 3), ((at + 11) % count, at, 1)]
    });
    let arcs =
        arcs.filter(|(from, to, _)| from != to).map(|(from, to, calls)| arc(Some(from), to, calls, None));
    let mut arcs = merged(count, arcs).unwrap();
    let changes = ArcChanges { auto: Some(AutoCut { max_percent: 100 }), ..ArcChanges::default() };
    changes.apply(count, &mut arcs).unwrap();
    let graph = CallGraph::new(vec![GraphNode::default(); count], arcs, Propagation::Counts).unwrap();
    assert_eq!(graph.cycles.len(), 0);
    let (cut, all): (u64, u64) =
        (graph.cuts().map(|arc| arc.calls).sum(), graph.arcs.iter().map(|arc| arc.calls).sum());
    assert!(cut * 20 < all, "{cut} of {all} calls were cut");
}

#[test]
fn a_very_long_chain_needs_no_stack() {
    let length = 300_000;
    let nodes = (0..length).map(|_| node("f", 1)).collect();
    let arcs = (1..length).map(|at| arc(Some(at - 1), at, 1, None));
    let graph = CallGraph::new(nodes, arcs, Propagation::Counts).unwrap();
    assert_eq!(graph.functions[0].total_ns(), length as u64);
}

/// A tree of recorded calls, each with its self time.
#[derive(Debug, Clone)]
struct RecordedCall {
    function: usize,
    self_time: u64,
    callees: Vec<RecordedCall>,
}

impl RecordedCall {
    fn elapsed(&self) -> u64 {
        self.self_time + self.callees.iter().map(RecordedCall::elapsed).sum::<u64>()
    }

    fn record(&self, caller: Option<usize>, nodes: &mut [GraphNode], arcs: &mut Vec<GraphArc>) {
        nodes[self.function].self_ns += self.self_time;
        arcs.push(arc(caller, self.function, 1, Some(self.elapsed())));
        self.callees.iter().for_each(|callee| callee.record(Some(self.function), nodes, arcs));
    }

    /// Time in which any of `group` is open, which must not count twice.
    fn within(&self, group: &[usize]) -> u64 {
        match group.contains(&self.function) {
            true => self.elapsed(),
            false => self.callees.iter().map(|callee| callee.within(group)).sum(),
        }
    }
}

fn calls() -> impl Strategy<Value = RecordedCall> {
    let leaf = (0usize..7, 0u64..100).prop_map(|(function, self_time)| RecordedCall {
        function,
        self_time,
        callees: vec![],
    });
    leaf.prop_recursive(6, 60, 4, |inner| {
        (0usize..7, 0u64..100, prop::collection::vec(inner, 0..4))
            .prop_map(|(function, self_time, callees)| RecordedCall { function, self_time, callees })
    })
}

/// Checks whether `to` can be reached from `from`, by the definition.
fn reaches(arcs: &[ArcShare], from: usize, to: usize) -> bool {
    let mut seen = vec![from];
    let mut at = 0;
    while let Some(&node) = seen.get(at) {
        at += 1;
        for next in arcs.iter().filter(|arc| arc.caller == Some(node)).map(|arc| arc.callee) {
            if next == to {
                return true;
            }
            if !seen.contains(&next) {
                seen.push(next);
            }
        }
    }
    false
}

proptest! {
    #[test]
    fn totals_are_those_of_the_calls(roots in prop::collection::vec(calls(), 1..5)) {
        let mut nodes = vec![GraphNode::default(); 7];
        let mut arcs = Vec::new();
        roots.iter().for_each(|root| root.record(None, &mut nodes, &mut arcs));
        let exact = CallGraph::new(nodes.clone(), arcs.clone(), Propagation::Exact).unwrap();
        let counts = CallGraph::new(nodes, arcs, Propagation::Counts).unwrap();
        let all: u64 = roots.iter().map(RecordedCall::elapsed).sum();
        prop_assert_eq!(exact.total_ns, all);
        let mut groups: Vec<(Vec<usize>, u64)> =
            exact.cycles.iter().map(|cycle| (cycle.members.clone(), cycle.total_ns())).collect();
        groups.extend((0..7).filter(|f| exact.functions[*f].cycle.is_none()).map(|f| (vec![f], exact.functions[f].total_ns())));
        for (group, total) in groups {
            prop_assert_eq!(total, roots.iter().map(|root| root.within(&group)).sum::<u64>(), "{:?}", group);
        }
        for graph in [&exact, &counts] {
            // No time is lost: the functions without callers have all of it.
            let top = graph.arcs.iter().filter(|arc| arc.caller.is_none()).map(ArcShare::total_ns).sum::<u64>();
            prop_assert_eq!(top, all);
            for a in 0..7 {
                for b in 0..7 {
                    let one = a != b && graph.functions[a].cycle.is_some() && graph.functions[a].cycle == graph.functions[b].cycle;
                    let mutual = a != b && reaches(&graph.arcs, a, b) && reaches(&graph.arcs, b, a);
                    prop_assert_eq!(one, mutual, "{} and {}", a, b);
                }
            }
        }
    }
}
