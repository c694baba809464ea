//! Who calls whom how often in both kernels, and what of that an inlined function explains.

use super::{row_of, Both};
use kerntune_profile::Difference;
use std::collections::{BTreeMap, HashSet};

/// Fewer calls than this are no sign of anything: what is done in an interrupt may be done in another place.
const CALLS: i128 = 16;
/// A caller calls less if at least one in so many of the calls is not made.
const PART: i128 = 10;

/// A callee that a caller calls less in one of the kernels than in the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Candidate {
    /// Row of [`Difference::functions`].
    pub caller: usize,
    /// The same.
    pub callee: usize,
    /// The kernel with fewer calls: 0 or 1.
    pub fewer: usize,
}

/// Calls, once paths count as those above them.
pub(super) struct Arcs {
    /// By caller and callee.
    calls: BTreeMap<(usize, usize), Both>,
    /// By function, whoever called it.
    of: BTreeMap<usize, Both>,
    /// Own time of the callee, as for `calls`.
    net: BTreeMap<(usize, usize), Both>,
}

impl Arcs {
    /// `to` has the path that each path counts as.
    pub fn count(difference: &Difference, to: &[usize]) -> Self {
        let paths = &difference.paths;
        let mut arcs = Self { calls: BTreeMap::new(), of: BTreeMap::new(), net: BTreeMap::new() };
        for (_, path) in paths.iter().enumerate().filter(|(at, _)| to[*at] == *at) {
            let Some(callee) = row_of(&path.label) else { continue };
            let add = |sums: &mut Both, of: fn(&kerntune_profile::PathFigures) -> i128| {
                sums.iter_mut().zip(&path.figures).for_each(|(sum, figures)| *sum += of(figures));
            };
            add(arcs.of.entry(callee).or_default(), |figures| figures.calls);
            if let Some(caller) = path.parent.and_then(|parent| row_of(&paths[to[parent]].label)) {
                add(arcs.calls.entry((caller, callee)).or_default(), |figures| figures.calls);
                add(arcs.net.entry((caller, callee)).or_default(), |figures| figures.net_ns);
            }
        }
        arcs
    }

    /// All callees that are called less for each call of their caller, in order.
    pub fn candidates(&self) -> Vec<Candidate> {
        let candidate = |(&(caller, callee), &made): (&(usize, usize), &Both)| {
            let runs = self.of.get(&caller)?;
            if runs[0] <= 0 || runs[1] <= 0 {
                return None;
            }
            // Calls of each that the caller would make if it ran as often as in both together.
            let scaled = [made[0] * runs[1], made[1] * runs[0]];
            let fewer = usize::from(scaled[1] < scaled[0]);
            let more = 1 - fewer;
            let lost = scaled[more] - scaled[fewer];
            // As many as are lost where fewer are made, and not only because the caller runs more often there.
            let many = lost >= CALLS * runs[more] && made[more] >= CALLS;
            (many && lost * PART >= scaled[more]).then_some(Candidate { caller, callee, fewer })
        };
        self.calls.iter().filter_map(candidate).collect()
    }

    /// Those that do not depend on others; of those that all depend on each other, the heaviest; nothing of nothing.
    ///
    /// A callee waits for its caller, which may itself be a part of another. It also waits where that kernel has a frame in
    /// between that the other has not: what is called through it will be the caller's own call.
    pub fn ready(&self, candidates: &[Candidate]) -> Vec<Candidate> {
        let callees: HashSet<usize> = candidates.iter().map(|candidate| candidate.callee).collect();
        let mut fewer: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
        for candidate in candidates {
            fewer.entry((candidate.caller, candidate.fewer)).or_default().push(candidate.callee);
        }
        let is_between = |candidate: &Candidate| {
            let Candidate { caller, callee, fewer: side } = *candidate;
            let between = fewer.get(&(caller, 1 - side)).map_or(&[][..], Vec::as_slice);
            between.iter().any(|frame| self.calls.get(&(*frame, callee)).is_some_and(|calls| calls[side] > 0))
        };
        let ready: Vec<Candidate> = candidates
            .iter()
            .filter(|candidate| !callees.contains(&candidate.caller) && !is_between(candidate))
            .copied()
            .collect();
        if !ready.is_empty() {
            return ready;
        }
        let weight = |candidate: &&Candidate| {
            let net = self.net.get(&(candidate.caller, candidate.callee)).copied().unwrap_or_default();
            (net[0].max(net[1]), std::cmp::Reverse(**candidate))
        };
        candidates.iter().max_by_key(weight).copied().into_iter().collect()
    }
}
