//! Neighbouring chunks as one record, so that a long selection adds up few of them: as a chunk leaves calls to be joined with
//! those beside it, so does a block of chunks.

use super::counter::{Ended, Left, Record};
use super::names::{Names, NOTHING};
use kerntune_profile::{bucket_of, Nanoseconds};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// How many records a block is made of.
const FAN: usize = 8;

/// Blocks of [`FAN`] chunks, blocks of [`FAN`] of those, and so on; a block whose chunks do not follow each other is `None`.
pub(super) struct Blocks(Vec<Vec<OnceLock<Option<Arc<Record>>>>>);

impl Blocks {
    /// For so many chunks.
    pub fn new(chunks: usize) -> Self {
        let mut levels = Vec::new();
        let mut count = chunks / FAN;
        while count > 0 {
            levels.push((0..count).map(|_| OnceLock::new()).collect());
            count /= FAN;
        }
        Self(levels)
    }

    /// The largest block that begins with chunk `at` and ends before chunk `end`, and how many chunks it has.
    pub fn largest(&self, at: usize, end: usize) -> Option<(Arc<Record>, usize)> {
        let mut found = None;
        let mut size = 1;
        for level in &self.0 {
            size *= FAN;
            if at % size != 0 || at + size > end {
                break;
            }
            if let Some(Some(record)) = level.get(at / size).and_then(OnceLock::get) {
                found = Some((Arc::clone(record), size));
            }
        }
        found
    }

    /// Makes the blocks that end with chunk `last`; `chunk` has the records of it and of all before, `merge` is [`merge`] with names.
    pub fn extend<'r>(
        &self,
        last: usize,
        merge: impl Fn(&[Arc<Record>]) -> Option<Record>,
        chunk: impl Fn(usize) -> Option<&'r Arc<Record>>,
    ) {
        let mut size = 1;
        for (at, level) in self.0.iter().enumerate() {
            size *= FAN;
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
            let parts: Option<Vec<_>> = (number * FAN..(number + 1) * FAN).map(part).collect();
            let block = parts.and_then(|parts| merge(&parts));
            let _ = place.set(block.map(Arc::new));
        }
    }
}

/// A call that is open between two chunks: what it took so far, and when it began, unless that was before the first.
#[derive(Debug, Clone, Copy)]
struct Open {
    elapsed: u64,
    begin: Option<u64>,
}

/// Columns of the sum, and where in them what has a number is.
struct Sum<'n> {
    names: &'n mut Names,
    record: Record,
    nodes: Vec<u32>,
    accounts: Vec<u32>,
    cells: Vec<u32>,
}

/// The place of what has number `at`, which is `next` if it has none yet.
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

impl Sum<'_> {
    fn columns(&mut self, more: &Record) {
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

    fn ended(&mut self, account: u32, more: &Ended) {
        let sum = &mut self.record;
        let (place, is_new) = place(&mut self.accounts, account, sum.accounts.len());
        if is_new {
            sum.accounts.push(account);
            sum.ended.push(Ended::default());
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

    /// A call that began in one of the chunks and ended in a later one.
    fn joined(&mut self, account: u32, elapsed: u64, begin: u64) {
        self.ended(account, &Ended { count: 1, elapsed, slowest: elapsed, at: begin });
        let cell = self.names.cell(account, bucket_of(Nanoseconds(elapsed)));
        self.cell(cell.into(), 1);
    }
}

/// Records that follow each other as one; `None` if one of them does not begin with what the one before it left open.
pub(super) fn merge(records: &[Arc<Record>], names: &mut Names) -> Option<Record> {
    let first = records.first()?;
    let mut sum = Sum {
        names,
        record: Record {
            begin: first.begin,
            end: first.begin,
            base: first.base.clone(),
            ..Record::default()
        },
        nodes: Vec::new(),
        accounts: Vec::new(),
        cells: Vec::new(),
    };
    let before = |depth: u32| vec![Open { elapsed: 0, begin: None }; depth as usize];
    let mut stacks: HashMap<u32, Vec<Open>> =
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
        for Left { thread, carried, open } in &record.left {
            let mut stack = stacks.remove(thread).unwrap_or_default();
            stack.truncate(*carried as usize);
            stack.iter_mut().zip(open).for_each(|(place, (here, _))| place.elapsed += here);
            let new = open.iter().skip(stack.len());
            stack.extend(new.map(|&(elapsed, begin)| Open { elapsed, begin: Some(begin) }));
            next.insert(*thread, stack);
        }
        stacks = next;
    }
    let mut left: Vec<Left> = stacks
        .into_iter()
        .map(|(thread, stack)| Left {
            thread,
            carried: stack.iter().take_while(|open| open.begin.is_none()).count() as u32,
            open: stack.iter().map(|open| (open.elapsed, open.begin.unwrap_or(0))).collect(),
        })
        .collect();
    left.sort_unstable_by_key(|left| left.thread);
    sum.record.left = left;
    Some(sum.record)
}
