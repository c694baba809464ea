//! The call graph: who calls whom, what are the cycles, and whose time is whose.
//!
//! Start from [`CallGraph::of_tables`], or from [`CallGraph::new`] with [`Node`]s and [`Arc`]s of
//! any origin. The method is that of Graham, Kessler and McKusick, "gprof: A Call Graph Execution
//! Profiler", SIGPLAN '82: calls that a function makes of itself are kept apart, the functions of a
//! cycle are treated as one, and then every function's time goes to its callers, from the leaves up.
//! Only calls from outside of a cycle count for that.
//!
//! # Two ways to propagate
//!
//! gprof samples self times and counts arcs; what one call cost it cannot know. It assumes that
//! all calls of a function cost the same, and splits the function's total among the callers by
//! the number of their calls: [`Propagation::Counts`]. That charges the caller of ten short calls with
//! ten times as much as the caller of one long call.
//!
//! A recording measures each call, so an arc carries the elapsed time of just its calls:
//! [`Propagation::Exact`]. A caller's share *is* the arc's elapsed time, and a function's
//! descendants are the sum of the arcs that leave it:
//!
//! ```text
//! descendants(f) = Σ elapsed(f → g)                                    g outside of f's cycle
//! total(cycle)   = Σ net of its members + Σ elapsed of the arcs that leave it
//! ```
//!
//! Nothing counts twice. Arcs within a cycle, of which the inner calls' time is part of the outer
//! calls', are left out; an arc that enters a cycle cannot be open twice on one stack, or its
//! caller would belong to the cycle. So the arcs into a function or cycle sum to its total in both
//! ways, exactly in nanoseconds. The two ways give the same totals where each function has one caller.
//!
//! Calls that do not end (`do_exit`), or that cross the border of a region, have no elapsed time there, but their
//! time has callers all the same. So an arc's time is taken from the tree of call paths ([`Arc::total_ns`]): what
//! passed below the arc in the regions that were asked for. Where the tree was cut for its size, or there is none,
//! it is the elapsed time of the calls that ended, and the sum falls short by the others.
//!
//! # Arcs that bind nothing
//!
//! [`Tie`] says whether an arc takes part in cycles. One that is [cut](Tie::Cut) does not, so that a few calls from a low
//! layer back into a high one do not make one cycle of all between them; [`Changes`] says which are cut. No time is lost
//! with it: see [`Tie::Cut`]. Arcs that the code has and that nobody took ([`CodeArc`]) are [loose](Tie::Loose).

mod changes;
mod components;
mod cut;
mod propagate;
mod tables;

pub use changes::{Changes, CodeArc};
pub use cut::AutoCut;
pub use propagate::GraphError;

use std::collections::BTreeMap;

/// How time is handed up to callers, see the [module](self).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Propagation {
    /// Each arc has the time that was measured of its calls.
    Exact,
    /// A total is split among the callers by number of calls, as gprof does.
    Counts,
}

impl Propagation {
    /// The word for it on the command line and in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Propagation::Exact => "exact",
            Propagation::Counts => "counts",
        }
    }
}

/// A function, as input.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Its source file, where known.
    pub file: Option<String>,
    /// Its own time, without callees.
    pub self_ns: u64,
    /// Its own time in the calls that ended, where that is known.
    pub ended_self_ns: u64,
}

/// Whether an arc takes part in cycles.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Tie {
    /// It does.
    #[default]
    Bound,
    /// It was found in the code and never taken: it is shown and binds nothing. In a kernel such arcs would make one cycle
    /// of nearly all functions.
    Loose,
    /// It was taken, and is left out of cycles.
    ///
    /// With [`Propagation::Counts`] it is gone for all sums, as with gprof's `-k`: its calls do not count, and the callee's
    /// time goes to the other callers. With [`Propagation::Exact`] what was measured of these calls stays with the
    /// callee: it is part of what its callers and the cut arc have together, and of nothing above the cut.
    Cut(CutBy),
}

impl Tie {
    /// Whether it is cut, by whom ever.
    pub fn is_cut(self) -> bool {
        matches!(self, Tie::Cut(_))
    }
}

/// Who cut an arc.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CutBy {
    /// It was named.
    Name,
    /// The heuristic, see [`AutoCut`].
    Heuristic,
}

/// Calls of one function by another, as input. Several of one pair are added up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Arc {
    /// Who calls; none for interrupts, system calls and threads that begin.
    pub caller: Option<usize>,
    /// Who is called.
    pub callee: usize,
    /// How often; an arc that was never taken (0) still binds cycles and is shown.
    pub calls: u64,
    /// How many of these calls ended; 0 if that is not known.
    pub ended: u64,
    /// Elapsed time of the calls that ended, if it was measured.
    pub elapsed_ns: Option<u64>,
    /// Time that passed in these calls, whether or not they ended; their elapsed time if it is not known. Of an
    /// arc within a cycle it is of no account.
    pub total_ns: Option<u64>,
    /// The callee's own part of it (the cycle's, if it is in one), if that was measured too.
    pub self_ns: Option<u64>,
    /// Whether it takes part in cycles. Of several of one pair the first counts.
    pub tie: Tie,
}

/// A function in the graph.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Its source file, where known.
    pub file: Option<String>,
    /// Its own time, in all calls.
    pub self_ns: u64,
    /// Its own time in the calls that ended.
    pub ended_self_ns: u64,
    /// Time of its callees outside of its cycle, handed up by them.
    pub descendants_ns: u64,
    /// Calls by others, members of its cycle included.
    pub calls: u64,
    /// Calls by itself.
    pub self_calls: u64,
    /// Calls by others that ended; 0 if that is not known.
    pub ended: u64,
    /// Calls by itself that ended.
    pub self_ended: u64,
    /// Elapsed time of the calls by others that ended, those by members of its cycle included.
    pub elapsed_ns: u64,
    /// The cycle that it is a member of: index into [`CallGraph::cycles`].
    pub cycle: Option<usize>,
    /// Arcs by which it is called, its own included: indices into [`CallGraph::arcs`].
    pub parents: Vec<usize>,
    /// Arcs by which it calls, its own included.
    pub children: Vec<usize>,
}

impl Function {
    /// Own time and that of the descendants.
    pub fn total_ns(&self) -> u64 {
        self.self_ns.saturating_add(self.descendants_ns)
    }

    /// Whether nothing was counted of it: no call, and no time either. One that nothing counts, as one in assembler,
    /// may have run all the same: [`CallGraph::ran`].
    pub fn is_idle(&self) -> bool {
        self.calls == 0 && self.self_calls == 0 && self.self_ns == 0 && self.descendants_ns == 0
    }
}

/// An arc with what it hands to the caller of the callee's time (the cycle's, if the callee is in
/// one); nothing within a cycle.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Share {
    /// Who calls; none if nothing did.
    pub caller: Option<usize>,
    /// Who is called.
    pub callee: usize,
    /// How often.
    pub calls: u64,
    /// Part of the callee's own time.
    pub self_ns: u64,
    /// Part of the time of the callee's descendants.
    pub descendants_ns: u64,
    /// Whether it takes part in cycles.
    pub tie: Tie,
}

impl Share {
    /// Both parts.
    pub fn total_ns(&self) -> u64 {
        self.self_ns.saturating_add(self.descendants_ns)
    }
}

/// Functions that call each other in a circle.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cycle {
    /// Indices into [`CallGraph::functions`], greatest total first.
    pub members: Vec<usize>,
    /// Own time of all members.
    pub self_ns: u64,
    /// Time handed up from outside of the cycle.
    pub descendants_ns: u64,
    /// Calls from outside.
    pub calls: u64,
    /// Calls between different members.
    pub inner_calls: u64,
}

impl Cycle {
    /// Own time and that of the descendants.
    pub fn total_ns(&self) -> u64 {
        self.self_ns.saturating_add(self.descendants_ns)
    }
}

/// A call graph with its time propagated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallGraph {
    /// The functions, in the order of the nodes.
    pub functions: Vec<Function>,
    /// One for each pair of caller and callee, in that order.
    pub arcs: Vec<Share>,
    /// The cycles, greatest total first.
    pub cycles: Vec<Cycle>,
    /// Own time of all functions: what percentages are of.
    pub total_ns: u64,
    /// How time was propagated.
    pub propagation: Propagation,
}

impl CallGraph {
    /// Finds the cycles and propagates time.
    ///
    /// # Errors
    /// [`GraphError`]: an arc names no node, or [`Propagation::Exact`] is asked of arcs whose time
    /// was not measured.
    pub fn new(
        nodes: Vec<Node>,
        arcs: impl IntoIterator<Item = Arc>,
        propagation: Propagation,
    ) -> Result<Self, GraphError> {
        let arcs = merged(nodes.len(), arcs)?;
        let components = components::Components::of(nodes.len(), &arcs);
        propagate::propagate(nodes, &arcs, &components, propagation)
    }

    /// Whether a function ran: something was counted of it, or it called something. Code that has no counter, as that
    /// in assembler, is known by its calls alone, and its callees may give it less than a nanosecond.
    pub fn ran(&self, function: usize) -> bool {
        self.functions.get(function).is_some_and(|known| {
            !known.is_idle() || known.children.iter().any(|arc| self.arcs[*arc].calls > 0)
        })
    }

    /// Whether caller and callee of an arc are the same or in one cycle, so that it hands up nothing.
    pub fn is_inner(&self, share: &Share) -> bool {
        let cycle = |function: usize| self.functions.get(function).and_then(|f| f.cycle);
        let same = |caller: usize| cycle(caller).is_some() && cycle(caller) == cycle(share.callee);
        !share.tie.is_cut() && (share.caller == Some(share.callee) || share.caller.is_some_and(same))
    }

    /// The arcs that were cut, in the order of [`CallGraph::arcs`].
    pub fn cuts(&self) -> impl Iterator<Item = &Share> {
        self.arcs.iter().filter(|arc| arc.tie.is_cut())
    }

    /// Calls among which the time of the callee of an arc is divided: those from outside of its cycle.
    pub fn calls_from_outside(&self, callee: usize) -> u64 {
        let Some(function) = self.functions.get(callee) else { return 0 };
        function.cycle.and_then(|cycle| self.cycles.get(cycle)).map_or(function.calls, |cycle| cycle.calls)
    }
}

/// One arc for each pair, sorted; those of nothing known are refused.
fn merged(nodes: usize, arcs: impl IntoIterator<Item = Arc>) -> Result<Vec<Arc>, GraphError> {
    let mut merged: BTreeMap<(Option<usize>, usize), Arc> = BTreeMap::new();
    let both = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
    for arc in arcs {
        if let Some(node) = [Some(arc.callee), arc.caller].into_iter().flatten().find(|node| *node >= nodes) {
            return Err(GraphError::NoNode { node, nodes });
        }
        let add = |sum: &mut Arc| {
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
