//! Changes to the arcs of a profile before its time is propagated: arcs from the code added, arcs
//! cut.

use super::cut::{self, AutoCut};
use super::{ArcBinding, CutReason, GraphArc, GraphError};
use std::collections::{BTreeMap, BTreeSet};

/// Arcs to add and to cut; none by default.
#[derive(Debug, Clone, Default)]
pub struct ArcChanges<'a> {
    /// Caller and callee of arcs to cut, as indices of nodes. Direct recursion is never cut, as it
    /// binds no cycle.
    pub cut: BTreeSet<(usize, usize)>,
    /// Also cuts arcs that bind cycles by few calls.
    pub auto: Option<AutoCut>,
    /// Arcs that the code has. Those that were also taken change nothing.
    pub code: &'a [CodeArc],
    /// True if arcs of the code that were not taken bind cycles, as in gprof: then the cycles do
    /// not depend on the calls that a run happened to make.
    pub code_binds: bool,
}

/// A call or jump from a function to the start of another one, found in the code.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CodeArc {
    /// Index of the calling function's node.
    pub caller: usize,
    /// Index of the called function's node.
    pub callee: usize,
    /// Number of call instructions.
    pub calls: u32,
    /// Number of jump instructions.
    pub jumps: u32,
}

impl ArcChanges<'_> {
    /// Applies the changes. `arcs` has one arc for each pair, sorted, before and after.
    pub(super) fn apply(&self, nodes: usize, arcs: &mut Vec<GraphArc>) -> Result<(), GraphError> {
        let is_named = |arc: &GraphArc| {
            let caller = arc.caller.filter(|caller| *caller != arc.callee);
            caller.is_some_and(|caller| self.cut.contains(&(caller, arc.callee)))
        };
        for arc in arcs.iter_mut().filter(|arc| is_named(arc)) {
            arc.tie = ArcBinding::Cut(CutReason::Name);
        }
        if !self.code.is_empty() {
            let mut all: BTreeMap<(Option<usize>, usize), GraphArc> =
                arcs.drain(..).map(|arc| ((arc.caller, arc.callee), arc)).collect();
            let tie = if self.code_binds { ArcBinding::Bound } else { ArcBinding::Loose };
            for &CodeArc { caller, callee, .. } in self.code {
                if let Some(node) = [caller, callee].into_iter().find(|node| *node >= nodes) {
                    return Err(GraphError::NoNode { node, nodes });
                }
                let arc = GraphArc { caller: Some(caller), callee, tie, ..GraphArc::default() };
                all.entry((Some(caller), callee)).or_insert(arc);
            }
            arcs.extend(all.into_values());
        }
        if let Some(limit) = self.auto {
            for at in cut::backward(nodes, arcs, limit) {
                arcs[at].tie = ArcBinding::Cut(CutReason::Heuristic);
            }
        }
        Ok(())
    }
}
