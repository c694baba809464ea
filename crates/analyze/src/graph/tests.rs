//! Hand-made graphs, with the arithmetic beside them, and random ones against plain recursion.

use super::*;
use proptest::prelude::*;

fn node(name: &str, self_ns: u64) -> Node {
    Node { name: name.into(), self_ns, ..Node::default() }
}

fn arc(caller: Option<usize>, callee: usize, calls: u64, elapsed_ns: Option<u64>) -> Arc {
    Arc { caller, callee, calls, ended: calls, elapsed_ns, ..Arc::default() }
}

/// 0 main calls 1 short (10 calls, 1 ns each) and 2 long (1 call); both call 3 leaf: short's
/// ten calls of it take 10 ns together, long's one takes 90.
fn unequal() -> (Vec<Node>, Vec<Arc>) {
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
fn a_cycle_is_one_and_nothing_counts_twice() {
    // main → a ⇄ b, b → b, b → leaf. One call of a from outside: a 3, b 4 (outer), inner a 5 …
    // Net a 8, b 6, leaf 30; the arc main → a took 44 = 8 + 6 + 30.
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

#[test]
fn a_very_long_chain_needs_no_stack() {
    let length = 300_000;
    let nodes = (0..length).map(|_| node("f", 1)).collect();
    let arcs = (1..length).map(|at| arc(Some(at - 1), at, 1, None));
    let graph = CallGraph::new(nodes, arcs, Propagation::Counts).unwrap();
    assert_eq!(graph.functions[0].total_ns(), length as u64);
}

/// Calls as they would be recorded: a tree, each call with its own time.
#[derive(Debug, Clone)]
struct Call {
    function: usize,
    net: u64,
    callees: Vec<Call>,
}

impl Call {
    fn elapsed(&self) -> u64 {
        self.net + self.callees.iter().map(Call::elapsed).sum::<u64>()
    }

    fn record(&self, caller: Option<usize>, nodes: &mut [Node], arcs: &mut Vec<Arc>) {
        nodes[self.function].self_ns += self.net;
        arcs.push(arc(caller, self.function, 1, Some(self.elapsed())));
        self.callees.iter().for_each(|callee| callee.record(Some(self.function), nodes, arcs));
    }

    /// Time in which any of `group` is open: what nothing may count twice.
    fn within(&self, group: &[usize]) -> u64 {
        match group.contains(&self.function) {
            true => self.elapsed(),
            false => self.callees.iter().map(|callee| callee.within(group)).sum(),
        }
    }
}

fn calls() -> impl Strategy<Value = Call> {
    let leaf = (0usize..7, 0u64..100).prop_map(|(function, net)| Call { function, net, callees: vec![] });
    leaf.prop_recursive(6, 60, 4, |inner| {
        (0usize..7, 0u64..100, prop::collection::vec(inner, 0..4)).prop_map(|(function, net, callees)| Call {
            function,
            net,
            callees,
        })
    })
}

/// Whether `to` can be reached from `from`, by the definition.
fn reaches(arcs: &[Share], from: usize, to: usize) -> bool {
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
        let mut nodes = vec![Node::default(); 7];
        let mut arcs = Vec::new();
        roots.iter().for_each(|root| root.record(None, &mut nodes, &mut arcs));
        let exact = CallGraph::new(nodes.clone(), arcs.clone(), Propagation::Exact).unwrap();
        let counts = CallGraph::new(nodes, arcs, Propagation::Counts).unwrap();
        let all: u64 = roots.iter().map(Call::elapsed).sum();
        prop_assert_eq!(exact.total_ns, all);
        let mut groups: Vec<(Vec<usize>, u64)> =
            exact.cycles.iter().map(|cycle| (cycle.members.clone(), cycle.total_ns())).collect();
        groups.extend((0..7).filter(|f| exact.functions[*f].cycle.is_none()).map(|f| (vec![f], exact.functions[f].total_ns())));
        for (group, total) in groups {
            prop_assert_eq!(total, roots.iter().map(|root| root.within(&group)).sum::<u64>(), "{:?}", group);
        }
        for graph in [&exact, &counts] {
            // Nothing is lost: what nothing called has all the time.
            let top = graph.arcs.iter().filter(|arc| arc.caller.is_none()).map(Share::total_ns).sum::<u64>();
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
