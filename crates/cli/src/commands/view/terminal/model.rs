//! Figures of a profile, prepared for display.

use kerntune_command::Failure;
use kerntune_profile::{difference_within, Profile, TreeChildren};
use kerntune_report::diff::{self, DiffLine};
use kerntune_report::{printable, profile_line, scope, TickUnit};
use std::cmp::Reverse;

/// A frame of the call tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallNode {
    pub name: String,
    pub parent: Option<usize>,
    /// Children, the largest total first.
    pub children: Vec<usize>,
    pub own: u64,
    pub total: u64,
    /// Number of calls; `None` for a root that nothing calls.
    pub calls: Option<u64>,
}

/// A function, summed over all paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ViewFunction {
    pub name: String,
    pub file: String,
    pub own: u64,
    pub total: u64,
    pub calls: u64,
}

/// All figures that the screens show.
#[derive(Debug, Clone)]
pub struct ViewModel {
    /// Heading that names the profile.
    pub title: String,
    pub measure: TickUnit,
    /// Busy time, the base of percentages.
    pub busy: u64,
    /// Frames of the call tree, parents before children.
    pub nodes: Vec<CallNode>,
    pub roots: Vec<usize>,
    pub functions: Vec<ViewFunction>,
    /// Name of the other profile, and the lines that explain the difference, largest first. `None`
    /// without another profile.
    pub difference: Option<(String, Vec<DiffLine>)>,
}

impl ViewModel {
    /// Reads the figures of the regions named `region`, or of all regions.
    pub fn new(profile: &Profile, other: Option<&Profile>, region: Option<&str>) -> Result<Self, Failure> {
        let of = scope(profile, region)?;
        let totals = of.totals(profile);
        // Comparing the profile with itself gives each path once, summed over regions.
        let found = difference_within([profile, profile], [&of, &of]);
        let figure = |value: i128| u64::try_from(value).unwrap_or(0);
        let node = |path: &kerntune_profile::PathDifference| CallNode {
            name: printable(&found.name(&path.frame)),
            parent: path.parent,
            children: Vec::new(),
            own: figure(path.figures[0].self_ticks),
            total: figure(path.figures[0].total_ticks),
            calls: path.frame.function().map(|_| figure(path.figures[0].calls)),
        };
        let mut nodes: Vec<CallNode> = found.paths.iter().map(node).collect();
        let TreeChildren { mut roots, of } = TreeChildren::new(&found.paths);
        let key: Vec<_> = nodes.iter().enumerate().map(|(at, node)| (Reverse(node.total), at)).collect();
        roots.sort_by_key(|at| key[*at]);
        for (node, mut children) in nodes.iter_mut().zip(of) {
            children.sort_by_key(|at| key[*at]);
            node.children = children;
        }
        let function = |row: &kerntune_profile::FunctionDifference| ViewFunction {
            name: printable(&row.name),
            file: printable(row.file.as_deref().unwrap_or("")),
            own: figure(row.self_ticks(0)),
            total: figure(row.total_ticks(0)),
            calls: figure(row.calls(0)),
        };
        let difference = match other {
            None => None,
            Some(other) => {
                let options = diff::DiffOptions { region: region.map(Into::into), ..Default::default() };
                Some((profile_line(other), diff::lines(profile, other, &options)?))
            }
        };
        Ok(Self {
            title: profile_line(profile),
            measure: TickUnit::of(profile),
            busy: totals.busy_ticks.get(),
            nodes,
            roots,
            functions: found.functions.iter().map(function).collect(),
            difference,
        })
    }

    /// Returns the function names of a path, innermost first.
    pub fn path(&self, at: usize) -> String {
        let mut names = Vec::new();
        let mut next = Some(at);
        while let Some(node) = next.and_then(|at| self.nodes.get(at)) {
            names.push(node.name.as_str());
            next = node.parent;
        }
        names.join(" < ")
    }
}
