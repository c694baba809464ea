//! Folding of a path: repeated parts are shown once.
//!
//! Two entries have the same shape if they are of the same kind and their children have the same
//! shapes in the same order. Consecutive entries of one shape, or a sequence of entries that
//! repeats (A B A B A B), become one line with a count and the sums of times. Entries of which some
//! part was not recorded have a shape of their own, so that their times are not mixed with others.

use super::model::{PathEntry, PathEntryKind};
use std::collections::HashMap;

/// Maximum number of entries in a repeating sequence.
const MAX_PERIOD: usize = 8;

/// A line of a folded path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathLine {
    /// Kind of the line.
    pub kind: PathLineKind,
    /// Nesting level, as [`PathEntry::level`].
    pub level: u32,
    /// Index of the first entry that the line stands for; of a group, of its first entry.
    pub entry: u32,
    /// Number of consecutive repetitions within one instance of the line's parent.
    pub times: u32,
    /// Number of entries (of a group: repetitions) that the line stands for, over all instances of
    /// its parent.
    pub count: u64,
    /// Self times of these entries.
    pub self_time: TimeSpread,
    /// Total times of these entries.
    pub total: TimeSpread,
}

/// Kind of a [`PathLine`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathLineKind {
    /// An entry; its children follow.
    Entry,
    /// Beginning of a repeating sequence, which ends with [`PathLineKind::GroupEnd`].
    Group,
    /// End of the innermost group.
    GroupEnd,
}

/// Sum, minimum and maximum of times, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeSpread {
    /// Sum of the times.
    pub sum: u64,
    /// Minimum.
    pub min: u64,
    /// Maximum.
    pub max: u64,
}

impl TimeSpread {
    fn of(times: impl Iterator<Item = u64>) -> Self {
        let mut spread = Self { sum: 0, min: u64::MAX, max: 0 };
        for ns in times {
            spread =
                Self { sum: spread.sum.saturating_add(ns), min: spread.min.min(ns), max: spread.max.max(ns) };
        }
        Self { min: spread.min.min(spread.max), ..spread }
    }
}

/// Folds a thread's entries into lines. With `stretches`, entries before and after a period off the
/// CPU are not folded together, so that other threads can be shown in between.
pub fn fold(entries: &[PathEntry], stretches: bool) -> Vec<PathLine> {
    let mut folder = PathFolder { entries, shapes: shapes(entries, stretches), lines: Vec::new() };
    folder.children(&children(entries, 0..entries.len()), &[0]);
    folder.lines
}

/// Returns one line for each entry.
pub fn unfolded(entries: &[PathEntry]) -> Vec<PathLine> {
    let folder = PathFolder { entries, shapes: Vec::new(), lines: Vec::new() };
    (0..entries.len()).map(|at| folder.line(&[at], 1)).collect()
}

/// Returns the indices of the top-level entries of a range.
fn children(entries: &[PathEntry], part: std::ops::Range<usize>) -> Vec<usize> {
    let mut found = Vec::new();
    let mut at = part.start;
    while at < part.end {
        found.push(at);
        at += entries[at].len.max(1) as usize;
    }
    found
}

/// Returns a number for each entry; entries of the same shape have the same number.
fn shapes(entries: &[PathEntry], stretches: bool) -> Vec<u32> {
    let mut known: HashMap<(PathEntryKind, u32, Vec<u32>), u32> = HashMap::new();
    let mut shapes = vec![0; entries.len()];
    let mut next = 0;
    // Children come after their parents.
    for (at, entry) in entries.iter().enumerate().rev() {
        let kind = match entry.kind {
            PathEntryKind::Away { .. } => PathEntryKind::Away { switches: 0, idle_ns: 0, to: 0 },
            kind => kind,
        };
        let away = stretches && matches!(kind, PathEntryKind::Away { .. });
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

struct PathFolder<'a> {
    entries: &'a [PathEntry],
    shapes: Vec<u32>,
    lines: Vec<PathLine>,
}

impl PathFolder<'_> {
    /// Adds lines for the children at `places` of one parent. `shifts` are the distances to the
    /// other instances of that parent.
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

    /// Returns length and number of repetitions of the sequence at the beginning.
    fn repetition(&self, places: &[usize]) -> (usize, usize) {
        let shape = |at: usize| places.get(at).map(|&place| self.shapes[place]);
        let mut best = (1, 1);
        for period in 1..=MAX_PERIOD.min(places.len() / 2) {
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
        let turn = |of: fn(&PathEntry) -> u64| {
            let sum = move |turn: usize| parts.iter().map(|part| of(&entries[part[turn]])).sum();
            TimeSpread::of((0..turns).map(sum))
        };
        let (self_time, total) = (turn(|entry| entry.self_ticks), turn(|entry| entry.total_ns));
        let first = parts[0][0];
        let level = self.entries[first].level;
        let group = PathLine {
            kind: PathLineKind::Group,
            level,
            entry: first as u32,
            times,
            count: turns as u64,
            self_time,
            total,
        };
        self.lines.push(group);
        for part in parts {
            self.entry(part, 1);
        }
        self.lines.push(PathLine { kind: PathLineKind::GroupEnd, ..group });
    }

    fn line(&self, instances: &[usize], times: u32) -> PathLine {
        let first = instances[0];
        let all = || instances.iter().map(|&at| &self.entries[at]);
        PathLine {
            kind: PathLineKind::Entry,
            level: self.entries[first].level,
            entry: first as u32,
            times,
            count: instances.len() as u64,
            self_time: TimeSpread::of(all().map(|entry| entry.self_ticks)),
            total: TimeSpread::of(all().map(|entry| entry.total_ns)),
        }
    }
}
