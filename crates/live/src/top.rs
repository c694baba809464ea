//! Functions and paths with the most samples, computed without building a profile.

use crate::aggregate::{Aggregate, SampleFrame, SampleTree};
use kerntune_profile::{add_up, CounterTotal};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Maximum number of names in a shown path, counted from its end.
const MAX_PATH_NAMES: usize = 64;

/// Function in the view of `top`, in samples.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopFunction {
    /// Name of the function.
    pub name: String,
    /// Source file or module, if known.
    pub place: String,
    /// Samples in the function itself.
    pub own: u64,
    /// Samples with the function on the stack.
    pub total: u64,
}

/// Call path in the view of `top`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopPath {
    /// Names, outermost first.
    pub names: Vec<String>,
    /// Samples at the end of the path.
    pub own: u64,
}

/// View of `top`: everything since the start or the last reset.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopView {
    /// Wall time of the collection, in ns.
    pub wall_ns: u64,
    /// Number of all samples.
    pub samples: u64,
    /// Samples of halted CPUs.
    pub halted: u64,
    /// Samples in user mode.
    pub user: u64,
    /// Samples in interrupts.
    pub interrupts: u64,
    /// Number of lost samples.
    pub lost: u64,
    /// Names of the sources.
    pub source: String,
    /// Functions, sorted by decreasing self samples.
    pub functions: Vec<TopFunction>,
    /// Samples by source directory or module, in decreasing order.
    pub subsystems: Vec<(String, u64)>,
    /// Paths, in decreasing order of samples.
    pub paths: Vec<TopPath>,
    /// Samples by interrupt entry, in decreasing order.
    pub entries: Vec<(String, u64)>,
    /// Counters kept beside samples.
    pub counted: Vec<CounterTotal>,
}

/// Builds the view from samples, with at most `max` functions and paths. Other fields stay empty.
pub(crate) fn of(all: &Aggregate, max: usize) -> TopView {
    let (functions, subsystems, entries) = sums(all, max);
    let user =
        all.tree.nodes().iter().filter(|node| node.key == SampleFrame::User).map(|node| node.samples).sum();
    TopView {
        samples: all.samples,
        halted: all.halted,
        user,
        interrupts: all.interrupts,
        functions,
        subsystems,
        paths: paths(all, max),
        entries,
        ..TopView::default()
    }
}

type TopSums = (Vec<TopFunction>, Vec<(String, u64)>, Vec<(String, u64)>);

/// Sums samples by function, directory and interrupt entry.
fn sums(all: &Aggregate, max: usize) -> TopSums {
    let nodes = all.tree.nodes();
    let mut below: Vec<u64> = nodes.iter().map(|node| node.samples).collect();
    add_up(&mut below, |at, _| nodes[at].parent as usize, |above, below| *above += below);
    let mut functions: HashMap<u32, (u64, u64)> = HashMap::new();
    let mut entries: HashMap<u32, u64> = HashMap::new();
    for (node, below) in nodes.iter().zip(&below) {
        let SampleFrame::Function(function) = node.key else { continue };
        let sum = functions.entry(function).or_default();
        sum.0 += node.samples;
        sum.1 += if is_within_itself(all, node.parent, function) { 0 } else { *below };
        if nodes.get(node.parent as usize).is_some_and(|parent| parent.key == SampleFrame::Interrupt) {
            *entries.entry(function).or_default() += below;
        }
    }
    let name = |function: u32| all.table.functions().get(function as usize);
    let mut subsystems: HashMap<String, u64> = HashMap::new();
    let mut rows = Vec::with_capacity(functions.len());
    for (function, (own, total)) in functions {
        let Some(found) = name(function) else { continue };
        let place = found.module.clone().or_else(|| found.file.clone()).unwrap_or_default();
        let directory = match (&found.module, place.rsplit_once('/')) {
            (Some(module), _) => module.clone(),
            (None, Some((directory, _))) => directory.split('/').take(2).collect::<Vec<_>>().join("/"),
            (None, None) => "[no source known]".into(),
        };
        *subsystems.entry(directory).or_default() += own;
        rows.push(TopFunction { name: found.name.clone(), place, own, total });
    }
    rows.sort_by(|a, b| (b.own, b.total).cmp(&(a.own, a.total)).then_with(|| a.name.cmp(&b.name)));
    rows.truncate(max);
    let entries = entries.into_iter().filter_map(|(function, n)| Some((name(function)?.name.clone(), n)));
    (rows, sorted(subsystems.into_iter().collect()), sorted(entries.collect()))
}

fn sorted(mut rows: Vec<(String, u64)>) -> Vec<(String, u64)> {
    rows.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    rows
}

/// Returns true if the function is also on the path above the node.
fn is_within_itself(all: &Aggregate, mut parent: u32, function: u32) -> bool {
    while parent != SampleTree::ROOT {
        let node = &all.tree.nodes()[parent as usize];
        if node.key == SampleFrame::Function(function) {
            return true;
        }
        parent = node.parent;
    }
    false
}

fn paths(all: &Aggregate, max: usize) -> Vec<TopPath> {
    let nodes = all.tree.nodes();
    let mut heaviest: Vec<u32> =
        (0..nodes.len() as u32).filter(|at| nodes[*at as usize].samples > 0).collect();
    heaviest.sort_by_key(|at| (std::cmp::Reverse(nodes[*at as usize].samples), *at));
    heaviest.truncate(max);
    let word = |key: SampleFrame| match key {
        SampleFrame::Thread(comm) => all.threads.name(comm).to_string(),
        SampleFrame::Function(function) => all
            .table
            .functions()
            .get(function as usize)
            .map_or("[unknown]".into(), |found| found.name.clone()),
        other => other.kind().stand_in().into(),
    };
    let path = |at: &u32| {
        let (mut names, mut up) = (Vec::new(), *at);
        while up != SampleTree::ROOT && names.len() < MAX_PATH_NAMES {
            names.push(word(nodes[up as usize].key));
            up = nodes[up as usize].parent;
        }
        names.reverse();
        TopPath { names, own: nodes[*at as usize].samples }
    };
    heaviest.iter().map(path).collect()
}
