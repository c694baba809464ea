//! Two profiles side by side, per function or per call path: what explains the difference. The rows
//! sum exactly to the total change, what is not shown included.
//!
//! A function that is inlined in one kernel and not in the other counts as its caller in both, and is named beside it
//! ([`Options::as_compiled`] leaves each where it is).

mod json;
mod text;

pub use crate::inlining::Inlined;
pub use json::json;
pub use text::text;

use crate::inlining::{unite, Moves};
use crate::view::scope;
use crate::{Error, Result};
use kerntune_profile::{difference_within, thread_name, Difference, PathDifference, PathLabel, Profile};
use serde::Serialize;
use std::collections::{BTreeSet, HashMap};

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-diff/4";

/// What of the difference is wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// By call path instead of function.
    pub paths: bool,
    /// Times and calls divided by the operations of each profile.
    pub per_operation: bool,
    /// At most so many rows; all if none.
    pub top: Option<usize>,
    /// Only the regions of this name, in both; all if none.
    pub region: Option<String>,
    /// Each function where it was recorded, inlined in the other kernel or not.
    pub as_compiled: bool,
    /// What the line tables of each kernel say is inlined where; none where they are not known.
    pub inlined: [Option<Inlined>; 2],
}

/// A part of the whole: a function, a path, or time that is neither's.
#[derive(Debug, Clone, Serialize)]
struct Row {
    /// Function, or names from the root.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<Vec<String>>,
    name: String,
    file: Option<String>,
    #[serde(rename = "self")]
    net_ns: [i128; 2],
    #[serde(rename = "self_change")]
    net_change_ns: i128,
    /// None for time that is no function's.
    calls: Option<[i128; 2]>,
    #[serde(rename = "elapsed")]
    elapsed_ns: Option<[i128; 2]>,
    /// The symbols that are one row, where they are not the same in both.
    symbols: [Vec<String>; 2],
    /// Functions that are inlined in this one in one of the kernels, and count as it in both.
    with: Vec<String>,
}

impl Row {
    /// Whether it is several symbols in one of the profiles, or another in the other.
    fn is_several(&self) -> bool {
        self.symbols.iter().any(|names| !names.is_empty())
    }

    fn beside(name: &str, net_ns: [i128; 2]) -> Self {
        Self {
            path: None,
            name: name.into(),
            file: None,
            net_ns,
            net_change_ns: net_ns[1] - net_ns[0],
            calls: None,
            elapsed_ns: None,
            symbols: Default::default(),
            with: Vec::new(),
        }
    }
}

/// A row for those who draw it themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The function, or what is no function's time.
    pub name: String,
    /// Functions that are inlined in it in one of the kernels, and count as it in both.
    pub with: Vec<String>,
    /// Own time in both: instructions of exact profiles, else nanoseconds.
    pub net: [i128; 2],
    /// Calls in both; none for time that is no function's.
    pub calls: Option<[i128; 2]>,
}

/// The rows, those that explain most first.
///
/// # Errors
/// As of [`text()`].
pub fn lines(base: &Profile, other: &Profile, options: &Options) -> Result<Vec<Line>> {
    let line = |row: Row| Line { name: row.name, with: row.with, net: row.net_ns, calls: row.calls };
    Ok(find([base, other], options)?.rows.into_iter().map(line).collect())
}

struct Found {
    difference: Difference,
    /// What counts as its caller.
    moves: Moves,
    /// What explains most of the difference first. Net times sum to the elapsed times.
    rows: Vec<Row>,
}

fn find(profiles: [&Profile; 2], options: &Options) -> Result<Found> {
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
        true => Moves::none(&difference),
        false => Moves::find(profiles, &difference, options.inlined.each_ref().map(Option::as_ref)),
    };
    let mut rows = match options.paths {
        true => paths(&difference, &moves.paths),
        false => functions(&difference, &moves),
    };
    let sums = difference.sums()[usize::from(options.paths)];
    let whole = difference.totals.map(|whole| i128::from(whole.busy_ns.0) + i128::from(whole.idle_ns.0));
    let parts = [0, 1].map(|side| rows.iter().map(|row| row.net_ns[side]).sum::<i128>());
    let total: i128 = rows.iter().map(|row| row.net_change_ns).sum();
    if !sums || parts != whole || total != difference.change() {
        return Err(Error::Sum { parts: total, whole: difference.change() });
    }
    let weight = |row: &Row| {
        // Exact: a/n − b/m has the order of am − bn.
        let [base, other] = row.net_ns;
        match options.per_operation {
            true => (other * i128::from(operations[0]) - base * i128::from(operations[1])).unsigned_abs(),
            false => row.net_change_ns.unsigned_abs(),
        }
    };
    rows.sort_by(|a, b| {
        let names = |row: &Row| (row.name.clone(), row.file.clone(), row.path.clone());
        weight(b).cmp(&weight(a)).then_with(|| names(a).cmp(&names(b)))
    });
    Ok(Found { difference, moves, rows })
}

fn functions(difference: &Difference, moves: &Moves) -> Vec<Row> {
    let (out, into) = (moves.out(), moves.into());
    let mut with: HashMap<usize, BTreeSet<&str>> = HashMap::new();
    for moved in &moves.list {
        with.entry(moved.into).or_default().insert(&difference.functions[moved.function].name);
    }
    let row = |(at, function): (usize, &kerntune_profile::FunctionDifference)| {
        let (lost_calls, lost) = out.get(&at).copied().unwrap_or_default();
        let (_, gained) = into.get(&at).copied().unwrap_or_default();
        let net_ns = [0, 1].map(|side| function.net(side) - lost[side] + gained[side]);
        let calls = [0, 1].map(|side| function.calls(side) - lost_calls[side]);
        let moved = out.contains_key(&at);
        // Nothing is left of it, or it is one row with another.
        let gone = moved || function.totals == [None, None];
        if gone && net_ns == [0, 0] && calls == [0, 0] {
            return None;
        }
        Some(Row {
            path: None,
            name: function.name.clone(),
            file: function.file.clone(),
            net_ns,
            net_change_ns: net_ns[1] - net_ns[0],
            calls: Some(calls),
            // That of all its calls; of those that are left it is not known.
            elapsed_ns: (!moved).then(|| [function.elapsed(0), function.elapsed(1)]),
            symbols: function.symbols.clone(),
            with: with
                .get(&at)
                .map_or(Vec::new(), |names| names.iter().map(|name| name.to_string()).collect()),
        })
    };
    let beside = difference.beside_functions();
    let beside = beside.iter().filter(|(_, net)| *net != [0, 0]).map(|(name, net)| Row::beside(name, *net));
    difference.functions.iter().enumerate().filter_map(row).chain(beside).collect()
}

fn paths(difference: &Difference, of_both: &[PathDifference]) -> Vec<Row> {
    let name = |label: &PathLabel| match label {
        PathLabel::Thread(comm) => thread_name(comm).into_owned(),
        PathLabel::Interrupt => "[interrupt]".into(),
        PathLabel::Idle => "[idle task]".into(),
        PathLabel::User => "[user]".into(),
        PathLabel::Unattributed => "[unattributed]".into(),
        PathLabel::Function(row) => {
            difference.functions.get(*row).map_or(String::new(), |row| row.name.clone())
        }
    };
    let mut rows = Vec::new();
    for path in of_both {
        let mut names = vec![name(&path.label)];
        let mut above = path.parent;
        while let Some(parent) = above.and_then(|at| of_both.get(at)) {
            names.push(name(&parent.label));
            above = parent.parent;
        }
        names.reverse();
        let function = match path.label {
            PathLabel::Function(row) => difference.functions.get(row),
            _ => None,
        };
        rows.push(Row {
            path: Some(names),
            name: name(&path.label),
            file: function.and_then(|function| function.file.clone()),
            net_ns: path.figures.map(|figures| figures.net_ns),
            net_change_ns: path.net_change(),
            calls: function.map(|_| path.figures.map(|figures| figures.calls)),
            elapsed_ns: Some(path.figures.map(|figures| figures.elapsed_ns)),
            symbols: function.map_or(Default::default(), |function| function.symbols.clone()),
            with: Vec::new(),
        });
    }
    let beside = difference.beside_paths();
    rows.extend(beside.iter().filter(|(_, net)| *net != [0, 0]).map(|(name, net)| Row::beside(name, *net)));
    rows
}
