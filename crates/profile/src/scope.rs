//! Selection of regions: all of them, or those of one name with their nested regions.

use crate::{Profile, RegionStats, Tables, Ticks};

/// Selected regions of a profile.
///
/// Times and counters of a region include its nested regions. Rows of functions and paths, and user
/// time, do not ([`RegionStats`]). So the former are summed over the outermost selected regions,
/// the latter over all selected ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegionScope {
    wanted: Vec<bool>,
    outermost: Vec<u32>,
}

/// Times and counters of a [`RegionScope`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ScopeTotals {
    /// `busy_ticks + idle_ticks`.
    pub elapsed_ticks: Ticks,
    /// Time in which the CPU executed.
    pub busy_ticks: Ticks,
    /// Time in which the CPU was halted.
    pub idle_ticks: Ticks,
    /// Time in user mode outside of traced functions.
    pub user_ticks: Ticks,
    /// Time in kernel code with an empty call stack.
    pub unattributed_ticks: Ticks,
    /// Operations that the outermost regions counted.
    pub operations: u64,
    /// Instructions executed in the kernel.
    pub kernel_instructions: u64,
}

impl RegionScope {
    /// Selects every region.
    pub fn all(tables: &Tables) -> Self {
        let outermost = tables.regions.iter().filter(|row| row.depth == 0).map(|row| row.region);
        Self { wanted: vec![true; tables.regions.len()], outermost: outermost.collect() }
    }

    /// Selects the regions of a name and their nested regions; returns `None` if no region has the
    /// name.
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

    /// Selects every region except those of these names. Drops only what happened in these
    /// themselves; regions nested in them stay.
    pub fn without(tables: &Tables, names: &[&str]) -> Self {
        let mut scope = Self { wanted: vec![false; tables.regions.len()], outermost: Vec::new() };
        // Rows of nested regions follow their outer region: outside of this one nothing of its
        // depth is open.
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

    /// Selects single regions without their nested ones. A region's times include its nested
    /// regions, so only sums over all selected regions are right here.
    pub fn rows(tables: &Tables, is_one: impl Fn(&RegionStats) -> bool) -> Self {
        let wanted: Vec<bool> = tables.regions.iter().map(&is_one).collect();
        let outermost = tables.regions.iter().filter(|row| is_one(row)).map(|row| row.region);
        Self { outermost: outermost.collect(), wanted }
    }

    /// Returns the selected regions that lie in no other selected region.
    pub fn outermost(&self) -> &[u32] {
        &self.outermost
    }

    /// Checks whether rows of this region count.
    pub fn contains(&self, region: u32) -> bool {
        self.wanted.get(region as usize).copied().unwrap_or(false)
    }

    /// Sums the times and counters of the selected regions.
    pub fn totals(&self, profile: &Profile) -> ScopeTotals {
        let regions = &profile.tables.regions;
        let outer = || self.outermost.iter().filter_map(|region| regions.get(*region as usize));
        let all = || regions.iter().filter(|row| self.contains(row.region));
        let time = |of: fn(&RegionStats) -> Ticks| outer().map(of).sum::<Ticks>();
        let count = |of: fn(&RegionStats) -> u64| outer().map(of).fold(0, u64::saturating_add);
        ScopeTotals {
            elapsed_ticks: time(|row| row.elapsed_ticks),
            busy_ticks: time(|row| row.busy_ticks),
            idle_ticks: time(|row| row.idle_ticks),
            user_ticks: all().map(|row| row.user_ticks).sum(),
            unattributed_ticks: all().map(|row| row.unattributed_ticks).sum(),
            operations: count(|row| row.operations),
            kernel_instructions: count(|row| row.kernel_instructions.0),
        }
    }
}
