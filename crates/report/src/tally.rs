//! Histograms of times: buckets in order, merged where they are many, with percentiles.

use crate::columns::{Cell, Columns, Side};
use crate::view::share;
use kerntune_compare::number::{fixed, grouped};
use kerntune_profile::{bounds, Nanoseconds};
use serde::Serialize;
use std::collections::BTreeMap;

/// More rows than this are merged to one for each doubling.
const FINE_ROWS: usize = 24;
/// Columns of the longest bar.
const BAR: u64 = 40;

/// Counts by bucket ([`kerntune_profile::bucket_of`]).
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    buckets: BTreeMap<u32, (u64, u64)>,
}

/// A row of a histogram: bounds in ns, both within it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Row {
    #[serde(rename = "from")]
    pub from_ns: u64,
    #[serde(rename = "to")]
    pub to_ns: u64,
    pub count: u64,
    /// Virtual time at which the first call in it began; 0 where there is none.
    pub example_ns: u64,
}

/// Where a percentile lies.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Percentile {
    pub percent: f64,
    #[serde(rename = "from")]
    pub from_ns: u64,
    #[serde(rename = "to")]
    pub to_ns: u64,
}

impl Tally {
    /// `example` is a time at which one of them began.
    pub fn add(&mut self, bucket: u32, count: u64, example: Nanoseconds) {
        let sum = self.buckets.entry(bucket).or_insert((0, u64::MAX));
        *sum = (sum.0.saturating_add(count), sum.1.min(example.get()));
    }

    pub fn count(&self) -> u64 {
        self.buckets.values().fold(0, |sum, (count, _)| sum.saturating_add(*count))
    }

    /// All buckets from the first to the last that has any, empty ones too.
    pub fn rows(&self) -> Vec<Row> {
        let (Some((&first, _)), Some((&last, _))) =
            (self.buckets.first_key_value(), self.buckets.last_key_value())
        else {
            return Vec::new();
        };
        (first..=last).map(|bucket| self.row(bucket, bucket)).collect()
    }

    /// The same, four buckets to a row where they are many: each from one power of two to the next.
    pub fn merged(&self) -> Vec<Row> {
        let fine = self.rows();
        let (Some((&first, _)), Some((&last, _))) =
            (self.buckets.first_key_value(), self.buckets.last_key_value())
        else {
            return fine;
        };
        if fine.len() <= FINE_ROWS {
            return fine;
        }
        (first / 4..=last / 4).map(|group| self.row(4 * group, 4 * group + 3)).collect()
    }

    fn row(&self, first: u32, last: u32) -> Row {
        let within = || self.buckets.range(first..=last).map(|(_, sums)| *sums);
        Row {
            from_ns: bounds(first).0.get(),
            to_ns: bounds(last).1.get(),
            count: within().fold(0, |sum, (count, _)| sum.saturating_add(count)),
            example_ns: within().map(|(_, example)| example).min().unwrap_or(0),
        }
    }

    /// The bucket of the call that as many per cent of all are not longer than; none of no calls.
    /// `max` is the longest of all, where it is known: nothing lies above it.
    pub fn percentile(&self, percent: f64, max: Option<u64>) -> Option<Percentile> {
        let count = self.count();
        let rank = ((percent / 100.0 * count as f64).ceil() as u64).clamp(1, count.max(1));
        let mut below: u64 = 0;
        for (&bucket, &(here, _)) in &self.buckets {
            below = below.saturating_add(here);
            if here > 0 && below >= rank {
                let (from, to) = bounds(bucket);
                // A maximum that is not of these calls would turn the bounds round.
                let to_ns = max.filter(|max| *max >= from.get()).map_or(to.get(), |max| max.min(to.get()));
                return Some(Percentile { percent, from_ns: from.get(), to_ns });
            }
        }
        None
    }

    /// The histogram as a table; `what` heads the bounds, `each` the counts.
    pub fn table(&self, what: &str, each: &str) -> Columns {
        let mut table = Columns::new([
            (what, Side::Right),
            (each, Side::Right),
            ("%", Side::Right),
            ("cum. %", Side::Right),
            ("", Side::Left),
        ]);
        let (rows, all) = (self.merged(), self.count());
        let most = rows.iter().map(|row| row.count).max().unwrap_or(0);
        let mut below: u64 = 0;
        for row in rows {
            below = below.saturating_add(row.count);
            table.row([
                range(row.from_ns, row.to_ns).into(),
                grouped(row.count).into(),
                fixed(share(row.count, all), 2).into(),
                fixed(share(below, all), 2).into(),
                Cell::from(bar(row.count, most)),
            ]);
        }
        table
    }
}

/// `16 .. 19`, or `7` for one value.
pub(crate) fn range(from: u64, to: u64) -> String {
    if from == to {
        grouped(from)
    } else {
        format!("{} .. {}", grouped(from), grouped(to))
    }
}

/// Anything at all is seen: what is too short for a block is a thin line.
fn bar(count: u64, most: u64) -> String {
    let length = (u128::from(count) * u128::from(BAR) / u128::from(most.max(1))) as usize;
    match (count, length) {
        (0, _) => String::new(),
        (_, 0) => "▏".into(),
        _ => "█".repeat(length),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_profile::bucket_of;
    use proptest::prelude::*;

    fn tally(times: &[u64]) -> Tally {
        let mut tally = Tally::default();
        times.iter().for_each(|ns| tally.add(bucket_of(Nanoseconds(*ns)), 1, Nanoseconds(1_000 - *ns % 7)));
        tally
    }

    #[test]
    fn rows_by_hand() {
        let rows = tally(&[8, 9, 9, 13]).rows();
        let figures: Vec<_> = rows.iter().map(|r| (r.from_ns, r.to_ns, r.count)).collect();
        assert_eq!(figures, [(8, 9, 3), (10, 11, 0), (12, 13, 1)]);
        assert_eq!(rows[0].example_ns, 998);
        assert!(tally(&[]).rows().is_empty() && tally(&[]).merged().is_empty());
    }

    #[test]
    fn many_buckets_are_merged_to_doublings() {
        let rows = tally(&[1, 6, 1_000, 5_000]).merged();
        let bounds: Vec<_> = rows.iter().map(|r| (r.from_ns, r.to_ns)).collect();
        assert_eq!(bounds[..3], [(0, 3), (4, 7), (8, 15)]);
        assert_eq!(bounds.last(), Some(&(4_096, 8_191)));
        assert_eq!(rows.iter().map(|r| r.count).sum::<u64>(), 4);
    }

    #[test]
    fn percentiles_say_in_which_bucket() {
        // 1 to 100: the 50th is 50 (48 .. 55), the 99th 99 (96 .. 111), of which none is above 100.
        let tally = tally(&(1..=100).collect::<Vec<_>>());
        let within = |percent| tally.percentile(percent, Some(100)).map(|p| (p.from_ns, p.to_ns));
        assert_eq!(within(50.0), Some((48, 55)));
        assert_eq!(within(99.0), Some((96, 100)));
        assert_eq!(tally.percentile(99.0, None).unwrap().to_ns, 111);
        assert_eq!(Tally::default().percentile(50.0, None), None);
    }

    #[test]
    fn bars_show_all_that_is_not_zero() {
        assert_eq!((bar(0, 9), bar(1, 1_000), bar(9, 9).chars().count()), ("".into(), "▏".into(), 40));
    }

    proptest! {
        #[test]
        fn a_percentile_is_that_of_the_sorted_times(
            mut times in proptest::collection::vec(0..1_000_000u64, 1..60), percent in 0.1..100.0f64,
        ) {
            let tally = tally(&times);
            times.sort_unstable();
            let rank = ((percent / 100.0 * times.len() as f64).ceil() as usize).max(1);
            let exact = times[rank - 1];
            let found = tally.percentile(percent, times.last().copied()).unwrap();
            prop_assert!(found.from_ns <= exact && exact <= found.to_ns, "{exact} {found:?}");
            for rows in [tally.rows(), tally.merged()] {
                prop_assert_eq!(rows.iter().map(|row| row.count).sum::<u64>(), times.len() as u64);
                for row in rows {
                    let inside = times.iter().filter(|t| (row.from_ns..=row.to_ns).contains(t)).count();
                    prop_assert_eq!(inside as u64, row.count);
                }
            }
        }
    }
}
