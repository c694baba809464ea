//! Selection in a profile, and the reaction to keys.

use super::model::ViewModel;
use crate::keys::TerminalKey;
use kerntune_profile::add_up;
use kerntune_report::diff::DiffLine;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// List that is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ViewTab {
    #[default]
    Tree,
    Functions,
    Paths,
    Difference,
}

impl ViewTab {
    pub const ALL: [ViewTab; 4] = [ViewTab::Tree, ViewTab::Functions, ViewTab::Paths, ViewTab::Difference];

    pub fn title(self) -> &'static str {
        match self {
            ViewTab::Tree => "call tree",
            ViewTab::Functions => "functions",
            ViewTab::Paths => "paths",
            ViewTab::Difference => "difference",
        }
    }
}

/// Order of rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ViewSort {
    #[default]
    SelfTime,
    Total,
    Calls,
    Name,
}

impl ViewSort {
    fn next(self) -> Self {
        match self {
            ViewSort::SelfTime => ViewSort::Total,
            ViewSort::Total => ViewSort::Calls,
            ViewSort::Calls => ViewSort::Name,
            ViewSort::Name => ViewSort::SelfTime,
        }
    }
}

/// A row of the list, as index into the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ViewRow {
    /// A frame of the tree, and its depth.
    Node(usize, usize),
    Function(usize),
    /// The path to a frame.
    Path(usize),
    /// A line of the difference.
    Change(usize),
}

/// State of the screen.
#[derive(Debug)]
pub struct ViewState {
    pub model: ViewModel,
    pub tab: ViewTab,
    pub sort: ViewSort,
    /// Text that names must contain.
    pub filter: String,
    /// Set while the user types the filter.
    pub typing: bool,
    /// Set while the keys are shown instead of the list, until the next key.
    pub help: bool,
    /// Index of the selected row.
    pub at: usize,
    /// First visible row.
    pub top: usize,
    open: BTreeSet<usize>,
    rows: Vec<ViewRow>,
}

impl ViewState {
    /// Starts at the tree, with the roots and the path with most time open.
    pub fn new(model: ViewModel) -> Self {
        let mut open = BTreeSet::new();
        if let Some(root) = model.roots.first() {
            open.insert(*root);
        }
        let mut state = Self {
            model,
            tab: ViewTab::default(),
            sort: ViewSort::default(),
            filter: String::new(),
            typing: false,
            help: false,
            at: 0,
            top: 0,
            open,
            rows: Vec::new(),
        };
        state.list();
        state
    }

    /// Returns the rows of the list.
    pub fn rows(&self) -> &[ViewRow] {
        &self.rows
    }

    /// Returns true if the children of a frame are shown.
    pub fn is_open(&self, node: usize) -> bool {
        self.open.contains(&node) || !self.filter.is_empty()
    }

    /// Returns the lines of the difference; empty without another profile.
    pub fn changes(&self) -> &[DiffLine] {
        self.model.difference.as_ref().map_or(&[], |(_, lines)| lines)
    }

    /// Scrolls so that the selected row is among `room` visible rows.
    pub fn fit(&mut self, room: usize) {
        self.at = self.at.min(self.rows.len().saturating_sub(1));
        self.top = self.top.min(self.at);
        if room > 0 && self.at >= self.top + room {
            self.top = self.at + 1 - room;
        }
    }

    /// Handles a key; returns false to quit.
    pub fn key(&mut self, key: TerminalKey) -> bool {
        if key == TerminalKey::Interrupt {
            return false;
        }
        if self.typing {
            match key {
                TerminalKey::Char(c) => self.filter.push(c),
                TerminalKey::Backspace => drop(self.filter.pop()),
                TerminalKey::Enter => self.typing = false,
                TerminalKey::Escape => (self.typing, self.filter) = (false, String::new()),
                _ => return true,
            }
            self.begin();
            return true;
        }
        if std::mem::take(&mut self.help) {
            return true;
        }
        match key {
            TerminalKey::Char('q') => return false,
            TerminalKey::Escape if self.filter.is_empty() => return false,
            TerminalKey::Escape => {
                self.filter.clear();
                self.begin();
            }
            TerminalKey::Char('/') => self.typing = true,
            TerminalKey::Char('?') => self.help = true,
            TerminalKey::Char('s') => {
                self.sort = self.sort.next();
                self.begin();
            }
            TerminalKey::Char(c @ '1'..='4') => self.go(ViewTab::ALL[c as usize - '1' as usize]),
            TerminalKey::Next => self.beside(1),
            TerminalKey::Previous => self.beside(ViewTab::ALL.len() - 1),
            TerminalKey::Up(lines) => self.at = self.at.saturating_sub(lines),
            TerminalKey::Down(lines) => {
                self.at = self.at.saturating_add(lines).min(self.rows.len().saturating_sub(1));
            }
            TerminalKey::Left => self.close(),
            TerminalKey::Right => self.open(),
            TerminalKey::Enter => self.follow(),
            _ => {}
        }
        true
    }

    fn beside(&mut self, steps: usize) {
        let at = ViewTab::ALL.iter().position(|tab| *tab == self.tab).unwrap_or(0);
        self.go(ViewTab::ALL[(at + steps) % ViewTab::ALL.len()]);
    }

    fn go(&mut self, tab: ViewTab) {
        self.tab = tab;
        self.begin();
    }

    /// Selects the first row after the list changed.
    fn begin(&mut self) {
        (self.at, self.top) = (0, 0);
        self.list();
    }

    fn open(&mut self) {
        if let Some(ViewRow::Node(node, _)) = self.rows.get(self.at) {
            if !self.open.insert(*node) {
                self.at += 1;
            }
            self.list();
        }
    }

    fn close(&mut self) {
        let Some(&ViewRow::Node(node, _)) = self.rows.get(self.at) else { return };
        if self.open.remove(&node) {
            self.list();
        } else if let Some(parent) = self.model.nodes[node].parent {
            self.choose(parent);
        }
    }

    fn choose(&mut self, node: usize) {
        let place = self.rows.iter().position(|row| matches!(row, ViewRow::Node(at, _) if *at == node));
        self.at = place.unwrap_or(self.at);
    }

    /// Reacts to Enter: opens or closes a frame; shows a path, or the path of a function with most
    /// time, in the tree.
    fn follow(&mut self) {
        let heaviest = |name: &str| {
            let named = self.model.nodes.iter().enumerate().filter(|(_, node)| node.name == name);
            named.max_by_key(|(at, node)| (node.total, Reverse(*at))).map(|(at, _)| at)
        };
        let node = match self.rows.get(self.at) {
            Some(&ViewRow::Node(node, _)) => {
                if !self.open.remove(&node) {
                    self.open.insert(node);
                }
                return self.list();
            }
            Some(&ViewRow::Path(node)) => Some(node),
            Some(&ViewRow::Function(at)) => heaviest(&self.model.functions[at].name),
            Some(&ViewRow::Change(at)) => heaviest(&self.changes()[at].name),
            None => None,
        };
        let Some(node) = node else { return };
        let mut above = self.model.nodes[node].parent;
        while let Some(parent) = above {
            self.open.insert(parent);
            above = self.model.nodes[parent].parent;
        }
        self.filter.clear();
        self.go(ViewTab::Tree);
        self.choose(node);
    }

    fn list(&mut self) {
        self.rows = match self.tab {
            ViewTab::Tree => self.tree(),
            ViewTab::Functions => self.functions(),
            ViewTab::Paths => self.paths(),
            ViewTab::Difference => {
                let fits = |line: &DiffLine| self.fits(&line.name);
                let lines = self.changes().iter().enumerate();
                lines.filter(|(_, line)| fits(line)).map(|(at, _)| ViewRow::Change(at)).collect()
            }
        };
        self.at = self.at.min(self.rows.len().saturating_sub(1));
    }

    fn fits(&self, name: &str) -> bool {
        self.filter.is_empty() || name.contains(&self.filter)
    }

    /// Returns the visible frames; with a filter, the matching frames and their ancestors.
    fn tree(&self) -> Vec<ViewRow> {
        let nodes = &self.model.nodes;
        let mut wanted: Vec<bool> = nodes.iter().map(|node| self.fits(&node.name)).collect();
        let parent = |at: usize, _: &bool| nodes[at].parent.unwrap_or(usize::MAX);
        add_up(&mut wanted, parent, |above, below| *above |= *below);
        let mut rows = Vec::new();
        let mut next: Vec<(usize, usize)> = self.model.roots.iter().rev().map(|root| (*root, 0)).collect();
        while let Some((at, depth)) = next.pop() {
            if !wanted[at] {
                continue;
            }
            rows.push(ViewRow::Node(at, depth));
            if self.is_open(at) {
                next.extend(nodes[at].children.iter().rev().map(|child| (*child, depth + 1)));
            }
        }
        rows
    }

    fn functions(&self) -> Vec<ViewRow> {
        let all = &self.model.functions;
        let mut order: Vec<usize> = (0..all.len()).filter(|at| self.fits(&all[*at].name)).collect();
        order.sort_by(|a, b| {
            let (x, y) = (&all[*a], &all[*b]);
            let first = match self.sort {
                ViewSort::SelfTime => y.own.cmp(&x.own),
                ViewSort::Total => y.total.cmp(&x.total),
                ViewSort::Calls => y.calls.cmp(&x.calls),
                ViewSort::Name => std::cmp::Ordering::Equal,
            };
            first.then_with(|| x.name.cmp(&y.name))
        });
        order.into_iter().map(ViewRow::Function).collect()
    }

    fn paths(&self) -> Vec<ViewRow> {
        let nodes = &self.model.nodes;
        let fits = |at: &usize| nodes[*at].own > 0 && self.fits(&nodes[*at].name);
        let mut order: Vec<usize> = (0..nodes.len()).filter(fits).collect();
        match self.sort {
            ViewSort::SelfTime => order.sort_by_key(|at| Reverse(nodes[*at].own)),
            ViewSort::Total => order.sort_by_key(|at| Reverse(nodes[*at].total)),
            ViewSort::Calls => order.sort_by_key(|at| Reverse(nodes[*at].calls)),
            ViewSort::Name => order.sort_by(|a, b| nodes[*a].name.cmp(&nodes[*b].name)),
        }
        order.into_iter().map(ViewRow::Path).collect()
    }
}
