//! How two profiles differ, function by function.

use crate::{FunctionTotals, Profile};
use std::collections::BTreeMap;

/// How the second of two profiles differs from the first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// By name. Functions that share a name (`static` ones of several files) are one line: which
    /// of them is which cannot be told between kernels.
    pub functions: Vec<FunctionDifference>,
}

/// One function in both profiles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionDifference {
    /// Name in the symbol table.
    pub name: String,
    /// In the first profile; `None` if it did not run there. Its `function` is the lowest number
    /// among those of that name.
    pub base: Option<FunctionTotals>,
    /// In the second profile.
    pub other: Option<FunctionTotals>,
}

impl FunctionDifference {
    /// Change of the net time in nanoseconds, from base to other.
    pub fn net_change(&self) -> i128 {
        change(self.base, self.other, |totals| totals.net_ns.0)
    }

    /// Change of the number of calls, from base to other.
    pub fn calls_change(&self) -> i128 {
        change(self.base, self.other, |totals| totals.calls)
    }
}

fn change(
    base: Option<FunctionTotals>,
    other: Option<FunctionTotals>,
    of: impl Fn(&FunctionTotals) -> u64,
) -> i128 {
    let of = |totals: Option<FunctionTotals>| totals.as_ref().map_or(0, &of);
    i128::from(of(other)) - i128::from(of(base))
}

/// Compares two profiles over all their regions; of the same kernel or of two.
pub fn difference(base: &Profile, other: &Profile) -> Difference {
    let mut sides: BTreeMap<String, [Option<FunctionTotals>; 2]> = BTreeMap::new();
    for (side, profile) in [base, other].into_iter().enumerate() {
        for totals in profile.tables.totals(|_| true) {
            let name = profile.tables.name(totals.function).to_owned();
            let place = &mut sides.entry(name).or_default()[side];
            place.get_or_insert(FunctionTotals::none(totals.function)).add(&totals);
        }
    }
    let functions = sides.into_iter().map(|(name, [base, other])| FunctionDifference { name, base, other });
    Difference { functions: functions.collect() }
}
