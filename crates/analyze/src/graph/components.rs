//! Strongly connected components (Tarjan 1972), with an explicit stack: in damaged input a chain of
//! calls may be of any length.

use super::{ArcBinding, GraphArc};

/// The component of each node; callees' components come before callers'.
pub(super) struct CallComponents {
    /// Component of each node.
    pub of: Vec<usize>,
    /// Members of each component. No arc leads from a component to a later one.
    pub members: Vec<Vec<usize>>,
}

const NEW: usize = usize::MAX;

impl CallComponents {
    /// Finds the components. All callers and callees in `arcs` must be below `nodes`.
    pub fn of(nodes: usize, arcs: &[GraphArc]) -> Self {
        let mut callees = vec![Vec::new(); nodes];
        for arc in arcs.iter().filter(|arc| arc.tie == ArcBinding::Bound) {
            if let Some(caller) = arc.caller {
                callees[caller].push(arc.callee);
            }
        }
        let mut found = Self { of: vec![NEW; nodes], members: Vec::new() };
        let (mut number, mut low) = (vec![NEW; nodes], vec![NEW; nodes]);
        let (mut next, mut open) = (0, Vec::new());
        // A node, and the number of its callees that were visited.
        let mut path: Vec<(usize, usize)> = Vec::new();
        for root in 0..nodes {
            if number[root] != NEW {
                continue;
            }
            path.push((root, 0));
            while let Some((node, at)) = path.last_mut() {
                let node = *node;
                if *at == 0 {
                    (number[node], low[node]) = (next, next);
                    next += 1;
                    open.push(node);
                }
                if let Some(&callee) = callees[node].get(*at) {
                    *at += 1;
                    if number[callee] == NEW {
                        path.push((callee, 0));
                    } else if found.of[callee] == NEW {
                        low[node] = low[node].min(number[callee]);
                    }
                    continue;
                }
                path.pop();
                if let Some((caller, _)) = path.last() {
                    low[*caller] = low[*caller].min(low[node]);
                }
                if low[node] == number[node] {
                    found.close(&mut open, node);
                }
            }
        }
        found
    }

    /// Makes a component of everything open above `root`, its first visited node.
    fn close(&mut self, open: &mut Vec<usize>, root: usize) {
        let component = self.members.len();
        let from = open.iter().rposition(|node| *node == root).unwrap_or(0);
        let members = open.split_off(from);
        members.iter().for_each(|member| self.of[*member] = component);
        self.members.push(members);
    }
}
