//! Where it is worth looking at single calls: the first operations of each region, and the slowest call
//! of the functions that matter.

use super::amount;
use kerntune_analyze::timeline::{Until, Window};
use kerntune_profile::Profile;
use std::collections::BTreeSet;

/// Calls that are read to find where a window ends.
const CALLS: usize = 5_000;
/// Operations of a region that are shown.
const OPERATIONS: u32 = 2;
/// Region names whose first operations are shown.
const REGIONS: usize = 24;
/// Functions by net time, and again by elapsed time, whose slowest call is shown.
const FUNCTIONS: usize = 24;

/// A window of single calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// What it shows, in words.
    pub label: String,
    /// Row of the symbols table of the function whose slowest call it is.
    pub function: Option<u32>,
    /// What to read of the trace.
    pub window: Window,
}

/// The windows worth showing, the most telling first, within the size that a page can have.
pub fn windows(profile: &Profile, region: Option<&str>) -> Vec<Choice> {
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
        if names.len() == REGIONS || !names.insert(&row.name) {
            continue;
        }
        let end = row.begin_ns + row.elapsed_ns;
        let (label, until) = match row.operations {
            0 => (format!("beginning of {}", row.name), Until::Time(end.get())),
            1 => (format!("operation of {}", row.name), Until::Operations(1)),
            _ => (format!("first operations of {}", row.name), Until::Operations(OPERATIONS)),
        };
        let window = Window { begin: row.begin_ns.get(), until, calls: CALLS };
        choices.push(Choice { label, function: None, window });
    }

    let mut totals = tables.totals(is_wanted);
    totals.retain(|row| row.ended > 0 && row.slowest_ns.get() > 0);
    let mut functions = BTreeSet::new();
    let mut slowest = Vec::new();
    for weight in [
        |row: &kerntune_profile::FunctionTotals| row.net_ns,
        |row: &kerntune_profile::FunctionTotals| row.elapsed_ns,
    ] {
        totals.sort_by_key(|row| std::cmp::Reverse((weight(row), row.function)));
        for row in totals.iter().take(FUNCTIONS).filter(|row| functions.insert(row.function)) {
            let name = tables.name(row.function);
            let label = format!("slowest {name}: {}", amount(row.slowest_ns.get(), profile.manifest.exact));
            let function = row.function.get();
            let until = Until::EndOf(function);
            let window = Window { begin: row.slowest_at_ns.get(), until, calls: CALLS };
            slowest.push(Choice { label, function: Some(function), window });
        }
    }
    choices.extend(slowest);
    choices
}
