//! Strongly connected components (Tarjan 1972), with a stack of our own: a chain of calls from
//! foreign bytes may be as long as it likes.

use super::{Arc, Tie};

/// Which component each node is in, callees before callers.
pub(super) struct Components {
    /// Component of each node.
    pub of: Vec<usize>,
    /// Members of each component. No arc leads from a component to a later one.
    pub members: Vec<Vec<usize>>,
}

/// Not visited yet.
const NEW: usize = usize::MAX;

impl Components {
    /// Arcs have callers and callees below `nodes`.
    pub fn of(nodes: usize, arcs: &[Arc]) -> Self {
        let mut callees = vec![Vec::new(); nodes];
        for arc in arcs.iter().filter(|arc| arc.tie == Tie::Bound) {
            if let Some(caller) = arc.caller {
                callees[caller].push(arc.callee);
            }
        }
        let mut found = Self { of: vec![NEW; nodes], members: Vec::new() };
        let (mut number, mut low) = (vec![NEW; nodes], vec![NEW; nodes]);
        let (mut next, mut open) = (0, Vec::new());
        // A node and how many of its callees were looked at.
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

    /// The component whose first visited node is `root`: everything open above it.
    fn close(&mut self, open: &mut Vec<usize>, root: usize) {
        let component = self.members.len();
        let from = open.iter().rposition(|node| *node == root).unwrap_or(0);
        let members = open.split_off(from);
        members.iter().for_each(|member| self.of[*member] = component);
        self.members.push(members);
    }
}
