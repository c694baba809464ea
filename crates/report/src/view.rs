//! Sums over a profile's regions that several reports need.

use crate::{Error, Result};
use kerntune_profile::{
    FunctionTotals, ModelEvent, Profile, RegionScope, RegionStats, ScopeTotals, Symbol, Ticks,
};
use kerntune_table::{share, Document};
use std::collections::BTreeMap;

/// Function with its totals over the selected regions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FunctionRow {
    pub name: String,
    pub file: Option<String>,
    /// False for functions of programs.
    pub is_kernel: bool,
    pub totals: FunctionTotals,
}

impl FunctionRow {
    /// Returns self time in per cent of the kernel's time; `None` for functions of programs.
    pub fn kernel_percent(&self, times: &ScopeTimes) -> Option<f64> {
        self.is_kernel.then(|| share(self.totals.self_ticks.get(), times.kernel()))
    }
}

/// Times that percentages refer to, in ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ScopeTimes {
    pub elapsed: u64,
    pub busy: u64,
    pub idle: u64,
    pub user: u64,
    /// Kernel code with no known function open.
    pub unattributed: u64,
}

impl ScopeTimes {
    /// Returns the time of kernel code, in ticks.
    pub fn kernel(&self) -> u64 {
        self.busy.saturating_sub(self.user)
    }

    /// Adds the JSON members.
    pub fn add(&self, document: &mut Document) {
        document.field("elapsed_ns", "Time inside regions.", self.elapsed);
        document.field("busy", "What code took: `elapsed_ns` − `idle_ns`.", self.busy);
        document.field("idle_ns", "Time in which the CPU was halted.", self.idle);
        document.field("user", "What user code took.", self.user);
        document.field("unattributed", "Kernel code with no known function open.", self.unattributed);
    }
}

impl From<&ScopeTotals> for ScopeTimes {
    fn from(totals: &ScopeTotals) -> Self {
        Self {
            elapsed: totals.elapsed_ticks.get(),
            busy: totals.busy_ticks.get(),
            idle: totals.idle_ticks.get(),
            user: totals.user_ticks.get(),
            unattributed: totals.unattributed_ticks.get(),
        }
    }
}

/// Sums over all regions of one name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RegionRow {
    pub name: String,
    /// Number of regions of that name.
    pub count: u64,
    pub operations: u64,
    pub elapsed: u64,
    pub idle: u64,
    pub kernel_instructions: u64,
    pub user_instructions: u64,
    pub taken_branches: u64,
    pub l1i_misses: u64,
    pub itlb_misses: u64,
    /// Model events of kernel code beyond the first cache level, for each kind that the model has.
    pub events: BTreeMap<ModelEvent, u64>,
}

impl RegionRow {
    /// Returns a counter per operation; `None` without operations.
    pub fn per_operation(&self, counter: u64) -> Option<f64> {
        (self.operations > 0).then(|| counter as f64 / self.operations as f64)
    }
}

/// Functions and times of a profile, or of its regions of one name.
pub(crate) struct ScopeView {
    pub functions: Vec<FunctionRow>,
    pub times: ScopeTimes,
}

impl ScopeView {
    /// Adds up a profile; `region` restricts it to the regions of that name and those within them.
    pub fn new(profile: &Profile, region: Option<&str>) -> Result<Self> {
        let tables = &profile.tables;
        let Some(name) = region else {
            let times = ScopeTimes {
                elapsed: profile.manifest.elapsed_ticks.get(),
                busy: profile.manifest.busy_ticks.get(),
                idle: profile.manifest.idle_ticks.get(),
                user: sum(&tables.regions, |row| row.user_ticks),
                unattributed: sum(&tables.regions, |row| row.unattributed_ticks),
            };
            return Ok(Self { functions: functions(profile, |_| true), times });
        };
        // A region's times include those of regions within it; rows of functions and user time do
        // not (`RegionStats`). So the former are added for the outermost regions, the latter for
        // all.
        let mut wanted = vec![false; tables.regions.len()];
        let mut outermost = Vec::new();
        for (at, row) in tables.regions.iter().enumerate().filter(|(_, row)| row.name == name) {
            if !wanted[at] {
                outermost.push(row);
                tables.within(row.region).for_each(|inner| wanted[inner as usize] = true);
            }
        }
        if outermost.is_empty() {
            return Err(Error::no_region(name, profile));
        }
        let is_wanted = |region: u32| wanted.get(region as usize).copied().unwrap_or(false);
        let all = || tables.regions.iter().filter(|row| is_wanted(row.region));
        let times = ScopeTimes {
            elapsed: sum(outermost.iter().copied(), |row| row.elapsed_ticks),
            busy: sum(outermost.iter().copied(), |row| row.busy_ticks),
            idle: sum(outermost.iter().copied(), |row| row.idle_ticks),
            user: sum(all(), |row| row.user_ticks),
            unattributed: sum(all(), |row| row.unattributed_ticks),
        };
        Ok(Self { functions: functions(profile, is_wanted), times })
    }
}

/// Checks whether a function belongs to a program, not the kernel. In profiles of the running
/// kernel, modules have a name and programs a path.
pub(crate) fn is_user(profile: &Profile, symbol: &Symbol) -> bool {
    match &symbol.module {
        Some(module) if profile.manifest.sampled.is_some() => module.starts_with('/'),
        _ => !symbol.is_kernel(),
    }
}

fn sum<'a>(rows: impl IntoIterator<Item = &'a RegionStats>, of: fn(&RegionStats) -> Ticks) -> u64 {
    rows.into_iter().map(of).sum::<Ticks>().get()
}

fn functions(profile: &Profile, wanted: impl Fn(u32) -> bool) -> Vec<FunctionRow> {
    let tables = &profile.tables;
    let row = |totals: FunctionTotals| {
        let symbol = tables.symbols.get(totals.function.get() as usize);
        FunctionRow {
            name: tables.name(totals.function).into(),
            file: symbol.and_then(|symbol| symbol.file.clone()),
            is_kernel: !symbol.is_some_and(|symbol| is_user(profile, symbol)),
            totals,
        }
    };
    tables.totals(wanted).into_iter().map(row).collect()
}

/// Returns the regions by name, in the order of their first begin.
pub(crate) fn regions(profile: &Profile) -> Vec<RegionRow> {
    let mut rows: Vec<RegionRow> = Vec::new();
    for region in &profile.tables.regions {
        let at = rows.iter().position(|row| row.name == region.name).unwrap_or_else(|| {
            rows.push(RegionRow { name: region.name.clone(), ..RegionRow::default() });
            rows.len() - 1
        });
        let row = &mut rows[at];
        row.count += 1;
        for (sum, figure) in [
            (&mut row.operations, region.operations),
            (&mut row.elapsed, region.elapsed_ticks.get()),
            (&mut row.idle, region.idle_ticks.get()),
            (&mut row.kernel_instructions, region.kernel_instructions.get()),
            (&mut row.user_instructions, region.user_instructions.get()),
            (&mut row.taken_branches, region.kernel_taken_branches),
            (&mut row.l1i_misses, region.kernel_l1i_misses),
            (&mut row.itlb_misses, region.kernel_itlb_misses),
        ] {
            *sum = sum.saturating_add(figure);
        }
        for counted in profile.tables.model_events.iter().filter(|counted| counted.region == region.region) {
            let sum = row.events.entry(counted.event).or_default();
            *sum = sum.saturating_add(counted.kernel);
        }
    }
    rows
}

/// Returns the regions of this name and those within them; all regions without a name.
pub fn scope(profile: &Profile, region: Option<&str>) -> Result<RegionScope> {
    match region {
        None => Ok(RegionScope::all(&profile.tables)),
        Some(name) => {
            RegionScope::named(&profile.tables, name).ok_or_else(|| Error::no_region(name, profile))
        }
    }
}
