//! Records with a look at those that follow, so that no more of them than that are in memory.

use super::dump::Record;
use std::collections::VecDeque;
use std::io;

/// Records that are looked at beyond the one that is replayed: some seconds of a busy kernel. McRae's memory held 16,384.
pub(super) const FAR: usize = 1 << 20;

/// A queue in front of an iterator.
pub(super) struct Ahead<I> {
    rest: I,
    queue: VecDeque<Record>,
    /// Records given out.
    taken: usize,
}

impl<I: Iterator<Item = io::Result<Record>>> Ahead<I> {
    pub fn new(rest: I) -> Self {
        Self { rest, queue: VecDeque::new(), taken: 0 }
    }

    /// The next record and its number, from 0.
    pub fn next(&mut self) -> io::Result<Option<(usize, Record)>> {
        self.fill(1)?;
        let number = self.taken;
        Ok(self.queue.pop_front().map(|record| {
            self.taken += 1;
            (number, record)
        }))
    }

    /// The records that follow, up to the first for which `is_last` holds, and it too; no more than [`FAR`].
    pub fn look(&mut self, mut is_last: impl FnMut(&Record) -> bool) -> io::Result<&[Record]> {
        let mut count = 0;
        while count < FAR {
            self.fill(count + 1)?;
            let Some(record) = self.queue.get(count) else { break };
            count += 1;
            if is_last(record) {
                break;
            }
        }
        Ok(self.queue.make_contiguous().get(..count).unwrap_or_default())
    }

    fn fill(&mut self, count: usize) -> io::Result<()> {
        while self.queue.len() < count {
            match self.rest.next() {
                Some(record) => self.queue.push_back(record?),
                None => break,
            }
        }
        Ok(())
    }
}
