//! Functions summed over regions.

use crate::{FunctionIndex, FunctionStats, Nanoseconds, RegionStats, Tables};
use std::collections::BTreeMap;
use std::ops::Range;

/// What a function did in several regions together: a line of McRae's summary (Figure 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunctionTotals {
    /// Which function.
    pub function: FunctionIndex,
    /// Calls that were made.
    pub calls: u64,
    /// Calls that ended. More than were made if some were made before.
    pub ended: u64,
    /// Time in the function itself, in all calls.
    pub net_ns: Nanoseconds,
    /// Time in the function itself in the calls that ended, from entry to exit.
    pub ended_net_ns: Nanoseconds,
    /// Time between entry and exit of the calls that ended, callees included; once per level of recursion.
    pub elapsed_ns: Nanoseconds,
    /// Greatest net time of one call that ended; 0 without any.
    pub max_ns: Nanoseconds,
    /// Least net time of one call that ended; 0 without any.
    pub min_ns: Nanoseconds,
    /// Greatest elapsed time of one call that ended; 0 without any.
    pub slowest_ns: Nanoseconds,
    /// Virtual time at which that call began, the first of several.
    pub slowest_at_ns: Nanoseconds,
}

impl FunctionTotals {
    /// Nothing yet of a function.
    pub fn none(function: FunctionIndex) -> Self {
        let zero = Nanoseconds::ZERO;
        Self {
            function,
            calls: 0,
            ended: 0,
            net_ns: zero,
            ended_net_ns: zero,
            elapsed_ns: zero,
            max_ns: zero,
            min_ns: zero,
            slowest_ns: zero,
            slowest_at_ns: zero,
        }
    }

    /// Net time per call that ended, rounded down; 0 without any. Lies between least and greatest.
    pub fn avg_ns(&self) -> Nanoseconds {
        Nanoseconds(self.ended_net_ns.0.checked_div(self.ended).unwrap_or(0))
    }

    /// Net time that is not of a call that ended: negative where calls ended that had spent theirs in regions before.
    pub fn open_ns(&self) -> i64 {
        let open = i128::from(self.net_ns.0) - i128::from(self.ended_net_ns.0);
        open.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }

    /// Whether calls were made that did not end, or ended that were made elsewhere: figures of single calls are
    /// those of the calls that ended, and not of all.
    pub fn has_open_calls(&self) -> bool {
        self.calls != self.ended || self.net_ns != self.ended_net_ns
    }

    /// Its times alone.
    pub fn without_calls(self) -> Self {
        Self { net_ns: self.net_ns, elapsed_ns: self.elapsed_ns, ..Self::none(self.function) }
    }

    /// As a row of a region's table.
    pub fn row(&self, region: u32) -> FunctionStats {
        let Self {
            function,
            calls,
            ended,
            net_ns,
            ended_net_ns,
            elapsed_ns,
            max_ns,
            min_ns,
            slowest_ns,
            slowest_at_ns,
        } = *self;
        FunctionStats {
            region,
            function,
            calls,
            ended,
            net_ns,
            ended_net_ns,
            elapsed_ns,
            max_ns,
            min_ns,
            slowest_ns,
            slowest_at_ns,
        }
    }

    /// Adds another part of the same function's work.
    pub fn add(&mut self, other: &Self) {
        if other.ended > 0 {
            let (max, min) = (self.max_ns.max(other.max_ns), self.min_ns.min(other.min_ns));
            (self.max_ns, self.min_ns) =
                if self.ended == 0 { (other.max_ns, other.min_ns) } else { (max, min) };
            let slower = other.slowest_ns > self.slowest_ns;
            let earlier = other.slowest_ns == self.slowest_ns && other.slowest_at_ns < self.slowest_at_ns;
            if self.ended == 0 || slower || earlier {
                (self.slowest_ns, self.slowest_at_ns) = (other.slowest_ns, other.slowest_at_ns);
            }
        }
        self.calls = self.calls.saturating_add(other.calls);
        self.ended = self.ended.saturating_add(other.ended);
        self.net_ns += other.net_ns;
        self.ended_net_ns += other.ended_net_ns;
        self.elapsed_ns += other.elapsed_ns;
    }
}

impl From<&FunctionStats> for FunctionTotals {
    fn from(row: &FunctionStats) -> Self {
        Self {
            function: row.function,
            calls: row.calls,
            ended: row.ended,
            net_ns: row.net_ns,
            ended_net_ns: row.ended_net_ns,
            elapsed_ns: row.elapsed_ns,
            max_ns: row.max_ns,
            min_ns: row.min_ns,
            slowest_ns: row.slowest_ns,
            slowest_at_ns: row.slowest_at_ns,
        }
    }
}

impl Tables {
    /// The functions summed over the regions for which `wanted` holds, by function number.
    pub fn totals(&self, wanted: impl Fn(u32) -> bool) -> Vec<FunctionTotals> {
        let mut totals = BTreeMap::new();
        for row in self.functions.iter().filter(|row| wanted(row.region)) {
            let total = totals.entry(row.function).or_insert(FunctionTotals::none(row.function));
            total.add(&FunctionTotals::from(row));
        }
        totals.into_values().collect()
    }

    /// A region and those within it, as row numbers: they follow each other, the outer one first.
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
            net_ns: Nanoseconds(net),
            ended_net_ns: Nanoseconds(if calls == 0 { 0 } else { net }),
            elapsed_ns: Nanoseconds(elapsed),
            max_ns: Nanoseconds(max),
            min_ns: Nanoseconds(min),
            slowest_ns: Nanoseconds(elapsed),
            slowest_at_ns: Nanoseconds(calls),
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
                slowest_ns: Nanoseconds(300),
                slowest_at_ns: Nanoseconds(2),
                ended_net_ns: Nanoseconds(130),
                ..FunctionTotals::from(&row(0, 7, [3, 135, 330, 60, 30]))
            }]
        );
        assert_eq!((all[0].avg_ns(), all[0].open_ns()), (Nanoseconds(43), 5));
        assert_eq!(tables.totals(|region| region == 1)[0].avg_ns(), Nanoseconds::ZERO);
    }

    #[test]
    fn an_average_is_of_the_calls_that_ended() {
        // `__schedule` in a short region: one call ended that took 185 ns, another is open with 170 so far.
        let open = FunctionStats {
            calls: 2,
            ended: 1,
            net_ns: Nanoseconds(355),
            ended_net_ns: Nanoseconds(185),
            ..row(0, 7, [1, 355, 185, 185, 185])
        };
        let totals = FunctionTotals::from(&open);
        assert_eq!(
            (totals.avg_ns(), totals.open_ns(), totals.has_open_calls()),
            (Nanoseconds(185), 170, true)
        );
        // A call that ended here and had spent most of its time in the region before.
        let late = FunctionStats { net_ns: Nanoseconds(20), ..row(1, 7, [1, 185, 185, 185, 185]) };
        assert_eq!(FunctionTotals::from(&late).open_ns(), -165);
        let mut sum = totals;
        sum.add(&FunctionTotals::from(&late));
        assert_eq!((sum.avg_ns(), sum.open_ns(), sum.row(0).ended), (Nanoseconds(185), 5, 2));
        assert_eq!(sum.without_calls().avg_ns(), Nanoseconds::ZERO);
    }
}
