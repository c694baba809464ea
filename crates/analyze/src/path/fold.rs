//! Identical repeated parts of a path, written once.
//!
//! Two entries are of one shape if they are of one kind and their children are, in order, of one
//! shape each. What follows itself in the same shape, or several entries that follow themselves
//! together (A B A B A B), become one with their number and their times. Entries that were not
//! seen whole have a shape of their own: their times are no one else's.

use super::model::{Entry, EntryKind};
use std::collections::HashMap;

/// Entries that repeat together at most.
const PERIOD: usize = 8;

/// A line of a folded path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    /// What it is.
    pub kind: LineKind,
    /// As [`Entry::level`].
    pub level: u32,
    /// The first of the entries that it stands for; for a group, its first entry.
    pub entry: u32,
    /// How often in a row, each time that what contains it ran.
    pub times: u32,
    /// Entries (for a group: turns) that it stands for, in everything that was folded around it.
    pub count: u64,
    /// Net times of them.
    pub net: Spread,
    /// Total times of them.
    pub total: Spread,
}

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineKind {
    /// An entry; its children follow.
    Entry,
    /// What follows, up to [`LineKind::GroupEnd`], repeats together.
    Group,
    /// The end of the innermost group.
    GroupEnd,
}

/// How times are spread, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spread {
    /// Sum.
    pub sum: u64,
    /// Least.
    pub min: u64,
    /// Greatest.
    pub max: u64,
}

impl Spread {
    fn of(times: impl Iterator<Item = u64>) -> Self {
        let mut spread = Self { sum: 0, min: u64::MAX, max: 0 };
        for ns in times {
            spread =
                Self { sum: spread.sum.saturating_add(ns), min: spread.min.min(ns), max: spread.max.max(ns) };
        }
        Self { min: spread.min.min(spread.max), ..spread }
    }
}

/// The lines of a thread's entries. `stretches` keeps what the thread did before it was switched
/// away apart from what it did after, for those who show other threads in between.
pub fn fold(entries: &[Entry], stretches: bool) -> Vec<Line> {
    let mut folder = Folder { entries, shapes: shapes(entries, stretches), lines: Vec::new() };
    folder.children(&children(entries, 0..entries.len()), &[0]);
    folder.lines
}

/// One line for each entry.
pub fn unfolded(entries: &[Entry]) -> Vec<Line> {
    let folder = Folder { entries, shapes: Vec::new(), lines: Vec::new() };
    (0..entries.len()).map(|at| folder.line(&[at], 1)).collect()
}

/// Where the entries at the top of a part of a list are.
fn children(entries: &[Entry], part: std::ops::Range<usize>) -> Vec<usize> {
    let mut found = Vec::new();
    let mut at = part.start;
    while at < part.end {
        found.push(at);
        at += entries[at].len.max(1) as usize;
    }
    found
}

/// A number for each entry, the same for those of one shape.
fn shapes(entries: &[Entry], stretches: bool) -> Vec<u32> {
    let mut known: HashMap<(EntryKind, u32, Vec<u32>), u32> = HashMap::new();
    let mut shapes = vec![0; entries.len()];
    let mut next = 0;
    // Children come after their parents.
    for (at, entry) in entries.iter().enumerate().rev() {
        let kind = match entry.kind {
            EntryKind::Away { .. } => EntryKind::Away { switches: 0, idle_ns: 0, to: 0 },
            kind => kind,
        };
        let away = stretches && matches!(kind, EntryKind::Away { .. });
        shapes[at] = if entry.complete() && !away {
            let parts = children(entries, at + 1..at + entry.len.max(1) as usize);
            let parts = parts.into_iter().map(|part| shapes[part]).collect();
            *known.entry((kind, entry.hidden, parts)).or_insert(next)
        } else {
            next
        };
        next += u32::from(shapes[at] == next);
    }
    shapes
}

struct Folder<'a> {
    entries: &'a [Entry],
    shapes: Vec<u32>,
    lines: Vec<Line>,
}

impl Folder<'_> {
    /// Writes the children at these places of a parent; of the others of its shape, `shifts` says
    /// how much further on they are.
    fn children(&mut self, places: &[usize], shifts: &[usize]) {
        let mut at = 0;
        while at < places.len() {
            let (period, times) = self.repetition(&places[at..]);
            let turns = |offset: usize| {
                let first = places[at..at + period * times].iter().skip(offset).step_by(period);
                let all = shifts.iter().flat_map(|shift| first.clone().map(move |place| place + shift));
                all.collect::<Vec<usize>>()
            };
            if period == 1 {
                self.entry(&turns(0), times as u32);
            } else {
                let parts: Vec<Vec<usize>> = (0..period).map(turns).collect();
                self.group(&parts, times as u32);
            }
            at += period * times;
        }
    }

    /// How many entries at the beginning repeat together, and how often.
    fn repetition(&self, places: &[usize]) -> (usize, usize) {
        let shape = |at: usize| places.get(at).map(|&place| self.shapes[place]);
        let mut best = (1, 1);
        for period in 1..=PERIOD.min(places.len() / 2) {
            let mut length = period;
            while length < places.len() && shape(length) == shape(length - period) {
                length += 1;
            }
            let times = length / period;
            if times > 1 && period * times > best.0 * best.1 {
                best = (period, times);
            }
        }
        best
    }

    fn entry(&mut self, instances: &[usize], times: u32) {
        let line = self.line(instances, times);
        self.lines.push(line);
        let first = instances[0];
        let parts = children(self.entries, first + 1..first + self.entries[first].len.max(1) as usize);
        let shifts: Vec<usize> = instances.iter().map(|at| at - first).collect();
        self.children(&parts, &shifts);
    }

    fn group(&mut self, parts: &[Vec<usize>], times: u32) {
        let turns = parts.first().map_or(0, Vec::len);
        let entries = self.entries;
        let turn = |of: fn(&Entry) -> u64| {
            let sum = move |turn: usize| parts.iter().map(|part| of(&entries[part[turn]])).sum();
            Spread::of((0..turns).map(sum))
        };
        let (net, total) = (turn(|entry| entry.net_ns), turn(|entry| entry.total_ns));
        let first = parts[0][0];
        let level = self.entries[first].level;
        let group = Line {
            kind: LineKind::Group,
            level,
            entry: first as u32,
            times,
            count: turns as u64,
            net,
            total,
        };
        self.lines.push(group);
        for part in parts {
            self.entry(part, 1);
        }
        self.lines.push(Line { kind: LineKind::GroupEnd, ..group });
    }

    fn line(&self, instances: &[usize], times: u32) -> Line {
        let first = instances[0];
        let all = || instances.iter().map(|&at| &self.entries[at]);
        Line {
            kind: LineKind::Entry,
            level: self.entries[first].level,
            entry: first as u32,
            times,
            count: instances.len() as u64,
            net: Spread::of(all().map(|entry| entry.net_ns)),
            total: Spread::of(all().map(|entry| entry.total_ns)),
        }
    }
}
