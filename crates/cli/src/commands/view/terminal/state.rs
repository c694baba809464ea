//! What is chosen of a profile, and what keys do to it.

use super::model::Model;
use crate::keys::Key;
use kerntune_report::diff::Line;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// What is listed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Tab {
    #[default]
    Tree,
    Functions,
    Paths,
    Difference,
}

impl Tab {
    pub const ALL: [Tab; 4] = [Tab::Tree, Tab::Functions, Tab::Paths, Tab::Difference];

    pub fn title(self) -> &'static str {
        match self {
            Tab::Tree => "call tree",
            Tab::Functions => "functions",
            Tab::Paths => "paths",
            Tab::Difference => "difference",
        }
    }
}

/// What rows are ordered by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sort {
    #[default]
    Own,
    Total,
    Calls,
    Name,
}

impl Sort {
    fn next(self) -> Self {
        match self {
            Sort::Own => Sort::Total,
            Sort::Total => Sort::Calls,
            Sort::Calls => Sort::Name,
            Sort::Name => Sort::Own,
        }
    }
}

/// A line of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Row {
    /// A frame of the tree, and how deep it is.
    Node(usize, usize),
    Function(usize),
    /// The path to a frame.
    Path(usize),
    /// A line of the difference.
    Change(usize),
}

/// Everything.
#[derive(Debug)]
pub struct State {
    pub model: Model,
    pub tab: Tab,
    pub sort: Sort,
    /// What names have to contain.
    pub filter: String,
    /// Whether the filter is being typed.
    pub typing: bool,
    /// Line that is chosen.
    pub at: usize,
    /// First line that is shown.
    pub top: usize,
    open: BTreeSet<usize>,
    rows: Vec<Row>,
}

impl State {
    /// At the tree, with the roots and the heaviest path open.
    pub fn new(model: Model) -> Self {
        let mut open = BTreeSet::new();
        if let Some(root) = model.roots.first() {
            open.insert(*root);
        }
        let mut state = Self {
            model,
            tab: Tab::default(),
            sort: Sort::default(),
            filter: String::new(),
            typing: false,
            at: 0,
            top: 0,
            open,
            rows: Vec::new(),
        };
        state.list();
        state
    }

    /// The lines that there are.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Whether a frame of the tree shows what is below it.
    pub fn is_open(&self, node: usize) -> bool {
        self.open.contains(&node) || !self.filter.is_empty()
    }

    /// The lines of the difference.
    pub fn changes(&self) -> &[Line] {
        self.model.difference.as_ref().map_or(&[], |(_, lines)| lines)
    }

    /// Keeps the line that is chosen within so many.
    pub fn fit(&mut self, room: usize) {
        self.at = self.at.min(self.rows.len().saturating_sub(1));
        self.top = self.top.min(self.at);
        if room > 0 && self.at >= self.top + room {
            self.top = self.at + 1 - room;
        }
    }

    /// Does what a key is for; `false` to end.
    pub fn key(&mut self, key: Key) -> bool {
        if key == Key::Interrupt {
            return false;
        }
        if self.typing {
            match key {
                Key::Char(c) => self.filter.push(c),
                Key::Backspace => drop(self.filter.pop()),
                Key::Enter => self.typing = false,
                Key::Escape => (self.typing, self.filter) = (false, String::new()),
                _ => return true,
            }
            self.begin();
            return true;
        }
        match key {
            Key::Char('q') => return false,
            Key::Escape if self.filter.is_empty() => return false,
            Key::Escape => {
                self.filter.clear();
                self.begin();
            }
            Key::Char('/') => self.typing = true,
            Key::Char('s') => {
                self.sort = self.sort.next();
                self.begin();
            }
            Key::Char(c @ '1'..='4') => self.go(Tab::ALL[c as usize - '1' as usize]),
            Key::Next => self.beside(1),
            Key::Previous => self.beside(Tab::ALL.len() - 1),
            Key::Up(lines) => self.at = self.at.saturating_sub(lines),
            Key::Down(lines) => {
                self.at = self.at.saturating_add(lines).min(self.rows.len().saturating_sub(1));
            }
            Key::Left => self.close(),
            Key::Right => self.open(),
            Key::Enter => self.follow(),
            _ => {}
        }
        true
    }

    fn beside(&mut self, steps: usize) {
        let at = Tab::ALL.iter().position(|tab| *tab == self.tab).unwrap_or(0);
        self.go(Tab::ALL[(at + steps) % Tab::ALL.len()]);
    }

    fn go(&mut self, tab: Tab) {
        self.tab = tab;
        self.begin();
    }

    /// From the first line of what there is now.
    fn begin(&mut self) {
        (self.at, self.top) = (0, 0);
        self.list();
    }

    fn open(&mut self) {
        if let Some(Row::Node(node, _)) = self.rows.get(self.at) {
            if !self.open.insert(*node) {
                self.at += 1;
            }
            self.list();
        }
    }

    fn close(&mut self) {
        let Some(&Row::Node(node, _)) = self.rows.get(self.at) else { return };
        if self.open.remove(&node) {
            self.list();
        } else if let Some(parent) = self.model.nodes[node].parent {
            self.choose(parent);
        }
    }

    fn choose(&mut self, node: usize) {
        let place = self.rows.iter().position(|row| matches!(row, Row::Node(at, _) if *at == node));
        self.at = place.unwrap_or(self.at);
    }

    /// A frame opens or closes; a path is shown in the tree; of a function its heaviest path.
    fn follow(&mut self) {
        let heaviest = |name: &str| {
            let named = self.model.nodes.iter().enumerate().filter(|(_, node)| node.name == name);
            named.max_by_key(|(at, node)| (node.total, Reverse(*at))).map(|(at, _)| at)
        };
        let node = match self.rows.get(self.at) {
            Some(&Row::Node(node, _)) => {
                if !self.open.remove(&node) {
                    self.open.insert(node);
                }
                return self.list();
            }
            Some(&Row::Path(node)) => Some(node),
            Some(&Row::Function(at)) => heaviest(&self.model.functions[at].name),
            Some(&Row::Change(at)) => heaviest(&self.changes()[at].name),
            None => None,
        };
        let Some(node) = node else { return };
        let mut above = self.model.nodes[node].parent;
        while let Some(parent) = above {
            self.open.insert(parent);
            above = self.model.nodes[parent].parent;
        }
        self.filter.clear();
        self.go(Tab::Tree);
        self.choose(node);
    }

    fn list(&mut self) {
        self.rows = match self.tab {
            Tab::Tree => self.tree(),
            Tab::Functions => self.functions(),
            Tab::Paths => self.paths(),
            Tab::Difference => {
                let fits = |line: &Line| self.fits(&line.name);
                let lines = self.changes().iter().enumerate();
                lines.filter(|(_, line)| fits(line)).map(|(at, _)| Row::Change(at)).collect()
            }
        };
        self.at = self.at.min(self.rows.len().saturating_sub(1));
    }

    fn fits(&self, name: &str) -> bool {
        self.filter.is_empty() || name.contains(&self.filter)
    }

    /// The frames that are open; with a filter those that fit, and what leads to them.
    fn tree(&self) -> Vec<Row> {
        let nodes = &self.model.nodes;
        let mut wanted: Vec<bool> = nodes.iter().map(|node| self.fits(&node.name)).collect();
        for at in (0..nodes.len()).rev().filter(|_| !self.filter.is_empty()) {
            if let Some(parent) = nodes[at].parent.filter(|_| wanted[at]) {
                wanted[parent] = true;
            }
        }
        let mut rows = Vec::new();
        let mut next: Vec<(usize, usize)> = self.model.roots.iter().rev().map(|root| (*root, 0)).collect();
        while let Some((at, depth)) = next.pop() {
            if !wanted[at] {
                continue;
            }
            rows.push(Row::Node(at, depth));
            if self.is_open(at) {
                next.extend(nodes[at].children.iter().rev().map(|child| (*child, depth + 1)));
            }
        }
        rows
    }

    fn functions(&self) -> Vec<Row> {
        let all = &self.model.functions;
        let mut order: Vec<usize> = (0..all.len()).filter(|at| self.fits(&all[*at].name)).collect();
        order.sort_by(|a, b| {
            let (x, y) = (&all[*a], &all[*b]);
            let first = match self.sort {
                Sort::Own => y.own.cmp(&x.own),
                Sort::Total => y.total.cmp(&x.total),
                Sort::Calls => y.calls.cmp(&x.calls),
                Sort::Name => std::cmp::Ordering::Equal,
            };
            first.then_with(|| x.name.cmp(&y.name))
        });
        order.into_iter().map(Row::Function).collect()
    }

    fn paths(&self) -> Vec<Row> {
        let nodes = &self.model.nodes;
        let fits = |at: &usize| nodes[*at].own > 0 && self.fits(&nodes[*at].name);
        let mut order: Vec<usize> = (0..nodes.len()).filter(fits).collect();
        match self.sort {
            Sort::Own => order.sort_by_key(|at| Reverse(nodes[*at].own)),
            Sort::Total => order.sort_by_key(|at| Reverse(nodes[*at].total)),
            Sort::Calls => order.sort_by_key(|at| Reverse(nodes[*at].calls)),
            Sort::Name => order.sort_by(|a, b| nodes[*a].name.cmp(&nodes[*b].name)),
        }
        order.into_iter().map(Row::Path).collect()
    }
}
