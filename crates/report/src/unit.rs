//! Unit of a profile's ticks, and units in which columns are displayed.

use crate::style::printable;
use crate::view::share;
use clap::builder::PossibleValue;
use clap::ValueEnum;
use kerntune_compare::number;
use kerntune_profile::{Profile, ScopeTotals};

/// Meaning of a tick in a profile: an instruction or a nanosecond.
///
/// The exact machine has no clock: an instruction is a nanosecond of its virtual time, so that code
/// times are instruction counts. Idle time, elapsed time of the machine, and points in time are
/// virtual time there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TickUnit {
    /// Exact machine: ticks of code are instructions.
    Instructions,
    /// Sampled or clocked times: ticks are nanoseconds.
    Time,
}

impl TickUnit {
    /// Returns the tick unit of a profile.
    pub fn of(profile: &Profile) -> Self {
        Self::exact(profile.manifest.exact)
    }

    /// Returns the unit in which two profiles can be compared: instructions only if both are exact.
    pub fn common_to(profiles: [&Profile; 2]) -> Self {
        Self::exact(profiles.iter().all(|profile| profile.manifest.exact))
    }

    pub(crate) fn exact(exact: bool) -> Self {
        if exact {
            TickUnit::Instructions
        } else {
            TickUnit::Time
        }
    }

    /// Returns the unit's name in JSON, for figures whose keys have no unit.
    pub fn name(self) -> &'static str {
        match self {
            TickUnit::Instructions => "instructions",
            TickUnit::Time => "ns",
        }
    }

    /// Returns the unit in which the largest value of a column has at most eight digits.
    pub fn unit(self, largest: u64) -> DisplayUnit {
        match (self, DisplayUnit::for_largest(largest)) {
            (TickUnit::Time, unit) => unit,
            (TickUnit::Instructions, DisplayUnit::Nanoseconds) => DisplayUnit::Instructions,
            (TickUnit::Instructions, DisplayUnit::Microseconds) => DisplayUnit::Thousands,
            (TickUnit::Instructions, _) => DisplayUnit::Millions,
        }
    }

    /// Returns the unit for a column beside columns with much smaller values: instructions stay
    /// whole there, so that a row has one unit.
    pub fn row_unit(self, largest: u64) -> DisplayUnit {
        match self {
            TickUnit::Time => self.unit(largest),
            TickUnit::Instructions => DisplayUnit::Instructions,
        }
    }

    /// Returns the unit of single values: instructions or nanoseconds.
    pub fn smallest_unit(self) -> DisplayUnit {
        self.unit(0)
    }

    /// Formats a value for running text: `155.86 M instr.`, `5.02 k instr.`, `300 instr.`, or
    /// [`readable`] time.
    pub fn readable(self, value: u64) -> String {
        match (self, value) {
            (TickUnit::Time, _) => readable(value),
            (_, 0..=9_999) => format!("{} instr.", number::grouped(value)),
            (_, 10_000..=999_999) => format!("{} k instr.", number::fixed(value as f64 / 1e3, 2)),
            _ => format!("{} M instr.", number::fixed(value as f64 / 1e6, 2)),
        }
    }

    /// Formats a value in full, for a report's header: `155,856,612 instr.`, `0 sec 497272 us`.
    pub fn whole(self, value: u64) -> String {
        match self {
            TickUnit::Time => seconds(value),
            TickUnit::Instructions => format!("{} instr.", number::grouped(value)),
        }
    }
}

/// Unit in which a column of times or instructions is displayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DisplayUnit {
    /// Instructions (`instr.`).
    Instructions,
    /// Thousands of instructions (`k instr.`).
    Thousands,
    /// Millions of instructions (`M instr.`).
    Millions,
    /// Nanoseconds.
    Nanoseconds,
    /// Microseconds.
    Microseconds,
    /// Milliseconds.
    Milliseconds,
    /// Seconds with hundredths, as gprof prints sampled times; never chosen automatically.
    Seconds,
}

impl DisplayUnit {
    /// Returns the unit of time in which the largest value of a column has at most eight digits.
    pub(crate) fn for_largest(ns: u64) -> Self {
        match ns {
            0..=99_999_999 => DisplayUnit::Nanoseconds,
            100_000_000..=99_999_999_999 => DisplayUnit::Microseconds,
            _ => DisplayUnit::Milliseconds,
        }
    }

    /// Returns the name in column heads.
    pub fn name(self) -> &'static str {
        match self {
            DisplayUnit::Instructions => "instr.",
            DisplayUnit::Thousands => "k instr.",
            DisplayUnit::Millions => "M instr.",
            DisplayUnit::Nanoseconds => "ns",
            DisplayUnit::Microseconds => "us",
            DisplayUnit::Milliseconds => "ms",
            DisplayUnit::Seconds => "s",
        }
    }

    /// Formats a value rounded to whole units (seconds to hundredths), with digit grouping.
    pub(crate) fn format(self, ns: u64) -> String {
        let per = match self {
            DisplayUnit::Seconds => return number::fixed(ns as f64 / 1e9, 2),
            DisplayUnit::Instructions | DisplayUnit::Nanoseconds => 1,
            DisplayUnit::Thousands | DisplayUnit::Microseconds => 1_000,
            DisplayUnit::Millions | DisplayUnit::Milliseconds => 1_000_000,
        };
        number::grouped(ns / per + u64::from(ns % per >= per.div_ceil(2)))
    }
}

impl ValueEnum for DisplayUnit {
    fn value_variants<'a>() -> &'a [Self] {
        &[
            DisplayUnit::Instructions,
            DisplayUnit::Thousands,
            DisplayUnit::Millions,
            DisplayUnit::Seconds,
            DisplayUnit::Milliseconds,
            DisplayUnit::Microseconds,
            DisplayUnit::Nanoseconds,
        ]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let word = match self {
            DisplayUnit::Instructions => "instr",
            DisplayUnit::Thousands => "k",
            DisplayUnit::Millions => "M",
            time => time.name(),
        };
        Some(word.into())
    }
}

/// Formats seconds and microseconds as McRae's Figure 3 does: `0 sec 497272 us`.
pub(crate) fn seconds(ns: u64) -> String {
    // Rounds to microseconds first, so that 0.9999996 s is 1 sec and not 0 sec 1000000 us.
    let us = ns / 1_000 + u64::from(ns % 1_000 >= 500);
    format!("{} sec {:>6} us", us / 1_000_000, us % 1_000_000)
}

/// Formats a time for running text or a page: `1.2346 s`, `497.27 ms`, `5.024 us`, `300 ns`.
pub(crate) fn readable(ns: u64) -> String {
    match ns {
        0..=999 => format!("{ns} ns"),
        1_000..=999_999 => format!("{} us", number::fixed(ns as f64 / 1e3, 2)),
        1_000_000..=999_999_999 => format!("{} ms", number::fixed(ns as f64 / 1e6, 2)),
        _ => format!("{} s", number::fixed(ns as f64 / 1e9, 3)),
    }
}

/// Formats a point in virtual time for a table: `5.000123456 s`.
pub(crate) fn seconds_at(ns: u64) -> String {
    format!("{}.{:09} s", ns / 1_000_000_000, ns % 1_000_000_000)
}

/// Returns the rate per second of `elapsed_ns`; 0 if no time passed.
pub(crate) fn per_second(count: u64, elapsed_ns: u64) -> f64 {
    if elapsed_ns == 0 {
        0.0
    } else {
        count as f64 * 1e9 / elapsed_ns as f64
    }
}

/// Returns a report's header: its region, and the times that percentages refer to.
pub(crate) fn header(profile: &Profile, totals: &ScopeTotals, region: Option<&str>) -> String {
    let mut out = region.map_or(String::new(), |name| format!("Region {}\n", printable(name)));
    out += &whole(profile, totals.elapsed_ticks.get(), totals.busy_ticks.get(), totals.idle_ticks.get(), "");
    out
}

/// Returns the header's times: elapsed, busy and idle; `events` stands beside the first.
pub(crate) fn whole(profile: &Profile, elapsed: u64, busy: u64, idle: u64, events: &str) -> String {
    let percent = |part: u64| format!("({:>6}%)", number::fixed(share(part, elapsed), 2));
    let line = |head: &str, figure: String, tail: String| {
        format!("{head:<20} = {figure}  {tail}").trim_end().to_string() + "\n"
    };
    let (time, run) = match TickUnit::of(profile) {
        TickUnit::Instructions => ("Virtual time", "Instructions"),
        TickUnit::Time => ("Elapsed time", "Accumulated run time"),
    };
    line(time, seconds(elapsed), events.into())
        + &line(run, run_time(profile, busy), percent(busy))
        + &line("Idle time", seconds(idle), percent(idle))
}

/// Formats busy time in the width of the times around it.
pub(crate) fn run_time(profile: &Profile, value: u64) -> String {
    match TickUnit::of(profile) {
        TickUnit::Instructions => format!("{:>15}", number::grouped(value)),
        TickUnit::Time => seconds(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_has_one_unit_and_rounds() {
        let unit = DisplayUnit::for_largest(497_272_600);
        assert_eq!(
            (unit.name(), unit.format(497_272_600), unit.format(499)),
            ("us", "497,273".into(), "0".into())
        );
        assert_eq!(DisplayUnit::for_largest(99_999_999).format(500), "500");
        assert_eq!(DisplayUnit::for_largest(u64::MAX).format(1_500_000), "2");
    }

    #[test]
    fn seconds_are_those_of_figure_3() {
        assert_eq!(seconds(497_272_000), "0 sec 497272 us");
        assert_eq!(seconds(999_999_600), "1 sec      0 us");
        assert_eq!(seconds(5_024_000), "0 sec   5024 us");
    }

    #[test]
    fn instructions_of_the_exact_machine_and_times_of_others() {
        let [exact, timed] = [true, false].map(TickUnit::exact);
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
