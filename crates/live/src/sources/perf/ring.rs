//! Buffers of events, and the merge of their records by time.
//!
//! A thread may start on one CPU and be sampled on another. If the buffers were read one after the
//! other, samples could come before the thread's name or after its end.

use super::record;
use perf_event::{Counter, Sampler};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Buffer of one event, with the counts at the last reset.
pub(super) struct EventBuffer {
    sampler: Sampler,
    base: EventCounters,
    pub tally: LossTally,
    /// Next record, valid if `is_held`.
    next: BufferedRecord,
    is_held: bool,
}

/// Record removed from its buffer.
#[derive(Debug, Default)]
pub(super) struct BufferedRecord {
    pub kind: u32,
    pub misc: u16,
    /// Time stamp in ns (`CLOCK_MONOTONIC`).
    pub time: u64,
    pub body: Vec<u8>,
}

/// State of a buffer according to its records.
#[derive(Debug, Default)]
pub(super) struct LossTally {
    /// Records lost since the last reset because the buffer was full.
    pub lost: u64,
    /// True if samples came since the last check.
    pub has_samples: bool,
}

/// Counters kept by the kernel.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct EventCounters {
    pub count: u64,
    pub running_ns: u64,
    /// Records lost because the buffer was full.
    pub lost: u64,
}

impl EventBuffer {
    pub fn new(counter: Counter, size: usize) -> io::Result<Self> {
        let sampler = counter.sampled(size)?;
        Ok(Self {
            sampler,
            base: EventCounters::default(),
            tally: LossTally::default(),
            next: BufferedRecord::default(),
            is_held: false,
        })
    }

    pub fn enable(&mut self) -> io::Result<()> {
        self.sampler.enable()
    }

    fn counters(&mut self) -> io::Result<EventCounters> {
        let read = self.sampler.read_full()?;
        let running_ns = read.time_running().map_or(0, |time| time.as_nanos() as u64);
        // Kernels before 6.0 report losses only by records.
        Ok(EventCounters { count: read.count(), running_ns, lost: read.lost().unwrap_or(0) })
    }

    /// Makes the present counts the new base.
    pub fn reset(&mut self) -> io::Result<()> {
        self.base = self.counters()?;
        self.tally.lost = 0;
        Ok(())
    }

    /// Returns the counts since the last reset.
    pub fn since(&mut self) -> io::Result<EventCounters> {
        let now = self.counters()?;
        Ok(EventCounters {
            count: now.count.saturating_sub(self.base.count),
            running_ns: now.running_ns.saturating_sub(self.base.running_ns),
            lost: now.lost.saturating_sub(self.base.lost).max(self.tally.lost),
        })
    }

    pub fn descriptor(&self) -> BorrowedFd<'_> {
        // The library implements only `AsRawFd`.
        descriptor::of(&self.sampler)
    }

    /// Returns the time of the next record, 0 if it has none.
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

/// Heap of the buffers' next records by time.
#[derive(Debug, Default)]
pub(super) struct TimeOrder(BinaryHeap<Reverse<(u64, usize)>>);

impl TimeOrder {
    /// Calls `each` with the records up to time `until` in order, and with the index of their
    /// buffer. Later records stay, since an earlier one may still arrive in another buffer.
    pub fn take(
        &mut self,
        rings: &mut [EventBuffer],
        until: u64,
        mut each: impl FnMut(usize, &BufferedRecord, &mut LossTally),
    ) {
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

    /// Borrows the descriptor for as long as its owner is borrowed.
    #[expect(unsafe_code, reason = "perf-event2 implements AsRawFd and not AsFd")]
    pub fn of<T: AsRawFd>(owner: &T) -> BorrowedFd<'_> {
        // SAFETY: the owner keeps the descriptor open while it is borrowed.
        unsafe { BorrowedFd::borrow_raw(owner.as_raw_fd()) }
    }
}
