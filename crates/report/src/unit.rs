//! What figures of a profile are, instructions or time, and one unit for a whole column of them.

use crate::style::printable;
use crate::view::share;
use clap::builder::PossibleValue;
use clap::ValueEnum;
use kerntune_compare::number;
use kerntune_profile::{Profile, ScopeTotals};

/// What the times of code in a profile are.
///
/// The exact machine has no clock of its own: an instruction is a nanosecond of virtual time, so that what code takes is a
/// number of instructions. Idle and elapsed time of a machine, and points in time, are virtual time there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// Of the exact machine.
    Instructions,
    /// Sampled, or taken by a clock.
    Time,
}

impl Measure {
    /// That of a profile.
    pub fn of(profile: &Profile) -> Self {
        Self::exact(profile.manifest.exact)
    }

    /// The same of both: instructions are compared with instructions.
    pub fn of_both(profiles: [&Profile; 2]) -> Self {
        Self::exact(profiles.iter().all(|profile| profile.manifest.exact))
    }

    pub(crate) fn exact(exact: bool) -> Self {
        if exact {
            Measure::Instructions
        } else {
            Measure::Time
        }
    }

    /// In JSON: what figures are in whose names have no unit.
    pub fn word(self) -> &'static str {
        match self {
            Measure::Instructions => "instructions",
            Measure::Time => "ns",
        }
    }

    /// The unit in which the largest value of a column has at most eight digits.
    pub fn unit(self, largest: u64) -> TimeUnit {
        match (self, TimeUnit::for_largest(largest)) {
            (Measure::Time, unit) => unit,
            (Measure::Instructions, TimeUnit::Nanoseconds) => TimeUnit::Instructions,
            (Measure::Instructions, TimeUnit::Microseconds) => TimeUnit::Thousands,
            (Measure::Instructions, _) => TimeUnit::Millions,
        }
    }

    /// The same where a row has other columns with much smaller values: instructions are then whole in all of them, so that a row
    /// has one unit.
    pub fn row_unit(self, largest: u64) -> TimeUnit {
        match self {
            Measure::Time => self.unit(largest),
            Measure::Instructions => TimeUnit::Instructions,
        }
    }

    /// The unit of single values.
    pub fn one(self) -> TimeUnit {
        self.unit(0)
    }

    /// For a line of text: `155.86 M instr.`, `5.02 k instr.`, `300 instr.`, or [`readable`] time.
    pub fn readable(self, value: u64) -> String {
        match (self, value) {
            (Measure::Time, _) => readable(value),
            (_, 0..=9_999) => format!("{} instr.", number::grouped(value)),
            (_, 10_000..=999_999) => format!("{} k instr.", number::fixed(value as f64 / 1e3, 2)),
            _ => format!("{} M instr.", number::fixed(value as f64 / 1e6, 2)),
        }
    }

    /// All of it, for a report's head: `155,856,612 instr.`, `0 sec 497272 us`.
    pub fn whole(self, value: u64) -> String {
        match self {
            Measure::Time => seconds(value),
            Measure::Instructions => format!("{} instr.", number::grouped(value)),
        }
    }
}

/// A unit in which a column of times or instructions is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeUnit {
    /// instr.
    Instructions,
    /// k instr.
    Thousands,
    /// M instr.
    Millions,
    /// ns.
    Nanoseconds,
    /// us.
    Microseconds,
    /// ms.
    Milliseconds,
    /// With hundredths, as gprof writes what was sampled; never chosen for a column by itself.
    Seconds,
}

impl TimeUnit {
    /// The unit in which the largest value of a column has at most eight digits.
    pub(crate) fn for_largest(ns: u64) -> Self {
        match ns {
            0..=99_999_999 => TimeUnit::Nanoseconds,
            100_000_000..=99_999_999_999 => TimeUnit::Microseconds,
            _ => TimeUnit::Milliseconds,
        }
    }

    /// As in the head of a column.
    pub fn name(self) -> &'static str {
        match self {
            TimeUnit::Instructions => "instr.",
            TimeUnit::Thousands => "k instr.",
            TimeUnit::Millions => "M instr.",
            TimeUnit::Nanoseconds => "ns",
            TimeUnit::Microseconds => "us",
            TimeUnit::Milliseconds => "ms",
            TimeUnit::Seconds => "s",
        }
    }

    /// Rounded to whole units (seconds to hundredths), grouped.
    pub(crate) fn format(self, ns: u64) -> String {
        let per = match self {
            TimeUnit::Seconds => return number::fixed(ns as f64 / 1e9, 2),
            TimeUnit::Instructions | TimeUnit::Nanoseconds => 1,
            TimeUnit::Thousands | TimeUnit::Microseconds => 1_000,
            TimeUnit::Millions | TimeUnit::Milliseconds => 1_000_000,
        };
        number::grouped(ns / per + u64::from(ns % per >= per.div_ceil(2)))
    }
}

impl ValueEnum for TimeUnit {
    fn value_variants<'a>() -> &'a [Self] {
        &[
            TimeUnit::Instructions,
            TimeUnit::Thousands,
            TimeUnit::Millions,
            TimeUnit::Seconds,
            TimeUnit::Milliseconds,
            TimeUnit::Microseconds,
            TimeUnit::Nanoseconds,
        ]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let word = match self {
            TimeUnit::Instructions => "instr",
            TimeUnit::Thousands => "k",
            TimeUnit::Millions => "M",
            time => time.name(),
        };
        Some(word.into())
    }
}

/// Seconds and microseconds as McRae's Figure 3 writes them: `0 sec 497272 us`.
pub(crate) fn seconds(ns: u64) -> String {
    // To whole microseconds first, so that 0.9999996 s is 1 sec and not 0 sec 1000000 us.
    let us = ns / 1_000 + u64::from(ns % 1_000 >= 500);
    format!("{} sec {:>6} us", us / 1_000_000, us % 1_000_000)
}

/// For a line of text or a page: `1.2346 s`, `497.27 ms`, `5.024 us`, `300 ns`.
pub(crate) fn readable(ns: u64) -> String {
    match ns {
        0..=999 => format!("{ns} ns"),
        1_000..=999_999 => format!("{} us", number::fixed(ns as f64 / 1e3, 2)),
        1_000_000..=999_999_999 => format!("{} ms", number::fixed(ns as f64 / 1e6, 2)),
        _ => format!("{} s", number::fixed(ns as f64 / 1e9, 3)),
    }
}

/// A point in virtual time, for a table: `5.000123456 s`.
pub(crate) fn seconds_at(ns: u64) -> String {
    format!("{}.{:09} s", ns / 1_000_000_000, ns % 1_000_000_000)
}

/// How many in a second of `elapsed_ns`; 0 of no time.
pub(crate) fn per_second(count: u64, elapsed_ns: u64) -> f64 {
    if elapsed_ns == 0 {
        0.0
    } else {
        count as f64 * 1e9 / elapsed_ns as f64
    }
}

/// The head of a report: its region, and what percentages are of.
pub(crate) fn header(profile: &Profile, totals: &ScopeTotals, region: Option<&str>) -> String {
    let mut out = region.map_or(String::new(), |name| format!("Region {}\n", printable(name)));
    out += &whole(profile, totals.elapsed_ns.get(), totals.busy_ns.get(), totals.idle_ns.get(), "");
    out
}

/// How long it took, what code took of that, and what nothing did; `events` stands beside the first.
pub(crate) fn whole(profile: &Profile, elapsed: u64, busy: u64, idle: u64, events: &str) -> String {
    let percent = |part: u64| format!("({:>6}%)", number::fixed(share(part, elapsed), 2));
    let line = |head: &str, figure: String, tail: String| {
        format!("{head:<20} = {figure}  {tail}").trim_end().to_string() + "\n"
    };
    let (time, run) = match Measure::of(profile) {
        Measure::Instructions => ("Virtual time", "Instructions"),
        Measure::Time => ("Elapsed time", "Accumulated run time"),
    };
    line(time, seconds(elapsed), events.into())
        + &line(run, run_time(profile, busy), percent(busy))
        + &line("Idle time", seconds(idle), percent(idle))
}

/// What code took, as wide as the times around it.
pub(crate) fn run_time(profile: &Profile, value: u64) -> String {
    match Measure::of(profile) {
        Measure::Instructions => format!("{:>15}", number::grouped(value)),
        Measure::Time => seconds(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_has_one_unit_and_rounds() {
        let unit = TimeUnit::for_largest(497_272_600);
        assert_eq!(
            (unit.name(), unit.format(497_272_600), unit.format(499)),
            ("us", "497,273".into(), "0".into())
        );
        assert_eq!(TimeUnit::for_largest(99_999_999).format(500), "500");
        assert_eq!(TimeUnit::for_largest(u64::MAX).format(1_500_000), "2");
    }

    #[test]
    fn seconds_are_those_of_figure_3() {
        assert_eq!(seconds(497_272_000), "0 sec 497272 us");
        assert_eq!(seconds(999_999_600), "1 sec      0 us");
        assert_eq!(seconds(5_024_000), "0 sec   5024 us");
    }

    #[test]
    fn instructions_of_the_exact_machine_and_times_of_others() {
        let [exact, timed] = [true, false].map(Measure::exact);
        assert_eq!(
            [9_999, 12_345, 155_856_612].map(|value| exact.readable(value)),
            ["9,999 instr.", "12.35 k instr.", "155.86 M instr."]
        );
        assert_eq!(timed.readable(12_345), "12.35 us");
        for (largest, name, ns) in [(99_999_999, "instr.", "ns"), (100_000_000, "k instr.", "us")] {
            assert_eq!((exact.unit(largest).name(), timed.unit(largest).name()), (name, ns));
        }
        assert_eq!(exact.unit(u64::MAX).format(1_500_000), "2");
        assert_eq!(
            (exact.whole(1_234), timed.whole(1_234)),
            ("1,234 instr.".into(), "0 sec      1 us".into())
        );
    }

    #[test]
    fn readable_times() {
        assert_eq!(
            [300, 5_024, 497_272_000, 1_234_567_890].map(readable),
            ["300 ns", "5.02 us", "497.27 ms", "1.235 s"]
        );
    }
}
