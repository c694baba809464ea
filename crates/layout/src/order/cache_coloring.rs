//! Cache coloring: places functions by cache set, for loops that are larger than the cache.
//!
//! If a loop brings more lines into an LRU set than it has ways, all lines of the set miss: each is
//! evicted before it is needed again. A plain order spreads a loop evenly over the sets. With a
//! quarter too many lines nearly every set overflows, and nearly every line misses. Coloring places
//! the functions so that most sets are exactly full and a few sets take the excess; only those
//! miss. Conflicts are counted per region of the recording, since code of different loops does not
//! compete.
//!
//! The algorithm has three steps. It repeats them with different parameters and keeps the placement
//! with the fewest misses:
//!
//! 1. Join functions that run in the same loops to pieces, so that they share the lines where they
//!    meet.
//! 2. Choose a position of each piece modulo the size of a way, by simulated annealing of all
//!    loops' misses ([`colors`]).
//! 3. Lay out the pieces with the smallest gaps, and fill the gaps with other functions
//!    ([`packing`]).
//!
//! After A. H. Hashemi, D. R. Kaeli, B. Calder: "Efficient Procedure Mapping Using Cache Line
//! Coloring" (PLDI 1997), for direct-mapped caches, and N. Gloy, M. D. Smith: "Procedure Placement
//! Using Temporal-Ordering Information" (TOPLAS 1999). New here is the cost of a set, which is that
//! of a whole loop, and therefore the concentration of the excess in few sets.

mod colors;
mod packing;

use crate::CacheConfig;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// Code that runs again and again, such as the operation of a benchmark.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HotLoop {
    /// Number of iterations.
    pub rounds: f64,
    /// Lines of other code per iteration, such as user code, at unknown places in the cache.
    pub others: f64,
    /// Code executed in the loop.
    pub blocks: Vec<LoopBlock>,
}

/// Contiguous code of a loop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoopBlock {
    /// Position of the first byte.
    pub at: BlockPosition,
    /// Size in bytes.
    pub bytes: u64,
    /// Number of executions per iteration.
    pub frequency: f64,
}

/// Position of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockPosition {
    /// Byte offset in a function that can be placed, given by its index.
    Function(usize, u64),
    /// Fixed address.
    Address(u64),
}

/// Result of cache coloring.
#[derive(Debug, Clone, PartialEq)]
pub struct ColoredPlacement {
    /// Function index and start offset from the beginning of the placement, in ascending order.
    pub starts: Vec<(usize, u64)>,
    /// Estimated line misses in all iterations of all loops, before and after.
    pub misses: [f64; 2],
}

/// Alignment of function starts, in bytes.
pub const ALIGNMENT: u64 = 16;
/// A block belongs to a loop if it runs at least this often, relative to most of the loop's lines.
const MIN_FREQUENCY_SHARE: f64 = 0.25;
/// Maximum sizes of a piece, in bytes. Smaller pieces give more freedom but more lines at their
/// ends.
const PIECE_LIMITS: [u64; 3] = [256, 512, 768];
/// Number of random starts for each maximum size of a piece.
const RANDOM_STARTS: u64 = 6;
/// Number of placements that are tried.
pub const COLORING_TRIALS: u64 = PIECE_LIMITS.len() as u64 * RANDOM_STARTS;

/// Places functions of these `sizes` (bytes) from address `start` on.
///
/// `order` lists all functions in a good order, which is kept where sets do not matter. `before`
/// holds their present addresses. The search takes seconds. `on_progress` is called from any thread
/// with the number of placements tried, out of [`COLORING_TRIALS`].
pub fn place_by_color(
    sizes: &[u64],
    order: &[usize],
    before: &[u64],
    loops: &[HotLoop],
    cache: &CacheConfig,
    start: u64,
    on_progress: &(dyn Fn(u64) + Sync),
) -> ColoredPlacement {
    let code = LoopCode::new(sizes, loops, cache);
    let now = code.misses(&|function| before[function]);
    let tries: Vec<(u64, u64)> = PIECE_LIMITS
        .into_iter()
        .flat_map(|limit| (1..=RANDOM_STARTS).map(move |seed| (limit, seed)))
        .collect();
    let done = AtomicU64::new(0);
    let one = |&(limit, seed): &(u64, u64)| {
        let pieces = code.pieces(order, limit);
        let colored = colors::choose(&code, &pieces, seed);
        let placed = packing::pack(&code, &pieces, colored, order, start);
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
    // Take the first of the best, so that the result does not depend on which thread finished
    // first.
    let best = found.into_iter().min_by(|a, b| a.0.total_cmp(&b.0));
    let (after, mut starts) = best.unwrap_or_default();
    starts.iter_mut().for_each(|(_, address)| *address -= start);
    ColoredPlacement { starts, misses: [now, after] }
}

/// Line of a function in a loop: loop, line number from the line of the function's first byte,
/// executions per iteration.
type LoopLine = (usize, u64, f64);

/// Code of all loops by cache line.
struct LoopCode<'a> {
    sizes: &'a [u64],
    line: u64,
    sets: u64,
    /// Ways of a set that each loop can use beside its other code.
    ways: Vec<usize>,
    rounds: Vec<f64>,
    /// Lines of code at fixed addresses, by loop.
    fixed: Vec<BTreeMap<u64, f64>>,
    /// Lines of each function, for each possible start position in a line.
    runs: HashMap<usize, Vec<Vec<LoopLine>>>,
}

impl<'a> LoopCode<'a> {
    fn new(sizes: &'a [u64], loops: &[HotLoop], cache: &CacheConfig) -> Self {
        let line = cache.line_bytes;
        let sets = cache.size_bytes / line / cache.ways;
        let mut fixed = Vec::new();
        let mut blocks: HashMap<usize, Vec<(usize, u64, u64, f64)>> = HashMap::new();
        for (at, of) in loops.iter().enumerate() {
            let usual = usual(of, line);
            let mut here: BTreeMap<u64, f64> = BTreeMap::new();
            for block in of
                .blocks
                .iter()
                .filter(|block| block.bytes > 0 && block.frequency >= MIN_FREQUENCY_SHARE * usual)
            {
                // Code that runs more often is an inner loop, whose repetitions hit.
                let frequency = block.frequency.min(usual);
                match block.at {
                    BlockPosition::Function(function, offset) => {
                        blocks.entry(function).or_default().push((at, offset, block.bytes, frequency));
                    }
                    BlockPosition::Address(address) => {
                        for line in address / line..=(address + block.bytes - 1) / line {
                            let max = here.entry(line).or_default();
                            *max = max.max(frequency);
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
        let ways = |of: &HotLoop| (cache.ways as f64 - of.others / sets as f64).round().max(0.0) as usize;
        Self { sizes, line, sets, ways: loops.iter().map(ways).collect(), rounds, fixed, runs }
    }

    /// Returns the size of a way in bytes, after which the sets repeat.
    fn way(&self) -> u64 {
        self.sets * self.line
    }

    /// Returns the lines of a function that begins at `address`, and the number of its first line.
    fn lines(&self, function: usize, address: u64) -> (&[LoopLine], u64) {
        let phase = (address % self.line / ALIGNMENT) as usize;
        let runs = self.runs.get(&function).map_or(&[][..], |phases| &phases[phase]);
        (runs, address / self.line)
    }

    /// Computes the line misses of all iterations of all loops, for functions that begin at
    /// `begin`.
    fn misses(&self, begin: &dyn Fn(usize) -> u64) -> f64 {
        let mut lines = self.fixed.clone();
        for &function in self.runs.keys() {
            let (runs, first) = self.lines(function, begin(function));
            for &(of, line, frequency) in runs {
                let max = lines[of].entry(first + line).or_default();
                *max = max.max(frequency);
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

    /// Joins functions that run in loops to pieces of up to `limit` bytes, if neighbors in `order`
    /// run in the same loops.
    fn pieces(&self, order: &[usize], limit: u64) -> Vec<LoopPiece> {
        let mut pieces: Vec<LoopPiece> = Vec::new();
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
                    pieces.push(LoopPiece { functions: vec![(function, 0)], size, loops });
                }
            }
        }
        pieces
    }

    /// Returns the lines of a piece that begins `phase` bytes into a line.
    fn lines_of_piece(&self, piece: &LoopPiece, phase: u64) -> Vec<LoopLine> {
        let mut lines: BTreeMap<(usize, u64), f64> = BTreeMap::new();
        for &(function, offset) in &piece.functions {
            let (runs, first) = self.lines(function, phase + offset);
            for &(of, line, frequency) in runs {
                let max = lines.entry((of, first + line)).or_default();
                *max = max.max(frequency);
            }
        }
        lines.into_iter().map(|((of, line), frequency)| (of, line, frequency)).collect()
    }
}

/// Group of adjacent functions that is placed as a whole.
struct LoopPiece {
    /// Functions with their byte offsets in the piece.
    functions: Vec<(usize, u64)>,
    /// Size in bytes.
    size: u64,
    /// Loops that run the functions.
    loops: BTreeSet<usize>,
}

/// Returns the usual number of executions of a line per iteration: the median by bytes.
fn usual(of: &HotLoop, line: u64) -> f64 {
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

/// Returns the lines of a function that begins `phase` bytes into a line.
fn lines_of(blocks: &[(usize, u64, u64, f64)], phase: u64, line: u64) -> Vec<LoopLine> {
    let mut lines: Vec<LoopLine> = Vec::new();
    for &(of, offset, bytes, frequency) in blocks {
        for at in (phase + offset) / line..=(phase + offset + bytes - 1) / line {
            match lines.iter_mut().find(|(other, there, _)| *other == of && *there == at) {
                Some((.., max)) => *max = max.max(frequency),
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

    /// Builds `count` functions of `size` bytes that run completely, once in each of 100
    /// iterations.
    fn one_loop(count: usize, size: u64) -> HotLoop {
        let blocks = (0..count).map(|function| LoopBlock {
            at: BlockPosition::Function(function, 0),
            bytes: size,
            frequency: 1.0,
        });
        HotLoop { rounds: 100.0, others: 0.0, blocks: blocks.collect() }
    }

    fn packed(count: usize, size: u64) -> (Vec<u64>, Vec<usize>, Vec<u64>) {
        let before = (0..count as u64).map(|at| at * size).collect();
        (vec![size; count], (0..count).collect(), before)
    }

    #[test]
    fn a_loop_that_is_too_great_misses_in_a_window_and_not_everywhere() {
        // 80 lines in a cache of 64: packed, each of 16 sets holds 5, and all miss.
        let (mut sizes, mut order, mut before) = packed(40, 128);
        // Functions that never run fill the gaps.
        sizes.extend([64; 200]);
        order.extend(40..240);
        before.extend((0..200).map(|at| 40 * 128 + at * 64));
        let placed = place_by_color(&sizes, &order, &before, &[one_loop(40, 128)], &CACHE, 0, &|_| {});
        assert_eq!(placed.misses[0], 8_000.0);
        // With pieces of four lines, four sets take 32 lines, and 48 stay in the other twelve.
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
        // All start at the same set, three too many. Two fixed lines take two ways of set 0.
        let before: Vec<u64> = (0..10).map(|at| at * 1024).collect();
        let mut of = one_loop(10, 128);
        for address in [0x10000, 0x20000] {
            of.blocks.push(LoopBlock { at: BlockPosition::Address(address), bytes: 64, frequency: 1.0 });
        }
        let placed = place_by_color(&sizes, &order, &before, &[of.clone()], &CACHE, 0x4000, &|_| {});
        assert_eq!(placed.misses, [2_200.0, 0.0]);
        assert_eq!(
            placed,
            place_by_color(&sizes, &order, &before, &[of], &CACHE, 0x4000, &|_| {}),
            "the same again"
        );
    }

    #[test]
    fn what_else_runs_takes_its_part_of_the_cache() {
        let (sizes, order, before) = packed(20, 128);
        let places = |others: f64| {
            let of = HotLoop { others, ..one_loop(20, 128) };
            place_by_color(&sizes, &order, &before, &[of], &CACHE, 0, &|_| {}).misses
        };
        // 40 lines in 16 sets put 3 into some of them. One occupied way leaves room, two do not.
        assert_eq!(places(16.0)[0], 0.0);
        assert_eq!(places(32.0)[0], 2_400.0);
        assert_eq!(places(64.0), [4_000.0, 4_000.0], "there is nothing to place for");
    }

    #[test]
    fn loops_are_not_in_each_others_way() {
        let (sizes, order, before) = packed(60, 128);
        let part = |from: usize, to: usize| HotLoop {
            rounds: 10.0,
            others: 0.0,
            blocks: one_loop(60, 128).blocks[from..to].to_vec(),
        };
        // Two loops of 60 lines each, one after the other: both fit.
        let placed =
            place_by_color(&sizes, &order, &before, &[part(0, 30), part(30, 60)], &CACHE, 0, &|_| {});
        assert_eq!(placed.misses[1], 0.0);
        let nothing = place_by_color(&sizes, &order, &before, &[], &CACHE, 0, &|_| {});
        assert_eq!((nothing.starts.len(), nothing.misses), (60, [0.0, 0.0]));
    }
}
