//! Iterator over records with a bounded lookahead, which limits memory.

use super::dump::DumpRecord;
use std::collections::VecDeque;
use std::io;

/// Maximum lookahead in records: some seconds of a busy kernel. McRae's memory held 16,384 records.
pub(super) const MAX_LOOKAHEAD: usize = 1 << 20;

/// Queue in front of an iterator.
pub(super) struct Lookahead<I> {
    rest: I,
    queue: VecDeque<DumpRecord>,
    /// Number of records returned so far.
    taken: usize,
}

impl<I: Iterator<Item = io::Result<DumpRecord>>> Lookahead<I> {
    pub fn new(rest: I) -> Self {
        Self { rest, queue: VecDeque::new(), taken: 0 }
    }

    /// Returns the next record and its number, from 0.
    pub fn next(&mut self) -> io::Result<Option<(usize, DumpRecord)>> {
        self.fill(1)?;
        let number = self.taken;
        Ok(self.queue.pop_front().map(|record| {
            self.taken += 1;
            (number, record)
        }))
    }

    /// Returns the next records up to and including the first for which `is_last` holds, at most
    /// [`MAX_LOOKAHEAD`].
    pub fn look(&mut self, mut is_last: impl FnMut(&DumpRecord) -> bool) -> io::Result<&[DumpRecord]> {
        let mut count = 0;
        while count < MAX_LOOKAHEAD {
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
