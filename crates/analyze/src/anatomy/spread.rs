//! How a figure is spread over calls, in bounded memory.

use crate::hash::Mixed;
use std::collections::HashMap;

/// Different values that are told apart; of more, neighbours are taken for one another.
const VALUES: usize = 1 << 16;

/// How a figure is spread over calls. All are 0 of no calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spread {
    /// How many calls.
    pub count: u64,
    /// All of them together.
    pub sum: u64,
    /// The least.
    pub least: u64,
    /// What half of them are not above: of an even number the lower of the two in the middle.
    pub median: u64,
    /// The greatest.
    pub greatest: u64,
    /// How far the median may be off; 0 but for figures of more than 65,536 different values.
    pub rounding: u64,
}

/// Where a call begins: the chunk, and how many calls of the function begin before it there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub chunk: u32,
    pub nth: u32,
}

/// A call with what it was picked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pick {
    pub value: u64,
    pub place: Place,
}

impl Pick {
    /// The greater, or of two alike the one that began first.
    fn greater(self, other: Self) -> Self {
        let above = |pick: Self| (pick.value, std::cmp::Reverse(pick.place));
        if above(other) > above(self) {
            other
        } else {
            self
        }
    }
}

/// A [`Spread`] under construction.
#[derive(Debug, Default)]
pub(super) struct Gather {
    count: u64,
    sum: u64,
    least: Option<u64>,
    greatest: Option<Pick>,
    /// How often there was each value, without as many of its last bits, and the call that began first.
    values: HashMap<u64, (u64, Pick), Mixed>,
    bits: u32,
}

impl Gather {
    /// Adds a call's figure.
    pub fn add(&mut self, value: u64, place: Place) {
        let pick = Pick { value, place };
        self.count += 1;
        self.sum = self.sum.saturating_add(value);
        self.least = Some(self.least.map_or(value, |least| least.min(value)));
        self.greatest = Some(self.greatest.map_or(pick, |greatest| greatest.greater(pick)));
        self.count_value(1, pick);
        while self.values.len() > VALUES {
            self.bits += 1;
            for (_, (count, pick)) in std::mem::take(&mut self.values) {
                self.count_value(count, pick);
            }
        }
    }

    fn count_value(&mut self, count: u64, pick: Pick) {
        let (sum, first) = self.values.entry(pick.value >> self.bits).or_insert((0, pick));
        *sum += count;
        if pick.place < first.place {
            *first = pick;
        }
    }

    /// How many calls.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The first call of the greatest figure.
    pub fn greatest(&self) -> Option<Pick> {
        self.greatest
    }

    /// The first call of the figure that half of all are not above.
    pub fn median(&self) -> Option<Pick> {
        let mut all: Vec<_> = self.values.iter().map(|(value, seen)| (*value, *seen)).collect();
        all.sort_unstable_by_key(|(value, _)| *value);
        let mut below = 0;
        let reaches = |(_, (count, _)): &(u64, (u64, Pick))| {
            below += count;
            below >= self.count.div_ceil(2)
        };
        all.into_iter().find(reaches).map(|(_, (_, first))| first)
    }

    /// What it came to.
    pub fn spread(&self) -> Spread {
        Spread {
            count: self.count,
            sum: self.sum,
            least: self.least.unwrap_or(0),
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

    fn gather(values: impl IntoIterator<Item = u64>) -> Gather {
        let mut gather = Gather::default();
        values.into_iter().zip(0..).for_each(|(value, nth)| gather.add(value, Place { chunk: nth / 7, nth }));
        gather
    }

    #[test]
    fn nothing_is_spread_over_nothing() {
        assert_eq!(Gather::default().spread(), Spread::default());
        assert_eq!((Gather::default().median(), Gather::default().greatest()), (None, None));
    }

    #[test]
    fn of_calls_alike_the_first_is_picked() {
        let gather = gather([5, 9, 5, 1, 9]);
        assert_eq!(gather.median().map(|pick| (pick.value, pick.place.nth)), Some((5, 0)));
        assert_eq!(gather.greatest().map(|pick| (pick.value, pick.place.nth)), Some((9, 1)));
    }

    #[test]
    fn of_many_values_the_median_is_near() {
        let many = 3 * VALUES as u64;
        let spread = gather((0..many).map(|value| 5 * value)).spread();
        assert_eq!((spread.least, spread.greatest, spread.count), (0, 5 * (many - 1), many));
        assert!((1..64).contains(&spread.rounding), "{spread:?}");
        assert!(spread.median.abs_diff(5 * (many / 2 - 1)) <= spread.rounding, "{spread:?}");
    }

    proptest! {
        #[test]
        fn a_spread_is_that_of_the_sorted_values(values in prop::collection::vec(0u64..50, 1..60)) {
            let spread = gather(values.iter().copied()).spread();
            let mut sorted = values.clone();
            sorted.sort_unstable();
            let expected = Spread {
                count: values.len() as u64,
                sum: values.iter().sum(),
                least: sorted[0],
                median: sorted[(values.len() - 1) / 2],
                greatest: sorted[values.len() - 1],
                rounding: 0,
            };
            prop_assert_eq!(spread, expected);
        }
    }
}
