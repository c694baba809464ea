//! Which arcs to cut so that cycles fall apart, and few calls with them.

use super::components::Components;
use super::{Arc, CutBy, Tie};
use std::collections::{BinaryHeap, VecDeque};

/// Steps of the search for arcs that need not be cut. A kernel takes some thousands; what foreign bytes make of it ends
/// with more arcs cut than need be.
const STEPS: usize = 20_000_000;

/// How far the heuristic goes that cuts cycles open.
///
/// It puts the functions of each cycle in an order in which few calls go backwards (Eades, Lin and Smyth, "A fast and
/// effective heuristic for the feedback arc set problem", 1993, with calls as weights), and cuts the arcs that do; those that
/// need not be cut are taken back, those with the most calls first. Arcs with more calls than the limit stay, and the cycle
/// with them: functions that really call each other in turns are one, and their time cannot be told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AutoCut {
    /// The most calls that an arc may have to be cut, per cent of the calls within its cycle.
    pub most_percent: u8,
}

impl Default for AutoCut {
    /// Five per cent.
    fn default() -> Self {
        Self { most_percent: 5 }
    }
}

/// Indices of the arcs to cut, sorted.
pub(super) fn backward(nodes: usize, arcs: &[Arc], limit: AutoCut) -> Vec<usize> {
    let components = Components::of(nodes, arcs);
    let mut inner: Vec<Vec<usize>> = vec![Vec::new(); components.members.len()];
    for (at, arc) in arcs.iter().enumerate().filter(|(_, arc)| arc.tie == Tie::Bound) {
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
        let most = u128::from(calls) * u128::from(limit.most_percent);
        for (at, member) in order(members, inner, arcs).into_iter().enumerate() {
            place[member] = at;
        }
        let is_back = |at: &usize| arcs[*at].caller.is_some_and(|from| place[from] > place[arcs[*at].callee]);
        let (mut back, mut forward): (Vec<usize>, Vec<usize>) = inner.iter().partition(|at| is_back(at));
        back.sort_by_key(|at| (std::cmp::Reverse(arcs[*at].calls), *at));
        // Those with the most calls first: what may not be cut is among them.
        back.retain(|&at| {
            let stays = u128::from(arcs[at].calls) * 100 > most || !closes(arcs, &forward, at, &mut steps);
            if stays {
                forward.push(at);
            }
            !stays
        });
        chosen.extend(back);
    }
    without_use(nodes, arcs, chosen)
}

/// The order of a cycle's members by Eades, Lin and Smyth: again and again those that call nobody of the rest go to the
/// end, those that nobody calls to the beginning, and else the one that makes the most calls more than it gets.
fn order(members: &[usize], inner: &[usize], arcs: &[Arc]) -> Vec<usize> {
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
            // An entry of before its neighbours went has a successor in the heap.
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

/// Whether an arc would close a circle with `forward`; true if `steps` are used up.
fn closes(arcs: &[Arc], forward: &[usize], at: usize, steps: &mut usize) -> bool {
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

/// Takes back what is cut within a cycle that is there all the same.
fn without_use(nodes: usize, arcs: &[Arc], mut chosen: Vec<usize>) -> Vec<usize> {
    let mut cut = arcs.to_vec();
    chosen.iter().for_each(|at| cut[*at].tie = Tie::Cut(CutBy::Heuristic));
    let left = Components::of(nodes, &cut);
    let apart =
        |at: &usize| arcs[*at].caller.map(|caller| left.of[caller]) != Some(left.of[arcs[*at].callee]);
    chosen.retain(apart);
    chosen.sort_unstable();
    chosen
}
