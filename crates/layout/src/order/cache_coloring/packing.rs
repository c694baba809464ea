//! Layout of the pieces: from positions modulo a way to addresses.

use super::colors::ColoredPieces;
use super::{LoopCode, LoopPiece, ALIGNMENT};

/// Returns all functions with their addresses.
///
/// The pieces of one loop are placed together, the loop with the most executed lines first. Each
/// time, the piece with the smallest gap comes next; it may take a position other than its own if
/// that costs nothing. Pieces of later loops and functions that run in no loop fill the gaps. The
/// remaining functions follow.
pub(super) fn pack(
    code: &LoopCode,
    pieces: &[LoopPiece],
    colored: ColoredPieces,
    order: &[usize],
    start: u64,
) -> Vec<(usize, u64)> {
    let others = order.iter().copied().filter(|at| !code.runs.contains_key(at)).collect();
    let address = start.next_multiple_of(ALIGNMENT);
    let mut packing = PiecePacker { code, pieces, colored, others, placed: Vec::new(), address };
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

/// Groups the pieces by the first loop that runs them, the loop with the most executed lines first.
fn groups(code: &LoopCode, pieces: &[LoopPiece]) -> Vec<Vec<usize>> {
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

struct PiecePacker<'a> {
    code: &'a LoopCode<'a>,
    pieces: &'a [LoopPiece],
    colored: ColoredPieces<'a>,
    /// Unplaced functions that run in no loop.
    others: Vec<usize>,
    placed: Vec<(usize, u64)>,
    /// End of the placed code.
    address: u64,
}

impl PiecePacker<'_> {
    /// Returns the index and start of the candidate that can begin soonest and ends by `end`.
    fn nearest(&mut self, candidates: &[usize], end: u64) -> Option<(usize, u64)> {
        let fits = |piece: usize, begin: u64| begin + self.pieces[piece].size <= end;
        let own = |at: usize| (self.address + self.colored.gap(candidates[at], self.address), at);
        let nearest = (0..candidates.len()).map(own).filter(|&(begin, at)| fits(candidates[at], begin)).min();
        let mut before = nearest.map_or(end.min(self.address + self.code.way()), |(begin, _)| begin);
        let mut sooner = None;
        for (at, &piece) in candidates.iter().enumerate() {
            let Some(latest) = end.checked_sub(self.pieces[piece].size) else { continue };
            if let Some(begin) = self.colored.first_as_good(piece, self.address, before, latest) {
                (sooner, before) = (Some((at, begin)), begin);
            }
        }
        sooner.or(nearest.map(|(begin, at)| (at, begin)))
    }

    /// Places a piece, and before it functions that run in no loop.
    fn put(&mut self, piece: usize, begin: u64) {
        self.fill(begin);
        self.colored.settle(piece, begin);
        let functions = self.pieces[piece].functions.iter();
        self.placed.extend(functions.map(|(function, offset)| (*function, begin + offset)));
        self.address = begin + self.pieces[piece].size;
    }

    /// Places functions that run in no loop and fit before `end`.
    fn fill(&mut self, end: u64) {
        let size = |function: usize| self.code.sizes[function].next_multiple_of(ALIGNMENT);
        while let Some(fits) = self.others.iter().position(|&other| self.address + size(other) <= end) {
            let other = self.others.remove(fits);
            self.placed.push((other, self.address));
            self.address += size(other);
        }
    }
}
