//! Totals of functions over several regions.

use crate::rules::TableRow;
use crate::{FunctionIndex, FunctionStats, RegionStats, Tables, Ticks};
use std::collections::BTreeMap;
use std::ops::Range;

/// Calls and times of a function in several regions: a line of McRae's summary (Figure 3).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FunctionTotals {
    /// Row of [`Tables::symbols`].
    pub function: FunctionIndex,
    /// Calls made in the regions.
    pub calls: u64,
    /// Calls that ended in the regions. Exceeds `calls` if some were made before.
    pub ended: u64,
    /// Self time of all calls.
    pub self_ticks: Ticks,
    /// Self time of the calls that ended, from entry to exit.
    pub ended_self_ticks: Ticks,
    /// Total time of the calls that ended, callees included; once for each level of recursion.
    pub total_ticks: Ticks,
    /// Greatest self time of one call that ended; 0 without any.
    pub max_ticks: Ticks,
    /// Least self time of one call that ended; 0 without any.
    pub min_ticks: Ticks,
    /// Greatest total time of one call that ended; 0 without any.
    pub slowest_ticks: Ticks,
    /// Virtual time at which the slowest call began, the first of several.
    pub slowest_at_ticks: Ticks,
}

/// Makes a row or totals with all figures of the other.
macro_rules! with_figures {
    ($from:expr, $Type:ident { $($field:ident)? }) => {
        $Type {
            $($field,)?
            function: $from.function,
            calls: $from.calls,
            ended: $from.ended,
            self_ticks: $from.self_ticks,
            ended_self_ticks: $from.ended_self_ticks,
            total_ticks: $from.total_ticks,
            max_ticks: $from.max_ticks,
            min_ticks: $from.min_ticks,
            slowest_ticks: $from.slowest_ticks,
            slowest_at_ticks: $from.slowest_at_ticks,
        }
    };
}

impl FunctionTotals {
    /// Returns totals of zero calls.
    pub fn none(function: FunctionIndex) -> Self {
        Self { function, ..Self::default() }
    }

    /// Returns the mean self time of calls that ended, rounded down; 0 without any. Lies between
    /// `min_ticks` and `max_ticks`.
    pub fn avg_ticks(&self) -> Ticks {
        Ticks(self.ended_self_ticks.0.checked_div(self.ended).unwrap_or(0))
    }

    /// Returns the self time outside of calls that ended. Negative if calls ended that spent their
    /// time in regions before.
    pub fn open_ticks(&self) -> i64 {
        let open = i128::from(self.self_ticks.0) - i128::from(self.ended_self_ticks.0);
        open.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }

    /// Checks whether calls were made that did not end, or ended that were made elsewhere. If so,
    /// figures of single calls cover only the calls that ended.
    pub fn has_open_calls(&self) -> bool {
        self.calls != self.ended || self.self_ticks != self.ended_self_ticks
    }

    /// Returns the times with all counts and extremes of calls set to 0.
    pub fn without_calls(self) -> Self {
        Self { self_ticks: self.self_ticks, total_ticks: self.total_ticks, ..Self::none(self.function) }
    }

    /// Returns the totals as a row of a region's table.
    pub fn row(&self, region: u32) -> FunctionStats {
        with_figures!(self, FunctionStats { region })
    }

    /// Adds totals of the same function in other regions.
    pub fn add(&mut self, other: &Self) {
        let mut sum = self.row(0);
        sum.add(&other.row(0));
        *self = Self::from(&sum);
    }
}

impl FunctionStats {
    /// Adds the extremes of other calls, which are 0 in both rows without calls that ended.
    pub(crate) fn add_extremes(&mut self, other: &Self) {
        if other.ended > 0 {
            let (max, min) = (self.max_ticks.max(other.max_ticks), self.min_ticks.min(other.min_ticks));
            (self.max_ticks, self.min_ticks) =
                if self.ended == 0 { (other.max_ticks, other.min_ticks) } else { (max, min) };
            let slower = other.slowest_ticks > self.slowest_ticks;
            let earlier =
                other.slowest_ticks == self.slowest_ticks && other.slowest_at_ticks < self.slowest_at_ticks;
            if self.ended == 0 || slower || earlier {
                (self.slowest_ticks, self.slowest_at_ticks) = (other.slowest_ticks, other.slowest_at_ticks);
            }
        }
    }
}

impl From<&FunctionStats> for FunctionTotals {
    fn from(row: &FunctionStats) -> Self {
        with_figures!(row, Self {})
    }
}

impl Tables {
    /// Sums the functions over the regions for which `wanted` returns true, sorted by function
    /// number.
    pub fn totals(&self, wanted: impl Fn(u32) -> bool) -> Vec<FunctionTotals> {
        let mut totals = BTreeMap::new();
        for row in self.functions.iter().filter(|row| wanted(row.region)) {
            let total = totals.entry(row.function).or_insert(FunctionTotals::none(row.function));
            total.add(&FunctionTotals::from(row));
        }
        totals.into_values().collect()
    }

    /// Returns the row numbers of a region and its nested regions: they are contiguous, the outer
    /// one first.
    pub fn within(&self, region: u32) -> Range<u32> {
        let rest = self.regions.get(region as usize..).unwrap_or_default();
        let Some((outer, inner)) = rest.split_first() else { return region..region };
        let deeper = |row: &&RegionStats| row.depth > outer.depth;
        region..region + 1 + inner.iter().take_while(deeper).count() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(region: u32, function: u32, numbers: [u64; 5]) -> FunctionStats {
        let [calls, net, elapsed, max, min] = numbers;
        FunctionStats {
            region,
            function: FunctionIndex(function),
            calls,
            ended: calls,
            self_ticks: Ticks(net),
            ended_self_ticks: Ticks(if calls == 0 { 0 } else { net }),
            total_ticks: Ticks(elapsed),
            max_ticks: Ticks(max),
            min_ticks: Ticks(min),
            slowest_ticks: Ticks(elapsed),
            slowest_at_ticks: Ticks(calls),
        }
    }

    #[test]
    fn regions_add_up_and_rows_without_calls_have_no_extremes() {
        let functions = vec![
            row(0, 7, [2, 100, 300, 60, 40]),
            row(1, 7, [0, 5, 0, 0, 0]),
            row(2, 7, [1, 30, 30, 30, 30]),
        ];
        let tables = Tables { functions, ..Tables::default() };
        let all = tables.totals(|_| true);
        assert_eq!(
            all,
            [FunctionTotals {
                slowest_ticks: Ticks(300),
                slowest_at_ticks: Ticks(2),
                ended_self_ticks: Ticks(130),
                ..FunctionTotals::from(&row(0, 7, [3, 135, 330, 60, 30]))
            }]
        );
        assert_eq!((all[0].avg_ticks(), all[0].open_ticks()), (Ticks(43), 5));
        assert_eq!(tables.totals(|region| region == 1)[0].avg_ticks(), Ticks::ZERO);
    }

    #[test]
    fn an_average_is_of_the_calls_that_ended() {
        // `__schedule` in a short region: one call ended that took 185 ns, another is open with 170 so far.
        let open = FunctionStats {
            calls: 2,
            ended: 1,
            self_ticks: Ticks(355),
            ended_self_ticks: Ticks(185),
            ..row(0, 7, [1, 355, 185, 185, 185])
        };
        let totals = FunctionTotals::from(&open);
        assert_eq!(
            (totals.avg_ticks(), totals.open_ticks(), totals.has_open_calls()),
            (Ticks(185), 170, true)
        );
        // A call that ended here and had spent most of its time in the region before.
        let late = FunctionStats { self_ticks: Ticks(20), ..row(1, 7, [1, 185, 185, 185, 185]) };
        assert_eq!(FunctionTotals::from(&late).open_ticks(), -165);
        let mut sum = totals;
        sum.add(&FunctionTotals::from(&late));
        assert_eq!((sum.avg_ticks(), sum.open_ticks(), sum.row(0).ended), (Ticks(185), 5, 2));
        assert_eq!(sum.without_calls().avg_ticks(), Ticks::ZERO);
    }
}
