//! Heuristic that cuts cycles at arcs with few calls.

use super::components::CallComponents;
use super::{ArcBinding, CutReason, GraphArc};
use std::collections::{BinaryHeap, VecDeque};

/// Maximum number of steps of the search for arcs that need not be cut. A kernel takes some
/// thousands; damaged input may reach the limit, which cuts more arcs than necessary.
const STEPS: usize = 20_000_000;

/// Limit of the heuristic that cuts cycles.
///
/// The heuristic orders the functions of each cycle so that few calls go backwards (Eades, Lin and
/// Smyth, "A fast and effective heuristic for the feedback arc set problem", 1993, with calls as
/// weights), and cuts the backward arcs. Then it restores the arcs that need not be cut, those with
/// the most calls first. Arcs with more calls than the limit stay, and their cycle with them:
/// functions that really call each other in turns are one unit, and their time cannot be separated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AutoCut {
    /// Maximum number of calls of an arc to cut, in per cent of the calls within its cycle.
    pub max_percent: u8,
}

impl Default for AutoCut {
    /// Five per cent.
    fn default() -> Self {
        Self { max_percent: 5 }
    }
}

/// Returns the indices of the arcs to cut, sorted.
pub(super) fn backward(nodes: usize, arcs: &[GraphArc], limit: AutoCut) -> Vec<usize> {
    let components = CallComponents::of(nodes, arcs);
    let mut inner: Vec<Vec<usize>> = vec![Vec::new(); components.members.len()];
    for (at, arc) in arcs.iter().enumerate().filter(|(_, arc)| arc.tie == ArcBinding::Bound) {
        let component = components.of[arc.callee];
        if arc.caller.is_some_and(|caller| caller != arc.callee && components.of[caller] == component) {
            inner[component].push(at);
        }
    }
    let mut place = vec![0; nodes];
    let mut chosen = Vec::new();
    let mut steps = STEPS;
    for (members, inner) in components.members.iter().zip(&inner).filter(|(members, _)| members.len() > 1) {
        let calls = inner.iter().fold(0, |sum: u64, at| sum.saturating_add(arcs[*at].calls));
        let max = u128::from(calls) * u128::from(limit.max_percent);
        for (at, member) in order(members, inner, arcs).into_iter().enumerate() {
            place[member] = at;
        }
        let is_back = |at: &usize| arcs[*at].caller.is_some_and(|from| place[from] > place[arcs[*at].callee]);
        let (mut back, mut forward): (Vec<usize>, Vec<usize>) = inner.iter().partition(|at| is_back(at));
        back.sort_by_key(|at| (std::cmp::Reverse(arcs[*at].calls), *at));
        // Sorted by calls, most first: so the arcs that must not be cut are restored first.
        back.retain(|&at| {
            let stays = u128::from(arcs[at].calls) * 100 > max || !closes(arcs, &forward, at, &mut steps);
            if stays {
                forward.push(at);
            }
            !stays
        });
        chosen.extend(back);
    }
    without_use(nodes, arcs, chosen)
}

/// Orders the members of a cycle by the method of Eades, Lin and Smyth. Repeatedly takes, of the
/// remaining functions, those that call none of the others to the end and those that none of the
/// others calls to the beginning; if there are none of either, the function with the greatest
/// surplus of calls made over calls received comes first.
fn order(members: &[usize], inner: &[usize], arcs: &[GraphArc]) -> Vec<usize> {
    let number: std::collections::HashMap<usize, usize> =
        members.iter().enumerate().map(|(at, member)| (*member, at)).collect();
    let count = members.len();
    let (mut out, mut into) = (vec![Vec::new(); count], vec![Vec::new(); count]);
    let (mut calls_out, mut calls_in) = (vec![0_i128; count], vec![0_i128; count]);
    let (mut arcs_out, mut arcs_in) = (vec![0_usize; count], vec![0_usize; count]);
    for &at in inner {
        let Some(caller) = arcs[at].caller else { continue };
        let (from, to, calls) = (number[&caller], number[&arcs[at].callee], i128::from(arcs[at].calls));
        out[from].push((to, calls));
        into[to].push((from, calls));
        calls_out[from] += calls;
        calls_in[to] += calls;
        arcs_out[from] += 1;
        arcs_in[to] += 1;
    }
    let mut is_left = vec![true; count];
    let mut heap: BinaryHeap<(i128, std::cmp::Reverse<usize>)> =
        (0..count).map(|at| (calls_out[at] - calls_in[at], std::cmp::Reverse(at))).collect();
    let (mut first, mut last) = (Vec::with_capacity(count), VecDeque::new());
    let (mut sinks, mut sources): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
    loop {
        let at = if let Some(at) = sinks.pop() {
            if !is_left[at] {
                continue;
            }
            last.push_front(members[at]);
            at
        } else if let Some(at) = sources.pop() {
            if !is_left[at] {
                continue;
            }
            first.push(members[at]);
            at
        } else if let Some((gain, std::cmp::Reverse(at))) = heap.pop() {
            // A stale heap entry: the neighbors of the function changed since, and a newer entry
            // exists.
            if !is_left[at] || gain != calls_out[at] - calls_in[at] {
                continue;
            }
            first.push(members[at]);
            at
        } else {
            break;
        };
        is_left[at] = false;
        for &(to, calls) in out[at].iter().filter(|(to, _)| is_left[*to]) {
            calls_in[to] -= calls;
            arcs_in[to] -= 1;
            heap.push((calls_out[to] - calls_in[to], std::cmp::Reverse(to)));
            if arcs_in[to] == 0 {
                sources.push(to);
            }
        }
        for &(from, calls) in into[at].iter().filter(|(from, _)| is_left[*from]) {
            calls_out[from] -= calls;
            arcs_out[from] -= 1;
            heap.push((calls_out[from] - calls_in[from], std::cmp::Reverse(from)));
            if arcs_out[from] == 0 {
                sinks.push(from);
            }
        }
    }
    first.extend(last);
    first
}

/// Checks whether an arc would close a cycle with `forward`; true if no `steps` are left.
fn closes(arcs: &[GraphArc], forward: &[usize], at: usize, steps: &mut usize) -> bool {
    let Some(goal) = arcs[at].caller else { return false };
    let mut callees: std::collections::HashMap<usize, Vec<usize>> = std::collections::HashMap::new();
    if *steps < forward.len() {
        *steps = 0;
        return true;
    }
    *steps -= forward.len();
    for &arc in forward {
        if let Some(caller) = arcs[arc].caller {
            callees.entry(caller).or_default().push(arcs[arc].callee);
        }
    }
    let mut seen = std::collections::HashSet::from([arcs[at].callee]);
    let mut path = vec![arcs[at].callee];
    while let Some(node) = path.pop() {
        if node == goal {
            return true;
        }
        path.extend(callees.get(&node).into_iter().flatten().filter(|callee| seen.insert(**callee)));
    }
    false
}

/// Restores arcs whose cycle persists although they were cut.
fn without_use(nodes: usize, arcs: &[GraphArc], mut chosen: Vec<usize>) -> Vec<usize> {
    let mut cut = arcs.to_vec();
    chosen.iter().for_each(|at| cut[*at].tie = ArcBinding::Cut(CutReason::Heuristic));
    let left = CallComponents::of(nodes, &cut);
    let apart =
        |at: &usize| arcs[*at].caller.map(|caller| left.of[caller]) != Some(left.of[arcs[*at].callee]);
    chosen.retain(apart);
    chosen.sort_unstable();
    chosen
}
