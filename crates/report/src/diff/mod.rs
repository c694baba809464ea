//! Difference of two profiles, per function or per call path. The rows, including those not shown,
//! sum exactly to the total change.
//!
//! A function that is inlined in one kernel only counts as its caller in both, and is named beside
//! the caller. [`DiffOptions::as_compiled`] keeps such functions apart.

mod document;

pub use crate::inlining::InlinedFunctions;
pub use document::document;

use crate::inlining::{unite, InlineMoves};
use crate::view::scope;
use crate::{Error, Result};
use kerntune_profile::{difference_within, upwards, PathDifference, Profile, ProfileDifference};
use kerntune_table::TextRole;
use std::collections::{BTreeSet, HashMap};

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-diff/4";

/// Options of the diff report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiffOptions {
    /// Compares call paths instead of functions.
    pub paths: bool,
    /// Divides times and calls by the operations of each profile.
    pub per_operation: bool,
    /// Largest number of rows; `None` for all.
    pub top: Option<usize>,
    /// Restricts both profiles to the regions of this name; `None` for all.
    pub region: Option<String>,
    /// Keeps each function where it was recorded, even if it is inlined in the other kernel.
    pub as_compiled: bool,
    /// Inlined functions from each kernel's line tables; `None` if not available.
    pub inlined: [Option<InlinedFunctions>; 2],
}

/// Part of the total: a function, a path, or time outside of functions.
#[derive(Debug, Clone)]
struct DiffRow {
    /// Color of the name.
    role: TextRole,
    /// Names from the root, if paths are compared.
    path: Option<Vec<String>>,
    name: String,
    file: Option<String>,
    self_ticks: [i128; 2],
    self_change_ticks: i128,
    /// `None` for time outside of functions.
    calls: Option<[i128; 2]>,
    total_ticks: Option<[i128; 2]>,
    /// Symbols that the row combines, where they differ between the kernels.
    symbols: [Vec<String>; 2],
    /// Functions that count as this one because one of the kernels inlines them.
    with: Vec<String>,
}

impl DiffRow {
    /// Checks whether the row combines several symbols of a profile, or different ones of both.
    fn is_several(&self) -> bool {
        self.symbols.iter().any(|names| !names.is_empty())
    }

    fn beside(name: &str, self_ticks: [i128; 2]) -> Self {
        Self {
            role: TextRole::Plain,
            path: None,
            name: name.into(),
            file: None,
            self_ticks,
            self_change_ticks: self_ticks[1] - self_ticks[0],
            calls: None,
            total_ticks: None,
            symbols: Default::default(),
            with: Vec::new(),
        }
    }
}

/// Row of the difference, for display by the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffLine {
    /// Function, or bracketed name of time outside of functions.
    pub name: String,
    /// Functions that count as this one because one of the kernels inlines them.
    pub with: Vec<String>,
    /// Self time in both: instructions of exact profiles, else nanoseconds.
    pub self_ticks: [i128; 2],
    /// Calls in both; `None` for time outside of functions.
    pub calls: Option<[i128; 2]>,
}

/// Returns the rows, largest contribution first.
///
/// # Errors
/// Same as [`document()`].
pub fn lines(base: &Profile, other: &Profile, options: &DiffOptions) -> Result<Vec<DiffLine>> {
    let line = |row: DiffRow| DiffLine {
        name: row.name,
        with: row.with,
        self_ticks: row.self_ticks,
        calls: row.calls,
    };
    Ok(find([base, other], options)?.rows.into_iter().map(line).collect())
}

struct ProfileDiff {
    difference: ProfileDifference,
    /// Functions that count as their callers.
    moves: InlineMoves,
    /// Largest contribution first. Self times sum to the elapsed times.
    rows: Vec<DiffRow>,
}

fn find(profiles: [&Profile; 2], options: &DiffOptions) -> Result<ProfileDiff> {
    let region = options.region.as_deref();
    let scopes = [scope(profiles[0], region)?, scope(profiles[1], region)?];
    let mut difference = difference_within(profiles, [&scopes[0], &scopes[1]]);
    if !options.as_compiled {
        unite(&mut difference);
    }
    let operations = difference.totals.map(|whole| whole.operations);
    if options.per_operation && operations.contains(&0) {
        return Err(Error::NoOperations);
    }
    let moves = match options.as_compiled {
        true => InlineMoves::none(&difference),
        false => InlineMoves::find(profiles, &difference, options.inlined.each_ref().map(Option::as_ref)),
    };
    let mut rows = match options.paths {
        true => paths(&difference, &moves.paths),
        false => functions(&difference, &moves),
    };
    let sums = difference.sums()[usize::from(options.paths)];
    let whole =
        difference.totals.map(|whole| i128::from(whole.busy_ticks.0) + i128::from(whole.idle_ticks.0));
    let parts = [0, 1].map(|side| rows.iter().map(|row| row.self_ticks[side]).sum::<i128>());
    let total: i128 = rows.iter().map(|row| row.self_change_ticks).sum();
    if !sums || parts != whole || total != difference.change() {
        return Err(Error::Sum { parts: total, whole: difference.change() });
    }
    let weight = |row: &DiffRow| {
        // Exact integers: a/n − b/m has the order of am − bn.
        let [base, other] = row.self_ticks;
        match options.per_operation {
            true => (other * i128::from(operations[0]) - base * i128::from(operations[1])).unsigned_abs(),
            false => row.self_change_ticks.unsigned_abs(),
        }
    };
    rows.sort_by(|a, b| {
        let names = |row: &DiffRow| (row.name.clone(), row.file.clone(), row.path.clone());
        weight(b).cmp(&weight(a)).then_with(|| names(a).cmp(&names(b)))
    });
    Ok(ProfileDiff { difference, moves, rows })
}

fn functions(difference: &ProfileDifference, moves: &InlineMoves) -> Vec<DiffRow> {
    let (out, into) = (moves.out(), moves.into());
    let mut with: HashMap<usize, BTreeSet<&str>> = HashMap::new();
    for moved in &moves.list {
        with.entry(moved.into).or_default().insert(&difference.functions[moved.function].name);
    }
    let row = |(at, function): (usize, &kerntune_profile::FunctionDifference)| {
        let (lost_calls, lost) = out.get(&at).copied().unwrap_or_default();
        let (_, gained) = into.get(&at).copied().unwrap_or_default();
        let self_ticks = [0, 1].map(|side| function.self_ticks(side) - lost[side] + gained[side]);
        let calls = [0, 1].map(|side| function.calls(side) - lost_calls[side]);
        let moved = out.contains_key(&at);
        // All of it moved to its caller, or it was united with another row.
        let gone = moved || function.totals == [None, None];
        if gone && self_ticks == [0, 0] && calls == [0, 0] {
            return None;
        }
        Some(DiffRow {
            role: TextRole::Plain,
            path: None,
            name: function.name.clone(),
            file: function.file.clone(),
            self_ticks,
            self_change_ticks: self_ticks[1] - self_ticks[0],
            calls: Some(calls),
            // The total time is of all calls; for the remaining calls alone it is unknown.
            total_ticks: (!moved).then(|| [function.total_ticks(0), function.total_ticks(1)]),
            symbols: function.symbols.clone(),
            with: with
                .get(&at)
                .map_or(Vec::new(), |names| names.iter().map(|name| name.to_string()).collect()),
        })
    };
    let beside = difference.beside_functions();
    let beside =
        beside.iter().filter(|(_, net)| *net != [0, 0]).map(|(name, net)| DiffRow::beside(name, *net));
    difference.functions.iter().enumerate().filter_map(row).chain(beside).collect()
}

fn paths(difference: &ProfileDifference, of_both: &[PathDifference]) -> Vec<DiffRow> {
    let mut rows = Vec::new();
    for (at, path) in of_both.iter().enumerate() {
        let mut names: Vec<String> =
            upwards(of_both, at).map(|path| difference.name(&path.frame).into_owned()).collect();
        names.reverse();
        let function = difference.function(&path.frame);
        rows.push(DiffRow {
            role: TextRole::Plain,
            path: Some(names),
            name: difference.name(&path.frame).into_owned(),
            file: function.and_then(|function| function.file.clone()),
            self_ticks: path.figures.map(|figures| figures.self_ticks),
            self_change_ticks: path.self_change(),
            calls: function.map(|_| path.figures.map(|figures| figures.calls)),
            total_ticks: Some(path.figures.map(|figures| figures.total_ticks)),
            symbols: function.map_or(Default::default(), |function| function.symbols.clone()),
            with: Vec::new(),
        });
    }
    let beside = difference.beside_paths();
    rows.extend(
        beside.iter().filter(|(_, net)| *net != [0, 0]).map(|(name, net)| DiffRow::beside(name, *net)),
    );
    rows
}
