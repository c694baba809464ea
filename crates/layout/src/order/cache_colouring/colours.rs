//! Which place modulo the size of a way suits each piece.

use super::{Code, Piece, Run, ALIGNMENT};

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
    lines: Vec<Vec<Vec<Run>>>,
    /// Where each piece begins, in units of [`ALIGNMENT`].
    places: Vec<usize>,
}

/// A place for each of the `pieces`, which are put down in the order of their weight and then moved; `seed`, not 0, says
/// in which turn.
pub(super) fn choose<'a>(code: &'a Code, pieces: &[Piece], seed: u64) -> Coloured<'a> {
    let phases = 0..code.line.div_ceil(ALIGNMENT);
    let in_all_phases =
        |piece| phases.clone().map(|phase| code.lines_of_piece(piece, phase * ALIGNMENT)).collect();
    let lines: Vec<Vec<Vec<Run>>> = pieces.iter().map(in_all_phases).collect();
    let weight = |piece: &usize| -> f64 {
        lines[*piece][0].iter().map(|(of, _, frequency)| code.rounds[*of] * frequency).sum()
    };
    let mut order: Vec<usize> = (0..pieces.len()).collect();
    order.sort_by(|a, b| weight(b).total_cmp(&weight(a)).then(a.cmp(b)));
    let mut coloured = Coloured { sets: Sets::new(code), lines, places: vec![0; pieces.len()] };
    for &piece in &order {
        coloured.places[piece] = coloured.cheapest(piece, 0);
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
                self.change(piece, new, -1);
                self.change(piece, old, 1);
            }
        }
    }

    /// The cheapest place for a piece that is not in the sets, the first from `from` on, so that it stays where nothing
    /// is better.
    fn cheapest(&mut self, piece: usize, from: usize) -> usize {
        let places = (self.sets.code.way() / ALIGNMENT) as usize;
        let mut best = (f64::INFINITY, from);
        for at in 0..places {
            let place = (from + at) % places;
            let cost = self.change(piece, place, 1);
            self.change(piece, place, -1);
            if cost < best.0 - EQUAL {
                best = (cost, place);
            }
        }
        best.1
    }

    /// Brings a piece in (`by` 1) or takes it out (-1), and says what that costs.
    fn change(&mut self, piece: usize, place: usize, by: i32) -> f64 {
        let phases = self.lines[piece].len();
        self.sets.change(&self.lines[piece][place % phases], (place / phases) as u64, by)
    }

    fn place_of(&self, address: u64) -> usize {
        (address % self.sets.code.way() / ALIGNMENT) as usize
    }

    /// Bytes from `address` to where the piece is to begin.
    pub(super) fn gap(&self, piece: usize, address: u64) -> u64 {
        let way = self.sets.code.way();
        (self.places[piece] as u64 * ALIGNMENT + way - address % way) % way
    }

    /// Whether a piece would cost no more at `address` than where it is.
    pub(super) fn is_as_good_at(&mut self, piece: usize, address: u64) -> bool {
        let (old, new) = (self.places[piece], self.place_of(address));
        let without = self.change(piece, old, -1);
        let with = self.change(piece, new, 1);
        self.change(piece, new, -1);
        self.change(piece, old, 1);
        without + with <= EQUAL
    }

    /// Has a piece begin at `address`.
    pub(super) fn settle(&mut self, piece: usize, address: u64) {
        let (old, new) = (self.places[piece], self.place_of(address));
        self.change(piece, old, -1);
        self.change(piece, new, 1);
        self.places[piece] = new;
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
    fn change(&mut self, runs: &[Run], first: u64, by: i32) -> f64 {
        let mut cost = 0.0;
        for &(of, line, frequency) in runs {
            let set = ((first + line) % self.code.sets) as usize;
            let load = &mut self.load[of * self.code.sets as usize + set];
            let ways = self.code.ways[of];
            let before = misses(*load, ways);
            *load = (load.0 + by, load.1 + f64::from(by) * frequency);
            cost += self.code.rounds[of] * (misses(*load, ways) - before);
        }
        cost
    }
}

/// Misses of a round in a set.
fn misses((lines, visits): (i32, f64), ways: usize) -> f64 {
    match lines - ways as i32 {
        1.. => visits,
        0 => FULL * visits,
        _ => 0.0,
    }
}
