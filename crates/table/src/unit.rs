//! Units of columns, and times in running text.

use crate::number;
use clap::builder::PossibleValue;
use clap::ValueEnum;

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
    pub fn for_largest(ns: u64) -> Self {
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
    pub fn format(self, ns: u64) -> String {
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
pub fn seconds(ns: u64) -> String {
    // Rounds to microseconds first, so that 0.9999996 s is 1 sec and not 0 sec 1000000 us.
    let us = ns / 1_000 + u64::from(ns % 1_000 >= 500);
    format!("{} sec {:>6} us", us / 1_000_000, us % 1_000_000)
}

/// Formats a time for running text or a page: `1.2346 s`, `497.27 ms`, `5.024 us`, `300 ns`.
pub fn readable(ns: u64) -> String {
    match ns {
        0..=999 => format!("{ns} ns"),
        1_000..=999_999 => format!("{} us", number::fixed(ns as f64 / 1e3, 2)),
        1_000_000..=999_999_999 => format!("{} ms", number::fixed(ns as f64 / 1e6, 2)),
        _ => format!("{} s", number::fixed(ns as f64 / 1e9, 3)),
    }
}

/// Formats a point in virtual time for a table: `5.000123456 s`.
pub fn seconds_at(ns: u64) -> String {
    format!("{}.{:09} s", ns / 1_000_000_000, ns % 1_000_000_000)
}

/// Returns the rate per second of `elapsed_ns`; 0 if no time passed.
pub fn per_second(count: u64, elapsed_ns: u64) -> f64 {
    if elapsed_ns == 0 {
        0.0
    } else {
        count as f64 * 1e9 / elapsed_ns as f64
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
    fn readable_times() {
        assert_eq!(
            [300, 5_024, 497_272_000, 1_234_567_890].map(readable),
            ["300 ns", "5.02 us", "497.27 ms", "1.235 s"]
        );
    }
}
