//! Selection of windows of single calls to embed: the first operations of each region, and the
//! slowest calls of important functions.

use super::amount;
use kerntune_analyze::timeline::{DetailWindow, WindowEnd};
use kerntune_profile::Profile;
use std::collections::BTreeSet;

/// Largest number of calls that are read to find the end of a window.
const MAX_CALLS: usize = 5_000;
/// Number of operations of a region that are shown.
const MAX_OPERATIONS: u32 = 2;
/// Number of region names whose first operations are shown.
const MAX_REGIONS: usize = 24;
/// Number of functions, by self time and again by total time, whose slowest call is shown.
const MAX_FUNCTIONS: usize = 24;

/// Window of single calls to show on a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallWindow {
    /// Description for the reader.
    pub label: String,
    /// Row of the symbol table, if the window is a function's slowest call.
    pub function: Option<u32>,
    /// Part of the trace to read.
    pub window: DetailWindow,
}

/// Selects the windows to show, most informative first, within a page's size.
pub fn windows(profile: &Profile, region: Option<&str>) -> Vec<CallWindow> {
    let tables = &profile.tables;
    let mut wanted: Vec<bool> = vec![region.is_none(); tables.regions.len()];
    for outer in tables.regions.iter().filter(|row| Some(row.name.as_str()) == region) {
        for inner in tables.within(outer.region) {
            if let Some(wanted) = wanted.get_mut(inner as usize) {
                *wanted = true;
            }
        }
    }
    let is_wanted = |region: u32| wanted.get(region as usize).copied().unwrap_or(false);

    let mut choices = Vec::new();
    let mut names = BTreeSet::new();
    for row in tables.regions.iter().filter(|row| is_wanted(row.region)) {
        if names.len() == MAX_REGIONS || !names.insert(&row.name) {
            continue;
        }
        let end = row.begin_ticks + row.elapsed_ticks;
        let (label, until) = match row.operations {
            0 => (format!("beginning of {}", row.name), WindowEnd::Time(end.get())),
            1 => (format!("operation of {}", row.name), WindowEnd::Operations(1)),
            _ => (format!("first operations of {}", row.name), WindowEnd::Operations(MAX_OPERATIONS)),
        };
        let window = DetailWindow { begin: row.begin_ticks.get(), until, calls: MAX_CALLS };
        choices.push(CallWindow { label, function: None, window });
    }

    let mut totals = tables.totals(is_wanted);
    totals.retain(|row| row.ended > 0 && row.slowest_ticks.get() > 0);
    let mut functions = BTreeSet::new();
    let mut slowest = Vec::new();
    for weight in [
        |row: &kerntune_profile::FunctionTotals| row.self_ticks,
        |row: &kerntune_profile::FunctionTotals| row.total_ticks,
    ] {
        totals.sort_by_key(|row| std::cmp::Reverse((weight(row), row.function)));
        for row in totals.iter().take(MAX_FUNCTIONS).filter(|row| functions.insert(row.function)) {
            let name = tables.name(row.function);
            let label =
                format!("slowest {name}: {}", amount(row.slowest_ticks.get(), profile.manifest.exact));
            let function = row.function.get();
            let until = WindowEnd::EndOf(function);
            let window = DetailWindow { begin: row.slowest_at_ticks.get(), until, calls: MAX_CALLS };
            slowest.push(CallWindow { label, function: Some(function), window });
        }
    }
    choices.extend(slowest);
    choices
}
