//! What one kernel has inlined and another has not: which functions to count as their callers, so that a comparison shows
//! what changed and not where the compiler put it.
//!
//! The paths of both profiles say who calls whom, and how often. A function that one of the kernels does not have, or calls
//! markedly less from a caller that runs as often, is a part of that caller there. It then counts as that caller in both,
//! wherever that caller calls it. That moves figures from one row to another, so that sums stay what they are.

mod arcs;

use arcs::{Arcs, Candidate};
use kerntune_profile::{
    source_name, Difference, FunctionTotals, How, PathDifference, PathFigures, PathLabel, Profile,
};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// More rounds than any chain of inlined functions is long.
const ROUNDS: usize = 256;

/// Instructions of a function that only returns: `endbr64`, a value, a frame's jump, `ret`.
const RETURNS: u64 = 4;

/// What the line tables of a kernel say: for each function, by its name in the source, those that are inlined in it, at any
/// depth.
pub type Inlined = BTreeMap<String, BTreeSet<String>>;

/// How it is known that a function is a part of its caller in one of the kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Why {
    /// That kernel has no function of the name.
    NoSymbol,
    /// The line tables of that kernel say so.
    LineTables,
    /// The caller runs as often there and calls it less.
    FewerCalls,
}

impl Why {
    /// For a table.
    pub fn words(self) -> &'static str {
        match self {
            Why::NoSymbol => "no symbol",
            Why::LineTables => "line tables",
            Why::FewerCalls => "fewer calls",
        }
    }
}

/// A pair of figures, of both kernels.
pub(crate) type Both = [i128; 2];

/// A function that counts as its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Move {
    /// Row of [`Difference::functions`].
    pub function: usize,
    /// Row of the function that it counts as.
    pub into: usize,
    /// The kernel in which it is a part of that function: 0 or 1.
    pub side: usize,
    /// How that is known.
    pub why: Why,
    /// Its calls by that function, which so count as none.
    pub calls: Both,
    /// Its own time in them, which so counts as that function's.
    pub net_ns: Both,
}

/// All that moves between two profiles.
#[derive(Debug, Clone, Default)]
pub(crate) struct Moves {
    /// What moves most first.
    pub list: Vec<Move>,
    /// The call paths of both without the frames that moved; parents before children.
    pub paths: Vec<PathDifference>,
}

impl Moves {
    /// What moves: nothing between profiles of one kernel, or without call paths.
    ///
    /// `inlined` is what the line tables of each kernel say, where it has any.
    pub fn find(profiles: [&Profile; 2], difference: &Difference, inlined: [Option<&Inlined>; 2]) -> Self {
        let [one, other] = profiles;
        let without = profiles.iter().any(|profile| profile.tables.paths.is_empty());
        if one.manifest.kernel == other.manifest.kernel || without {
            return Self::none(difference);
        }
        let frames = Frames::new(profiles, difference, inlined);
        let folds = frames.folds();
        let to = frames.counted_as(&folds);
        Self { list: frames.moves(&to, &folds), paths: frames.paths(&to) }
    }

    /// Each function where it was recorded.
    pub fn none(difference: &Difference) -> Self {
        Self { list: Vec::new(), paths: difference.paths.clone() }
    }

    /// For each row, the calls and the time that count as others'.
    pub fn out(&self) -> HashMap<usize, (Both, Both)> {
        self.sums(|moved| moved.function)
    }

    /// For each row, the calls and the time of others that count as its own.
    pub fn into(&self) -> HashMap<usize, (Both, Both)> {
        self.sums(|moved| moved.into)
    }

    fn sums(&self, of: impl Fn(&Move) -> usize) -> HashMap<usize, (Both, Both)> {
        let mut sums: HashMap<usize, (Both, Both)> = HashMap::new();
        for moved in &self.list {
            let (calls, net) = sums.entry(of(moved)).or_default();
            for side in 0..2 {
                calls[side] += moved.calls[side];
                net[side] += moved.net_ns[side];
            }
        }
        sums
    }
}

/// Makes one row of two of one name, of which one is in the first profile alone and the other in the second alone: where the
/// kernels do not say the same of where a function is from, it is one all the same.
pub(crate) fn unite(difference: &mut Difference) {
    let mut alone: BTreeMap<&str, [Vec<usize>; 2]> = BTreeMap::new();
    for (at, row) in difference.functions.iter().enumerate() {
        let side = match row.totals {
            [Some(_), None] => 0,
            [None, Some(_)] => 1,
            _ => continue,
        };
        alone.entry(&row.name).or_default()[side].push(at);
    }
    let pairs: HashMap<usize, usize> = alone
        .into_values()
        .filter_map(|[first, second]| match (first.as_slice(), second.as_slice()) {
            ([first], [second]) => Some((*second, *first)),
            _ => None,
        })
        .collect();
    for (second, first) in &pairs {
        difference.functions[*first].totals[1] = difference.functions[*second].totals[1].take();
    }
    for path in &mut difference.paths {
        if let PathLabel::Function(row) = &mut path.label {
            *row = pairs.get(row).copied().unwrap_or(*row);
        }
    }
}

/// A caller and a callee that counts as it, with the kernel in which it is a part of the caller, and how that is known.
type Folds = HashMap<(usize, usize), (usize, Why)>;

/// What is known of the functions of both kernels.
struct Frames<'a> {
    difference: &'a Difference,
    /// The rows' names in the source.
    names: Vec<&'a str>,
    /// The kernel that has no function of a row's name, where one of them has none.
    missing: Vec<Option<usize>>,
    /// Rows that are never a part of their caller: what a trap enters, and user code.
    apart: Vec<bool>,
    inlined: [Option<&'a Inlined>; 2],
}

impl<'a> Frames<'a> {
    fn new(
        profiles: [&'a Profile; 2],
        difference: &'a Difference,
        inlined: [Option<&'a Inlined>; 2],
    ) -> Self {
        let known = profiles.map(|profile| {
            let kernel = profile.tables.symbols.iter().filter(|symbol| symbol.module.is_none());
            kernel.map(|symbol| source_name(&symbol.name).0).collect::<HashSet<&str>>()
        });
        let (mut entered, mut binaries) = (HashSet::new(), HashSet::new());
        for profile in profiles {
            let tables = &profile.tables;
            let traps = tables.arcs.iter().filter(|arc| !matches!(arc.how, How::Call | How::Jump));
            entered.extend(traps.map(|arc| source_name(tables.name(arc.callee)).0));
            binaries.extend(tables.symbols.iter().filter_map(|symbol| symbol.module.as_deref()));
        }
        let rows = &difference.functions;
        let names: Vec<&str> = rows.iter().map(|row| source_name(&row.name).0).collect();
        let missing = names.iter().map(|name| match [0, 1].map(|side: usize| known[side].contains(name)) {
            [true, false] => Some(1),
            [false, true] => Some(0),
            _ => None,
        });
        let of_user = |file: &Option<String>| file.as_deref().is_some_and(|file| binaries.contains(file));
        let apart = rows.iter().zip(&names).map(|(row, name)| entered.contains(name) || of_user(&row.file));
        Self { difference, missing: missing.collect(), apart: apart.collect(), names, inlined }
    }

    /// What counts as what: callers before what they call, until nothing is left.
    fn folds(&self) -> Folds {
        let mut folds = Folds::new();
        for _ in 0..ROUNDS {
            let arcs = Arcs::count(self.difference, &self.counted_as(&folds));
            let mut candidates = arcs.candidates();
            candidates.retain(|candidate| self.may(candidate, &folds));
            let ready = arcs.ready(&candidates);
            if ready.is_empty() {
                break;
            }
            for candidate in ready {
                let why = match self.says(&candidate) {
                    Some(true) => Why::LineTables,
                    _ => Why::FewerCalls,
                };
                folds.insert((candidate.caller, candidate.callee), (candidate.fewer, why));
            }
        }
        folds
    }

    /// What the line tables of the kernel that calls less say of it.
    fn says(&self, candidate: &Candidate) -> Option<bool> {
        let within = self.inlined[candidate.fewer]?.get(self.names[candidate.caller]);
        Some(within.is_some_and(|names| names.contains(self.names[candidate.callee])))
    }

    fn may(&self, candidate: &Candidate, folds: &Folds) -> bool {
        let Candidate { caller, callee, .. } = *candidate;
        let possible = caller != callee && !self.apart[callee];
        let denied = || self.says(candidate) == Some(false) && !self.leaves_nothing(candidate);
        possible && !folds.contains_key(&(caller, callee)) && !denied()
    }

    /// Whether line tables cannot speak of a callee, since inlined it may be no instruction at all: it only returns, or returns a
    /// constant, and the other kernel never calls it.
    fn leaves_nothing(&self, &Candidate { callee, fewer, .. }: &Candidate) -> bool {
        let totals = &self.difference.functions[callee].totals;
        let returns = |of: &FunctionTotals| of.net_ns.get() <= of.calls.saturating_mul(RETURNS);
        totals[fewer].is_none() && totals[1 - fewer].as_ref().is_some_and(returns)
    }

    /// For each path, the one that it counts as: itself, or one above it.
    fn counted_as(&self, folds: &Folds) -> Vec<usize> {
        let paths = &self.difference.paths;
        let mut to: Vec<usize> = Vec::with_capacity(paths.len());
        for (at, path) in paths.iter().enumerate() {
            let above = path.parent.and_then(|parent| to.get(parent).copied());
            let caller = above.and_then(|above| row_of(&paths[above].label));
            let part = match (caller, row_of(&path.label)) {
                (Some(caller), Some(callee)) if caller != callee => {
                    self.has_no_frame(callee) || folds.contains_key(&(caller, callee))
                }
                _ => false,
            };
            to.push(above.filter(|_| part).unwrap_or(at));
        }
        to
    }

    /// Whether one of the kernels has no function of that name.
    fn has_no_frame(&self, row: usize) -> bool {
        self.missing[row].is_some() && !self.apart[row]
    }

    /// What moves, added up.
    fn moves(&self, to: &[usize], folds: &Folds) -> Vec<Move> {
        let paths = &self.difference.paths;
        let mut sums: BTreeMap<(usize, usize), (Both, Both)> = BTreeMap::new();
        for (path, to) in paths.iter().zip(to).enumerate().filter(|(at, (_, to))| at != *to).map(|(_, p)| p) {
            let (Some(function), Some(into)) = (row_of(&path.label), row_of(&paths[*to].label)) else {
                continue;
            };
            let (calls, net) = sums.entry((into, function)).or_default();
            for side in 0..2 {
                calls[side] += path.figures[side].calls;
                net[side] += path.figures[side].net_ns;
            }
        }
        let moved = |((into, function), (calls, net_ns)): ((usize, usize), (Both, Both))| {
            let (side, why) = match self.missing[function] {
                Some(side) => (side, Why::NoSymbol),
                None => folds.get(&(into, function)).copied()?,
            };
            Some(Move { function, into, side, why, calls, net_ns })
        };
        let mut list: Vec<Move> = sums.into_iter().filter_map(moved).collect();
        let weight = |moved: &Move| Reverse(moved.net_ns[0].max(moved.net_ns[1]));
        list.sort_by_key(|moved| (weight(moved), moved.function, moved.into));
        list
    }

    /// The paths without the frames that moved, those that became the same being one.
    fn paths(&self, to: &[usize]) -> Vec<PathDifference> {
        let old = &self.difference.paths;
        let mut new: Vec<PathDifference> = Vec::new();
        let mut found: HashMap<(Option<usize>, PathLabel), usize> = HashMap::new();
        let mut place: Vec<usize> = Vec::with_capacity(old.len());
        for (at, path) in old.iter().enumerate() {
            let here = match to[at] {
                same if same == at => {
                    let parent = path.parent.and_then(|parent| place.get(parent).copied());
                    *found.entry((parent, path.label.clone())).or_insert_with(|| {
                        let label = path.label.clone();
                        new.push(PathDifference { parent, label, figures: Default::default() });
                        new.len() - 1
                    })
                }
                above => place[above],
            };
            place.push(here);
            for (sum, more) in new[here].figures.iter_mut().zip(path.figures) {
                sum.calls += if to[at] == at { more.calls } else { 0 };
                sum.net_ns += more.net_ns;
            }
        }
        sum_up(&mut new);
        new
    }
}

/// Elapsed times from net ones; parents come before their children.
fn sum_up(paths: &mut [PathDifference]) {
    for at in (0..paths.len()).rev() {
        let PathDifference { parent, figures, .. } = &mut paths[at];
        figures.iter_mut().for_each(|figures| figures.elapsed_ns += figures.net_ns);
        let (parent, sums) = (*parent, figures.map(|PathFigures { elapsed_ns, .. }| elapsed_ns));
        if let Some(parent) = parent {
            for (figures, sum) in paths[parent].figures.iter_mut().zip(sums) {
                figures.elapsed_ns += sum;
            }
        }
    }
}

/// The row of a path that ends in a function.
fn row_of(label: &PathLabel) -> Option<usize> {
    match label {
        PathLabel::Function(row) => Some(*row),
        _ => None,
    }
}
