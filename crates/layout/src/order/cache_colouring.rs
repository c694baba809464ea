//! Cache colouring: placement by cache sets, for loops of which more is run than the cache holds.
//!
//! A set-associative cache that throws out what was not used for longest keeps nothing of a loop that brings more
//! lines into a set than it has ways: each is gone when it is needed again. Order alone spreads such a loop
//! evenly, so that with a quarter too much nearly every set has too much, and nearly every line misses. Here the
//! functions are placed so that most sets get just what they hold, and few sets take the rest: these miss, the
//! others do not. Conflicts are known by region of the recording: what runs in one loop is not in the way of another.
//!
//! Three steps, several times over, and the placement with the fewest misses is taken: functions that run in the same
//! loops are joined to pieces, so that they share the lines where they meet; each piece gets a place modulo the size
//! of a way, by simulated annealing of the misses of all loops ([`colours`]); the pieces are laid one after the
//! other with the smallest gaps, which other functions fill ([`packing`]).
//!
//! After A. H. Hashemi, D. R. Kaeli, B. Calder: "Efficient Procedure Mapping Using Cache Line Coloring" (PLDI 1997),
//! which colours direct-mapped caches, and N. Gloy, M. D. Smith: "Procedure Placement Using Temporal-Ordering
//! Information" (TOPLAS 1999); that the cost of a set is that of a whole loop, and with it that few sets take what is
//! too much, is ours.

mod colours;
mod packing;

use crate::CacheConfig;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// Code that runs again and again, such as the operation of a benchmark.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Loop {
    /// How often it goes round.
    pub rounds: f64,
    /// Lines of other code in a round, such as programs': somewhere in the cache.
    pub others: f64,
    /// What is run in it.
    pub blocks: Vec<LoopBlock>,
}

/// Code of a loop without a gap.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoopBlock {
    /// Where it is.
    pub at: At,
    /// Bytes.
    pub bytes: u64,
    /// How often it runs in a round.
    pub frequency: f64,
}

/// The place of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// In a function that can be placed, so many bytes from its first.
    Function(usize, u64),
    /// At this address.
    Address(u64),
}

/// Functions with the offsets at which they are to begin.
#[derive(Debug, Clone, PartialEq)]
pub struct ColouredPlacement {
    /// Function and bytes from the first one's first, ascending.
    pub starts: Vec<(usize, u64)>,
    /// Lines that miss in all rounds, before and after, by the rule above: an estimate.
    pub misses: [f64; 2],
}

/// Where functions begin.
pub const ALIGNMENT: u64 = 16;
/// A block is of a loop if it runs at least this often, of what most of the loop's lines do.
const RARE: f64 = 0.25;
/// Bytes up to which functions are joined to a piece; the smaller, the freer, and the more lines at their ends.
const PIECES: [u64; 3] = [256, 512, 768];
/// Times that places are looked for, for each size of piece.
const STARTS: u64 = 6;
/// Placements that are tried.
pub const TRIES: u64 = PIECES.len() as u64 * STARTS;

/// Places functions of these `sizes` (bytes) from `start` on. `order` has all of them in a good order, which is kept
/// where sets do not matter; `before` is where each begins now. It takes seconds; `on_progress` hears from any thread how many
/// placements were tried, of [`TRIES`].
pub fn place_by_colour(
    sizes: &[u64],
    order: &[usize],
    before: &[u64],
    loops: &[Loop],
    cache: &CacheConfig,
    start: u64,
    on_progress: &(dyn Fn(u64) + Sync),
) -> ColouredPlacement {
    let code = Code::new(sizes, loops, cache);
    let now = code.misses(&|function| before[function]);
    let tries: Vec<(u64, u64)> =
        PIECES.into_iter().flat_map(|limit| (1..=STARTS).map(move |seed| (limit, seed))).collect();
    let done = AtomicU64::new(0);
    let one = |&(limit, seed): &(u64, u64)| {
        let pieces = code.pieces(order, limit);
        let coloured = colours::choose(&code, &pieces, seed);
        let placed = packing::pack(&code, &pieces, coloured, order, start);
        let to: HashMap<usize, u64> = placed.iter().copied().collect();
        let misses = code.misses(&|function| to[&function]);
        on_progress(done.fetch_add(1, Ordering::Relaxed) + 1);
        (misses, placed)
    };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let found: Vec<(f64, Vec<(usize, u64)>)> = thread::scope(|scope| {
        let some = |part: &'_ [(u64, u64)]| part.iter().map(one).collect::<Vec<_>>();
        let parts = tries.chunks(tries.len().div_ceil(cores));
        let running: Vec<_> = parts.map(|part| scope.spawn(move || some(part))).collect();
        let joined = |part: thread::ScopedJoinHandle<'_, Vec<_>>| {
            part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        running.into_iter().flat_map(joined).collect()
    });
    // The first of the best, whoever was ready first.
    let best = found.into_iter().min_by(|a, b| a.0.total_cmp(&b.0));
    let (after, mut starts) = best.unwrap_or_default();
    starts.iter_mut().for_each(|(_, address)| *address -= start);
    ColouredPlacement { starts, misses: [now, after] }
}

/// A line that a function runs in a loop: which loop, lines from the line with the function's first byte, how often in a
/// round.
type Run = (usize, u64, f64);

/// What runs in loops, by line.
struct Code<'a> {
    sizes: &'a [u64],
    line: u64,
    sets: u64,
    /// How many lines each loop has in a set, beside what else runs in it.
    ways: Vec<usize>,
    rounds: Vec<f64>,
    /// Lines with code that stays where it is, by loop.
    fixed: Vec<BTreeMap<u64, f64>>,
    /// The lines of each function, for each place that it may begin at in a line.
    runs: HashMap<usize, Vec<Vec<Run>>>,
}

impl<'a> Code<'a> {
    fn new(sizes: &'a [u64], loops: &[Loop], cache: &CacheConfig) -> Self {
        let line = cache.line_bytes;
        let sets = cache.size_bytes / line / cache.ways;
        let mut fixed = Vec::new();
        let mut blocks: HashMap<usize, Vec<(usize, u64, u64, f64)>> = HashMap::new();
        for (at, of) in loops.iter().enumerate() {
            let usual = usual(of, line);
            let mut here: BTreeMap<u64, f64> = BTreeMap::new();
            for block in of.blocks.iter().filter(|block| block.bytes > 0 && block.frequency >= RARE * usual) {
                // More often than usual is a loop within the loop, which hits.
                let frequency = block.frequency.min(usual);
                match block.at {
                    At::Function(function, offset) => {
                        blocks.entry(function).or_default().push((at, offset, block.bytes, frequency));
                    }
                    At::Address(address) => {
                        for line in address / line..=(address + block.bytes - 1) / line {
                            let most = here.entry(line).or_default();
                            *most = most.max(frequency);
                        }
                    }
                }
            }
            fixed.push(here);
        }
        let phases = (0..line.div_ceil(ALIGNMENT)).map(|phase| phase * ALIGNMENT);
        let runs = blocks.into_iter().map(|(function, blocks)| {
            (function, phases.clone().map(|phase| lines_of(&blocks, phase, line)).collect())
        });
        let runs = runs.collect();
        let rounds = loops.iter().map(|of| of.rounds).collect();
        let ways = |of: &Loop| (cache.ways as f64 - of.others / sets as f64).round().max(0.0) as usize;
        Self { sizes, line, sets, ways: loops.iter().map(ways).collect(), rounds, fixed, runs }
    }

    /// Bytes after which the sets come again.
    fn way(&self) -> u64 {
        self.sets * self.line
    }

    /// The lines of a function that begins at `address`, and the line of its first byte.
    fn lines(&self, function: usize, address: u64) -> (&[Run], u64) {
        let phase = (address % self.line / ALIGNMENT) as usize;
        let runs = self.runs.get(&function).map_or(&[][..], |phases| &phases[phase]);
        (runs, address / self.line)
    }

    /// Lines that miss in all rounds of all loops, of functions that begin at `begin`.
    fn misses(&self, begin: &dyn Fn(usize) -> u64) -> f64 {
        let mut lines = self.fixed.clone();
        for &function in self.runs.keys() {
            let (runs, first) = self.lines(function, begin(function));
            for &(of, line, frequency) in runs {
                let most = lines[of].entry(first + line).or_default();
                *most = most.max(frequency);
            }
        }
        let in_loop = |((lines, rounds), ways): ((&BTreeMap<u64, f64>, &f64), &usize)| {
            let mut sets = vec![(0usize, 0.0f64); self.sets as usize];
            for (line, frequency) in lines {
                let set = &mut sets[(line % self.sets) as usize];
                *set = (set.0 + 1, set.1 + frequency);
            }
            let full: f64 = sets.iter().filter(|(count, _)| count > ways).map(|(_, sum)| sum).sum();
            rounds * full
        };
        lines.iter().zip(&self.rounds).zip(&self.ways).map(in_loop).sum()
    }

    /// The functions that run in loops, joined up to `limit` bytes where neighbours in `order` run in the same ones.
    fn pieces(&self, order: &[usize], limit: u64) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = Vec::new();
        for &function in order {
            let Some(runs) = self.runs.get(&function) else { continue };
            let loops: BTreeSet<usize> = runs[0].iter().map(|(of, ..)| *of).collect();
            let size = self.sizes[function];
            match pieces.last_mut() {
                Some(last) if last.loops == loops && last.size + size <= limit => {
                    last.functions.push((function, last.size));
                    last.size += size.next_multiple_of(ALIGNMENT);
                }
                _ => {
                    let size = size.next_multiple_of(ALIGNMENT);
                    pieces.push(Piece { functions: vec![(function, 0)], size, loops });
                }
            }
        }
        pieces
    }

    /// The lines of a piece that begins `phase` bytes into a line.
    fn lines_of_piece(&self, piece: &Piece, phase: u64) -> Vec<Run> {
        let mut lines: BTreeMap<(usize, u64), f64> = BTreeMap::new();
        for &(function, offset) in &piece.functions {
            let (runs, first) = self.lines(function, phase + offset);
            for &(of, line, frequency) in runs {
                let most = lines.entry((of, first + line)).or_default();
                *most = most.max(frequency);
            }
        }
        lines.into_iter().map(|((of, line), frequency)| (of, line, frequency)).collect()
    }
}

/// Functions that lie one after the other.
struct Piece {
    /// Each with its offset in bytes.
    functions: Vec<(usize, u64)>,
    /// Bytes.
    size: u64,
    /// What runs it.
    loops: BTreeSet<usize>,
}

/// How often most of a loop's lines run in a round: the median by bytes.
fn usual(of: &Loop, line: u64) -> f64 {
    let mut blocks: Vec<(f64, u64)> = of.blocks.iter().map(|block| (block.frequency, block.bytes)).collect();
    blocks.retain(|(frequency, _)| *frequency * 20.0 >= 1.0);
    blocks.sort_by(|a, b| a.0.total_cmp(&b.0));
    let half = blocks.iter().map(|(_, bytes)| bytes).sum::<u64>() / 2;
    let mut below = 0;
    for (frequency, bytes) in blocks {
        below += bytes;
        if below >= half.max(line / 2) {
            return frequency;
        }
    }
    f64::INFINITY
}

/// The lines of a function that begins `phase` bytes into a line.
fn lines_of(blocks: &[(usize, u64, u64, f64)], phase: u64, line: u64) -> Vec<Run> {
    let mut lines: Vec<Run> = Vec::new();
    for &(of, offset, bytes, frequency) in blocks {
        for at in (phase + offset) / line..=(phase + offset + bytes - 1) / line {
            match lines.iter_mut().find(|(other, there, _)| *other == of && *there == at) {
                Some((.., most)) => *most = most.max(frequency),
                None => lines.push((of, at, frequency)),
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const CACHE: CacheConfig = CacheConfig { size_bytes: 4096, ways: 4, line_bytes: 64 };

    /// `count` functions of `size` bytes that are run whole, once in each of 100 rounds.
    fn one_loop(count: usize, size: u64) -> Loop {
        let blocks = (0..count).map(|function| LoopBlock {
            at: At::Function(function, 0),
            bytes: size,
            frequency: 1.0,
        });
        Loop { rounds: 100.0, others: 0.0, blocks: blocks.collect() }
    }

    fn packed(count: usize, size: u64) -> (Vec<u64>, Vec<usize>, Vec<u64>) {
        let before = (0..count as u64).map(|at| at * size).collect();
        (vec![size; count], (0..count).collect(), before)
    }

    #[test]
    fn a_loop_that_is_too_great_misses_in_a_window_and_not_everywhere() {
        // 80 lines in a cache of 64: packed they are 5 for each of 16 sets, and all miss.
        let (mut sizes, mut order, mut before) = packed(40, 128);
        // Functions that never run fill what is between.
        sizes.extend([64; 200]);
        order.extend(40..240);
        before.extend((0..200).map(|at| 40 * 128 + at * 64));
        let placed = place_by_colour(&sizes, &order, &before, &[one_loop(40, 128)], &CACHE, 0, &|_| {});
        assert_eq!(placed.misses[0], 8_000.0);
        // Joined to pieces of four lines: four sets take 32 lines, and 48 stay in the other twelve.
        assert!(placed.misses[1] <= 3_200.0, "{:?}", placed.misses);
        assert_eq!(placed.starts.len(), 240, "all are placed");
        for pair in placed.starts.windows(2) {
            let ((first, at), (_, next)) = (pair[0], pair[1]);
            assert!(at + sizes[first] <= next && next % ALIGNMENT == 0, "{pair:?}");
        }
    }

    #[test]
    fn what_fits_is_placed_without_a_conflict_also_beside_code_that_stays() {
        let (sizes, order, _) = packed(10, 128);
        // All at the same set, three of them too many; and two fixed lines that take two ways of set 0.
        let before: Vec<u64> = (0..10).map(|at| at * 1024).collect();
        let mut of = one_loop(10, 128);
        for address in [0x10000, 0x20000] {
            of.blocks.push(LoopBlock { at: At::Address(address), bytes: 64, frequency: 1.0 });
        }
        let placed = place_by_colour(&sizes, &order, &before, &[of.clone()], &CACHE, 0x4000, &|_| {});
        assert_eq!(placed.misses, [2_200.0, 0.0]);
        assert_eq!(
            placed,
            place_by_colour(&sizes, &order, &before, &[of], &CACHE, 0x4000, &|_| {}),
            "the same again"
        );
    }

    #[test]
    fn what_else_runs_takes_its_part_of_the_cache() {
        let (sizes, order, before) = packed(20, 128);
        let places = |others: f64| {
            let of = Loop { others, ..one_loop(20, 128) };
            place_by_colour(&sizes, &order, &before, &[of], &CACHE, 0, &|_| {}).misses
        };
        // 40 lines in 16 sets are 3 in some of them: the fourth way is free, two are not.
        assert_eq!(places(16.0)[0], 0.0);
        assert_eq!(places(32.0)[0], 2_400.0);
        assert_eq!(places(64.0), [4_000.0, 4_000.0], "there is nothing to place for");
    }

    #[test]
    fn loops_are_not_in_each_others_way() {
        let (sizes, order, before) = packed(60, 128);
        let part = |from: usize, to: usize| Loop {
            rounds: 10.0,
            others: 0.0,
            blocks: one_loop(60, 128).blocks[from..to].to_vec(),
        };
        // Two loops of 60 lines each, one after the other: both fit.
        let placed =
            place_by_colour(&sizes, &order, &before, &[part(0, 30), part(30, 60)], &CACHE, 0, &|_| {});
        assert_eq!(placed.misses[1], 0.0);
        let nothing = place_by_colour(&sizes, &order, &before, &[], &CACHE, 0, &|_| {});
        assert_eq!((nothing.starts.len(), nothing.misses), (60, [0.0, 0.0]));
    }
}
