//! From places modulo a way to addresses.

use super::colours::Coloured;
use super::{Code, Piece, ALIGNMENT};

/// All functions with their addresses. The pieces of one loop lie together, the loop with the most to run first; the
/// next one is always that with the smallest gap before it, if need be at another place than its own where that costs
/// nothing. Pieces of later loops fill the gaps, and functions that run in none; what is left of these follows.
pub(super) fn pack(
    code: &Code,
    pieces: &[Piece],
    coloured: Coloured,
    order: &[usize],
    start: u64,
) -> Vec<(usize, u64)> {
    let others = order.iter().copied().filter(|at| !code.runs.contains_key(at)).collect();
    let address = start.next_multiple_of(ALIGNMENT);
    let mut packing = Packing { code, pieces, coloured, others, placed: Vec::new(), address };
    let mut groups = groups(code, pieces);
    groups.reverse();
    while let Some(mut group) = groups.pop() {
        while let Some((at, begin)) = packing.nearest(&group, u64::MAX) {
            let piece = group.remove(at);
            for later in groups.iter_mut().rev() {
                while let Some((at, there)) = packing.nearest(later, begin) {
                    packing.put(later.remove(at), there);
                }
            }
            packing.put(piece, begin);
        }
    }
    packing.fill(u64::MAX);
    packing.placed
}

/// The pieces by the first loop that runs them, the loop with the most lines to visit first.
fn groups(code: &Code, pieces: &[Piece]) -> Vec<Vec<usize>> {
    let mut visits = vec![0.0; code.rounds.len()];
    for piece in pieces {
        for (of, _, frequency) in code.lines_of_piece(piece, 0) {
            visits[of] += code.rounds[of] * frequency;
        }
    }
    let mut loops: Vec<usize> = (0..visits.len()).collect();
    loops.sort_by(|&a, &b| visits[b].total_cmp(&visits[a]).then(a.cmp(&b)));
    let mut left: Vec<usize> = (0..pieces.len()).collect();
    let of = |wanted: usize| {
        let (here, others) = left.iter().partition(|&&piece| pieces[piece].loops.contains(&wanted));
        left = others;
        here
    };
    loops.into_iter().map(of).collect()
}

struct Packing<'a> {
    code: &'a Code<'a>,
    pieces: &'a [Piece],
    coloured: Coloured<'a>,
    /// Functions that run in no loop and have no place yet.
    others: Vec<usize>,
    placed: Vec<(usize, u64)>,
    /// Where what was placed ends.
    address: u64,
}

impl Packing<'_> {
    /// Which of the `candidates` can begin soonest, and where, if it ends by `end`.
    fn nearest(&mut self, candidates: &[usize], end: u64) -> Option<(usize, u64)> {
        let fits = |piece: usize, begin: u64| begin + self.pieces[piece].size <= end;
        let own = |at: usize| (self.address + self.coloured.gap(candidates[at], self.address), at);
        let nearest = (0..candidates.len()).map(own).filter(|&(begin, at)| fits(candidates[at], begin)).min();
        let mut before = nearest.map_or(end.min(self.address + self.code.way()), |(begin, _)| begin);
        let mut sooner = None;
        for (at, &piece) in candidates.iter().enumerate() {
            let Some(latest) = end.checked_sub(self.pieces[piece].size) else { continue };
            if let Some(begin) = self.coloured.first_as_good(piece, self.address, before, latest) {
                (sooner, before) = (Some((at, begin)), begin);
            }
        }
        sooner.or(nearest.map(|(begin, at)| (at, begin)))
    }

    /// Places a piece, and what runs in no loop before it.
    fn put(&mut self, piece: usize, begin: u64) {
        self.fill(begin);
        self.coloured.settle(piece, begin);
        let functions = self.pieces[piece].functions.iter();
        self.placed.extend(functions.map(|(function, offset)| (*function, begin + offset)));
        self.address = begin + self.pieces[piece].size;
    }

    /// Places what runs in no loop and fits before `end`.
    fn fill(&mut self, end: u64) {
        let size = |function: usize| self.code.sizes[function].next_multiple_of(ALIGNMENT);
        while let Some(fits) = self.others.iter().position(|&other| self.address + size(other) <= end) {
            let other = self.others.remove(fits);
            self.placed.push((other, self.address));
            self.address += size(other);
        }
    }
}
