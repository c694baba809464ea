//! Propagates time up the graph, from the leaves to the functions without callers.

use super::components::CallComponents;
use super::{ArcBinding, ArcShare, CallCycle, CallGraph, GraphArc, GraphFunction, GraphNode, Propagation};

/// Error in building a call graph.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
// Messages document the variants.
#[allow(missing_docs)]
pub enum GraphError {
    #[error("an arc names function {node}, but there are only {nodes}")]
    NoNode { node: usize, nodes: usize },
    #[error(
        "the calls of \"{callee}\" were counted but not timed, so its time cannot be propagated exactly; \
         propagate by counts"
    )]
    NotTimed { callee: String },
    #[error(
        "the calls of \"{callee}\" cannot be cut: the profile's tree of call paths, which has the time below them, is \
         missing or was cut for its size; propagate by counts (--propagate counts)"
    )]
    NotDivided { callee: String },
}

/// Propagates time. Arcs must be sorted, one for each pair, and refer to existing nodes.
pub(super) fn propagate(
    nodes: Vec<GraphNode>,
    arcs: &[GraphArc],
    components: &CallComponents,
    propagation: Propagation,
) -> Result<CallGraph, GraphError> {
    let mut functions: Vec<GraphFunction> = nodes
        .into_iter()
        .map(|GraphNode { name, file, self_ns, ended_self_ticks }| GraphFunction {
            name,
            file,
            self_ns,
            ended_self_ticks,
            ..GraphFunction::default()
        })
        .collect();
    let mut shares = Vec::with_capacity(arcs.len());
    let mut entering = vec![Vec::new(); components.members.len()];
    for (at, arc) in arcs.iter().enumerate() {
        let GraphArc { caller, callee, calls, tie, .. } = *arc;
        shares.push(ArcShare { caller, callee, calls, tie, ..ArcShare::default() });
        functions[callee].parents.push(at);
        if let Some(caller) = caller {
            functions[caller].children.push(at);
        }
        if tie == ArcBinding::Loose || tie.is_cut() && propagation == Propagation::Counts {
            continue;
        }
        let function = &mut functions[callee];
        let (count, ended) = match caller == Some(callee) {
            true => (&mut function.self_calls, &mut function.self_ended),
            false => (&mut function.calls, &mut function.ended),
        };
        *count = count.saturating_add(calls);
        *ended = ended.saturating_add(arc.ended);
        if caller != Some(callee) {
            function.elapsed_ns = function.elapsed_ns.saturating_add(arc.elapsed_ns.unwrap_or(0));
        }
        if tie.is_cut() || caller.map(|caller| components.of[caller]) != Some(components.of[callee]) {
            entering[components.of[callee]].push(at);
        }
    }
    let mut cycles = Vec::new();
    for (component, members) in components.members.iter().enumerate() {
        let entering = &entering[component];
        let mut whole = CallCycle { members: members.clone(), ..CallCycle::default() };
        for &member in members {
            // Callees outside of the cycle have propagated their time already.
            let handed_up = |arc: &usize| match shares[*arc].tie {
                ArcBinding::Bound => shares[*arc].total_ns(),
                ArcBinding::Loose | ArcBinding::Cut(_) => 0,
            };
            let function = &functions[member];
            let descendants = function.children.iter().map(handed_up).fold(0, u64::saturating_add);
            functions[member].descendants_ns = descendants;
            whole.descendants_ns = whole.descendants_ns.saturating_add(descendants);
            whole.self_ns = whole.self_ns.saturating_add(functions[member].self_ns);
        }
        let sum = |sum: u64, arc: &usize| sum.saturating_add(arcs[*arc].calls);
        whole.calls = entering.iter().fold(0, sum);
        match propagation {
            Propagation::Counts => by_counts(&whole, entering, &mut shares),
            Propagation::Exact => exactly(&whole, entering, arcs, &mut shares).map_err(|arc| {
                let callee = functions[arc.callee].name.clone();
                match arc.tie.is_cut() {
                    true => GraphError::NotDivided { callee },
                    false => GraphError::NotTimed { callee },
                }
            })?,
        }
        if members.len() > 1 {
            let inner = |at: &&usize| {
                let ArcShare { caller, callee, tie, .. } = shares[**at];
                tie == ArcBinding::Bound
                    && caller != Some(callee)
                    && caller.map(|caller| components.of[caller]) == Some(component)
            };
            let parents = members.iter().flat_map(|member| &functions[*member].parents);
            whole.inner_calls = parents.filter(inner).fold(0, sum);
            cycles.push(whole);
        }
    }
    for cycle in &mut cycles {
        cycle.members.sort_by_key(|member| (std::cmp::Reverse(functions[*member].total_ns()), *member));
    }
    cycles.sort_by_key(|cycle| (std::cmp::Reverse(cycle.total_ns()), cycle.members.iter().min().copied()));
    for (number, cycle) in cycles.iter().enumerate() {
        cycle.members.iter().for_each(|member| functions[*member].cycle = Some(number));
    }
    let total_ns = functions.iter().map(|function| function.self_ns).fold(0, u64::saturating_add);
    Ok(CallGraph { functions, arcs: shares, cycles, total_ns, propagation })
}

/// Splits a total by number of calls. The parts sum to the whole: one arc gets what rounding takes
/// from another.
fn by_counts(whole: &CallCycle, entering: &[usize], shares: &mut [ArcShare]) {
    let part = |total: u64, calls: u64| {
        (u128::from(total) * u128::from(calls)).checked_div(u128::from(whole.calls)).unwrap_or(0) as u64
    };
    let mut before: u64 = 0;
    for &arc in entering {
        let after = before.saturating_add(shares[arc].calls);
        shares[arc].self_ns = part(whole.self_ns, after) - part(whole.self_ns, before);
        shares[arc].descendants_ns = part(whole.descendants_ns, after) - part(whole.descendants_ns, before);
        before = after;
    }
}

/// Propagates measured times. The division into self and descendants is measured too, or in the
/// proportion of the whole. Returns an arc that was not timed, if there is one; the total time of a
/// cut arc cannot be used, as the calls above include it.
fn exactly<'a>(
    whole: &CallCycle,
    entering: &[usize],
    arcs: &'a [GraphArc],
    shares: &mut [ArcShare],
) -> Result<(), &'a GraphArc> {
    let total = u128::from(whole.self_ns) + u128::from(whole.descendants_ns);
    for &at in entering {
        let arc = &arcs[at];
        let elapsed = match arc.total_ns.or(arc.elapsed_ns.filter(|_| !arc.tie.is_cut())) {
            Some(elapsed) => elapsed,
            None if arc.calls == 0 => 0,
            None => return Err(arc),
        };
        let in_proportion =
            || (u128::from(elapsed) * u128::from(whole.self_ns)).checked_div(total).unwrap_or(0) as u64;
        // If only total times are known, the self time may be greater, by calls that had not ended.
        shares[at].self_ns = arc.self_ns.unwrap_or_else(in_proportion).min(elapsed);
        shares[at].descendants_ns = elapsed - shares[at].self_ns;
    }
    Ok(())
}
