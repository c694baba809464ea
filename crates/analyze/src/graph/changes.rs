//! What is changed of a profile's arcs before time is handed up: arcs of the code added, arcs cut.

use super::cut::{self, AutoCut};
use super::{Arc, CutBy, GraphError, Tie};
use std::collections::{BTreeMap, BTreeSet};

/// Arcs to add and to cut; nothing by default.
#[derive(Debug, Clone, Default)]
pub struct Changes<'a> {
    /// Callers and callees, numbers of nodes. Calls of a function by itself are never cut: they bind no cycle.
    pub cut: BTreeSet<(usize, usize)>,
    /// Also cut what binds cycles by few calls.
    pub auto: Option<AutoCut>,
    /// Arcs that the code has; those that were taken change nothing.
    pub code: &'a [CodeArc],
    /// Arcs that the code has and that nobody took bind cycles, too, as in gprof: then cycles do not depend on which calls
    /// a run happened to make.
    pub code_binds: bool,
}

/// A call or jump of one function to the beginning of another, as the code has it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CodeArc {
    /// Who calls.
    pub caller: usize,
    /// Who is called.
    pub callee: usize,
    /// In how many places by a call.
    pub calls: u32,
    /// In how many places by a jump.
    pub jumps: u32,
}

impl Changes<'_> {
    /// `arcs` has one for each pair, sorted, and is so afterwards.
    pub(super) fn apply(&self, nodes: usize, arcs: &mut Vec<Arc>) -> Result<(), GraphError> {
        let is_named = |arc: &Arc| {
            let caller = arc.caller.filter(|caller| *caller != arc.callee);
            caller.is_some_and(|caller| self.cut.contains(&(caller, arc.callee)))
        };
        for arc in arcs.iter_mut().filter(|arc| is_named(arc)) {
            arc.tie = Tie::Cut(CutBy::Name);
        }
        if !self.code.is_empty() {
            let mut all: BTreeMap<(Option<usize>, usize), Arc> =
                arcs.drain(..).map(|arc| ((arc.caller, arc.callee), arc)).collect();
            let tie = if self.code_binds { Tie::Bound } else { Tie::Loose };
            for &CodeArc { caller, callee, .. } in self.code {
                if let Some(node) = [caller, callee].into_iter().find(|node| *node >= nodes) {
                    return Err(GraphError::NoNode { node, nodes });
                }
                let arc = Arc { caller: Some(caller), callee, tie, ..Arc::default() };
                all.entry((Some(caller), callee)).or_insert(arc);
            }
            arcs.extend(all.into_values());
        }
        if let Some(limit) = self.auto {
            for at in cut::backward(nodes, arcs, limit) {
                arcs[at].tie = Tie::Cut(CutBy::Heuristic);
            }
        }
        Ok(())
    }
}
