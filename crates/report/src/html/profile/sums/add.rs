//! Addition of chunks, joining calls that span chunks.

use super::counter::{ChunkRecord, EndedCalls, OpenFrames};
use super::names::NOTHING;
use kerntune_profile::{bucket_of, Ticks};
use std::collections::HashMap;

/// Sums over a stretch of time by node, account and cell.
pub(super) struct StretchSums {
    pub calls: Vec<u64>,
    pub self_weights: Vec<[u64; 4]>,
    pub ended: Vec<EndedCalls>,
    pub cells: Vec<u64>,
    /// Calls that span chunks, by account and bucket.
    pub joined: HashMap<(u32, u32), u64>,
    pub times: Vec<[u64; 3]>,
}

/// Call open at a chunk boundary: its time so far, and its begin if known.
type BoundaryCall = Option<(u64, u64)>;

impl StretchSums {
    pub fn new(nodes: usize, accounts: usize, cells: usize, groups: usize) -> Self {
        Self {
            calls: vec![0; nodes],
            self_weights: vec![[0; 4]; nodes],
            ended: vec![EndedCalls::default(); accounts],
            cells: vec![0; cells],
            joined: HashMap::new(),
            times: vec![[0; 3]; groups],
        }
    }

    /// Adds records, which must be in time order.
    pub fn add<'a>(&mut self, records: impl Iterator<Item = &'a ChunkRecord>) {
        let mut stacks: HashMap<u32, Vec<BoundaryCall>> = HashMap::new();
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

    fn columns(&mut self, record: &ChunkRecord) {
        for (at, node) in record.nodes.iter().enumerate() {
            let node = *node as usize;
            self.calls[node] += record.calls[at];
            self.self_weights[node][0] += record.ns[at];
            if let Some(weights) = record.weights.get(at) {
                for (sum, more) in self.self_weights[node][1..].iter_mut().zip(weights) {
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

    fn join(&mut self, record: &ChunkRecord, stacks: &mut HashMap<u32, Vec<BoundaryCall>>) {
        // If a chunk does not begin with the calls that the previous one left open, those calls are
        // cut.
        let base: HashMap<u32, u32> = record.base.iter().copied().collect();
        stacks.retain(|thread, stack| base.get(thread).is_some_and(|depth| *depth as usize == stack.len()));
        for (thread, depth) in &record.base {
            stacks.entry(*thread).or_insert_with(|| vec![None; *depth as usize]);
        }
        for &(thread, account, elapsed) in &record.theirs {
            let open = stacks.get_mut(&thread).and_then(Vec::pop).flatten();
            if let Some((before, begin)) = open.filter(|_| account != NOTHING) {
                let elapsed = before + elapsed;
                self.ended[account as usize].add_call(elapsed, begin);
                *self.joined.entry((account, bucket_of(Ticks(elapsed)))).or_default() += 1;
            }
        }
        let mut next: HashMap<u32, Vec<BoundaryCall>> = HashMap::new();
        for OpenFrames { thread, inherited, open } in &record.left {
            let mut stack = stacks.remove(thread).unwrap_or_default();
            stack.truncate(*inherited as usize);
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
