//! Distribution of a figure over calls, in bounded memory.

use crate::hash::BuildIntegerHasher;
use std::collections::HashMap;

/// Maximum number of distinct values; beyond it neighboring values are merged.
const MAX_VALUES: usize = 1 << 16;

/// Distribution of a figure over calls. All fields are 0 if there are no calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FigureSpread {
    /// Number of calls.
    pub count: u64,
    /// Sum over all calls.
    pub sum: u64,
    /// Least value.
    pub min: u64,
    /// Median; of an even number of calls the lower of the two middle values.
    pub median: u64,
    /// Greatest value.
    pub greatest: u64,
    /// Maximum error of the median; 0 unless there are more than 65,536 distinct values.
    pub rounding: u64,
}

/// Position of a call in the trace: its chunk, and the number of calls of the function that begin
/// before it there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CallPosition {
    pub chunk: u32,
    pub nth: u32,
}

/// A call, with the value for which it was picked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PickedCall {
    pub value: u64,
    pub place: CallPosition,
}

impl PickedCall {
    /// Returns the call with the greater value; of equal ones the one that began first.
    fn greater(self, other: Self) -> Self {
        let above = |pick: Self| (pick.value, std::cmp::Reverse(pick.place));
        if above(other) > above(self) {
            other
        } else {
            self
        }
    }
}

/// Builder of a [`FigureSpread`].
#[derive(Debug, Default)]
pub(super) struct SpreadBuilder {
    count: u64,
    sum: u64,
    min: Option<u64>,
    greatest: Option<PickedCall>,
    /// Number of calls by value, without the last `bits` bits of it, and the first of these calls.
    values: HashMap<u64, (u64, PickedCall), BuildIntegerHasher>,
    bits: u32,
}

impl SpreadBuilder {
    /// Adds the figure of a call.
    pub fn add(&mut self, value: u64, place: CallPosition) {
        let pick = PickedCall { value, place };
        self.count += 1;
        self.sum = self.sum.saturating_add(value);
        self.min = Some(self.min.map_or(value, |min| min.min(value)));
        self.greatest = Some(self.greatest.map_or(pick, |greatest| greatest.greater(pick)));
        self.count_value(1, pick);
        while self.values.len() > MAX_VALUES {
            self.bits += 1;
            for (_, (count, pick)) in std::mem::take(&mut self.values) {
                self.count_value(count, pick);
            }
        }
    }

    fn count_value(&mut self, count: u64, pick: PickedCall) {
        let (sum, first) = self.values.entry(pick.value >> self.bits).or_insert((0, pick));
        *sum += count;
        if pick.place < first.place {
            *first = pick;
        }
    }

    /// Returns the number of calls.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the first call with the greatest value.
    pub fn greatest(&self) -> Option<PickedCall> {
        self.greatest
    }

    /// Returns the first call with the median value.
    pub fn median(&self) -> Option<PickedCall> {
        let mut all: Vec<_> = self.values.iter().map(|(value, seen)| (*value, *seen)).collect();
        all.sort_unstable_by_key(|(value, _)| *value);
        let mut below = 0;
        let reaches = |(_, (count, _)): &(u64, (u64, PickedCall))| {
            below += count;
            below >= self.count.div_ceil(2)
        };
        all.into_iter().find(reaches).map(|(_, (_, first))| first)
    }

    pub fn spread(&self) -> FigureSpread {
        FigureSpread {
            count: self.count,
            sum: self.sum,
            min: self.min.unwrap_or(0),
            median: self.median().map_or(0, |pick| pick.value),
            greatest: self.greatest.map_or(0, |pick| pick.value),
            rounding: (1 << self.bits) - 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn gather(values: impl IntoIterator<Item = u64>) -> SpreadBuilder {
        let mut gather = SpreadBuilder::default();
        values
            .into_iter()
            .zip(0..)
            .for_each(|(value, nth)| gather.add(value, CallPosition { chunk: nth / 7, nth }));
        gather
    }

    #[test]
    fn nothing_is_spread_over_nothing() {
        assert_eq!(SpreadBuilder::default().spread(), FigureSpread::default());
        assert_eq!((SpreadBuilder::default().median(), SpreadBuilder::default().greatest()), (None, None));
    }

    #[test]
    fn of_calls_alike_the_first_is_picked() {
        let gather = gather([5, 9, 5, 1, 9]);
        assert_eq!(gather.median().map(|pick| (pick.value, pick.place.nth)), Some((5, 0)));
        assert_eq!(gather.greatest().map(|pick| (pick.value, pick.place.nth)), Some((9, 1)));
    }

    #[test]
    fn of_many_values_the_median_is_near() {
        let many = 3 * MAX_VALUES as u64;
        let spread = gather((0..many).map(|value| 5 * value)).spread();
        assert_eq!((spread.min, spread.greatest, spread.count), (0, 5 * (many - 1), many));
        assert!((1..64).contains(&spread.rounding), "{spread:?}");
        assert!(spread.median.abs_diff(5 * (many / 2 - 1)) <= spread.rounding, "{spread:?}");
    }

    proptest! {
        #[test]
        fn a_spread_is_that_of_the_sorted_values(values in prop::collection::vec(0u64..50, 1..60)) {
            let spread = gather(values.iter().copied()).spread();
            let mut sorted = values.clone();
            sorted.sort_unstable();
            let expected = FigureSpread {
                count: values.len() as u64,
                sum: values.iter().sum(),
                min: sorted[0],
                median: sorted[(values.len() - 1) / 2],
                greatest: sorted[values.len() - 1],
                rounding: 0,
            };
            prop_assert_eq!(spread, expected);
        }
    }
}
