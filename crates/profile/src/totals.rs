//! Functions summed over regions.

use crate::{FunctionIndex, FunctionStats, Nanoseconds, RegionStats, Tables};
use std::collections::BTreeMap;
use std::ops::Range;

/// What a function did in several regions together: a line of McRae's summary (Figure 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunctionTotals {
    /// Which function.
    pub function: FunctionIndex,
    /// Calls that ended.
    pub calls: u64,
    /// Time in the function itself.
    pub net_ns: Nanoseconds,
    /// Time between entry and exit, callees included; once per level of recursion.
    pub elapsed_ns: Nanoseconds,
    /// Greatest net time of one call; 0 without calls.
    pub max_ns: Nanoseconds,
    /// Least net time of one call; 0 without calls.
    pub min_ns: Nanoseconds,
    /// Greatest elapsed time of one call; 0 without calls.
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
            net_ns: zero,
            elapsed_ns: zero,
            max_ns: zero,
            min_ns: zero,
            slowest_ns: zero,
            slowest_at_ns: zero,
        }
    }

    /// Net time per call, rounded down; 0 without calls.
    pub fn avg_ns(&self) -> Nanoseconds {
        Nanoseconds(self.net_ns.0.checked_div(self.calls).unwrap_or(0))
    }

    /// Adds another part of the same function's work.
    pub fn add(&mut self, other: &Self) {
        if other.calls > 0 {
            let (max, min) = (self.max_ns.max(other.max_ns), self.min_ns.min(other.min_ns));
            (self.max_ns, self.min_ns) =
                if self.calls == 0 { (other.max_ns, other.min_ns) } else { (max, min) };
            let slower = other.slowest_ns > self.slowest_ns;
            let earlier = other.slowest_ns == self.slowest_ns && other.slowest_at_ns < self.slowest_at_ns;
            if self.calls == 0 || slower || earlier {
                (self.slowest_ns, self.slowest_at_ns) = (other.slowest_ns, other.slowest_at_ns);
            }
        }
        self.calls = self.calls.saturating_add(other.calls);
        self.net_ns += other.net_ns;
        self.elapsed_ns += other.elapsed_ns;
    }
}

impl From<&FunctionStats> for FunctionTotals {
    fn from(row: &FunctionStats) -> Self {
        Self {
            function: row.function,
            calls: row.calls,
            net_ns: row.net_ns,
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
            net_ns: Nanoseconds(net),
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
                ..FunctionTotals::from(&row(0, 7, [3, 135, 330, 60, 30]))
            }]
        );
        assert_eq!(all[0].avg_ns(), Nanoseconds(45));
        assert_eq!(tables.totals(|region| region == 1)[0].avg_ns(), Nanoseconds::ZERO);
    }
}
