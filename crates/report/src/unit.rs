//! One unit of time for a whole column.

use crate::style::printable;
use crate::view::share;
use clap::builder::PossibleValue;
use clap::ValueEnum;
use kerntune_compare::number;
use kerntune_profile::ScopeTotals;

/// A unit in which a column of times is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeUnit {
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
            TimeUnit::Nanoseconds => 1,
            TimeUnit::Microseconds => 1_000,
            TimeUnit::Milliseconds => 1_000_000,
        };
        number::grouped(ns / per + u64::from(ns % per >= per.div_ceil(2)))
    }
}

impl ValueEnum for TimeUnit {
    fn value_variants<'a>() -> &'a [Self] {
        &[TimeUnit::Seconds, TimeUnit::Milliseconds, TimeUnit::Microseconds, TimeUnit::Nanoseconds]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(self.name().into())
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

/// The head of a report: its region, and the times that percentages are of.
pub(crate) fn header(totals: &ScopeTotals, region: Option<&str>) -> String {
    let mut out = region.map_or(String::new(), |name| format!("Region {}\n", printable(name)));
    let elapsed = totals.elapsed_ns.get();
    let mut line = |head: &str, ns: u64| {
        let percent = number::fixed(share(ns, elapsed), 2);
        out += &match head {
            "Elapsed time" => format!("{head:<20} = {}\n", seconds(ns)),
            _ => format!("{head:<20} = {}  ({percent:>6}%)\n", seconds(ns)),
        };
    };
    line("Elapsed time", elapsed);
    line("Accumulated run time", totals.busy_ns.get());
    line("Idle time", totals.idle_ns.get());
    out
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
    fn readable_times() {
        assert_eq!(
            [300, 5_024, 497_272_000, 1_234_567_890].map(readable),
            ["300 ns", "5.02 us", "497.27 ms", "1.235 s"]
        );
    }
}
