//! Functions of two kernels, paired, with counts for those that changed.

use super::matching::{FunctionLikeness, NamesakePair};
use super::rebuilt::{BothKernels, CountedGraph, RebuiltFunction};
use super::recorded::{scaled, RecordedCode};
use super::renamed::renamed;
use super::LinkedCode;
use std::collections::{BTreeMap, BTreeSet};

/// Rounds in which calls that are new, or gone, change how often functions are entered.
const MAX_ROUNDS: usize = 6;

/// Way in which the counts of a function are transferred.
pub(super) enum PairedCode {
    /// Instruction by instruction.
    Whole(NamesakePair),
    /// Block by block.
    Rebuilt(Box<RebuiltFunction>),
}

/// Recorded function and its counterpart.
pub(super) struct FunctionPair {
    /// Number in the recorded kernel.
    pub from: usize,
    /// Number in the other kernel.
    pub to: usize,
    pub code: PairedCode,
}

impl FunctionPair {
    pub fn is_rebuilt(&self) -> bool {
        matches!(self.code, PairedCode::Rebuilt(_))
    }
}

/// All functions that ran, with their counterparts.
pub(super) struct FunctionPairs<'a> {
    from: &'a LinkedCode,
    pairs: BTreeMap<usize, FunctionPair>,
    likeness: BTreeMap<usize, FunctionLikeness>,
    /// Functions without a counterpart that have counts because others call them.
    split_off: Vec<RebuiltFunction>,
    /// Entries of functions of the other kernel, as transferred and as the calls there suggest.
    entries: BTreeMap<usize, [u64; 2]>,
    /// Executed instructions of functions by their graphs.
    counted: BTreeMap<usize, u64>,
}

impl<'a> FunctionPairs<'a> {
    /// Pairs `functions`, which ran or branched, with those of `to`.
    pub fn of(
        from: &'a LinkedCode,
        to: &'a LinkedCode,
        recorded: &'a RecordedCode,
        functions: &BTreeSet<usize>,
    ) -> Self {
        let mut kernels = BothKernels::new(from, to, recorded);
        let mut pairs = BTreeMap::new();
        let mut likeness = BTreeMap::new();
        let mut gone = Vec::new();
        for &at in functions {
            let Some(pair) = NamesakePair::of(from, at, to) else {
                gone.push(at);
                continue;
            };
            likeness.insert(at, pair.likeness);
            let other = pair.other;
            let code = match pair.likeness {
                FunctionLikeness::Name => {
                    let Some(function) = RebuiltFunction::of(&mut kernels, at, other) else { continue };
                    PairedCode::Rebuilt(Box::new(function))
                }
                _ => PairedCode::Whole(pair),
            };
            pairs.insert(at, FunctionPair { from: at, to: other, code });
        }
        for (at, other) in renamed(&mut kernels, &gone) {
            if let Some(function) = RebuiltFunction::of(&mut kernels, at, other) {
                pairs.insert(
                    at,
                    FunctionPair { from: at, to: other, code: PairedCode::Rebuilt(Box::new(function)) },
                );
            }
        }
        let counted =
            functions.iter().map(|&at| (at, kernels.counted(at).map_or(0, CountedGraph::instructions)));
        let counted = counted.collect();
        let mut all =
            Self { from, pairs, likeness, split_off: Vec::new(), entries: BTreeMap::new(), counted };
        all.follow_calls(&mut kernels);
        all
    }

    /// Returns the pair of a recorded function.
    pub fn of_function(&self, at: usize) -> Option<&FunctionPair> {
        self.pairs.get(&at)
    }

    /// Returns the likeness of a recorded function and its namesake; `None` without one.
    pub fn likeness(&self, at: usize) -> Option<FunctionLikeness> {
        self.likeness.get(&at).copied()
    }

    /// Returns the executed instructions of a recorded function by its blocks.
    pub fn counted(&self, at: usize) -> u64 {
        self.counted.get(&at).copied().unwrap_or_default()
    }

    /// Returns the number of the recorded function at an address.
    pub fn function_at(&self, address: u64) -> Option<usize> {
        self.from.symbols().lookup(address)
    }

    /// Returns the address in the other kernel of a recorded instruction.
    pub fn address(&self, address: u64) -> Option<u64> {
        match &self.pairs.get(&self.function_at(address)?)?.code {
            PairedCode::Whole(pair) => pair.counterpart(address),
            PairedCode::Rebuilt(function) => function.places.get(&address).copied(),
        }
    }

    /// Returns all functions with counts by block.
    pub fn rebuilt(&self) -> impl Iterator<Item = &RebuiltFunction> {
        let paired = self.pairs.values().filter_map(|pair| match &pair.code {
            PairedCode::Rebuilt(function) => Some(function.as_ref()),
            PairedCode::Whole(_) => None,
        });
        paired.chain(&self.split_off)
    }

    /// Returns a count of function `to`, adapted to how often the other kernel's code calls it.
    pub fn scale(&self, to: usize, count: u64) -> u64 {
        self.entries.get(&to).map_or(count, |[of, by]| scaled(count, *by, *of))
    }

    /// Follows the calls of functions that changed: callees that were inlined are called less often,
    /// and functions that are not inlined any more are called. A call that both kernels have stays
    /// as it was.
    fn follow_calls(&mut self, kernels: &mut BothKernels) {
        let mut recorded: BTreeMap<usize, u64> = BTreeMap::new();
        for pair in self.pairs.values() {
            let entry = kernels.counted(pair.from).map_or(0, CountedGraph::entry);
            let sum = recorded.entry(pair.to).or_default();
            *sum = sum.saturating_add(entry);
        }
        let calls: Vec<FunctionCalls> = self.pairs.values().map(|pair| self.calls(kernels, pair)).collect();
        let mut missing: BTreeSet<usize> = BTreeSet::new();
        for _ in 0..MAX_ROUNDS {
            let mut changes: BTreeMap<usize, i128> = BTreeMap::new();
            let mut new: BTreeMap<usize, u64> = BTreeMap::new();
            let mut callers: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
            let mut change = |callee: usize, calls: u64, sign: i128| {
                *changes.entry(callee).or_default() += sign * i128::from(calls);
            };
            for function in &calls {
                function.gone.iter().for_each(|(callee, calls)| change(*callee, *calls, -1));
                for (callee, calls) in &function.kept {
                    change(*callee, self.scale(function.to, *calls), 1);
                }
                for (callee, calls) in &function.new {
                    *new.entry(*callee).or_default() += self.scale(function.to, *calls);
                    callers.entry(*callee).or_default().insert(function.from);
                }
            }
            for function in &self.split_off {
                for (callee, calls) in function.callees(kernels.to) {
                    *new.entry(callee).or_default() += self.scale(function.at, calls);
                }
            }
            new.iter().for_each(|(callee, calls)| change(*callee, *calls, 1));
            let mut changed = false;
            for (to, change) in changes {
                let of = recorded.get(&to).copied().unwrap_or_default();
                let by = u64::try_from((i128::from(of) + change).max(0)).unwrap_or(u64::MAX);
                // Calls that only moved make no new ones.
                let by = by.min(of.saturating_add(new.get(&to).copied().unwrap_or_default()));
                if of > 0 {
                    let before = self.entries.insert(to, [of, by]).unwrap_or([of, of]);
                    changed |= before[1] != by;
                } else if by > 0 && missing.insert(to) {
                    let callers = callers.remove(&to).unwrap_or_default();
                    if let Some(function) = RebuiltFunction::split_off(kernels, to, by, &callers) {
                        self.entries.insert(to, [by, by]);
                        self.split_off.push(function);
                        changed = true;
                    }
                } else if let Some(entry) =
                    self.entries.get_mut(&to).filter(|entry| entry[1] != by && entry[0] > 0)
                {
                    entry[1] = by;
                    changed = true;
                }
            }
            if !changed {
                return;
            }
        }
    }

    /// Returns how often a recorded function called each function, by the numbers of these functions'
    /// counterparts.
    fn callees(&self, kernels: &BothKernels, function: usize) -> BTreeMap<usize, u64> {
        let mut callees = BTreeMap::new();
        for (callee, calls) in kernels.recorded.callees(function, kernels.from) {
            if let Some(pair) = self.pairs.get(&callee) {
                let sum: &mut u64 = callees.entry(pair.to).or_default();
                *sum = sum.saturating_add(calls);
            }
        }
        callees
    }

    /// Returns the calls of a function before and after.
    fn calls(&self, kernels: &mut BothKernels, pair: &FunctionPair) -> FunctionCalls {
        let own = self.callees(kernels, pair.from);
        let mut calls = FunctionCalls { from: pair.from, to: pair.to, ..FunctionCalls::default() };
        calls.gone.extend(own.iter().map(|(callee, calls)| (*callee, *calls)));
        let PairedCode::Rebuilt(function) = &pair.code else {
            calls.kept = calls.gone.clone();
            return calls;
        };
        // Of a function that hardly matches nothing is known about its calls.
        let own_part = function.parts.iter().find(|part| part.function == pair.from);
        let found = own_part.map_or(0, |part| part.exact.saturating_add(part.loose));
        if found < self.counted(pair.from) / 2 {
            calls.kept = calls.gone.clone();
            return calls;
        }
        let mut moved = own;
        let mut direct: BTreeSet<usize> = BTreeSet::new();
        for part in &function.parts {
            let targets = kernels.direct(part.function).iter();
            direct.extend(targets.filter_map(|at| Some(self.pairs.get(at)?.to)));
            if part.function == pair.from {
                continue;
            }
            for (callee, count) in self.callees(kernels, part.function) {
                let count = scaled(count, part.by, part.of);
                // A function that is only left where it was inlined does not call any more.
                if !self.pairs.contains_key(&part.function) {
                    calls.gone.push((callee, count));
                }
                let sum = moved.entry(callee).or_default();
                *sum = sum.saturating_add(count);
            }
        }
        let there = function.callees(kernels.to);
        // Indirect calls are not in the code: they stay.
        let stays = |callee: &usize| there.contains_key(callee) || !direct.contains(callee);
        calls.kept =
            moved.iter().map(|(callee, calls)| (*callee, *calls)).filter(|(at, _)| stays(at)).collect();
        // A call that the recorded code has, too, is no new one.
        let is_new = |(callee, _): &(usize, u64)| !moved.contains_key(callee) && !direct.contains(callee);
        calls.new = there.iter().map(|(callee, calls)| (*callee, *calls)).filter(is_new).collect();
        calls
    }
}

/// Calls of a function and of what was inlined into it, by the other kernel's functions.
#[derive(Default)]
struct FunctionCalls {
    from: usize,
    to: usize,
    /// Recorded calls.
    gone: Vec<(usize, u64)>,
    /// Part of the recorded calls, and of those of inlined functions, that the other kernel makes
    /// here.
    kept: Vec<(usize, u64)>,
    /// Calls that only the other kernel makes.
    new: Vec<(usize, u64)>,
}
