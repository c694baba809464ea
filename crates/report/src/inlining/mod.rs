//! Differences in inlining between two kernels: functions to count as their callers, so that a
//! comparison shows real changes and not the compiler's placement.
//!
//! The call paths of both profiles have callers, callees and counts. A function that one kernel
//! lacks, or calls markedly less from a caller that runs as often, was inlined into that caller. It
//! then counts as the caller in both kernels, wherever that caller calls it. This moves figures
//! between rows and keeps all sums.

mod arcs;

use arcs::{FoldedArcs, InlineCandidate};
use kerntune_profile::{
    source_name, CallKind, CallTree, FunctionTotals, PathDifference, PathFigures, PathFrame, Profile,
    ProfileDifference, RowFrame,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Upper bound of rounds, above the length of any chain of inlined functions.
const MAX_ROUNDS: usize = 256;

/// Largest number of instructions of a function that only returns: `endbr64`, a value, a frame's
/// jump, `ret`.
const MAX_RETURN_INSTRUCTIONS: u64 = 4;

/// Inlined functions by the function that contains them, at any depth, from a kernel's line tables.
/// Names are those of the source.
pub type InlinedFunctions = BTreeMap<String, BTreeSet<String>>;

/// Evidence that a function is inlined into its caller in one of the kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum InlineEvidence {
    /// Absence of a function of that name in one kernel.
    NoSymbol,
    /// The line tables of that kernel show it.
    LineTables,
    /// The caller runs as often there and calls it less.
    FewerCalls,
}

impl InlineEvidence {
    /// Returns the text for a table.
    pub fn words(self) -> &'static str {
        match self {
            InlineEvidence::NoSymbol => "no symbol",
            InlineEvidence::LineTables => "line tables",
            InlineEvidence::FewerCalls => "fewer calls",
        }
    }
}

/// Pair of figures, one of each kernel.
pub(crate) type KernelPair = [i128; 2];

/// Function that counts as its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InlineMove {
    /// Row of [`ProfileDifference::functions`].
    pub function: usize,
    /// Row of the caller that it counts as.
    pub into: usize,
    /// Kernel in which it is inlined: 0 or 1.
    pub side: usize,
    pub why: InlineEvidence,
    /// Calls from that caller, which no longer count.
    pub calls: KernelPair,
    /// Self time in those calls, which counts as the caller's.
    pub self_ticks: KernelPair,
}

/// Functions that count as their callers, and the resulting paths.
#[derive(Debug, Clone, Default)]
pub(crate) struct InlineMoves {
    /// Largest self time first.
    pub list: Vec<InlineMove>,
    /// Call paths of both without the moved frames; parents precede children.
    pub paths: Vec<PathDifference>,
}

impl InlineMoves {
    /// Finds the inlined functions: none between profiles of one kernel, or without call paths.
    ///
    /// `inlined` has each kernel's line tables, if available.
    pub fn find(
        profiles: [&Profile; 2],
        difference: &ProfileDifference,
        inlined: [Option<&InlinedFunctions>; 2],
    ) -> Self {
        let [one, other] = profiles;
        let without = profiles.iter().any(|profile| profile.tables.paths.is_empty());
        if one.manifest.kernel == other.manifest.kernel || without {
            return Self::none(difference);
        }
        let frames = InlineAnalysis::new(profiles, difference, inlined);
        let folds = frames.folds();
        let to = frames.counted_as(&folds);
        Self { list: frames.moves(&to, &folds), paths: frames.paths(&to) }
    }

    /// Keeps each function where it was recorded.
    pub fn none(difference: &ProfileDifference) -> Self {
        Self { list: Vec::new(), paths: difference.paths.clone() }
    }

    /// Returns for each row the calls and time that count as others'.
    pub fn out(&self) -> HashMap<usize, (KernelPair, KernelPair)> {
        self.sums(|moved| moved.function)
    }

    /// Returns for each row the calls and time of others that count as its own.
    pub fn into(&self) -> HashMap<usize, (KernelPair, KernelPair)> {
        self.sums(|moved| moved.into)
    }

    fn sums(&self, of: impl Fn(&InlineMove) -> usize) -> HashMap<usize, (KernelPair, KernelPair)> {
        let mut sums: HashMap<usize, (KernelPair, KernelPair)> = HashMap::new();
        for moved in &self.list {
            let (calls, net) = sums.entry(of(moved)).or_default();
            for side in 0..2 {
                calls[side] += moved.calls[side];
                net[side] += moved.self_ticks[side];
            }
        }
        sums
    }
}

/// Unites two rows of one name of which each is in one profile only: the kernels may disagree on
/// the source file of a function.
pub(crate) fn unite(difference: &mut ProfileDifference) {
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
        if let PathFrame::Function(row) = &mut path.frame {
            *row = pairs.get(row).copied().unwrap_or(*row);
        }
    }
}

/// Caller and callee that counts as it, with the kernel in which it is inlined, and the evidence.
type CallerFolds = HashMap<(usize, usize), (usize, InlineEvidence)>;

/// Facts on the functions of both kernels, for finding inlined ones.
struct InlineAnalysis<'a> {
    difference: &'a ProfileDifference,
    /// Names of the rows in the source.
    names: Vec<&'a str>,
    /// Kernel that lacks a function of the row's name; `None` if both have it.
    missing: Vec<Option<usize>>,
    /// Rows that are never inlined: functions that a trap enters, and user code.
    never_inlined: Vec<bool>,
    inlined: [Option<&'a InlinedFunctions>; 2],
}

impl<'a> InlineAnalysis<'a> {
    fn new(
        profiles: [&'a Profile; 2],
        difference: &'a ProfileDifference,
        inlined: [Option<&'a InlinedFunctions>; 2],
    ) -> Self {
        let known = profiles.map(|profile| {
            let kernel = profile.tables.symbols.iter().filter(|symbol| symbol.module.is_none());
            kernel.map(|symbol| source_name(&symbol.name).0).collect::<HashSet<&str>>()
        });
        let (mut entered, mut binaries) = (HashSet::new(), HashSet::new());
        for profile in profiles {
            let tables = &profile.tables;
            let traps = tables.arcs.iter().filter(|arc| !matches!(arc.how, CallKind::Call | CallKind::Jump));
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
        let never_inlined =
            rows.iter().zip(&names).map(|(row, name)| entered.contains(name) || of_user(&row.file));
        Self {
            difference,
            missing: missing.collect(),
            never_inlined: never_inlined.collect(),
            names,
            inlined,
        }
    }

    /// Finds the folds, callers before callees, until no candidate is left.
    fn folds(&self) -> CallerFolds {
        let mut folds = CallerFolds::new();
        for _ in 0..MAX_ROUNDS {
            let arcs = FoldedArcs::count(self.difference, &self.counted_as(&folds));
            let mut candidates = arcs.candidates();
            candidates.retain(|candidate| self.is_possible(candidate, &folds));
            let ready = arcs.ready(&candidates);
            if ready.is_empty() {
                break;
            }
            for candidate in ready {
                let why = match self.line_tables_confirm(&candidate) {
                    Some(true) => InlineEvidence::LineTables,
                    _ => InlineEvidence::FewerCalls,
                };
                folds.insert((candidate.caller, candidate.callee), (candidate.fewer, why));
            }
        }
        folds
    }

    /// Checks whether the line tables of the kernel with fewer calls show the inlining; `None`
    /// without tables.
    fn line_tables_confirm(&self, candidate: &InlineCandidate) -> Option<bool> {
        let within = self.inlined[candidate.fewer]?.get(self.names[candidate.caller]);
        Some(within.is_some_and(|names| names.contains(self.names[candidate.callee])))
    }

    fn is_possible(&self, candidate: &InlineCandidate, folds: &CallerFolds) -> bool {
        let InlineCandidate { caller, callee, .. } = *candidate;
        let possible = caller != callee && !self.never_inlined[callee];
        let denied = || self.line_tables_confirm(candidate) == Some(false) && !self.leaves_nothing(candidate);
        possible && !folds.contains_key(&(caller, callee)) && !denied()
    }

    /// Checks whether the callee may leave no instruction when inlined, so that line tables cannot
    /// show it: it only returns, or returns a constant, and the other kernel never calls it.
    fn leaves_nothing(&self, &InlineCandidate { callee, fewer, .. }: &InlineCandidate) -> bool {
        let totals = &self.difference.functions[callee].totals;
        let returns =
            |of: &FunctionTotals| of.self_ticks.get() <= of.calls.saturating_mul(MAX_RETURN_INSTRUCTIONS);
        totals[fewer].is_none() && totals[1 - fewer].as_ref().is_some_and(returns)
    }

    /// Returns for each path the one that it counts as: itself, or one above.
    fn counted_as(&self, folds: &CallerFolds) -> Vec<usize> {
        let paths = &self.difference.paths;
        let mut to: Vec<usize> = Vec::with_capacity(paths.len());
        for (at, path) in paths.iter().enumerate() {
            let above = path.parent.and_then(|parent| to.get(parent).copied());
            let caller = above.and_then(|above| row_of(&paths[above]));
            let part = match (caller, row_of(path)) {
                (Some(caller), Some(callee)) if caller != callee => {
                    self.has_no_frame(callee) || folds.contains_key(&(caller, callee))
                }
                _ => false,
            };
            to.push(above.filter(|_| part).unwrap_or(at));
        }
        to
    }

    /// Checks whether one of the kernels lacks a function of that name.
    fn has_no_frame(&self, row: usize) -> bool {
        self.missing[row].is_some() && !self.never_inlined[row]
    }

    /// Adds up the moves by function and caller.
    fn moves(&self, to: &[usize], folds: &CallerFolds) -> Vec<InlineMove> {
        let paths = &self.difference.paths;
        let mut sums: BTreeMap<(usize, usize), (KernelPair, KernelPair)> = BTreeMap::new();
        for (path, to) in paths.iter().zip(to).enumerate().filter(|(at, (_, to))| at != *to).map(|(_, p)| p) {
            let (Some(function), Some(into)) = (row_of(path), row_of(&paths[*to])) else {
                continue;
            };
            let (calls, net) = sums.entry((into, function)).or_default();
            for side in 0..2 {
                calls[side] += path.figures[side].calls;
                net[side] += path.figures[side].self_ticks;
            }
        }
        let moved = |((into, function), (calls, self_ticks)): ((usize, usize), (KernelPair, KernelPair))| {
            let (side, why) = match self.missing[function] {
                Some(side) => (side, InlineEvidence::NoSymbol),
                None => folds.get(&(into, function)).copied()?,
            };
            Some(InlineMove { function, into, side, why, calls, self_ticks })
        };
        let mut list: Vec<InlineMove> = sums.into_iter().filter_map(moved).collect();
        let weight = |moved: &InlineMove| Reverse(moved.self_ticks[0].max(moved.self_ticks[1]));
        list.sort_by_key(|moved| (weight(moved), moved.function, moved.into));
        list
    }

    /// Returns the paths without the moved frames; paths that became equal are merged.
    fn paths(&self, to: &[usize]) -> Vec<PathDifference> {
        let old = &self.difference.paths;
        let mut new = CallTree::<RowFrame, [PathFigures; 2]>::default();
        let mut place: Vec<usize> = Vec::with_capacity(old.len());
        for (at, path) in old.iter().enumerate() {
            let here = match to[at] {
                same if same == at => {
                    let parent = path.parent.and_then(|parent| place.get(parent).copied());
                    new.child(parent, path.frame.clone())
                }
                above => place[above],
            };
            place.push(here);
            for (sum, more) in new.nodes[here].figures.iter_mut().zip(path.figures) {
                sum.calls += if to[at] == at { more.calls } else { 0 };
                sum.self_ticks += more.self_ticks;
            }
        }
        PathDifference::add_totals(&mut new.nodes);
        new.nodes
    }
}

/// Returns the row of a path that ends in a function.
fn row_of(path: &PathDifference) -> Option<usize> {
    path.frame.function().copied()
}
