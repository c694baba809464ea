//! What the renderers need of a profile, added up once.

use crate::{Error, Result};
use kerntune_profile::{FunctionTotals, ModelEvent, Nanoseconds, Profile, RegionStats, Scope, Tables};
use std::collections::BTreeMap;

/// A function over the regions that were asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FunctionRow {
    pub name: String,
    pub file: Option<String>,
    pub totals: FunctionTotals,
}

/// Times that percentages are of, in ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Times {
    pub elapsed: u64,
    pub busy: u64,
    pub idle: u64,
    pub user: u64,
    /// Kernel code with no known function open.
    pub unattributed: u64,
}

/// All regions of one name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RegionRow {
    pub name: String,
    /// How many regions there are of that name.
    pub count: u64,
    pub operations: u64,
    pub elapsed: u64,
    pub idle: u64,
    pub kernel_instructions: u64,
    pub user_instructions: u64,
    pub taken_branches: u64,
    pub l1i_misses: u64,
    pub itlb_misses: u64,
    /// What the model counted of kernel code behind the first level, of each kind that it can have.
    pub events: BTreeMap<ModelEvent, u64>,
}

impl RegionRow {
    /// A counter per operation; none without operations.
    pub fn per_operation(&self, counter: u64) -> Option<f64> {
        (self.operations > 0).then(|| counter as f64 / self.operations as f64)
    }
}

/// A profile, or its regions of one name.
pub(crate) struct View {
    pub functions: Vec<FunctionRow>,
    pub times: Times,
}

impl View {
    /// `region` restricts everything to the regions of that name and those within them.
    pub fn new(profile: &Profile, region: Option<&str>) -> Result<Self> {
        let tables = &profile.tables;
        let Some(name) = region else {
            let times = Times {
                elapsed: profile.manifest.elapsed_ns.get(),
                busy: profile.manifest.busy_ns.get(),
                idle: profile.manifest.idle_ns.get(),
                user: sum(&tables.regions, |row| row.user_ns),
                unattributed: sum(&tables.regions, |row| row.unattributed_ns),
            };
            return Ok(Self { functions: functions(tables, |_| true), times });
        };
        // Times of a region include those of the regions within it, rows of functions and user
        // time do not (`RegionStats`): the former are added for the outermost, the latter for all.
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
        let times = Times {
            elapsed: sum(outermost.iter().copied(), |row| row.elapsed_ns),
            busy: sum(outermost.iter().copied(), |row| row.busy_ns),
            idle: sum(outermost.iter().copied(), |row| row.idle_ns),
            user: sum(all(), |row| row.user_ns),
            unattributed: sum(all(), |row| row.unattributed_ns),
        };
        Ok(Self { functions: functions(tables, is_wanted), times })
    }
}

fn sum<'a>(rows: impl IntoIterator<Item = &'a RegionStats>, of: fn(&RegionStats) -> Nanoseconds) -> u64 {
    rows.into_iter().map(of).sum::<Nanoseconds>().get()
}

fn functions(tables: &Tables, wanted: impl Fn(u32) -> bool) -> Vec<FunctionRow> {
    let row = |totals: FunctionTotals| FunctionRow {
        name: tables.name(totals.function).into(),
        file: tables.symbols.get(totals.function.get() as usize).and_then(|symbol| symbol.file.clone()),
        totals,
    };
    tables.totals(wanted).into_iter().map(row).collect()
}

/// The regions by name, in the order in which they first began.
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
            (&mut row.elapsed, region.elapsed_ns.get()),
            (&mut row.idle, region.idle_ns.get()),
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

/// A share in per cent; 0 of nothing is 0.
pub(crate) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        100.0 * part as f64 / whole as f64
    }
}

/// The regions of this name and those within them; all if no name is given.
pub fn scope(profile: &Profile, region: Option<&str>) -> Result<Scope> {
    match region {
        None => Ok(Scope::all(&profile.tables)),
        Some(name) => Scope::named(&profile.tables, name).ok_or_else(|| Error::no_region(name, profile)),
    }
}
