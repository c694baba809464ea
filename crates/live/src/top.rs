//! The heaviest of what was seen until now, without making a profile of it.

use crate::aggregate::{Aggregate, Key, Tree};
use kerntune_profile::Counted;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Names from the root of the longest path that is shown.
const DEEPEST: usize = 64;

/// A function as `top` shows it, in samples.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopFunction {
    /// Its name.
    pub name: String,
    /// Source file or module, where known.
    pub place: String,
    /// Samples in it.
    pub own: u64,
    /// Samples with it on the stack.
    pub total: u64,
}

/// A path as `top` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopPath {
    /// Names from the root.
    pub names: Vec<String>,
    /// Samples at its end.
    pub own: u64,
}

/// What was seen until now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopView {
    /// Since the beginning or the last reset, ns.
    pub wall_ns: u64,
    /// All samples.
    pub samples: u64,
    /// Of halted CPUs.
    pub halted: u64,
    /// In user mode.
    pub user: u64,
    /// In interrupts.
    pub interrupts: u64,
    /// Lost.
    pub lost: u64,
    /// Its source.
    pub source: String,
    /// Functions, most own samples first.
    pub functions: Vec<TopFunction>,
    /// Samples by directory of the source, or module; most first.
    pub subsystems: Vec<(String, u64)>,
    /// Paths, most samples first.
    pub paths: Vec<TopPath>,
    /// Samples below each entry of an interrupt, most first.
    pub entries: Vec<(String, u64)>,
    /// What was counted.
    pub counted: Vec<Counted>,
}

/// Samples of what was seen, with at most so many functions and paths; what is no sample is empty.
pub(crate) fn of(all: &Aggregate, most: usize) -> TopView {
    let (functions, subsystems, entries) = sums(all, most);
    let user = all.tree.nodes().iter().filter(|node| node.key == Key::User).map(|node| node.samples).sum();
    TopView {
        samples: all.samples,
        halted: all.halted,
        user,
        interrupts: all.interrupts,
        functions,
        subsystems,
        paths: paths(all, most),
        entries,
        ..TopView::default()
    }
}

type Sums = (Vec<TopFunction>, Vec<(String, u64)>, Vec<(String, u64)>);

/// Functions, directories and entries of interrupts by samples.
fn sums(all: &Aggregate, most: usize) -> Sums {
    let nodes = all.tree.nodes();
    let mut below: Vec<u64> = nodes.iter().map(|node| node.samples).collect();
    for (at, node) in nodes.iter().enumerate().rev() {
        let sum = below[at];
        if let Some(parent) = below.get_mut(node.parent as usize) {
            *parent += sum;
        }
    }
    let mut functions: HashMap<u32, (u64, u64)> = HashMap::new();
    let mut entries: HashMap<u32, u64> = HashMap::new();
    for (node, below) in nodes.iter().zip(&below) {
        let Key::Function(function) = node.key else { continue };
        let sum = functions.entry(function).or_default();
        sum.0 += node.samples;
        sum.1 += if is_within_itself(all, node.parent, function) { 0 } else { *below };
        if nodes.get(node.parent as usize).is_some_and(|parent| parent.key == Key::Interrupt) {
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
    rows.truncate(most);
    let entries = entries.into_iter().filter_map(|(function, n)| Some((name(function)?.name.clone(), n)));
    (rows, sorted(subsystems.into_iter().collect()), sorted(entries.collect()))
}

fn sorted(mut rows: Vec<(String, u64)>) -> Vec<(String, u64)> {
    rows.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    rows
}

/// Whether the function is on the path above a node.
fn is_within_itself(all: &Aggregate, mut parent: u32, function: u32) -> bool {
    while parent != Tree::ROOT {
        let node = &all.tree.nodes()[parent as usize];
        if node.key == Key::Function(function) {
            return true;
        }
        parent = node.parent;
    }
    false
}

fn paths(all: &Aggregate, most: usize) -> Vec<TopPath> {
    let nodes = all.tree.nodes();
    let mut heaviest: Vec<u32> =
        (0..nodes.len() as u32).filter(|at| nodes[*at as usize].samples > 0).collect();
    heaviest.sort_by_key(|at| (std::cmp::Reverse(nodes[*at as usize].samples), *at));
    heaviest.truncate(most);
    let word = |key: Key| match key {
        Key::Thread(comm) => all.threads.name(comm).to_string(),
        Key::Interrupt => "[interrupt]".into(),
        Key::Idle => "[idle task]".into(),
        Key::User => "[user]".into(),
        Key::Unattributed => "[unattributed]".into(),
        Key::Function(function) => all
            .table
            .functions()
            .get(function as usize)
            .map_or("[unknown]".into(), |found| found.name.clone()),
    };
    let path = |at: &u32| {
        let (mut names, mut up) = (Vec::new(), *at);
        while up != Tree::ROOT && names.len() < DEEPEST {
            names.push(word(nodes[up as usize].key));
            up = nodes[up as usize].parent;
        }
        names.reverse();
        TopPath { names, own: nodes[*at as usize].samples }
    };
    heaviest.iter().map(path).collect()
}
