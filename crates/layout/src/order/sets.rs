//! Placement by cache sets, for loops of which more is run than the cache holds.
//!
//! A set-associative cache that throws out what was not used for longest keeps nothing of a loop that brings more
//! lines into a set than it has ways: each is gone when it is needed again. Order alone spreads such a loop
//! evenly, so that with a quarter too much nearly every set has too much, and nearly every line misses. Here the
//! functions are placed so that most sets get just what they hold, and a window of few sets takes the rest: the
//! window misses, the others do not. Conflicts are known by region of the recording: what runs in one loop is not in
//! the way of another.
//!
//! After A. H. Hashemi, D. R. Kaeli, B. Calder: "Efficient Procedure Mapping Using Cache Line Coloring" (PLDI 1997),
//! which colours direct-mapped caches, and N. Gloy, M. D. Smith: "Procedure Placement Using Temporal-Ordering
//! Information" (TOPLAS 1999); the window is ours.

use crate::CacheConfig;
use std::collections::{HashMap, HashSet};

/// Code that runs again and again, such as the operation of a benchmark.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Loop {
    /// How often it goes round.
    pub rounds: f64,
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
pub struct SetPlacement {
    /// Function and bytes from the first one's first, ascending.
    pub starts: Vec<(usize, u64)>,
    /// Lines that miss in all rounds, before and after, by the rule above: an estimate.
    pub misses: [f64; 2],
}

/// Where functions begin.
pub const ALIGNMENT: u64 = 16;
/// A block is of a loop if it runs at least this often, of what most of the loop's lines do.
const RARE: f64 = 0.25;
/// A loop is too great if it has more than this share of the cache's lines.
const GREAT: f64 = 0.95;
/// Of a loop with more than so many times the cache's lines too little would stay: its functions are placed as if they
/// did not run in it.
const HOPELESS: f64 = 2.0;
/// Hot functions are spread over at most so many times the cache's size; what has found no place then, follows.
const SPREAD: u64 = 6;

/// Places functions of these `sizes` (bytes) from `start` on. `order` has all of them in a good order, which is kept
/// where sets do not matter; `before` is where each begins now.
pub fn by_sets(
    sizes: &[u64],
    order: &[usize],
    before: &[u64],
    loops: &[Loop],
    cache: &CacheConfig,
    start: u64,
) -> SetPlacement {
    let mut code = Code::new(sizes, loops, cache);
    let now = code.misses(&|function| before[function]);
    code.rank(&now);
    let mut best: Option<(f64, Vec<(usize, u64)>)> = None;
    let sets = code.sets;
    // The narrower, the less misses, but whole functions have to find room beside it.
    for window in [0, sets / 8, sets * 3 / 16, sets / 4, sets * 5 / 16] {
        for at in 0..if window == 0 { 1 } else { 8 } {
            let placed = code.place(order, start, (at * sets / 8, window));
            let to: HashMap<usize, u64> = placed.iter().copied().collect();
            let misses = code.misses(&|function| to[&function]).iter().sum();
            if best.as_ref().is_none_or(|(least, _)| misses < *least) {
                best = Some((misses, placed));
            }
        }
    }
    let (after, mut starts) = best.unwrap_or_default();
    starts.iter_mut().for_each(|(_, address)| *address -= start);
    SetPlacement { starts, misses: [now.iter().sum(), after] }
}

/// A line that a function runs in a loop: which loop, lines from the line with the function's first byte, frequency.
type Run = (usize, u64, f64);

struct Code<'a> {
    sizes: &'a [u64],
    line: u64,
    sets: u64,
    ways: usize,
    rounds: Vec<f64>,
    /// Loops with more lines than the cache holds.
    great: Vec<bool>,
    /// Lines of each loop.
    lines: Vec<f64>,
    /// The place of each loop among those that there is most to gain by.
    ranks: Vec<usize>,
    /// Lines with code that stays where it is, by loop.
    fixed: Vec<HashMap<u64, f64>>,
    /// The lines of each function, for each place that it may begin at in a line.
    runs: HashMap<usize, Vec<Vec<Run>>>,
}

impl<'a> Code<'a> {
    fn new(sizes: &'a [u64], loops: &[Loop], cache: &CacheConfig) -> Self {
        let line = cache.line_bytes;
        let sets = cache.size_bytes / line / cache.ways;
        let (mut fixed, mut great, mut all_lines) = (Vec::new(), Vec::new(), Vec::new());
        let mut blocks: HashMap<usize, Vec<(usize, u64, u64, f64)>> = HashMap::new();
        let capacity = (sets * cache.ways) as f64;
        for (at, of) in loops.iter().enumerate() {
            let usual = usual(of, line);
            let mut here: HashMap<u64, f64> = HashMap::new();
            let (mut lines, mut movable) = (0, Vec::new());
            for block in of.blocks.iter().filter(|block| block.bytes > 0 && block.frequency >= RARE * usual) {
                // More often than usual is a loop within the loop, which hits.
                let frequency = block.frequency.min(usual);
                match block.at {
                    At::Function(function, offset) => {
                        lines += block.bytes;
                        movable.push((function, (at, offset, block.bytes, frequency)));
                    }
                    At::Address(address) => {
                        for line in address / line..=(address + block.bytes - 1) / line {
                            let most = here.entry(line).or_default();
                            *most = most.max(frequency);
                        }
                    }
                }
            }
            let lines = lines as f64 / line as f64 + here.len() as f64;
            if lines > HOPELESS * capacity {
                (movable, here) = (Vec::new(), HashMap::new());
            }
            for (function, block) in movable {
                blocks.entry(function).or_default().push(block);
            }
            great.push(lines > GREAT * capacity);
            all_lines.push(lines);
            fixed.push(here);
        }
        let runs = blocks.into_iter().map(|(function, blocks)| {
            let phases =
                (0..line.div_ceil(ALIGNMENT)).map(|phase| lines_of(&blocks, phase * ALIGNMENT, line));
            (function, phases.collect())
        });
        let runs = runs.collect();
        let rounds: Vec<f64> = loops.iter().map(|of| of.rounds).collect();
        let (ways, ranks) = (cache.ways as usize, vec![0; loops.len()]);
        Self { sizes, line, sets, ways, rounds, great, lines: all_lines, ranks, fixed, runs }
    }

    /// Puts the loops in the order of what there is to gain: of the lines that miss `now`, those that fit.
    fn rank(&mut self, now: &[f64]) {
        let fit = 0.875 * (self.sets as usize * self.ways) as f64;
        let gain = |of: usize| now[of] * (fit / self.lines[of].max(1.0)).min(1.0);
        let mut by_gain: Vec<usize> = (0..now.len()).collect();
        by_gain.sort_by(|&a, &b| gain(b).total_cmp(&gain(a)).then(a.cmp(&b)));
        by_gain.into_iter().enumerate().for_each(|(at, of)| self.ranks[of] = at);
    }

    /// The lines of a function that begins at `address`.
    fn lines(&self, function: usize, address: u64) -> (&[Run], u64) {
        let phase = (address % self.line / ALIGNMENT) as usize;
        let runs = self.runs.get(&function).map_or(&[][..], |phases| &phases[phase]);
        (runs, address / self.line)
    }

    /// Lines that miss in all rounds of each loop, of functions that begin at `begin`.
    fn misses(&self, begin: &dyn Fn(usize) -> u64) -> Vec<f64> {
        let mut lines = self.fixed.clone();
        for &function in self.runs.keys() {
            let (runs, first) = self.lines(function, begin(function));
            for &(of, line, frequency) in runs {
                let most = lines[of].entry(first + line).or_default();
                *most = most.max(frequency);
            }
        }
        let in_loop = |(of, lines): (usize, &HashMap<u64, f64>)| {
            let mut sets = vec![(0usize, 0.0f64); self.sets as usize];
            let mut sorted: Vec<_> = lines.iter().collect();
            // Sums of floating point numbers depend on their order, and a map's is another in each run.
            sorted.sort_by_key(|(line, _)| **line);
            for (line, frequency) in sorted {
                let set = &mut sets[(line % self.sets) as usize];
                *set = (set.0 + 1, set.1 + frequency);
            }
            let full: f64 = sets.iter().filter(|(count, _)| *count > self.ways).map(|(_, sum)| sum).sum();
            self.rounds[of] * full
        };
        lines.iter().enumerate().map(in_loop).collect()
    }

    /// All functions with their addresses; `window` is the first set that takes what is too much, and how many do.
    fn place(&self, order: &[usize], start: u64, window: (u64, u64)) -> Vec<(usize, u64)> {
        let mut candidates: Vec<usize> =
            order.iter().copied().filter(|at| self.runs.contains_key(at)).collect();
        let key = |function: &usize| {
            let runs = &self.runs[function][0];
            let first = runs.iter().map(|(of, ..)| self.ranks[*of]).min();
            (first, std::cmp::Reverse(runs.len()))
        };
        candidates.sort_by_key(key);
        let mut others: Vec<usize> = order.iter().copied().filter(|at| !self.runs.contains_key(at)).collect();
        others.reverse();
        let mut room = Room::new(self, window);
        let mut placed = Vec::with_capacity(order.len());
        let mut address = start;
        let end = start + SPREAD * self.sets * self.line * self.ways as u64;
        while !candidates.is_empty() && address < end {
            address = address.next_multiple_of(ALIGNMENT);
            if let Some(at) = candidates.iter().position(|&function| room.has(function, address)) {
                let function = candidates.remove(at);
                room.take(function, address);
                placed.push((function, address));
                address += self.sizes[function];
            } else if let Some(function) = others.pop() {
                placed.push((function, address));
                address += self.sizes[function];
            } else {
                address += ALIGNMENT;
            }
        }
        for function in candidates.into_iter().chain(others.into_iter().rev()) {
            address = address.next_multiple_of(ALIGNMENT);
            placed.push((function, address));
            address += self.sizes[function];
        }
        placed
    }
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

/// What the sets have room for.
struct Room<'a> {
    code: &'a Code<'a>,
    window: (u64, u64),
    /// Lines by loop and set.
    load: Vec<Vec<usize>>,
    /// Sets that code which stays where it is fills alone, by loop.
    lost: Vec<Vec<bool>>,
    /// Lines that are counted already, by loop.
    known: Vec<HashSet<u64>>,
}

impl<'a> Room<'a> {
    fn new(code: &'a Code<'a>, window: (u64, u64)) -> Self {
        let known: Vec<HashSet<u64>> =
            code.fixed.iter().map(|lines| lines.keys().copied().collect()).collect();
        let load = known.iter().map(|lines| {
            let mut load = vec![0; code.sets as usize];
            lines.iter().for_each(|line| load[(line % code.sets) as usize] += 1);
            load
        });
        let load: Vec<Vec<usize>> = load.collect();
        let lost = load.iter().map(|load| load.iter().map(|&lines| lines >= code.ways).collect());
        Self { code, window, lost: lost.collect(), load, known }
    }

    fn in_window(&self, set: u64) -> bool {
        (set + self.code.sets - self.window.0) % self.code.sets < self.window.1
    }

    /// Whether `function` at `address` fits into its sets in every loop that it is of.
    fn has(&self, function: usize, address: u64) -> bool {
        let (runs, first) = self.code.lines(function, address);
        runs.iter().all(|&(of, line, _)| {
            let set = (first + line) % self.code.sets;
            let given_up = self.code.great[of] && self.in_window(set) || self.lost[of][set as usize];
            if given_up || self.known[of].contains(&(first + line)) {
                return true;
            }
            // A function of more lines than there are sets brings several into one.
            let same = runs.iter().filter(|&&(other, there, _)| {
                other == of && there <= line && (first + there) % self.code.sets == set
            });
            // Great loops leave a way for what the recording did not show.
            let spare = usize::from(self.code.great[of]);
            self.load[of][set as usize] + same.count() + spare <= self.code.ways
        })
    }

    fn take(&mut self, function: usize, address: u64) {
        let (runs, first) = self.code.lines(function, address);
        for &(of, line, _) in runs {
            if self.known[of].insert(first + line) {
                self.load[of][((first + line) % self.code.sets) as usize] += 1;
            }
        }
    }
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
        Loop { rounds: 100.0, blocks: blocks.collect() }
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
        let placed = by_sets(&sizes, &order, &before, &[one_loop(40, 128)], &CACHE, 0);
        assert_eq!(placed.misses[0], 8_000.0);
        // A way of each set is left for what was not recorded, so that no more than 45 lines beside the window stay: at
        // best 35 miss, were functions a line long.
        assert!(placed.misses[1] <= 4_000.0, "{:?}", placed.misses);
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
        let placed = by_sets(&sizes, &order, &before, &[of.clone()], &CACHE, 0x4000);
        assert_eq!(placed.misses, [2_200.0, 0.0]);
        assert_eq!(placed, by_sets(&sizes, &order, &before, &[of], &CACHE, 0x4000), "the same again");
    }

    #[test]
    fn loops_are_not_in_each_others_way() {
        let (sizes, order, before) = packed(60, 128);
        let part = |from: usize, to: usize| Loop {
            rounds: 10.0,
            blocks: one_loop(60, 128).blocks[from..to].to_vec(),
        };
        // Two loops of 60 lines each, one after the other: both fit.
        let placed = by_sets(&sizes, &order, &before, &[part(0, 30), part(30, 60)], &CACHE, 0);
        assert_eq!(placed.misses[1], 0.0);
        let nothing = by_sets(&sizes, &order, &before, &[], &CACHE, 0);
        assert_eq!((nothing.starts.len(), nothing.misses), (60, [0.0, 0.0]));
    }
}
