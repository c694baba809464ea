//! Histograms of times: ordered buckets, merged if there are many, with percentiles.

use kerntune_profile::{bounds, Ticks};
use kerntune_table::number::grouped;
use kerntune_table::{Columns, Table};
use std::collections::BTreeMap;

/// Number of rows above which buckets are merged, to one row per power of two.
const MAX_FINE_ROWS: usize = 24;
/// Length of the longest bar in columns.
const BAR_WIDTH: u64 = 40;

/// Counts by bucket ([`kerntune_profile::bucket_of`]).
#[derive(Debug, Clone, Default)]
pub(crate) struct BucketTally {
    buckets: BTreeMap<u32, (u64, u64)>,
}

/// Row of a histogram, with inclusive bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HistogramRow {
    pub from_ns: u64,
    pub to_ns: u64,
    pub count: u64,
    /// Virtual time at which the first call in the row began; 0 if unknown.
    pub example_ns: u64,
}

/// Bounds of the bucket in which a percentile lies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PercentileRange {
    pub percent: f64,
    pub from_ns: u64,
    pub to_ns: u64,
}

impl HistogramRow {
    /// Returns the columns of the bounds, under these keys, and of the count, for JSON.
    pub fn columns<'a>(from: &'static str, to: &'static str) -> Columns<'a, Self> {
        let mut columns = Columns::new();
        columns.add(from, "Least time of the bucket.", |row: &Self| row.from_ns);
        columns.add(to, "Greatest time of the bucket.", |row| row.to_ns);
        columns.add("count", "Times in the bucket.", |row| row.count);
        columns
    }
}

impl PercentileRange {
    /// Returns the columns of all members, for JSON.
    pub fn columns<'a>() -> Columns<'a, Self> {
        let mut columns = Columns::new();
        columns.add("percent", "Percentile.", |row: &Self| row.percent);
        columns.add("from", "Least time of the bucket in which it lies.", |row| row.from_ns);
        columns.add("to", "Greatest time of the bucket in which it lies.", |row| row.to_ns);
        columns
    }
}

impl BucketTally {
    /// Adds `count` values; `example` is a time at which one of them began.
    pub fn add(&mut self, bucket: u32, count: u64, example: Ticks) {
        let sum = self.buckets.entry(bucket).or_insert((0, u64::MAX));
        *sum = (sum.0.saturating_add(count), sum.1.min(example.get()));
    }

    pub fn count(&self) -> u64 {
        self.buckets.values().fold(0, |sum, (count, _)| sum.saturating_add(*count))
    }

    /// Returns all buckets from the first to the last occupied one, including empty ones.
    pub fn rows(&self) -> Vec<HistogramRow> {
        let (Some((&first, _)), Some((&last, _))) =
            (self.buckets.first_key_value(), self.buckets.last_key_value())
        else {
            return Vec::new();
        };
        (first..=last).map(|bucket| self.row(bucket, bucket)).collect()
    }

    /// Returns the rows to print; if there are many, four buckets are merged to one power of two.
    pub fn merged(&self) -> Vec<HistogramRow> {
        let fine = self.rows();
        let (Some((&first, _)), Some((&last, _))) =
            (self.buckets.first_key_value(), self.buckets.last_key_value())
        else {
            return fine;
        };
        if fine.len() <= MAX_FINE_ROWS {
            return fine;
        }
        (first / 4..=last / 4).map(|group| self.row(4 * group, 4 * group + 3)).collect()
    }

    fn row(&self, first: u32, last: u32) -> HistogramRow {
        let within = || self.buckets.range(first..=last).map(|(_, sums)| *sums);
        HistogramRow {
            from_ns: bounds(first).0.get(),
            to_ns: bounds(last).1.get(),
            count: within().fold(0, |sum, (count, _)| sum.saturating_add(count)),
            example_ns: within().map(|(_, example)| example).min().unwrap_or(0),
        }
    }

    /// Returns the bucket of the percentile; `None` without calls. `max` is the longest of all
    /// calls, if known, and bounds the bucket.
    pub fn percentile(&self, percent: f64, max: Option<u64>) -> Option<PercentileRange> {
        let count = self.count();
        let rank = ((percent / 100.0 * count as f64).ceil() as u64).clamp(1, count.max(1));
        let mut below: u64 = 0;
        for (&bucket, &(here, _)) in &self.buckets {
            below = below.saturating_add(here);
            if here > 0 && below >= rank {
                let (from, to) = bounds(bucket);
                // A maximum that is not of these calls would swap the bounds.
                let to_ns = max.filter(|max| *max >= from.get()).map_or(to.get(), |max| max.min(to.get()));
                return Some(PercentileRange { percent, from_ns: from.get(), to_ns });
            }
        }
        None
    }

    /// Converts the histogram to a table for texts; `what` heads the bounds, `each` the counts.
    pub fn to_table<'a>(&self, what: &str, each: &str) -> Table<'a, (HistogramRow, u64)> {
        let (rows, all) = (self.merged(), self.count());
        let max = rows.iter().map(|row| row.count).max().unwrap_or(0);
        let rows = rows.into_iter().scan(0, |below: &mut u64, row| {
            *below = below.saturating_add(row.count);
            Some((row, *below))
        });
        let mut columns = Columns::<(HistogramRow, u64)>::new();
        columns.text_only(what, |(row, _)| range(row.from_ns, row.to_ns)).right();
        columns.text_only(each, |(row, _)| row.count);
        columns.share("%", all, |(row, _)| row.count);
        columns.share("cum. %", all, |(_, below)| *below);
        columns.text_only("", move |(row, _)| bar(row.count, max));
        Table::text_only(rows, columns).hidden_if_empty()
    }
}

/// Formats inclusive bounds: `16 .. 19`, or `7` for a single value.
pub(crate) fn range(from: u64, to: u64) -> String {
    if from == to {
        grouped(from)
    } else {
        format!("{} .. {}", grouped(from), grouped(to))
    }
}

/// Draws a bar; a count too small for a block is a thin line, so that it stays visible.
fn bar(count: u64, max: u64) -> String {
    let length = (u128::from(count) * u128::from(BAR_WIDTH) / u128::from(max.max(1))) as usize;
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

    fn tally(times: &[u64]) -> BucketTally {
        let mut tally = BucketTally::default();
        times.iter().for_each(|ns| tally.add(bucket_of(Ticks(*ns)), 1, Ticks(1_000 - *ns % 7)));
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
        assert_eq!(BucketTally::default().percentile(50.0, None), None);
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
