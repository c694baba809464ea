//! Records of adjacent chunks merged into blocks, so that a long selection adds up few records.
//! Like a chunk, a block leaves calls open to be joined with its neighbors.

use super::counter::{ChunkRecord, EndedCalls, OpenFrames};
use super::names::{NameTable, NOTHING};
use kerntune_profile::{bucket_of, Ticks};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// Number of records in a block.
const BLOCK_FANOUT: usize = 8;

/// Blocks of [`BLOCK_FANOUT`] chunks, blocks of as many of those, and so on. `None` stands for a
/// block whose chunks are not contiguous.
pub(super) struct ChunkBlocks(Vec<Vec<OnceLock<Option<Arc<ChunkRecord>>>>>);

impl ChunkBlocks {
    /// Creates the levels for this number of chunks.
    pub fn new(chunks: usize) -> Self {
        let mut levels = Vec::new();
        let mut count = chunks / BLOCK_FANOUT;
        while count > 0 {
            levels.push((0..count).map(|_| OnceLock::new()).collect());
            count /= BLOCK_FANOUT;
        }
        Self(levels)
    }

    /// Returns the largest block that begins with chunk `at` and ends before chunk `end`, and its
    /// number of chunks.
    pub fn largest(&self, at: usize, end: usize) -> Option<(Arc<ChunkRecord>, usize)> {
        let mut found = None;
        let mut size = 1;
        for level in &self.0 {
            size *= BLOCK_FANOUT;
            if at % size != 0 || at + size > end {
                break;
            }
            if let Some(Some(record)) = level.get(at / size).and_then(OnceLock::get) {
                found = Some((Arc::clone(record), size));
            }
        }
        found
    }

    /// Builds the blocks that end with chunk `last`. `chunk` returns the records up to it; `merge`
    /// is [`merge`] with names.
    pub fn extend<'r>(
        &self,
        last: usize,
        merge: impl Fn(&[Arc<ChunkRecord>]) -> Option<ChunkRecord>,
        chunk: impl Fn(usize) -> Option<&'r Arc<ChunkRecord>>,
    ) {
        let mut size = 1;
        for (at, level) in self.0.iter().enumerate() {
            size *= BLOCK_FANOUT;
            if (last + 1) % size != 0 {
                return;
            }
            let number = last / size;
            let Some(place) = level.get(number).filter(|place| place.get().is_none()) else { continue };
            let below = at.checked_sub(1).and_then(|below| self.0.get(below));
            let part = |part: usize| match below {
                Some(below) => below.get(part)?.get()?.clone(),
                None => chunk(part).cloned(),
            };
            let parts: Option<Vec<_>> =
                (number * BLOCK_FANOUT..(number + 1) * BLOCK_FANOUT).map(part).collect();
            let block = parts.and_then(|parts| merge(&parts));
            let _ = place.set(block.map(Arc::new));
        }
    }
}

/// Call open between two chunks: its time so far, and its begin; `None` if it began before the
/// first chunk.
#[derive(Debug, Clone, Copy)]
struct BoundaryCall {
    elapsed: u64,
    begin: Option<u64>,
}

/// Block under construction, with indices into its columns by number.
struct BlockSum<'n> {
    names: &'n mut NameTable,
    record: ChunkRecord,
    nodes: Vec<u32>,
    accounts: Vec<u32>,
    cells: Vec<u32>,
}

/// Returns the index of number `at`, assigning `next` if it is new.
fn place(places: &mut Vec<u32>, at: u32, next: usize) -> (usize, bool) {
    let at = at as usize;
    if at >= places.len() {
        places.resize(at + 1, NOTHING);
    }
    let is_new = places[at] == NOTHING;
    if is_new {
        places[at] = next as u32;
    }
    (places[at] as usize, is_new)
}

impl BlockSum<'_> {
    fn columns(&mut self, more: &ChunkRecord) {
        let sum = &mut self.record;
        for (at, node) in more.nodes.iter().enumerate() {
            let (place, is_new) = place(&mut self.nodes, *node, sum.nodes.len());
            if is_new {
                sum.nodes.push(*node);
                sum.calls.push(0);
                sum.ns.push(0);
                if !more.weights.is_empty() {
                    sum.weights.push([0; 3]);
                }
            }
            sum.calls[place] += more.calls[at];
            sum.ns[place] += more.ns[at];
            if let (Some(sums), Some(weights)) = (sum.weights.get_mut(place), more.weights.get(at)) {
                sums.iter_mut().zip(weights).for_each(|(sum, more)| *sum += more);
            }
        }
        for (account, ended) in more.accounts.iter().zip(&more.ended) {
            self.ended(*account, ended);
        }
        for (cell, count) in &more.cells {
            self.cell(*cell, *count);
        }
        let times = &mut self.record.times;
        times.resize(more.times.len().max(times.len()), [0; 3]);
        for (sum, more) in times.iter_mut().zip(&more.times) {
            sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        }
    }

    fn ended(&mut self, account: u32, more: &EndedCalls) {
        let sum = &mut self.record;
        let (place, is_new) = place(&mut self.accounts, account, sum.accounts.len());
        if is_new {
            sum.accounts.push(account);
            sum.ended.push(EndedCalls::default());
        }
        sum.ended[place].add(more);
    }

    fn cell(&mut self, cell: u64, count: u64) {
        let sum = &mut self.record;
        let (place, is_new) = place(&mut self.cells, cell as u32, sum.cells.len());
        if is_new {
            sum.cells.push((cell, 0));
        }
        sum.cells[place].1 += count;
    }

    /// Adds a call that began in one of the chunks and ended in a later one.
    fn joined(&mut self, account: u32, elapsed: u64, begin: u64) {
        self.ended(account, &EndedCalls { count: 1, elapsed, slowest: elapsed, at: begin });
        let cell = self.names.cell(account, bucket_of(Ticks(elapsed)));
        self.cell(cell.into(), 1);
    }
}

/// Merges contiguous records; `None` if a record does not begin with the calls that the previous
/// one left open.
pub(super) fn merge(records: &[Arc<ChunkRecord>], names: &mut NameTable) -> Option<ChunkRecord> {
    let first = records.first()?;
    let mut sum = BlockSum {
        names,
        record: ChunkRecord {
            begin: first.begin,
            end: first.begin,
            base: first.base.clone(),
            ..ChunkRecord::default()
        },
        nodes: Vec::new(),
        accounts: Vec::new(),
        cells: Vec::new(),
    };
    let before = |depth: u32| vec![BoundaryCall { elapsed: 0, begin: None }; depth as usize];
    let mut stacks: HashMap<u32, Vec<BoundaryCall>> =
        first.base.iter().map(|&(thread, depth)| (thread, before(depth))).collect();
    for record in records {
        let goes_on = |&(thread, depth): &(u32, u32)| {
            stacks.get(&thread).is_some_and(|stack| stack.len() == depth as usize)
        };
        let is_next = record.begin == sum.record.end && record.base.len() == stacks.len();
        if !(is_next && record.base.iter().all(goes_on)) {
            return None;
        }
        sum.record.end = record.end;
        sum.columns(record);
        for &(thread, account, elapsed) in &record.theirs {
            let open = stacks.get_mut(&thread)?.pop()?;
            let elapsed = open.elapsed + elapsed;
            match open.begin {
                None => sum.record.theirs.push((thread, account, elapsed)),
                Some(begin) if account != NOTHING => sum.joined(account, elapsed, begin),
                Some(_) => {}
            }
        }
        let mut next = HashMap::new();
        for OpenFrames { thread, inherited, open } in &record.left {
            let mut stack = stacks.remove(thread).unwrap_or_default();
            stack.truncate(*inherited as usize);
            stack.iter_mut().zip(open).for_each(|(place, (here, _))| place.elapsed += here);
            let new = open.iter().skip(stack.len());
            stack.extend(new.map(|&(elapsed, begin)| BoundaryCall { elapsed, begin: Some(begin) }));
            next.insert(*thread, stack);
        }
        stacks = next;
    }
    let mut left: Vec<OpenFrames> = stacks
        .into_iter()
        .map(|(thread, stack)| OpenFrames {
            thread,
            inherited: stack.iter().take_while(|open| open.begin.is_none()).count() as u32,
            open: stack.iter().map(|open| (open.elapsed, open.begin.unwrap_or(0))).collect(),
        })
        .collect();
    left.sort_unstable_by_key(|left| left.thread);
    sum.record.left = left;
    Some(sum.record)
}
