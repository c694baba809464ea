//! Call graph: callers and callees, cycles, and propagation of time to callers.
//!
//! Start from [`CallGraph::of_tables`], or from [`CallGraph::new`] with [`GraphNode`]s and
//! [`GraphArc`]s of any origin. The method is that of Graham, Kessler and McKusick, "gprof: A Call
//! Graph Execution Profiler", SIGPLAN '82: direct recursion is counted separately, the functions of
//! a cycle are treated as one, and the time of every function is propagated to its callers, from
//! the leaves up. Only calls from outside of a cycle count for that.
//!
//! # Two kinds of propagation
//!
//! gprof samples self times and counts arcs; it cannot know the cost of a single call. So it
//! assumes that all calls of a function cost the same, and splits the function's total among the
//! callers by number of calls: [`Propagation::Counts`]. That charges the caller of ten short calls
//! ten times as much as the caller of one long call.
//!
//! A recording measures each call, so an arc has the total time of exactly its calls:
//! [`Propagation::Exact`]. A caller's share *is* the arc's total time, and a function's descendants
//! are the sum of the arcs that leave it:
//!
//! ```text
//! descendants(f) = Σ total(f → g)                                      g outside of f's cycle
//! total(cycle)   = Σ self of its members + Σ total of the arcs that leave it
//! ```
//!
//! Nothing counts twice. Arcs within a cycle are left out, since their inner calls' time is part of
//! the outer calls'; an arc that enters a cycle cannot be open twice on one stack, or its caller
//! would belong to the cycle. So the arcs into a function or cycle sum exactly to its total, with
//! both kinds. Both give the same totals where each function has one caller.
//!
//! Calls that do not end (`do_exit`), or that cross the boundary of a region, have no total time
//! there, but their time still has callers. So an arc's time is taken from the tree of call paths
//! ([`GraphArc::total_ns`]): the time that passed below the arc in the selected regions. If the
//! tree was cut for its size, or is missing, it is the total time of the calls that ended, and the
//! sum falls short by the others.
//!
//! # Arcs outside of cycles
//!
//! [`ArcBinding`] says whether an arc takes part in cycles. A [cut](ArcBinding::Cut) arc does not,
//! so that a few calls from a low layer back into a high one do not join all functions between them
//! into one cycle; [`ArcChanges`] selects the arcs to cut. No time is lost: see
//! [`ArcBinding::Cut`]. Arcs of the code that were not taken ([`CodeArc`]) are
//! [loose](ArcBinding::Loose).

mod changes;
mod components;
mod cut;
mod propagate;
mod tables;

pub use changes::{ArcChanges, CodeArc};
pub use cut::AutoCut;
pub use propagate::GraphError;

use std::collections::BTreeMap;

/// Method by which time is propagated to callers, see the [module](self).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Propagation {
    /// Each arc has the measured time of its calls.
    Exact,
    /// A function's total is split among its callers by number of calls, as gprof does.
    Counts,
}

impl Propagation {
    /// Returns the name on the command line and in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Propagation::Exact => "exact",
            Propagation::Counts => "counts",
        }
    }
}

/// A function, as input of the graph.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GraphNode {
    /// Name of the function.
    pub name: String,
    /// Source file of the function, if known.
    pub file: Option<String>,
    /// Self time, without callees.
    pub self_ns: u64,
    /// Self time of the calls that ended; 0 if not known.
    pub ended_self_ticks: u64,
}

/// Role of an arc in cycles.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ArcBinding {
    /// Takes part in cycles.
    #[default]
    Bound,
    /// Found in the code but never taken: shown, but not part of cycles. In a kernel such arcs
    /// would join nearly all functions into one cycle.
    Loose,
    /// Taken, but left out of cycles.
    ///
    /// With [`Propagation::Counts`] the arc is removed from all sums, as with gprof's `-k`: its
    /// calls do not count, and the callee's time goes to the other callers. With
    /// [`Propagation::Exact`] the measured time of these calls stays with the callee: it is part of
    /// the sum over the callee's callers and the cut arc, and is not propagated above the cut.
    Cut(CutReason),
}

impl ArcBinding {
    /// Checks whether the arc is cut, for any reason.
    pub fn is_cut(self) -> bool {
        matches!(self, ArcBinding::Cut(_))
    }
}

/// Reason for which an arc was cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CutReason {
    /// The user named the arc.
    Name,
    /// The heuristic chose it, see [`AutoCut`].
    Heuristic,
}

/// Calls from one function to another, as input of the graph. Several arcs of one pair are added
/// up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GraphArc {
    /// Index of the calling function's node; `None` for interrupts, system calls and threads that
    /// begin.
    pub caller: Option<usize>,
    /// Index of the called function's node.
    pub callee: usize,
    /// Number of calls. An arc that was never taken (0) still binds cycles and is shown.
    pub calls: u64,
    /// Number of these calls that ended; 0 if not known.
    pub ended: u64,
    /// Total time of the calls that ended; `None` if it was not measured.
    pub elapsed_ns: Option<u64>,
    /// Time that passed in these calls, whether or not they ended; `None` to use `elapsed_ns`.
    /// Ignored for an arc within a cycle.
    pub total_ns: Option<u64>,
    /// The part of `total_ns` that is the callee's self time (its cycle's, if it is in one); `None`
    /// if it was not measured.
    pub self_ns: Option<u64>,
    /// Role in cycles. Of several arcs of one pair the first one counts.
    pub tie: ArcBinding,
}

/// A function of the graph, with propagated time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GraphFunction {
    /// Name of the function.
    pub name: String,
    /// Source file of the function, if known.
    pub file: Option<String>,
    /// Self time in all calls.
    pub self_ns: u64,
    /// Self time in the calls that ended.
    pub ended_self_ticks: u64,
    /// Time propagated from callees outside of the function's cycle.
    pub descendants_ns: u64,
    /// Calls by other functions, including members of its cycle.
    pub calls: u64,
    /// Direct recursive calls.
    pub self_calls: u64,
    /// Calls by other functions that ended; 0 if not known.
    pub ended: u64,
    /// Direct recursive calls that ended.
    pub self_ended: u64,
    /// Total time of the calls by other functions that ended, including those by members of its
    /// cycle.
    pub elapsed_ns: u64,
    /// Index into [`CallGraph::cycles`]; `None` if the function is in no cycle.
    pub cycle: Option<usize>,
    /// Indices into [`CallGraph::arcs`] of the arcs to this function, direct recursion included.
    pub parents: Vec<usize>,
    /// Indices into [`CallGraph::arcs`] of the arcs from this function, direct recursion included.
    pub children: Vec<usize>,
}

impl GraphFunction {
    /// Returns the sum of self time and descendants' time.
    pub fn total_ns(&self) -> u64 {
        self.self_ns.saturating_add(self.descendants_ns)
    }

    /// Checks whether nothing was counted: no calls and no time. A function without a counter, as
    /// one in assembler, may have run all the same: see [`CallGraph::ran`].
    pub fn is_idle(&self) -> bool {
        self.calls == 0 && self.self_calls == 0 && self.self_ns == 0 && self.descendants_ns == 0
    }
}

/// An arc with the part of the callee's time (of its cycle's time, if it is in one) that it
/// propagates to the caller; 0 within a cycle.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ArcShare {
    /// Index of the calling function; `None` if no function called.
    pub caller: Option<usize>,
    /// Index of the called function.
    pub callee: usize,
    /// Number of calls.
    pub calls: u64,
    /// Part of the callee's self time.
    pub self_ns: u64,
    /// Part of the time of the callee's descendants.
    pub descendants_ns: u64,
    /// Role in cycles.
    pub tie: ArcBinding,
}

impl ArcShare {
    /// Returns the sum of both parts.
    pub fn total_ns(&self) -> u64 {
        self.self_ns.saturating_add(self.descendants_ns)
    }
}

/// Functions that call each other in a cycle.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallCycle {
    /// Indices into [`CallGraph::functions`], greatest total first.
    pub members: Vec<usize>,
    /// Sum of the members' self times.
    pub self_ns: u64,
    /// Time propagated from callees outside of the cycle.
    pub descendants_ns: u64,
    /// Calls from outside of the cycle.
    pub calls: u64,
    /// Calls between different members.
    pub inner_calls: u64,
}

impl CallCycle {
    /// Returns the sum of self time and descendants' time.
    pub fn total_ns(&self) -> u64 {
        self.self_ns.saturating_add(self.descendants_ns)
    }
}

/// A call graph with its time propagated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallGraph {
    /// The functions, in the order of the input nodes.
    pub functions: Vec<GraphFunction>,
    /// One arc for each pair of caller and callee, sorted by that pair.
    pub arcs: Vec<ArcShare>,
    /// The cycles, greatest total first.
    pub cycles: Vec<CallCycle>,
    /// Sum of all self times: percentages refer to it.
    pub total_ns: u64,
    /// Method by which time was propagated.
    pub propagation: Propagation,
}

impl CallGraph {
    /// Finds the cycles and propagates time.
    ///
    /// # Errors
    /// [`GraphError`]: an arc names no node, or [`Propagation::Exact`] is requested for arcs whose
    /// time was not measured.
    pub fn new(
        nodes: Vec<GraphNode>,
        arcs: impl IntoIterator<Item = GraphArc>,
        propagation: Propagation,
    ) -> Result<Self, GraphError> {
        let arcs = merged(nodes.len(), arcs)?;
        let components = components::CallComponents::of(nodes.len(), &arcs);
        propagate::propagate(nodes, &arcs, &components, propagation)
    }

    /// Checks whether a function ran: it has counts, or it called something. Code without a
    /// counter, as in assembler, is known only by its calls, and its callees may contribute less
    /// than one tick.
    pub fn ran(&self, function: usize) -> bool {
        self.functions.get(function).is_some_and(|known| {
            !known.is_idle() || known.children.iter().any(|arc| self.arcs[*arc].calls > 0)
        })
    }

    /// Checks whether caller and callee of an arc are the same or in one cycle, so that the arc
    /// propagates nothing.
    pub fn is_inner(&self, share: &ArcShare) -> bool {
        let cycle = |function: usize| self.functions.get(function).and_then(|f| f.cycle);
        let same = |caller: usize| cycle(caller).is_some() && cycle(caller) == cycle(share.callee);
        !share.tie.is_cut() && (share.caller == Some(share.callee) || share.caller.is_some_and(same))
    }

    /// Returns the arcs that were cut, in the order of [`CallGraph::arcs`].
    pub fn cuts(&self) -> impl Iterator<Item = &ArcShare> {
        self.arcs.iter().filter(|arc| arc.tie.is_cut())
    }

    /// Returns the number of calls among which the callee's time is divided: those from outside of
    /// its cycle.
    pub fn calls_from_outside(&self, callee: usize) -> u64 {
        let Some(function) = self.functions.get(callee) else { return 0 };
        function.cycle.and_then(|cycle| self.cycles.get(cycle)).map_or(function.calls, |cycle| cycle.calls)
    }
}

/// Merges the arcs of each pair, and sorts them.
fn merged(nodes: usize, arcs: impl IntoIterator<Item = GraphArc>) -> Result<Vec<GraphArc>, GraphError> {
    let mut merged: BTreeMap<(Option<usize>, usize), GraphArc> = BTreeMap::new();
    let both = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
    for arc in arcs {
        if let Some(node) = [Some(arc.callee), arc.caller].into_iter().flatten().find(|node| *node >= nodes) {
            return Err(GraphError::NoNode { node, nodes });
        }
        let add = |sum: &mut GraphArc| {
            sum.calls = sum.calls.saturating_add(arc.calls);
            sum.ended = sum.ended.saturating_add(arc.ended);
            sum.elapsed_ns = both(sum.elapsed_ns, arc.elapsed_ns);
            sum.total_ns = both(sum.total_ns, arc.total_ns);
            sum.self_ns = both(sum.self_ns, arc.self_ns);
        };
        merged.entry((arc.caller, arc.callee)).and_modify(add).or_insert(arc);
    }
    Ok(merged.into_values().collect())
}

#[cfg(test)]
mod tests;
