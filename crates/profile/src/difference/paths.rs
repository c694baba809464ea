//! Matching of the call trees of two profiles.

use super::functions::RowByFunction;
use crate::{PathKind, PathNode, Profile, RegionScope};
use std::collections::HashMap;

/// Last element of a call path.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PathLabel {
    /// Root: all threads of this name.
    Thread(String),
    /// Root: all interrupts.
    Interrupt,
    /// Root: idle tasks while not halted.
    Idle,
    /// Function: its row in [`super::ProfileDifference::functions`].
    Function(usize),
    /// User mode outside of traced functions.
    User,
    /// Kernel code with an empty call stack.
    Unattributed,
}

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

/// Calls and times of one path in both profiles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathDifference {
    /// Row of [`super::ProfileDifference::paths`]; `None` for a root.
    pub parent: Option<usize>,
    /// Last element of the path.
    pub label: PathLabel,
    /// Figures in both profiles; all 0 where the path was never taken.
    pub figures: [PathFigures; 2],
}

impl PathDifference {
    /// Returns the change of the self time from base to other, in ticks.
    pub fn self_change(&self) -> i128 {
        self.figures[1].self_ticks - self.figures[0].self_ticks
    }
}

/// Matches paths by the names along them. If a function and its clone share a row, a call from one
/// to the other is no step of the path.
pub(super) fn join(
    profiles: [&Profile; 2],
    scopes: [&RegionScope; 2],
    rows: &RowByFunction,
) -> Vec<PathDifference> {
    let mut paths: Vec<PathDifference> = Vec::new();
    let mut places: HashMap<(Option<usize>, PathLabel), usize> = HashMap::new();
    for side in 0..2 {
        let table = &profiles[side].tables.paths;
        // Row in `paths` of each row of the table.
        let mut found: Vec<Option<usize>> = vec![None; table.len()];
        for (at, node) in table.iter().enumerate().filter(|(_, node)| scopes[side].contains(node.region)) {
            let above = table.get(node.parent as usize);
            let parent = found.get(node.parent as usize).copied().flatten();
            let label = label(node, &rows[side]);
            let piece = above.is_some_and(|above| above.function != node.function)
                && matches!(label, PathLabel::Function(_))
                && parent.is_some_and(|parent| paths[parent].label == label);
            let place = match parent {
                Some(parent) if piece => parent,
                _ => *places.entry((parent, label.clone())).or_insert_with(|| {
                    paths.push(PathDifference { parent, label, figures: Default::default() });
                    paths.len() - 1
                }),
            };
            found[at] = Some(place);
            let figures = &mut paths[place].figures[side];
            figures.calls += if piece { 0 } else { i128::from(node.calls) };
            figures.self_ticks += i128::from(node.self_ticks.0);
        }
    }
    for at in (0..paths.len()).rev() {
        let mut sums = [0; 2];
        for (sum, figures) in sums.iter_mut().zip(&mut paths[at].figures) {
            figures.total_ticks += figures.self_ticks;
            *sum = figures.total_ticks;
        }
        if let Some(parent) = paths[at].parent {
            for (sum, figures) in sums.into_iter().zip(&mut paths[parent].figures) {
                figures.total_ticks += sum;
            }
        }
    }
    paths
}

fn label(node: &PathNode, rows: &HashMap<crate::FunctionIndex, usize>) -> PathLabel {
    match node.kind {
        PathKind::Thread => PathLabel::Thread(node.comm.clone()),
        PathKind::Interrupt => PathLabel::Interrupt,
        PathKind::Idle => PathLabel::Idle,
        PathKind::User => PathLabel::User,
        PathKind::Unattributed => PathLabel::Unattributed,
        PathKind::Function => match rows.get(&node.function) {
            Some(row) => PathLabel::Function(*row),
            None => PathLabel::Unattributed,
        },
    }
}
