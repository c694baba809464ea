//! Some regions of a profile: all of them, or those of one name with what lies within them.

use crate::{Nanoseconds, Profile, RegionStats, Tables};

/// Which regions are meant.
///
/// Times of a region include those of the regions within it, rows of functions, paths and the like and
/// user time do not ([`RegionStats`]): the former are added for the outermost, the latter for all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    wanted: Vec<bool>,
    outermost: Vec<u32>,
}

/// Times and counters of a [`Scope`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ScopeTotals {
    /// `busy_ns + idle_ns`.
    pub elapsed_ns: Nanoseconds,
    /// The CPU ran.
    pub busy_ns: Nanoseconds,
    /// The CPU was halted.
    pub idle_ns: Nanoseconds,
    /// User mode outside of traced functions.
    pub user_ns: Nanoseconds,
    /// Kernel code with no known function open.
    pub unattributed_ns: Nanoseconds,
    /// Operations that the outermost regions counted.
    pub operations: u64,
    /// Instructions in the kernel.
    pub kernel_instructions: u64,
}

impl Scope {
    /// Every region.
    pub fn all(tables: &Tables) -> Self {
        let outermost = tables.regions.iter().filter(|row| row.depth == 0).map(|row| row.region);
        Self { wanted: vec![true; tables.regions.len()], outermost: outermost.collect() }
    }

    /// The regions of this name and those within them; none if there is none of that name.
    pub fn named(tables: &Tables, name: &str) -> Option<Self> {
        let mut scope = Self { wanted: vec![false; tables.regions.len()], outermost: Vec::new() };
        for row in tables.regions.iter().filter(|row| row.name == name) {
            if !scope.contains(row.region) {
                scope.outermost.push(row.region);
                let within = tables.within(row.region);
                let inner = scope.wanted.iter_mut().skip(within.start as usize).take(within.len());
                inner.for_each(|wanted| *wanted = true);
            }
        }
        (!scope.outermost.is_empty()).then_some(scope)
    }

    /// Every region but those of these names: what was done in them themselves is left out, and regions within them are not.
    pub fn without(tables: &Tables, names: &[&str]) -> Self {
        let mut scope = Self { wanted: vec![false; tables.regions.len()], outermost: Vec::new() };
        // Rows of regions follow those of what they are in: outside of this one nothing of its depth is open.
        let mut open: Option<u32> = None;
        for row in &tables.regions {
            if open.is_some_and(|depth| row.depth <= depth) {
                open = None;
            }
            if names.contains(&row.name.as_str()) {
                continue;
            }
            if let Some(wanted) = scope.wanted.get_mut(row.region as usize) {
                *wanted = true;
            }
            if open.is_none() {
                open = Some(row.depth);
                scope.outermost.push(row.region);
            }
        }
        scope
    }

    /// Some regions by themselves: what was done in them, and in none within them. Times of a region have those of the regions
    /// within it, so that only what is added for all regions is right of these.
    pub fn rows(tables: &Tables, is_one: impl Fn(&RegionStats) -> bool) -> Self {
        let wanted: Vec<bool> = tables.regions.iter().map(&is_one).collect();
        let outermost = tables.regions.iter().filter(|row| is_one(row)).map(|row| row.region);
        Self { outermost: outermost.collect(), wanted }
    }

    /// The regions of it that are in no other: rows that include the regions within are added for these.
    pub fn outermost(&self) -> &[u32] {
        &self.outermost
    }

    /// Whether rows of this region count.
    pub fn contains(&self, region: u32) -> bool {
        self.wanted.get(region as usize).copied().unwrap_or(false)
    }

    /// Its times and counters.
    pub fn totals(&self, profile: &Profile) -> ScopeTotals {
        let regions = &profile.tables.regions;
        let outer = || self.outermost.iter().filter_map(|region| regions.get(*region as usize));
        let all = || regions.iter().filter(|row| self.contains(row.region));
        let time = |of: fn(&RegionStats) -> Nanoseconds| outer().map(of).sum::<Nanoseconds>();
        let count = |of: fn(&RegionStats) -> u64| outer().map(of).fold(0, u64::saturating_add);
        ScopeTotals {
            elapsed_ns: time(|row| row.elapsed_ns),
            busy_ns: time(|row| row.busy_ns),
            idle_ns: time(|row| row.idle_ns),
            user_ns: all().map(|row| row.user_ns).sum(),
            unattributed_ns: all().map(|row| row.unattributed_ns).sum(),
            operations: count(|row| row.operations),
            kernel_instructions: count(|row| row.kernel_instructions.0),
        }
    }
}
