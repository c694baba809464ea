//! Matching of the call trees of two profiles.

use super::functions::RowByFunction;
use crate::{add_up_figures, CallNode, CallTree, PathFrame, Profile, RegionScope};

/// Last element of a call path in both profiles; a function is its row in
/// [`super::ProfileDifference::functions`].
pub type RowFrame = PathFrame<String, usize>;

/// Calls and times of a path in one profile.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PathFigures {
    /// Calls made.
    pub calls: i128,
    /// Time at the path itself.
    pub self_ticks: i128,
    /// Time at the path and below it.
    pub total_ticks: i128,
}

/// Path with its calls and times in both profiles; all are 0 where it was never taken.
pub type PathDifference = CallNode<RowFrame, [PathFigures; 2]>;

impl PathDifference {
    /// Returns the change of the self time from base to other, in ticks.
    pub fn self_change(&self) -> i128 {
        self.figures[1].self_ticks - self.figures[0].self_ticks
    }

    /// Sets the total times of a tree from the self times.
    pub fn add_totals(paths: &mut [Self]) {
        let figures = paths.iter_mut().flat_map(|path| &mut path.figures);
        figures.for_each(|figures| figures.total_ticks = figures.self_ticks);
        add_up_figures(paths, |above, below| {
            (0..2).for_each(|side| above[side].total_ticks += below[side].total_ticks);
        });
    }
}

/// Matches paths by the names along them. If a function and its clone share a row, a call from one
/// to the other is no step of the path.
pub(super) fn join(
    profiles: [&Profile; 2],
    scopes: [&RegionScope; 2],
    rows: &RowByFunction,
) -> Vec<PathDifference> {
    let mut tree = CallTree::<RowFrame, [PathFigures; 2]>::default();
    for side in 0..2 {
        let table = &profiles[side].tables.paths;
        // Node of each row of the table.
        let mut found: Vec<Option<usize>> = vec![None; table.len()];
        for (at, node) in table.iter().enumerate().filter(|(_, node)| scopes[side].contains(node.region)) {
            let above = table.get(node.parent as usize);
            let parent = found.get(node.parent as usize).copied().flatten();
            let frame = node.frame().map(str::to_owned, |function| rows[side].get(&function).copied());
            let piece = above.is_some_and(|above| above.function != node.function)
                && frame.function().is_some()
                && parent.is_some_and(|parent| tree.nodes[parent].frame == frame);
            let place = match parent {
                Some(parent) if piece => parent,
                _ => tree.child(parent, frame),
            };
            found[at] = Some(place);
            let figures = &mut tree.nodes[place].figures[side];
            figures.calls += if piece { 0 } else { i128::from(node.calls) };
            figures.self_ticks += i128::from(node.self_ticks.0);
        }
    }
    PathDifference::add_totals(&mut tree.nodes);
    tree.nodes
}
