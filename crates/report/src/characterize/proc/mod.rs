//! Checks of a profile's counts against the guest kernel's own (`record --proc`).
//!
//! Init reads files of /proc right before and after each step (`embedded/guest/init/proc.c`). It marks a
//! region around both readings and the step, and one around each reading. So the guest's count must
//! be at least the profile's from the end of one reading to the beginning of the other, and at most
//! the profile's with the readings. `counts.tsv` lists other expected differences with their
//! reasons.

mod reading;

use super::counters::{self, WorkCount};
use super::event::{CharacterInput, RateBase};
use super::facts::entered;
use super::marks::{has_readings, AROUND, READING};
use super::scheduler::switches;
use crate::html::PageSection;
use kerntune_profile::{source_name, CallKind, Profile, RegionScope};
use kerntune_table::number::grouped;
use kerntune_table::{Columns, Table};
use reading::ProcReading;
use serde::Serialize;
use std::collections::BTreeMap;

const TABLE: &str = include_str!("counts.tsv");

/// Files of /proc that are read, by their names beside a profile.
pub const PROC_FILES: [&str; 6] = ["stat", "interrupts", "softirqs", "vmstat", "diskstats", "snmp"];

/// Contents of the [`PROC_FILES`] before and after a step, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcStep {
    /// Texts read right before the step.
    pub before: BTreeMap<String, String>,
    /// Texts read right after the step.
    pub after: BTreeMap<String, String>,
}

/// Outcome of checking a count against the guest's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ProcVerdict {
    /// Both counts are equal.
    Equal,
    /// The readings themselves explain the difference.
    Readings,
    /// The counts are of different things, for a known reason.
    Explained,
    /// The reason for the difference is unknown.
    Unexplained,
}

/// Count of a profile checked against the guest's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct ProcCheck {
    pub count: &'static str,
    pub file: &'static str,
    pub key: &'static str,
    /// Count in the measured regions.
    pub regions: u64,
    /// Count outside the regions, from the end of one reading to the beginning of the other.
    pub beside: u64,
    /// Count in the readings.
    pub readings: u64,
    /// Guest's count, from reading to reading.
    pub guest: u64,
    /// Guest's count minus the profile's between the readings.
    pub difference: i64,
    pub verdict: ProcVerdict,
    pub why: Option<&'static str>,
}

/// Line of `counts.tsv`: a count of the guest and the profile's counterpart.
#[derive(Debug, Clone, Copy)]
struct ProcComparison {
    count: &'static str,
    file: &'static str,
    key: &'static str,
    ours: &'static str,
    way: &'static str,
    why: &'static str,
}

fn lines() -> impl Iterator<Item = ProcComparison> {
    TABLE.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
        let mut words = line.split('\t');
        let mut next = || words.next();
        Some(ProcComparison {
            count: next()?,
            file: next()?,
            key: next()?,
            ours: next()?,
            way: next()?,
            why: next()?,
        })
    })
}

/// Counts of a profile within a scope.
struct StepCounts<'a> {
    work: Vec<WorkCount>,
    /// Calls of whole functions, by name in the source.
    calls: BTreeMap<&'a str, u64>,
    /// Interrupts by name; `None` where not counted.
    interrupts: Vec<(String, Option<u64>)>,
    switches: u64,
}

impl<'a> StepCounts<'a> {
    fn of(profile: &'a Profile, scope: &RegionScope) -> Self {
        let totals = scope.totals(profile);
        let rates = RateBase::new(profile, scope, &totals);
        let of = CharacterInput { profile, scope, totals: &totals, rates: &rates };
        let interrupts = entered(&of, CallKind::Interrupt);
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

    /// Evaluates the sum that a line of the table names; `None` if a term was not counted.
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
            // A function that is missing or inlined has no calls; the check then shows a
            // difference.
            Some(("calls", function)) => Some(self.calls.get(function).copied().unwrap_or(0)),
            Some(("interrupt", name)) => sum(&|other| other == name),
            // The CPU's own interrupts have entry functions of their own (`asm_…`); devices have
            // stubs.
            _ if ours == "interrupts of devices" => sum(&|name| !name.starts_with("asm_")),
            _ => None,
        }
    }
}

/// Checks a profile against the readings; empty if either has no data.
pub(crate) fn check_counts(profile: &Profile, steps: &[ProcStep]) -> Vec<ProcCheck> {
    if steps.is_empty() || !has_readings(profile) || !super::event::has_entries(profile) {
        return Vec::new();
    }
    let regions = StepCounts::of(profile, &RegionScope::without(&profile.tables, &[AROUND, READING]));
    let beside = StepCounts::of(profile, &RegionScope::rows(&profile.tables, |row| row.name == AROUND));
    let readings = StepCounts::of(
        profile,
        &RegionScope::rows(&profile.tables, |row| row.name == READING && row.depth > 0),
    );
    let read: Vec<[ProcReading; 2]> =
        steps.iter().map(|step| [ProcReading::of(&step.before), ProcReading::of(&step.after)]).collect();
    lines()
        .filter_map(|line| {
            let [regions, beside, readings] =
                [&regions, &beside, &readings].map(|counts| counts.get(line.ours));
            let (regions, beside, readings) = (regions?, beside?, readings?);
            let more = |[before, after]: &[ProcReading; 2]| {
                after.get(line.file, line.key)?.checked_sub(before.get(line.file, line.key)?)
            };
            let guest = read.iter().map(more).try_fold(0u64, |sum, more| Some(sum.saturating_add(more?)))?;
            Some(proc_check(line, [regions, beside, readings], guest))
        })
        .collect()
}

fn proc_check(line: ProcComparison, [regions, beside, readings]: [u64; 3], guest: u64) -> ProcCheck {
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
        () if guest == ours => (ProcVerdict::Equal, None),
        () if within(readings) => (ProcVerdict::Readings, None),
        () if known => (ProcVerdict::Explained, Some(line.why)),
        () => (ProcVerdict::Unexplained, None),
    };
    ProcCheck {
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

/// Renders the checks as a table; `None` without readings.
pub(crate) fn section(proc_check: &[ProcCheck]) -> Option<PageSection> {
    if proc_check.is_empty() {
        return None;
    }
    let rows = proc_check.iter().filter(|row| row.guest > 0 || row.difference != 0);
    let mut columns = Columns::<&ProcCheck>::new();
    columns.text_only("in the\nregions", |row| row.regions);
    columns.text_only("beside\nthem", |row| row.beside);
    columns.text_only("in the\nreadings", |row| row.readings);
    columns.text_only("guest's\n/proc", |row| row.guest);
    columns
        .text_only("differ-\nence", |row| match row.difference {
            0 => "0".into(),
            more => format!("{}{}", if more < 0 { "-" } else { "+" }, grouped(more.unsigned_abs())),
        })
        .right();
    columns.text_only("count", |row| row.count);
    columns.text_only("file", |row| format!("{} {}", row.file, row.key));
    columns.text_only("", |row| match row.verdict {
        ProcVerdict::Equal => "equal",
        ProcVerdict::Readings => "within the readings",
        ProcVerdict::Explained => row.why.unwrap_or_default(),
        ProcVerdict::Unexplained => "NOT KNOWN WHY",
    });
    let mut section = PageSection::new("proc", "Compared with the guest's own /proc (exact)");
    section.about.push(
        "Read right before and after each step. The difference is /proc less the regions and what is beside \
         them; /proc includes a part of what the readings do."
            .into(),
    );
    let none: Vec<&str> =
        proc_check.iter().filter(|row| row.guest == 0 && row.difference == 0).map(|row| row.count).collect();
    if !none.is_empty() {
        section.notes.push(format!("None, and none in /proc: {}.", none.join(", ")));
    }
    section.table = Some(Table::text_only(rows, columns).into());
    Some(section)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_of_the_table_is_whole() {
        let all: Vec<ProcComparison> = lines().collect();
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
        let line = |way| ProcComparison {
            count: "x",
            file: "stat",
            key: "x",
            ours: "switches",
            way,
            why: "because",
        };
        let verdict = |way, ours: [u64; 3], guest| proc_check(line(way), ours, guest).verdict;
        assert_eq!(verdict(".", [5, 2, 3], 7), ProcVerdict::Equal);
        assert_eq!(verdict(".", [5, 2, 3], 10), ProcVerdict::Readings);
        assert_eq!(verdict(".", [5, 2, 3], 11), ProcVerdict::Unexplained);
        assert_eq!(verdict(".", [5, 2, 3], 6), ProcVerdict::Unexplained);
        assert_eq!(verdict("+", [5, 2, 3], 11), ProcVerdict::Explained);
        assert_eq!(verdict("+", [5, 2, 3], 6), ProcVerdict::Unexplained);
        assert_eq!(verdict("-", [5, 2, 3], 6), ProcVerdict::Explained);
        assert_eq!(verdict("-", [5, 2, 3], 11), ProcVerdict::Unexplained);
        assert_eq!(proc_check(line("-"), [5, 2, 3], 6).difference, -1);
    }
}
