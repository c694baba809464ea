//! Choice of a position modulo the size of a way for each piece.

use super::{LoopCode, LoopPiece, ALIGNMENT};
use crate::xorshift::XorShift64;
use std::collections::BTreeSet;

/// Cost of a full set relative to a set with one line too many. It is not 0 because the recording
/// has not seen everything.
const FULL_SET_COST: f64 = 0.06;
/// Maximum number of times that each piece is moved to its cheapest position.
const MAX_PASSES: usize = 24;
/// Annealing steps per piece.
const STEPS_PER_PIECE: u32 = 10_000;
/// Initial temperature, relative to the misses of one line in all iterations. It falls linearly to
/// 0.
const INITIAL_TEMPERATURE: f64 = 1.0;
/// Costs closer than this are equal: sums in another order differ by rounding.
const COST_TOLERANCE: f64 = 1e-6;

/// Pieces with their positions modulo a way, and the resulting load of the sets.
pub(super) struct ColoredPieces<'a> {
    sets: SetLoad<'a>,
    /// Lines of each piece, for each possible start position in a line.
    lines: Vec<Vec<PieceLines>>,
    /// Position of each piece, in units of [`ALIGNMENT`].
    places: Vec<usize>,
}

/// Chooses a position for each piece: inserts the pieces by weight and then moves them. `seed` (not
/// 0) selects the random sequence of moves.
pub(super) fn choose<'a>(code: &'a LoopCode, pieces: &[LoopPiece], seed: u64) -> ColoredPieces<'a> {
    let phases = 0..code.line.div_ceil(ALIGNMENT);
    let in_all_phases =
        |piece| phases.clone().map(|phase| PieceLines::of(code, piece, phase * ALIGNMENT)).collect();
    let lines: Vec<Vec<PieceLines>> = pieces.iter().map(in_all_phases).collect();
    let weight = |piece: &usize| -> f64 {
        lines[*piece][0].each.iter().map(|line| line.rounds * line.frequency).sum()
    };
    let mut order: Vec<usize> = (0..pieces.len()).collect();
    order.sort_by(|a, b| weight(b).total_cmp(&weight(a)).then(a.cmp(b)));
    let mut colored = ColoredPieces { sets: SetLoad::new(code), lines, places: vec![0; pieces.len()] };
    for &piece in &order {
        colored.places[piece] = colored.first_place(piece);
        colored.change(piece, colored.places[piece], 1);
    }
    colored.anneal(seed);
    for _ in 0..MAX_PASSES {
        if !colored.descend(&order) {
            break;
        }
    }
    colored
}

impl ColoredPieces<'_> {
    /// Moves each piece to its cheapest position. Returns true if a piece moved.
    fn descend(&mut self, order: &[usize]) -> bool {
        let mut moved = false;
        for &piece in order {
            let old = self.places[piece];
            self.change(piece, old, -1);
            self.places[piece] = self.cheapest(piece, old);
            self.change(piece, self.places[piece], 1);
            moved |= self.places[piece] != old;
        }
        moved
    }

    /// Runs simulated annealing (Kirkpatrick et al., Science 1983). A set with four lines too many
    /// pays off only when it is emptied completely, so single improving steps do not get there.
    fn anneal(&mut self, seed: u64) {
        let places = (self.sets.code.way() / ALIGNMENT) as u32;
        let of_a_line = self.sets.dearest_line();
        let pieces = u32::try_from(self.places.len()).unwrap_or(u32::MAX);
        if of_a_line <= 0.0 || pieces == 0 {
            return;
        }
        let steps = STEPS_PER_PIECE.saturating_mul(pieces);
        let mut random = XorShift64(seed);
        for step in 0..steps {
            let left = 1.0 - f64::from(step) / f64::from(steps);
            let temperature = of_a_line * INITIAL_TEMPERATURE * left;
            let piece = random.below(pieces) as usize;
            let new = random.below(places) as usize;
            // Accepted with probability exp(-cost / temperature).
            let limit = -temperature * random.unit().ln();
            self.move_if_within(piece, new, limit);
        }
    }

    /// Moves a piece unless that raises the cost by more than `limit`.
    fn move_if_within(&mut self, piece: usize, new: usize, limit: f64) {
        let old = self.places[piece];
        if self.are_apart(piece, old, new) {
            let (lines, first) = self.lines(piece, old);
            let saved = self.sets.saved(lines, first);
            let (lines, first) = self.lines(piece, new);
            if self.sets.cost(lines, first, limit + saved) <= limit + saved {
                self.put(piece, old, -1);
                self.put(piece, new, 1);
                self.places[piece] = new;
            }
            return;
        }
        if self.change(piece, old, -1) + self.change(piece, new, 1) <= limit {
            self.places[piece] = new;
        } else {
            self.put(piece, new, -1);
            self.put(piece, old, 1);
        }
    }

    /// Returns true if no set has lines of a piece at both positions, nor two lines at one.
    fn are_apart(&self, piece: usize, old: usize, new: usize) -> bool {
        let sets = self.sets.code.sets as usize;
        let ((at_old, old), (at_new, new)) = (self.lines(piece, old), self.lines(piece, new));
        let distance = (new + sets - old) % sets;
        !at_old.meet && !at_new.meet && distance >= at_old.span && sets - distance >= at_new.span
    }

    /// Returns the first of the cheapest positions for a piece that is not in the sets.
    ///
    /// Each position is tried by inserting the piece, which rounds the sums. Annealing depends on
    /// these roundings, so another way to compute the cost would change the result.
    fn first_place(&mut self, piece: usize) -> usize {
        let mut best = (f64::INFINITY, 0);
        for place in 0..self.places() {
            let cost = self.change(piece, place, 1);
            self.put(piece, place, -1);
            if cost < best.0 - COST_TOLERANCE {
                best = (cost, place);
            }
        }
        best.1
    }

    /// Returns the cheapest position for a piece that is not in the sets. The search begins at
    /// `from`, so the piece stays there unless another position is better.
    fn cheapest(&mut self, piece: usize, from: usize) -> usize {
        let places = self.places();
        let min = self.lines[piece].iter().map(PieceLines::min).fold(f64::INFINITY, f64::min);
        let mut best = (f64::INFINITY, from);
        for at in 0..places {
            let place = (from + at) % places;
            let cost = self.cost(piece, place, best.0 - COST_TOLERANCE);
            if cost < best.0 - COST_TOLERANCE {
                best = (cost, place);
                if cost <= min + COST_TOLERANCE / 2.0 {
                    break;
                }
            }
        }
        best.1
    }

    /// Returns the number of positions.
    fn places(&self) -> usize {
        (self.sets.code.way() / ALIGNMENT) as usize
    }

    /// Returns the lines of a piece at a position, and the number of its first line.
    fn lines(&self, piece: usize, place: usize) -> (&PieceLines, usize) {
        let phases = self.lines[piece].len();
        (&self.lines[piece][place % phases], place / phases)
    }

    /// Returns the cost of inserting a piece, without inserting it. Above `limit` the result is any
    /// value above `limit`.
    fn cost(&mut self, piece: usize, place: usize, limit: f64) -> f64 {
        let (lines, first) = self.lines(piece, place);
        if lines.meet {
            let cost = self.change(piece, place, 1);
            self.put(piece, place, -1);
            return cost;
        }
        self.sets.cost(lines, first, limit)
    }

    /// Inserts a piece (`by` 1) or removes it (-1) and returns the change of cost.
    fn change(&mut self, piece: usize, place: usize, by: i32) -> f64 {
        let phases = self.lines[piece].len();
        self.sets.change(&self.lines[piece][place % phases], place / phases, by)
    }

    /// Inserts or removes a piece without computing the cost.
    fn put(&mut self, piece: usize, place: usize, by: i32) {
        let phases = self.lines[piece].len();
        self.sets.put(&self.lines[piece][place % phases], place / phases, by);
    }

    fn place_of(&self, address: u64) -> usize {
        (address % self.sets.code.way() / ALIGNMENT) as usize
    }

    /// Returns the bytes from `address` to the next address with the piece's position.
    pub(super) fn gap(&self, piece: usize, address: u64) -> u64 {
        let way = self.sets.code.way();
        (self.places[piece] as u64 * ALIGNMENT + way - address % way) % way
    }

    /// Returns the first address from `from` on, below `before` and up to `latest`, at which the
    /// piece costs no more than at its present position.
    pub(super) fn first_as_good(&mut self, piece: usize, from: u64, before: u64, latest: u64) -> Option<u64> {
        if from >= before || from > latest {
            return None;
        }
        let old = self.places[piece];
        let without = self.change(piece, old, -1);
        let limit = COST_TOLERANCE - without;
        let mut addresses =
            (from..before).step_by(ALIGNMENT as usize).take_while(|&address| address <= latest);
        let found = addresses.find(|&address| {
            let place = self.place_of(address);
            self.cost(piece, place, limit) <= limit
        });
        self.put(piece, old, 1);
        found
    }

    /// Moves a piece to the position of `address`.
    pub(super) fn settle(&mut self, piece: usize, address: u64) {
        let (old, new) = (self.places[piece], self.place_of(address));
        self.put(piece, old, -1);
        self.put(piece, new, 1);
        self.places[piece] = new;
    }
}

/// Line of a piece in one loop.
#[derive(Clone, Copy)]
struct PieceLine {
    /// Index of the first set of its loop.
    sets: u32,
    /// Line number from the piece's first line, modulo the number of sets.
    line: u32,
    /// Executions per iteration.
    frequency: f64,
    /// Iterations of the loop.
    rounds: f64,
    /// Lines of the loop that a set holds.
    ways: i32,
}

/// Lines of a piece for one start position in a line.
struct PieceLines {
    each: Vec<PieceLine>,
    /// Number of sets from the first line to the last.
    span: usize,
    /// True if two lines of one loop fall into the same set.
    meet: bool,
}

impl PieceLines {
    fn of(code: &LoopCode, piece: &LoopPiece, phase: u64) -> Self {
        let line = |(of, line, frequency): (usize, u64, f64)| PieceLine {
            sets: of as u32 * code.sets as u32,
            line: (line % code.sets) as u32,
            frequency,
            rounds: code.rounds[of],
            ways: code.ways[of] as i32,
        };
        let each: Vec<PieceLine> = code.lines_of_piece(piece, phase).into_iter().map(line).collect();
        let meet = each.iter().map(|line| line.sets + line.line).collect::<BTreeSet<_>>().len() < each.len();
        let span = each.iter().map(|line| line.line as usize + 1).max().unwrap_or_default();
        Self { each, span, meet }
    }

    /// Returns the cost of the lines alone, which is a lower bound.
    fn min(&self) -> f64 {
        self.each.iter().map(|line| line.rounds * misses((1, line.frequency), line.ways)).sum()
    }
}

/// Load of the sets by each loop.
struct SetLoad<'a> {
    code: &'a LoopCode<'a>,
    /// Number of lines and their executions per iteration, by loop and set.
    load: Vec<(i32, f64)>,
}

impl<'a> SetLoad<'a> {
    fn new(code: &'a LoopCode<'a>) -> Self {
        let mut load = vec![(0, 0.0); code.rounds.len() * code.sets as usize];
        for (of, lines) in code.fixed.iter().enumerate() {
            for (line, frequency) in lines {
                let set = &mut load[of * code.sets as usize + (line % code.sets) as usize];
                *set = (set.0 + 1, set.1 + frequency);
            }
        }
        Self { code, load }
    }

    /// Returns the misses of one line in all iterations, for the most expensive loop that exceeds
    /// the cache; 0 if all fit.
    fn dearest_line(&self) -> f64 {
        let sets = self.code.sets as usize;
        let loops = self.load.chunks(sets).zip(&self.code.rounds).zip(&self.code.ways);
        let dear = loops.map(|((load, rounds), ways)| {
            let (lines, visits) =
                load.iter().fold((0, 0.0), |(lines, visits), set| (lines + set.0, visits + set.1));
            let fits = lines as usize <= sets * ways;
            if fits {
                0.0
            } else {
                rounds * visits / f64::from(lines)
            }
        });
        dear.fold(0.0, f64::max)
    }

    /// Inserts lines (`by` 1) or removes them (-1) and returns the change of cost.
    fn change(&mut self, lines: &PieceLines, first: usize, by: i32) -> f64 {
        let sets = self.code.sets as usize;
        let mut cost = 0.0;
        for line in &lines.each {
            let load = &mut self.load[set(first, line, sets)];
            let before = misses(*load, line.ways);
            *load = changed(*load, line, by);
            cost += line.rounds * (misses(*load, line.ways) - before);
        }
        cost
    }

    fn put(&mut self, lines: &PieceLines, first: usize, by: i32) {
        let sets = self.code.sets as usize;
        for line in &lines.each {
            let load = &mut self.load[set(first, line, sets)];
            *load = changed(*load, line, by);
        }
    }

    /// Returns the cost that removing lines which fall into different sets would save.
    fn saved(&self, lines: &PieceLines, first: usize) -> f64 {
        let sets = self.code.sets as usize;
        let saved = |line: &PieceLine| {
            let load = self.load[set(first, line, sets)];
            line.rounds * (misses(load, line.ways) - misses(changed(load, line, -1), line.ways))
        };
        lines.each.iter().map(saved).sum()
    }

    /// Returns the cost of inserting lines that fall into different sets, and stops above `limit`.
    /// Costs only grow with each line.
    fn cost(&self, lines: &PieceLines, first: usize, limit: f64) -> f64 {
        let sets = self.code.sets as usize;
        let mut cost = 0.0;
        for line in &lines.each {
            let load = self.load[set(first, line, sets)];
            cost += line.rounds * (misses(changed(load, line, 1), line.ways) - misses(load, line.ways));
            if cost > limit {
                break;
            }
        }
        cost
    }
}

/// Returns the index of the set of a line of a piece whose first line is in set `first`, out of `sets`.
fn set(first: usize, line: &PieceLine, sets: usize) -> usize {
    let set = first + line.line as usize;
    line.sets as usize + if set < sets { set } else { set - sets }
}

fn changed((lines, visits): (i32, f64), line: &PieceLine, by: i32) -> (i32, f64) {
    (lines + by, visits + f64::from(by) * line.frequency)
}

/// Returns the misses per iteration in a set.
fn misses((lines, visits): (i32, f64), ways: i32) -> f64 {
    match lines - ways {
        1.. => visits,
        0 => FULL_SET_COST * visits,
        _ => 0.0,
    }
}
