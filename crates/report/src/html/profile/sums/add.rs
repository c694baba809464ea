//! Adds up chunks, and joins the calls that go on from one to the next.

use super::counter::{Ended, Left, Record};
use super::names::NOTHING;
use kerntune_profile::{bucket_of, Nanoseconds};
use std::collections::HashMap;

/// What a stretch of time comes to, by node, account and cell.
pub(super) struct Added {
    pub calls: Vec<u64>,
    pub own: Vec<[u64; 4]>,
    pub ended: Vec<Ended>,
    pub cells: Vec<u64>,
    /// Calls that go on from one chunk to the next, by account and bucket.
    pub joined: HashMap<(u32, u32), u64>,
    pub times: Vec<[u64; 3]>,
}

/// A call that is open where one chunk ends and the next begins: what it took so far, and when it began.
type Open = Option<(u64, u64)>;

impl Added {
    pub fn new(nodes: usize, accounts: usize, cells: usize, groups: usize) -> Self {
        Self {
            calls: vec![0; nodes],
            own: vec![[0; 4]; nodes],
            ended: vec![Ended::default(); accounts],
            cells: vec![0; cells],
            joined: HashMap::new(),
            times: vec![[0; 3]; groups],
        }
    }

    /// Records in the order of their time.
    pub fn add<'a>(&mut self, records: impl Iterator<Item = &'a Record>) {
        let mut stacks: HashMap<u32, Vec<Open>> = HashMap::new();
        let mut last = None;
        for record in records {
            self.columns(record);
            if last != Some(record.begin) {
                stacks.clear();
            }
            last = Some(record.end);
            self.join(record, &mut stacks);
        }
    }

    fn columns(&mut self, record: &Record) {
        for (at, node) in record.nodes.iter().enumerate() {
            let node = *node as usize;
            self.calls[node] += record.calls[at];
            self.own[node][0] += record.ns[at];
            if let Some(weights) = record.weights.get(at) {
                for (sum, more) in self.own[node][1..].iter_mut().zip(weights) {
                    *sum += more;
                }
            }
        }
        for (account, ended) in record.accounts.iter().zip(&record.ended) {
            self.ended[*account as usize].add(ended);
        }
        for (cell, count) in &record.cells {
            self.cells[*cell as usize] += count;
        }
        for (sum, more) in self.times.iter_mut().zip(&record.times) {
            sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        }
    }

    fn join(&mut self, record: &Record, stacks: &mut HashMap<u32, Vec<Open>>) {
        // A chunk is believed: where it does not go on as the one before it ended, calls are cut.
        let base: HashMap<u32, u32> = record.base.iter().copied().collect();
        stacks.retain(|thread, stack| base.get(thread).is_some_and(|depth| *depth as usize == stack.len()));
        for (thread, depth) in &record.base {
            stacks.entry(*thread).or_insert_with(|| vec![None; *depth as usize]);
        }
        for &(thread, account, elapsed) in &record.theirs {
            let open = stacks.get_mut(&thread).and_then(Vec::pop).flatten();
            if let Some((before, begin)) = open.filter(|_| account != NOTHING) {
                let elapsed = before + elapsed;
                self.ended[account as usize].one(elapsed, begin);
                *self.joined.entry((account, bucket_of(Nanoseconds(elapsed)))).or_default() += 1;
            }
        }
        let mut next: HashMap<u32, Vec<Open>> = HashMap::new();
        for Left { thread, carried, open } in &record.left {
            let mut stack = stacks.remove(thread).unwrap_or_default();
            stack.truncate(*carried as usize);
            for (place, (here, _)) in stack.iter_mut().zip(open) {
                if let Some((so_far, _)) = place {
                    *so_far += here;
                }
            }
            stack.extend(open.iter().skip(stack.len()).map(|&(here, begin)| Some((here, begin))));
            next.insert(*thread, stack);
        }
        *stacks = next;
    }
}
