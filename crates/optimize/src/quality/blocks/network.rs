//! Circulation of least cost through a network, by successive shortest paths.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Half of an arc: the way forward, or the way back that takes flow away.
#[derive(Debug, Clone, Copy)]
struct HalfArc {
    to: usize,
    /// Flow that still fits.
    room: u64,
    cost: i64,
}

/// Network of nodes and arcs with capacities and costs per unit of flow.
///
/// Arcs of negative cost are full from the beginning; [`FlowNetwork::solve`] moves what then does
/// not fit along the cheapest paths. What is in balance from the beginning stays as it is.
#[derive(Debug, Clone, Default)]
pub(super) struct FlowNetwork {
    /// Arc `a` has halves `2a` and `2a + 1`.
    halves: Vec<HalfArc>,
    /// Halves that leave each node.
    leaving: Vec<Vec<usize>>,
    /// Flow that arrives at each node and does not leave it.
    excess: Vec<i128>,
}

impl FlowNetwork {
    /// Creates a network of `nodes` nodes without arcs.
    pub fn new(nodes: usize) -> Self {
        Self { halves: Vec::new(), leaving: vec![Vec::new(); nodes], excess: vec![0; nodes] }
    }

    /// Adds an arc and returns its number.
    pub fn add(&mut self, from: usize, to: usize, capacity: u64, cost: i64) -> usize {
        let number = self.halves.len() / 2;
        let full = if cost < 0 { capacity } else { 0 };
        self.halves.push(HalfArc { to, room: capacity - full, cost });
        self.halves.push(HalfArc { to: from, room: full, cost: -cost });
        self.leaving[from].push(2 * number);
        self.leaving[to].push(2 * number + 1);
        self.excess[to] += i128::from(full);
        self.excess[from] -= i128::from(full);
        number
    }

    /// Returns the flow of an arc.
    pub fn flow(&self, arc: usize) -> u64 {
        self.halves[2 * arc + 1].room
    }

    /// Moves flow until every node is in balance, or no path is left, at least cost.
    pub fn solve(&mut self) {
        let mut potential = vec![0i64; self.leaving.len()];
        while let Some(path) = self.cheapest_path(&mut potential) {
            let room = path.iter().map(|half| i128::from(self.halves[*half].room)).min();
            let (Some(room), Some(first), Some(last)) = (room, path.first(), path.last()) else { return };
            let (from, to) = (self.halves[*first ^ 1].to, self.halves[*last].to);
            let moved = room.min(self.excess[from]).min(-self.excess[to]);
            self.excess[from] -= moved;
            self.excess[to] += moved;
            let moved = u64::try_from(moved).unwrap_or_default();
            for half in path {
                self.halves[half].room -= moved;
                self.halves[half ^ 1].room = self.halves[half ^ 1].room.saturating_add(moved);
            }
        }
    }

    /// Returns the halves of the cheapest path from a node with too much to one with too little.
    /// Of equally cheap ones the first by node numbers is taken. `potential` keeps reduced costs
    /// from becoming negative.
    fn cheapest_path(&self, potential: &mut [i64]) -> Option<Vec<usize>> {
        let mut distance = vec![i64::MAX; self.leaving.len()];
        let mut came: Vec<Option<usize>> = vec![None; self.leaving.len()];
        let mut done = vec![false; self.leaving.len()];
        let mut next = BinaryHeap::new();
        for (node, _) in self.excess.iter().enumerate().filter(|(_, excess)| **excess > 0) {
            distance[node] = 0;
            next.push(Reverse((0, node)));
        }
        let mut found = None;
        while let Some(Reverse((so_far, node))) = next.pop() {
            if std::mem::replace(&mut done[node], true) {
                continue;
            }
            if self.excess[node] < 0 {
                found = Some((so_far, node));
                break;
            }
            for &half in &self.leaving[node] {
                let HalfArc { to, room, cost } = self.halves[half];
                if room == 0 || done[to] {
                    continue;
                }
                let sum = so_far + cost + potential[node] - potential[to];
                if sum < distance[to] {
                    distance[to] = sum;
                    came[to] = Some(half);
                    next.push(Reverse((sum, to)));
                }
            }
        }
        let (length, mut node) = found?;
        for (potential, distance) in potential.iter_mut().zip(&distance) {
            *potential += (*distance).min(length);
        }
        let mut path = Vec::new();
        while let Some(half) = came[node] {
            path.push(half);
            node = self.halves[half ^ 1].to;
        }
        path.reverse();
        Some(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flow_takes_the_cheap_way_first() {
        // 0 → 3 must carry 10 (its cost is negative); back from 3 to 0 there are two ways.
        let mut network = FlowNetwork::new(4);
        let wanted = network.add(0, 3, 10, -100);
        let cheap = [network.add(3, 1, 6, 1), network.add(1, 0, 100, 1)];
        let dear = [network.add(3, 2, 100, 5), network.add(2, 0, 100, 5)];
        network.solve();
        assert_eq!(
            [wanted, cheap[0], cheap[1], dear[0], dear[1]].map(|arc| network.flow(arc)),
            [10, 6, 6, 4, 4]
        );
    }

    #[test]
    fn what_costs_more_than_it_is_worth_is_given_up() {
        let mut network = FlowNetwork::new(2);
        let wanted = network.add(0, 1, 10, -3);
        let back = [network.add(1, 0, 4, 2), network.add(1, 0, 9, 5)];
        network.solve();
        assert_eq!([wanted, back[0], back[1]].map(|arc| network.flow(arc)), [4, 4, 0]);
    }
}
