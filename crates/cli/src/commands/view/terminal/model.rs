//! What a profile says, in the form in which it is looked at.

use crate::exit::Failure;
use kerntune_profile::{difference_within, thread_name, PathLabel, Profile};
use kerntune_report::diff::{self, Line};
use kerntune_report::{of_profile, printable, scope, Measure};
use std::cmp::Reverse;

/// A frame of the call tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Node {
    pub name: String,
    pub parent: Option<usize>,
    /// Most with callees first.
    pub children: Vec<usize>,
    pub own: u64,
    pub total: u64,
    /// None for what nothing calls.
    pub calls: Option<u64>,
}

/// A function over all paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Function {
    pub name: String,
    pub file: String,
    pub own: u64,
    pub total: u64,
    pub calls: u64,
}

/// Everything that can be looked at.
#[derive(Debug, Clone)]
pub struct Model {
    /// What it is of.
    pub title: String,
    pub measure: Measure,
    /// What percentages are of.
    pub busy: u64,
    /// Parents before children.
    pub nodes: Vec<Node>,
    pub roots: Vec<usize>,
    pub functions: Vec<Function>,
    /// What explains the difference to another profile, most first; none without one.
    pub difference: Option<(String, Vec<Line>)>,
}

impl Model {
    /// Of the regions of a name, or of all.
    pub fn new(profile: &Profile, other: Option<&Profile>, region: Option<&str>) -> Result<Self, Failure> {
        let of = scope(profile, region)?;
        let totals = of.totals(profile);
        // A profile beside itself has each of its paths once, over all regions.
        let found = difference_within([profile, profile], [&of, &of]);
        let name = |label: &PathLabel| match label {
            PathLabel::Thread(comm) => printable(&thread_name(comm)),
            PathLabel::Interrupt => "[interrupt]".into(),
            PathLabel::Idle => "[idle task]".into(),
            PathLabel::User => "[user]".into(),
            PathLabel::Unattributed => "[unattributed]".into(),
            PathLabel::Function(row) => {
                found.functions.get(*row).map_or(String::new(), |row| printable(&row.name))
            }
        };
        let figure = |value: i128| u64::try_from(value).unwrap_or(0);
        let node = |path: &kerntune_profile::PathDifference| Node {
            name: name(&path.label),
            parent: path.parent,
            children: Vec::new(),
            own: figure(path.figures[0].net_ns),
            total: figure(path.figures[0].elapsed_ns),
            calls: matches!(path.label, PathLabel::Function(_)).then(|| figure(path.figures[0].calls)),
        };
        let mut nodes: Vec<Node> = found.paths.iter().map(node).collect();
        let mut roots = Vec::new();
        for at in 0..nodes.len() {
            match nodes[at].parent {
                Some(parent) => nodes[parent].children.push(at),
                None => roots.push(at),
            }
        }
        let key: Vec<_> = nodes.iter().enumerate().map(|(at, node)| (Reverse(node.total), at)).collect();
        roots.sort_by_key(|at| key[*at]);
        nodes.iter_mut().for_each(|node| node.children.sort_by_key(|at| key[*at]));
        let function = |row: &kerntune_profile::FunctionDifference| Function {
            name: printable(&row.name),
            file: printable(row.file.as_deref().unwrap_or("")),
            own: figure(row.net(0)),
            total: figure(row.elapsed(0)),
            calls: figure(row.calls(0)),
        };
        let difference = match other {
            None => None,
            Some(other) => {
                let options = diff::Options { region: region.map(Into::into), ..Default::default() };
                Some((of_profile(other), diff::lines(profile, other, &options)?))
            }
        };
        Ok(Self {
            title: of_profile(profile),
            measure: Measure::of(profile),
            busy: totals.busy_ns.get(),
            nodes,
            roots,
            functions: found.functions.iter().map(function).collect(),
            difference,
        })
    }

    /// The names of a path, from its end.
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
