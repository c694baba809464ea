//! The trees of call paths of two profiles, laid over each other.

use super::functions::Rows;
use crate::{PathKind, PathNode, Profile, Scope};
use std::collections::HashMap;

/// What a path ends in.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PathLabel {
    /// Root: all threads of this name.
    Thread(String),
    /// Root: all interrupts.
    Interrupt,
    /// Root: idle tasks while not halted.
    Idle,
    /// A function: its row in [`super::Difference::functions`].
    Function(usize),
    /// User mode outside of traced functions.
    User,
    /// Kernel code with no function open.
    Unattributed,
}

/// What happened at a path in one profile.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PathFigures {
    /// Calls that were made.
    pub calls: i128,
    /// Nanoseconds at the path itself.
    pub net_ns: i128,
    /// Nanoseconds at it and below it.
    pub elapsed_ns: i128,
}

/// One path in both profiles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathDifference {
    /// Row of [`super::Difference::paths`]; none for a root.
    pub parent: Option<usize>,
    /// What it ends in.
    pub label: PathLabel,
    /// What happened there in both; all 0 where it was never taken.
    pub figures: [PathFigures; 2],
}

impl PathDifference {
    /// Change of the net time in nanoseconds, from base to other.
    pub fn net_change(&self) -> i128 {
        self.figures[1].net_ns - self.figures[0].net_ns
    }
}

/// Paths are the same if the names along them are. Where a function and its clone are one row, a call
/// from one to the other is no step of the path.
pub(super) fn join(profiles: [&Profile; 2], scopes: [&Scope; 2], rows: &Rows) -> Vec<PathDifference> {
    let mut paths: Vec<PathDifference> = Vec::new();
    let mut places: HashMap<(Option<usize>, PathLabel), usize> = HashMap::new();
    for side in 0..2 {
        let table = &profiles[side].tables.paths;
        // Where each row of the table went.
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
            figures.net_ns += i128::from(node.net_ns.0);
        }
    }
    for at in (0..paths.len()).rev() {
        let mut sums = [0; 2];
        for (sum, figures) in sums.iter_mut().zip(&mut paths[at].figures) {
            figures.elapsed_ns += figures.net_ns;
            *sum = figures.elapsed_ns;
        }
        if let Some(parent) = paths[at].parent {
            for (sum, figures) in sums.into_iter().zip(&mut paths[parent].figures) {
                figures.elapsed_ns += sum;
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
