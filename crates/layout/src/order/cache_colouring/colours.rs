//! Which place modulo the size of a way suits each piece.

use super::{Code, Piece, ALIGNMENT};
use std::collections::BTreeSet;

/// What a set that is just full costs, of what it costs with one line more: the recording has not seen everything.
const FULL: f64 = 0.06;
/// Times that each piece is lifted and put down again, at most.
const PASSES: usize = 24;
/// Steps of the annealing for each piece.
const STEPS: u32 = 10_000;
/// Its first temperature, in misses of a line in all rounds; it falls evenly to none.
const WARM: f64 = 1.0;
/// Costs closer than this are equal: sums in another order differ by so much.
const EQUAL: f64 = 1e-6;

/// Pieces with places modulo a way, and what the sets hold then.
pub(super) struct Coloured<'a> {
    sets: Sets<'a>,
    /// The lines of each piece, for each place that it may begin at in a line.
    lines: Vec<Vec<Lines>>,
    /// Where each piece begins, in units of [`ALIGNMENT`].
    places: Vec<usize>,
}

/// A place for each of the `pieces`, which are put down in the order of their weight and then moved; `seed`, not 0, says
/// in which turn.
pub(super) fn choose<'a>(code: &'a Code, pieces: &[Piece], seed: u64) -> Coloured<'a> {
    let phases = 0..code.line.div_ceil(ALIGNMENT);
    let in_all_phases =
        |piece| phases.clone().map(|phase| Lines::of(code, piece, phase * ALIGNMENT)).collect();
    let lines: Vec<Vec<Lines>> = pieces.iter().map(in_all_phases).collect();
    let weight = |piece: &usize| -> f64 {
        lines[*piece][0].each.iter().map(|line| line.rounds * line.frequency).sum()
    };
    let mut order: Vec<usize> = (0..pieces.len()).collect();
    order.sort_by(|a, b| weight(b).total_cmp(&weight(a)).then(a.cmp(b)));
    let mut coloured = Coloured { sets: Sets::new(code), lines, places: vec![0; pieces.len()] };
    for &piece in &order {
        coloured.places[piece] = coloured.first_place(piece);
        coloured.change(piece, coloured.places[piece], 1);
    }
    coloured.anneal(seed);
    for _ in 0..PASSES {
        if !coloured.descend(&order) {
            break;
        }
    }
    coloured
}

impl Coloured<'_> {
    /// Lifts each piece and puts it down where it is cheapest; whether one moved.
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

    /// Simulated annealing (Kirkpatrick et al., Science 1983): a set with four lines too much is only worth emptying as a
    /// whole, which no single step shows.
    fn anneal(&mut self, seed: u64) {
        let places = (self.sets.code.way() / ALIGNMENT) as u32;
        let of_a_line = self.sets.dearest_line();
        let pieces = u32::try_from(self.places.len()).unwrap_or(u32::MAX);
        if of_a_line <= 0.0 || pieces == 0 {
            return;
        }
        let steps = STEPS.saturating_mul(pieces);
        let mut random = Random(seed);
        for step in 0..steps {
            let left = 1.0 - f64::from(step) / f64::from(steps);
            let temperature = of_a_line * WARM * left;
            let piece = random.below(pieces) as usize;
            let (old, new) = (self.places[piece], random.below(places) as usize);
            let cost = self.change(piece, old, -1) + self.change(piece, new, 1);
            if cost <= 0.0 || random.unit() < (-cost / temperature).exp() {
                self.places[piece] = new;
            } else {
                self.put(piece, new, -1);
                self.put(piece, old, 1);
            }
        }
    }

    /// The first of the cheapest places for a piece that is not in the sets. Each is tried by putting the piece there, which leaves sums
    /// rounded; annealing begins with these, and goes another way with others.
    fn first_place(&mut self, piece: usize) -> usize {
        let mut best = (f64::INFINITY, 0);
        for place in 0..self.places() {
            let cost = self.change(piece, place, 1);
            self.put(piece, place, -1);
            if cost < best.0 - EQUAL {
                best = (cost, place);
            }
        }
        best.1
    }

    /// The cheapest place for a piece that is not in the sets, the first from `from` on, so that it stays where nothing
    /// is better.
    fn cheapest(&mut self, piece: usize, from: usize) -> usize {
        let places = self.places();
        let least = self.lines[piece].iter().map(Lines::least).fold(f64::INFINITY, f64::min);
        let mut best = (f64::INFINITY, from);
        for at in 0..places {
            let place = (from + at) % places;
            let cost = self.cost(piece, place, best.0 - EQUAL);
            if cost < best.0 - EQUAL {
                best = (cost, place);
                if cost <= least + EQUAL / 2.0 {
                    break;
                }
            }
        }
        best.1
    }

    /// How many places there are.
    fn places(&self) -> usize {
        (self.sets.code.way() / ALIGNMENT) as usize
    }

    /// The lines of a piece that begins at a place, and the line of its first byte.
    fn lines(&self, piece: usize, place: usize) -> (&Lines, usize) {
        let phases = self.lines[piece].len();
        (&self.lines[piece][place % phases], place / phases)
    }

    /// What it costs to bring a piece in, which stays out; anything above `limit` if it is more than that.
    fn cost(&mut self, piece: usize, place: usize, limit: f64) -> f64 {
        let (lines, first) = self.lines(piece, place);
        if lines.meet {
            let cost = self.change(piece, place, 1);
            self.put(piece, place, -1);
            return cost;
        }
        self.sets.cost(lines, first, limit)
    }

    /// Brings a piece in (`by` 1) or takes it out (-1), and says what that costs.
    fn change(&mut self, piece: usize, place: usize, by: i32) -> f64 {
        let phases = self.lines[piece].len();
        self.sets.change(&self.lines[piece][place % phases], place / phases, by)
    }

    /// The same for who does not ask what it costs.
    fn put(&mut self, piece: usize, place: usize, by: i32) {
        let phases = self.lines[piece].len();
        self.sets.put(&self.lines[piece][place % phases], place / phases, by);
    }

    fn place_of(&self, address: u64) -> usize {
        (address % self.sets.code.way() / ALIGNMENT) as usize
    }

    /// Bytes from `address` to where the piece is to begin.
    pub(super) fn gap(&self, piece: usize, address: u64) -> u64 {
        let way = self.sets.code.way();
        (self.places[piece] as u64 * ALIGNMENT + way - address % way) % way
    }

    /// The first address from `from` on, before `before` and up to `latest`, at which a piece would cost no more than where it is.
    pub(super) fn first_as_good(&mut self, piece: usize, from: u64, before: u64, latest: u64) -> Option<u64> {
        if from >= before || from > latest {
            return None;
        }
        let old = self.places[piece];
        let without = self.change(piece, old, -1);
        let limit = EQUAL - without;
        let mut addresses =
            (from..before).step_by(ALIGNMENT as usize).take_while(|&address| address <= latest);
        let found = addresses.find(|&address| {
            let place = self.place_of(address);
            self.cost(piece, place, limit) <= limit
        });
        self.put(piece, old, 1);
        found
    }

    /// Has a piece begin at `address`.
    pub(super) fn settle(&mut self, piece: usize, address: u64) {
        let (old, new) = (self.places[piece], self.place_of(address));
        self.put(piece, old, -1);
        self.put(piece, new, 1);
        self.places[piece] = new;
    }
}

/// A line of a piece in a loop.
#[derive(Clone, Copy)]
struct Line {
    /// Where the sets of its loop begin.
    sets: usize,
    /// Lines from the one with the piece's first byte, modulo the sets.
    line: usize,
    /// How often it runs in a round.
    frequency: f64,
    /// Rounds of its loop.
    rounds: f64,
    /// How many lines of the loop a set holds.
    ways: i32,
}

/// The lines of a piece that begins somewhere in a line.
struct Lines {
    each: Vec<Line>,
    /// Two of one loop are in one set.
    meet: bool,
}

impl Lines {
    fn of(code: &Code, piece: &Piece, phase: u64) -> Self {
        let line = |(of, line, frequency): (usize, u64, f64)| Line {
            sets: of * code.sets as usize,
            line: (line % code.sets) as usize,
            frequency,
            rounds: code.rounds[of],
            ways: code.ways[of] as i32,
        };
        let each: Vec<Line> = code.lines_of_piece(piece, phase).into_iter().map(line).collect();
        let meet = each.iter().map(|line| line.sets + line.line).collect::<BTreeSet<_>>().len() < each.len();
        Self { each, meet }
    }

    /// What they cost where they are alone; nowhere do they cost less.
    fn least(&self) -> f64 {
        self.each.iter().map(|line| line.rounds * misses((1, line.frequency), line.ways)).sum()
    }
}

/// The same numbers each time: xorshift64 (G. Marsaglia, Journal of Statistical Software 2003).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: u32) -> u32 {
        (((self.next() >> 32) * u64::from(end)) >> 32) as u32
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// How many lines each loop brings into each set.
struct Sets<'a> {
    code: &'a Code<'a>,
    /// By loop and set: lines, and visits to them in a round.
    load: Vec<(i32, f64)>,
}

impl<'a> Sets<'a> {
    fn new(code: &'a Code<'a>) -> Self {
        let mut load = vec![(0, 0.0); code.rounds.len() * code.sets as usize];
        for (of, lines) in code.fixed.iter().enumerate() {
            for (line, frequency) in lines {
                let set = &mut load[of * code.sets as usize + (line % code.sets) as usize];
                *set = (set.0 + 1, set.1 + frequency);
            }
        }
        Self { code, load }
    }

    /// Misses in all rounds of a line of a loop that the cache cannot hold, the dearest if there are several such loops.
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

    /// Brings lines in (`by` 1) or takes them out (-1), and says what that costs.
    fn change(&mut self, lines: &Lines, first: usize, by: i32) -> f64 {
        let sets = self.code.sets as usize;
        let mut cost = 0.0;
        for line in &lines.each {
            let load = &mut self.load[line.sets + set(first, line, sets)];
            let before = misses(*load, line.ways);
            *load = changed(*load, line, by);
            cost += line.rounds * (misses(*load, line.ways) - before);
        }
        cost
    }

    fn put(&mut self, lines: &Lines, first: usize, by: i32) {
        let sets = self.code.sets as usize;
        for line in &lines.each {
            let load = &mut self.load[line.sets + set(first, line, sets)];
            *load = changed(*load, line, by);
        }
    }

    /// What it would cost to bring lines in, none of which meet, as far as `limit`: no line makes it less.
    fn cost(&self, lines: &Lines, first: usize, limit: f64) -> f64 {
        let sets = self.code.sets as usize;
        let mut cost = 0.0;
        for line in &lines.each {
            let load = self.load[line.sets + set(first, line, sets)];
            cost += line.rounds * (misses(changed(load, line, 1), line.ways) - misses(load, line.ways));
            if cost > limit {
                break;
            }
        }
        cost
    }
}

/// The set of a line of a piece whose first line is in set `first`, of so many `sets`.
fn set(first: usize, line: &Line, sets: usize) -> usize {
    let set = first + line.line;
    if set < sets {
        set
    } else {
        set - sets
    }
}

fn changed((lines, visits): (i32, f64), line: &Line, by: i32) -> (i32, f64) {
    (lines + by, visits + f64::from(by) * line.frequency)
}

/// Misses of a round in a set.
fn misses((lines, visits): (i32, f64), ways: i32) -> f64 {
    match lines - ways {
        1.. => visits,
        0 => FULL * visits,
        _ => 0.0,
    }
}
