//! One event's buffer, and the records of all buffers in the order of their time.
//!
//! A thread may begin on one CPU and be sampled on another: read one buffer after the other, its samples would come before
//! its name, or after its end.

use super::record;
use perf_event::{Counter, Sampler};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// A buffer, and what was counted before the last reset.
pub(super) struct Ring {
    sampler: Sampler,
    base: Counters,
    pub tally: Tally,
    /// The next record, if `is_held`.
    next: Held,
    is_held: bool,
}

/// A record that was taken out of its buffer.
#[derive(Debug, Default)]
pub(super) struct Held {
    pub kind: u32,
    pub misc: u16,
    /// `CLOCK_MONOTONIC`, in ns.
    pub time: u64,
    pub body: Vec<u8>,
}

/// What records told of their buffer.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Records that found no room since the last reset.
    pub lost: u64,
    /// Samples were taken since somebody looked.
    pub has_samples: bool,
}

/// What the kernel counts.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counters {
    pub count: u64,
    pub running_ns: u64,
    /// Records that found no room.
    pub lost: u64,
}

impl Ring {
    pub fn new(counter: Counter, size: usize) -> io::Result<Self> {
        let sampler = counter.sampled(size)?;
        Ok(Self {
            sampler,
            base: Counters::default(),
            tally: Tally::default(),
            next: Held::default(),
            is_held: false,
        })
    }

    pub fn enable(&mut self) -> io::Result<()> {
        self.sampler.enable()
    }

    fn counters(&mut self) -> io::Result<Counters> {
        let read = self.sampler.read_full()?;
        let running_ns = read.time_running().map_or(0, |time| time.as_nanos() as u64);
        // Kernels before 6.0 do not count what is lost: only records tell of it.
        Ok(Counters { count: read.count(), running_ns, lost: read.lost().unwrap_or(0) })
    }

    /// Counts from here on.
    pub fn reset(&mut self) -> io::Result<()> {
        self.base = self.counters()?;
        self.tally.lost = 0;
        Ok(())
    }

    /// What was counted since the last reset.
    pub fn since(&mut self) -> io::Result<Counters> {
        let now = self.counters()?;
        Ok(Counters {
            count: now.count.saturating_sub(self.base.count),
            running_ns: now.running_ns.saturating_sub(self.base.running_ns),
            lost: now.lost.saturating_sub(self.base.lost).max(self.tally.lost),
        })
    }

    pub fn descriptor(&self) -> BorrowedFd<'_> {
        // The library has `AsRawFd` only.
        descriptor::of(&self.sampler)
    }

    /// Time of the next record. One that does not tell its time is as old as can be.
    fn peek(&mut self) -> Option<u64> {
        if !self.is_held {
            let found = self.sampler.next_record()?;
            let next = &mut self.next;
            (next.kind, next.misc) = (found.ty(), found.misc());
            next.body.clear();
            found.data().iter().for_each(|part| next.body.extend_from_slice(part));
            next.time = record::time(next.kind, &next.body).unwrap_or(0);
            self.is_held = true;
        }
        Some(self.next.time)
    }
}

/// Which buffer's record is the next; has room for all buffers.
#[derive(Debug, Default)]
pub(super) struct Order(BinaryHeap<Reverse<(u64, usize)>>);

impl Order {
    /// Gives `each` the records up to this time in their order, with the number of their buffer. Later ones stay: an earlier
    /// one may still be on its way into another buffer.
    pub fn take(&mut self, rings: &mut [Ring], until: u64, mut each: impl FnMut(usize, &Held, &mut Tally)) {
        self.0.clear();
        let first = rings.iter_mut().enumerate().filter_map(|(at, ring)| Some(Reverse((ring.peek()?, at))));
        self.0.extend(first);
        while let Some(Reverse((time, at))) = self.0.pop() {
            let Some(ring) = rings.get_mut(at).filter(|_| time <= until) else { return };
            ring.is_held = false;
            each(at, &ring.next, &mut ring.tally);
            if let Some(time) = ring.peek() {
                self.0.push(Reverse((time, at)));
            }
        }
    }
}

mod descriptor {
    use super::{AsRawFd, BorrowedFd};

    /// Borrows what is open for as long as its owner is borrowed.
    #[expect(unsafe_code, reason = "perf-event2 implements AsRawFd and not AsFd")]
    pub fn of<T: AsRawFd>(owner: &T) -> BorrowedFd<'_> {
        // SAFETY: the owner keeps the descriptor open while it is borrowed.
        unsafe { BorrowedFd::borrow_raw(owner.as_raw_fd()) }
    }
}
