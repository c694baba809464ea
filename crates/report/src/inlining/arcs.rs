//! Calls between functions in both kernels, and the differences that inlining may explain.

use super::{row_of, KernelPair};
use kerntune_profile::ProfileDifference;
use std::collections::{BTreeMap, HashSet};

/// Smallest number of calls that is evidence. Fewer may be chance: an interrupt's calls may occur
/// anywhere.
const MIN_CALLS: i128 = 16;
/// A caller calls less if at least one in this many calls is missing.
const MIN_LOSS_DIVISOR: i128 = 10;

/// Callee that a caller calls less in one of the kernels than in the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct InlineCandidate {
    /// Row of [`ProfileDifference::functions`].
    pub caller: usize,
    /// Row of [`ProfileDifference::functions`].
    pub callee: usize,
    /// Kernel with fewer calls: 0 or 1.
    pub fewer: usize,
}

/// Arcs after folding paths into those above them.
pub(super) struct FoldedArcs {
    /// Calls by caller and callee.
    calls: BTreeMap<(usize, usize), KernelPair>,
    /// Calls by function, over all callers.
    of: BTreeMap<usize, KernelPair>,
    /// Self time of the callee, by caller and callee.
    self_ticks: BTreeMap<(usize, usize), KernelPair>,
}

impl FoldedArcs {
    /// Sums the arcs; `to` has the path that each path counts as.
    pub fn count(difference: &ProfileDifference, to: &[usize]) -> Self {
        let paths = &difference.paths;
        let mut arcs = Self { calls: BTreeMap::new(), of: BTreeMap::new(), self_ticks: BTreeMap::new() };
        for (_, path) in paths.iter().enumerate().filter(|(at, _)| to[*at] == *at) {
            let Some(callee) = row_of(path) else { continue };
            let add = |sums: &mut KernelPair, of: fn(&kerntune_profile::PathFigures) -> i128| {
                sums.iter_mut().zip(&path.figures).for_each(|(sum, figures)| *sum += of(figures));
            };
            add(arcs.of.entry(callee).or_default(), |figures| figures.calls);
            if let Some(caller) = path.parent.and_then(|parent| row_of(&paths[to[parent]])) {
                add(arcs.calls.entry((caller, callee)).or_default(), |figures| figures.calls);
                add(arcs.self_ticks.entry((caller, callee)).or_default(), |figures| figures.self_ticks);
            }
        }
        arcs
    }

    /// Returns all callees that are called less per call of their caller, in order.
    pub fn candidates(&self) -> Vec<InlineCandidate> {
        let candidate = |(&(caller, callee), &made): (&(usize, usize), &KernelPair)| {
            let runs = self.of.get(&caller)?;
            if runs[0] <= 0 || runs[1] <= 0 {
                return None;
            }
            // Calls scaled to equal numbers of runs of the caller.
            let scaled = [made[0] * runs[1], made[1] * runs[0]];
            let fewer = usize::from(scaled[1] < scaled[0]);
            let more = 1 - fewer;
            let lost = scaled[more] - scaled[fewer];
            // The lost calls must be many in absolute numbers too, not only because the caller runs
            // more often there.
            let many = lost >= MIN_CALLS * runs[more] && made[more] >= MIN_CALLS;
            (many && lost * MIN_LOSS_DIVISOR >= scaled[more]).then_some(InlineCandidate {
                caller,
                callee,
                fewer,
            })
        };
        self.calls.iter().filter_map(candidate).collect()
    }

    /// Returns the candidates that do not depend on others; if all depend on each other, the
    /// heaviest.
    ///
    /// A callee waits for its caller, which may itself be folded into another function. It also
    /// waits if that kernel has a frame in between that the other lacks: after folding that frame,
    /// its callees are direct calls.
    pub fn ready(&self, candidates: &[InlineCandidate]) -> Vec<InlineCandidate> {
        let callees: HashSet<usize> = candidates.iter().map(|candidate| candidate.callee).collect();
        let mut fewer: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
        for candidate in candidates {
            fewer.entry((candidate.caller, candidate.fewer)).or_default().push(candidate.callee);
        }
        let is_between = |candidate: &InlineCandidate| {
            let InlineCandidate { caller, callee, fewer: side } = *candidate;
            let between = fewer.get(&(caller, 1 - side)).map_or(&[][..], Vec::as_slice);
            between.iter().any(|frame| self.calls.get(&(*frame, callee)).is_some_and(|calls| calls[side] > 0))
        };
        let ready: Vec<InlineCandidate> = candidates
            .iter()
            .filter(|candidate| !callees.contains(&candidate.caller) && !is_between(candidate))
            .copied()
            .collect();
        if !ready.is_empty() {
            return ready;
        }
        let weight = |candidate: &&InlineCandidate| {
            let self_ticks =
                self.self_ticks.get(&(candidate.caller, candidate.callee)).copied().unwrap_or_default();
            (self_ticks[0].max(self_ticks[1]), std::cmp::Reverse(**candidate))
        };
        candidates.iter().max_by_key(weight).copied().into_iter().collect()
    }
}
