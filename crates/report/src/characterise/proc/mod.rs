//! A profile held against what the guest's kernel counted of itself (`record --proc`).
//!
//! Init reads files of /proc right before and after each step (`guest/init/proc.c`), and marks a region around both readings and
//! the step, and one around each reading. So the guest's count must be at least what the profile has from the end of one reading to
//! the beginning of the other, and at most that with the readings. What else may differ, and why, `counts.tsv` says.

mod reading;

use super::counters::{self, Work};
use super::event::{Of, Rates};
use super::facts::entered;
use super::marks::{has_readings, AROUND, READING};
use super::scheduler::switches;
use crate::columns::{Side, Table};
use crate::html::Section;
use kerntune_compare::number::grouped;
use kerntune_profile::{source_name, How, Profile, Scope};
use reading::Reading;
use serde::Serialize;
use std::collections::BTreeMap;

const TABLE: &str = include_str!("counts.tsv");

/// The files that are read, by the names that they have beside a profile.
pub const PROC_FILES: [&str; 6] = ["stat", "interrupts", "softirqs", "vmstat", "diskstats", "snmp"];

/// What was read around a step: texts by name ([`PROC_FILES`]), before and after.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcStep {
    /// Right before the step.
    pub before: BTreeMap<String, String>,
    /// Right after it.
    pub after: BTreeMap<String, String>,
}

/// How a count and the guest's own go together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    /// They are the same number.
    Equal,
    /// The readings themselves account for the difference.
    Readings,
    /// They count different things, and it is known which.
    Explained,
    /// It is not known why they differ.
    Unexplained,
}

/// A count, held against the guest's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Held {
    pub count: &'static str,
    pub file: &'static str,
    pub key: &'static str,
    /// In the measured regions.
    pub regions: u64,
    /// Beside them, from the end of one reading to the beginning of the other.
    pub beside: u64,
    /// In the readings.
    pub readings: u64,
    /// The guest's, from reading to reading.
    pub guest: u64,
    /// The guest's, less what the profile has between the readings.
    pub difference: i64,
    pub verdict: Verdict,
    pub why: Option<&'static str>,
}

/// A line of the table.
#[derive(Debug, Clone, Copy)]
struct Line {
    count: &'static str,
    file: &'static str,
    key: &'static str,
    ours: &'static str,
    way: &'static str,
    why: &'static str,
}

fn lines() -> impl Iterator<Item = Line> {
    TABLE.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
        let mut words = line.split('\t');
        let mut next = || words.next();
        Some(Line { count: next()?, file: next()?, key: next()?, ours: next()?, way: next()?, why: next()? })
    })
}

/// What a profile counted in a part of itself.
struct Counts<'a> {
    work: Vec<Work>,
    /// Of whole functions, by the name in the source.
    calls: BTreeMap<&'a str, u64>,
    /// By name; none where it was not counted.
    interrupts: Vec<(String, Option<u64>)>,
    switches: u64,
}

impl<'a> Counts<'a> {
    fn of(profile: &'a Profile, scope: &Scope) -> Self {
        let totals = scope.totals(profile);
        let rates = Rates::new(profile, scope, &totals);
        let of = Of { profile, scope, totals: &totals, rates: &rates };
        let interrupts = entered(&of, How::Interrupt);
        let tables = &profile.tables;
        let mut calls: BTreeMap<&str, u64> = BTreeMap::new();
        for row in tables.totals(|region| scope.contains(region)) {
            let name = tables.name(row.function);
            if counters::is_whole(name) {
                let sum = calls.entry(source_name(name).0).or_default();
                *sum = sum.saturating_add(row.calls);
            }
        }
        Self {
            calls,
            work: counters::work(profile, scope, &rates),
            interrupts: interrupts.into_iter().map(|event| (event.name, event.count)).collect(),
            switches: switches(&of).all.count,
        }
    }

    /// What a line of the table names, the sum of several; none if one was not counted.
    fn get(&self, ours: &str) -> Option<u64> {
        let mut terms = ours.split(" + ").map(|term| self.term(term));
        terms.try_fold(0u64, |sum, count| Some(sum.saturating_add(count?)))
    }

    fn term(&self, ours: &str) -> Option<u64> {
        let sum = |is: &dyn Fn(&str) -> bool| {
            let those = self.interrupts.iter().filter(|(name, _)| is(name));
            those.map(|(_, count)| *count).try_fold(0u64, |sum, count| Some(sum.saturating_add(count?)))
        };
        match ours.split_once(' ') {
            None if ours == "interrupts" => sum(&|_| true),
            None if ours == "switches" => Some(self.switches),
            Some(("work", item)) => self.work.iter().find(|work| work.item == item)?.event.count,
            // One that the kernel does not have, or that was inlined, is not called; then there is a difference to see.
            Some(("calls", function)) => Some(self.calls.get(function).copied().unwrap_or(0)),
            Some(("interrupt", name)) => sum(&|other| other == name),
            // Those of the CPU itself have entries of their own, one each; devices have stubs.
            _ if ours == "interrupts of devices" => sum(&|name| !name.starts_with("asm_")),
            _ => None,
        }
    }
}

/// Holds a profile against what was read; nothing where either has nothing.
pub(crate) fn hold(profile: &Profile, steps: &[ProcStep]) -> Vec<Held> {
    if steps.is_empty() || !has_readings(profile) || !super::event::has_entries(profile) {
        return Vec::new();
    }
    let regions = Counts::of(profile, &Scope::without(&profile.tables, &[AROUND, READING]));
    let beside = Counts::of(profile, &Scope::rows(&profile.tables, |row| row.name == AROUND));
    let readings =
        Counts::of(profile, &Scope::rows(&profile.tables, |row| row.name == READING && row.depth > 0));
    let read: Vec<[Reading; 2]> =
        steps.iter().map(|step| [Reading::of(&step.before), Reading::of(&step.after)]).collect();
    lines()
        .filter_map(|line| {
            let [regions, beside, readings] =
                [&regions, &beside, &readings].map(|counts| counts.get(line.ours));
            let (regions, beside, readings) = (regions?, beside?, readings?);
            let more = |[before, after]: &[Reading; 2]| {
                after.get(line.file, line.key)?.checked_sub(before.get(line.file, line.key)?)
            };
            let guest = read.iter().map(more).try_fold(0u64, |sum, more| Some(sum.saturating_add(more?)))?;
            Some(held(line, [regions, beside, readings], guest))
        })
        .collect()
}

fn held(line: Line, [regions, beside, readings]: [u64; 3], guest: u64) -> Held {
    let ours = regions.saturating_add(beside);
    let signed = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    let difference = signed(guest).saturating_sub(signed(ours));
    let within = |from: u64| guest >= ours && guest - ours <= from;
    let known = match line.way {
        "+" => guest > ours,
        "-" => guest < ours,
        _ => false,
    };
    let (verdict, why) = match () {
        () if guest == ours => (Verdict::Equal, None),
        () if within(readings) => (Verdict::Readings, None),
        () if known => (Verdict::Explained, Some(line.why)),
        () => (Verdict::Unexplained, None),
    };
    Held {
        count: line.count,
        file: line.file,
        key: line.key,
        regions,
        beside,
        readings,
        guest,
        difference,
        verdict,
        why,
    }
}

/// The table; nothing without readings.
pub(crate) fn section(held: &[Held]) -> Option<Section> {
    if held.is_empty() {
        return None;
    }
    let right = |head| (head, Side::Right);
    let mut table = Table::new([
        right("in the\nregions"),
        right("beside\nthem"),
        right("in the\nreadings"),
        right("guest's\n/proc"),
        right("differ-\nence"),
        ("count", Side::Left),
        ("file", Side::Left),
        ("", Side::Left),
    ]);
    for row in held.iter().filter(|row| row.guest > 0 || row.difference != 0) {
        let difference = match row.difference {
            0 => "0".into(),
            more => format!("{}{}", if more < 0 { "-" } else { "+" }, grouped(more.unsigned_abs())),
        };
        let verdict = match row.verdict {
            Verdict::Equal => "equal",
            Verdict::Readings => "within the readings",
            Verdict::Explained => row.why.unwrap_or_default(),
            Verdict::Unexplained => "NOT KNOWN WHY",
        };
        table.row(vec![
            grouped(row.regions),
            grouped(row.beside),
            grouped(row.readings),
            grouped(row.guest),
            difference,
            row.count.into(),
            format!("{} {}", row.file, row.key),
            verdict.into(),
        ]);
    }
    let mut section = Section::new("proc", "Compared with the guest's own /proc (exact)");
    section.about.push(
        "Read right before and after each step. The difference is /proc less the regions and what is beside \
         them; /proc includes a part of what the readings do."
            .into(),
    );
    let none: Vec<&str> =
        held.iter().filter(|row| row.guest == 0 && row.difference == 0).map(|row| row.count).collect();
    if !none.is_empty() {
        section.notes.push(format!("None, and none in /proc: {}.", none.join(", ")));
    }
    section.table = Some(table);
    Some(section)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_of_the_table_is_whole() {
        let all: Vec<Line> = lines().collect();
        assert_eq!(all.len(), TABLE.lines().filter(|line| !line.starts_with('#')).count());
        for line in &all {
            assert!(PROC_FILES.contains(&line.file), "{line:?}");
            assert!(
                ["+", "-", "."].contains(&line.way) && (line.way == ".") == (line.why == "-"),
                "{line:?}"
            );
            for item in line.ours.split(" + ").filter_map(|term| term.strip_prefix("work ")) {
                assert!(counters::is_item(item), "{line:?}");
            }
        }
    }

    #[test]
    fn differences_are_of_the_readings_or_explained_or_not() {
        let line = |way| Line { count: "x", file: "stat", key: "x", ours: "switches", way, why: "because" };
        let verdict = |way, ours: [u64; 3], guest| held(line(way), ours, guest).verdict;
        assert_eq!(verdict(".", [5, 2, 3], 7), Verdict::Equal);
        assert_eq!(verdict(".", [5, 2, 3], 10), Verdict::Readings);
        assert_eq!(verdict(".", [5, 2, 3], 11), Verdict::Unexplained);
        assert_eq!(verdict(".", [5, 2, 3], 6), Verdict::Unexplained);
        assert_eq!(verdict("+", [5, 2, 3], 11), Verdict::Explained);
        assert_eq!(verdict("+", [5, 2, 3], 6), Verdict::Unexplained);
        assert_eq!(verdict("-", [5, 2, 3], 6), Verdict::Explained);
        assert_eq!(verdict("-", [5, 2, 3], 11), Verdict::Unexplained);
        assert_eq!(held(line("-"), [5, 2, 3], 6).difference, -1);
    }
}
