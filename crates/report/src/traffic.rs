//! Block device requests and network packets, added up: sizes, seeks, queue depths and times.

use kerntune_profile::{bounds, bucket_of, Profile, RegionScope, Ticks};
use kerntune_table::number::grouped;
use kerntune_table::{share, Columns, Table, TextRole};
use std::collections::BTreeMap;

/// Reason why a profile has no requests or packets.
pub(crate) const NOT_SEEN: &str =
    "not seen: record functions in the emulator, on a kernel that kerntune built or that has debug \
     information";

/// Exact distribution of a figure: number of occurrences of each value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ValueCounts(BTreeMap<u64, u64>);

impl ValueCounts {
    fn add(&mut self, value: u64, count: u64) {
        let sum = self.0.entry(value).or_default();
        *sum = sum.saturating_add(count);
    }

    fn join(&mut self, other: &Self) {
        other.0.iter().for_each(|(value, count)| self.add(*value, *count));
    }

    pub fn count(&self) -> u64 {
        self.0.values().fold(0, |sum, count| sum.saturating_add(*count))
    }

    pub fn sum(&self) -> u64 {
        self.0.iter().fold(0, |sum, (value, count)| sum.saturating_add(value.saturating_mul(*count)))
    }

    /// Returns the mean; `None` without values.
    pub fn mean(&self) -> Option<f64> {
        let count = self.count();
        (count > 0).then(|| self.sum() as f64 / count as f64)
    }

    pub fn max(&self) -> Option<u64> {
        self.0.last_key_value().map(|(value, _)| *value)
    }

    /// Returns the smallest value that at least `percent` of all values do not exceed.
    pub fn quantile(&self, percent: u64) -> Option<u64> {
        // `count` saturates and would be wrong here.
        let count: u128 = self.0.values().copied().map(u128::from).sum();
        let rank = (count * u128::from(percent)).div_ceil(100).max(1);
        let mut seen = 0u128;
        let reached = |(value, count): (&u64, &u64)| {
            seen += u128::from(*count);
            (seen >= rank).then_some(*value)
        };
        self.0.iter().find_map(reached)
    }

    /// Returns values with their counts; many values are merged to ranges, four per power of two.
    fn lines(&self) -> Vec<(String, u64)> {
        if self.0.len() <= MAX_SINGLE_VALUES {
            return self.0.iter().map(|(value, count)| (grouped(*value), *count)).collect();
        }
        let mut ranges: BTreeMap<u32, u64> = BTreeMap::new();
        for (value, count) in &self.0 {
            let sum = ranges.entry(bucket_of(Ticks(*value))).or_default();
            *sum = sum.saturating_add(*count);
        }
        let name = |bucket: u32| match bounds(bucket) {
            (low, high) if low == high => grouped(low.0),
            (low, high) => format!("{} to {}", grouped(low.0), grouped(high.0)),
        };
        ranges.into_iter().map(|(bucket, count)| (name(bucket), count)).collect()
    }

    /// Converts the values to a table for texts, with a title.
    pub fn table<'a>(&self, title: String, unit: &str) -> Table<'a, (String, u64)> {
        let mut columns = Columns::<(String, u64)>::new();
        columns.text_only(unit, |row| row.0.clone()).right();
        columns.text_only("count", |row| row.1);
        columns.share("%", self.count(), |row| row.1);
        let table = Table::new("", self.lines(), columns).title(TextRole::Plain, title);
        table.default_rows(usize::MAX).hidden_if_empty()
    }

    /// Declares the statistics for JSON; `has_values` includes the single values.
    pub fn columns<'a>(has_values: bool) -> Columns<'a, Self> {
        let mut columns = Columns::<Self>::new();
        columns.add("count", "Number of values.", Self::count);
        columns.add("sum", "Sum of the values.", Self::sum);
        columns.add("mean", "Mean; null of no values.", Self::mean);
        columns.add("median", "Median; null of no values.", |of| of.quantile(50));
        columns.add("p99", "99th percentile; null of no values.", |of| of.quantile(99));
        columns.add("max", "Greatest value; null of no values.", Self::max);
        if has_values {
            let values = |of: &Self| of.0.iter().map(|(value, count)| [*value, *count]).collect::<Vec<_>>();
            let values = move |of: &Self| Some(values(of)).filter(|values| !values.is_empty());
            columns.add("values", "Each value with its count, in order.", values).optional();
        }
        columns
    }
}

/// Largest number of values that are shown one by one.
const MAX_SINGLE_VALUES: usize = 16;

/// Requests to one device or all, for one operation or all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct BlockRequests {
    /// `None` for all devices.
    pub device: Option<String>,
    pub operation: Option<String>,
    pub requests: u64,
    pub again: u64,
    pub completed: u64,
    pub completed_later: u64,
    pub unfinished: u64,
    pub issued_before: u64,
    pub sequential: u64,
    pub bytes: ValueCounts,
    pub seeks: ValueCounts,
    pub depths: ValueCounts,
    pub times: ValueCounts,
}

impl BlockRequests {
    /// Returns the reads and writes for which the end of the device's previous request is known.
    pub fn placed(&self) -> u64 {
        self.sequential.saturating_add(self.seeks.count())
    }

    /// Returns the share of sequential requests; `None` if it is known for no request.
    pub fn percent_sequential(&self) -> Option<f64> {
        let placed = self.placed();
        (placed > 0).then(|| share(self.sequential, placed))
    }

    fn join(&mut self, other: &Self) {
        for (sum, more) in [
            (&mut self.requests, other.requests),
            (&mut self.again, other.again),
            (&mut self.completed, other.completed),
            (&mut self.completed_later, other.completed_later),
            (&mut self.unfinished, other.unfinished),
            (&mut self.issued_before, other.issued_before),
            (&mut self.sequential, other.sequential),
        ] {
            *sum = sum.saturating_add(more);
        }
        self.bytes.join(&other.bytes);
        self.seeks.join(&other.seeks);
        self.depths.join(&other.depths);
        self.times.join(&other.times);
    }
}

/// Adds up requests by device and operation.
pub(crate) fn requests(profile: &Profile, scope: &RegionScope) -> Vec<BlockRequests> {
    let tables = &profile.tables;
    let mut rows: BTreeMap<(&str, &str), BlockRequests> = BTreeMap::new();
    for row in tables.io_requests.iter().filter(|row| scope.contains(row.region)) {
        rows.entry((&row.device, &row.operation)).or_default().join(&BlockRequests {
            requests: row.requests,
            again: row.again,
            completed: row.completed,
            completed_later: row.completed_later,
            unfinished: row.unfinished,
            issued_before: row.issued_before,
            sequential: row.sequential,
            ..BlockRequests::default()
        });
    }
    let values = tables.distributions.iter();
    for row in values.filter(|row| row.subject == "request" && scope.contains(row.region)) {
        let of = rows.entry((&row.device, &row.operation)).or_default();
        match row.figure.as_str() {
            "bytes" => of.bytes.add(row.value, row.count),
            "seek" => of.seeks.add(row.value, row.count),
            "depth" => of.depths.add(row.value, row.count),
            "time_ns" => of.times.add(row.value, row.count),
            _ => {}
        }
    }
    let named = |((device, operation), row): ((&str, &str), BlockRequests)| BlockRequests {
        device: Some(device.into()),
        operation: Some(operation.into()),
        ..row
    };
    rows.into_iter().map(named).collect()
}

/// Adds up all rows.
pub(crate) fn all_requests(rows: &[BlockRequests]) -> BlockRequests {
    let mut all = BlockRequests::default();
    rows.iter().for_each(|row| all.join(row));
    all
}

/// Sizes of packets of one direction, at one device or all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PacketSizes {
    /// `None` for all devices.
    pub device: Option<String>,
    pub direction: String,
    pub bytes: ValueCounts,
}

/// Adds up packets by direction and device.
pub(crate) fn packets(profile: &Profile, scope: &RegionScope) -> Vec<PacketSizes> {
    let mut rows: BTreeMap<(&str, &str), ValueCounts> = BTreeMap::new();
    let values = profile.tables.distributions.iter();
    for row in values.filter(|row| row.subject == "packet" && scope.contains(row.region)) {
        rows.entry((&row.operation, &row.device)).or_default().add(row.value, row.count);
    }
    let named = |((direction, device), bytes): ((&str, &str), ValueCounts)| PacketSizes {
        device: Some(device.into()),
        direction: direction.into(),
        bytes,
    };
    rows.into_iter().map(named).collect()
}

/// Adds up packets of each direction over all devices.
pub(crate) fn all_packets(rows: &[PacketSizes]) -> Vec<PacketSizes> {
    let mut all: BTreeMap<&str, ValueCounts> = BTreeMap::new();
    rows.iter().for_each(|row| all.entry(&row.direction).or_default().join(&row.bytes));
    let named = |(direction, bytes): (&str, ValueCounts)| PacketSizes {
        device: None,
        direction: direction.into(),
        bytes,
    };
    all.into_iter().map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_were_met() {
        let mut spread = ValueCounts::default();
        assert_eq!((spread.mean(), spread.quantile(50), spread.max()), (None, None, None));
        for value in 1..=100 {
            spread.add(value, 1);
        }
        assert_eq!([50, 99, 100].map(|percent| spread.quantile(percent)), [Some(50), Some(99), Some(100)]);
        spread.add(4_096, 900);
        assert_eq!([1, 10, 11].map(|percent| spread.quantile(percent)), [Some(10), Some(100), Some(4_096)]);
        assert_eq!((spread.count(), spread.sum()), (1_000, 5_050 + 900 * 4_096));
        let lines = spread.lines();
        assert_eq!(lines[0], ("1".to_owned(), 1));
        assert_eq!(lines.last().unwrap(), &("4,096 to 5,119".to_owned(), 900));
    }

    #[test]
    fn no_count_and_no_value_is_too_large() {
        let mut spread = ValueCounts::default();
        spread.add(u64::MAX, u64::MAX);
        spread.add(u64::MAX - 1, u64::MAX);
        assert_eq!((spread.quantile(99), spread.sum()), (Some(u64::MAX), u64::MAX));
        (0..20).for_each(|value| spread.add(value, 1));
        assert_eq!(spread.lines().len(), 8 + 4 + 1 + 1, "0 to 7, 8 to 9 … 14 to 15, 16 to 19, and the last");
    }
}
