//! Worker pool: workers replay chunks in any order, the calling thread stitches them in order.

use crate::accumulators::Accumulators;
use crate::events::{replay, ReplayState};
use crate::functions::{FrameTimes, FunctionCollector};
use crate::known::TraceContext;
use crate::memo::ReplayMemo;
use crate::record::ChunkRecord;
use crate::{ChunkReader, Error, TraceChunk, TraceFile};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Maximum number of chunks per worker that are replayed ahead of the first one that is not
/// stitched.
const AHEAD: usize = 4;

/// Maximum number of workers: that many full trees with their buffers stay below 512 MiB.
const MAX_WORKERS: usize = 8;

/// Result of replaying a chunk.
pub(crate) type ChunkOutcome = Result<ChunkRecord, Error>;

/// Replays all chunks with `threads` workers, and passes their records to `each` in order, on the
/// calling thread, until `each` breaks. Returns the merged counters.
pub(crate) fn replay_all(
    trace: &TraceFile<'_>,
    known: &TraceContext,
    threads: usize,
    partial: bool,
    mut each: impl FnMut(usize, ChunkOutcome) -> ControlFlow<()>,
) -> Result<Accumulators, Error> {
    let chunks = trace.chunks();
    let threads = threads.clamp(1, chunks.clamp(1, MAX_WORKERS));
    if threads == 1 {
        let mut worker = ReplayWorker::new(trace, known, partial)?;
        for number in 0..chunks {
            if each(number, worker.chunk(number)).is_break() {
                break;
            }
        }
        return Ok(worker.finish());
    }
    let workers =
        (0..threads).map(|_| ReplayWorker::new(trace, known, partial)).collect::<Result<Vec<_>, _>>()?;
    let window = ChunkWindow::new(chunks, AHEAD * threads);
    std::thread::scope(|scope| {
        let work = |mut worker: ReplayWorker<'_>| {
            let _leaving = StopOnPanic(&window);
            while let Some(number) = window.take() {
                window.put(number, worker.chunk(number));
            }
            worker.finish()
        };
        let pool: Vec<_> = workers.into_iter().map(|worker| scope.spawn(move || work(worker))).collect();
        for number in 0..chunks {
            let Some(outcome) = window.next(number) else { break };
            if each(number, outcome).is_break() {
                break;
            }
        }
        window.stop();
        let mut all: Option<Accumulators> = None;
        for worker in pool {
            let more = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            match &mut all {
                Some(sum) => sum.merge(more),
                None => all = Some(more),
            }
        }
        Ok(all.unwrap_or_else(|| Accumulators::new(known.bounds.regions, known.wide)))
    })
}

struct ReplayWorker<'a> {
    reader: ChunkReader<'a>,
    machine: ReplayState<FrameTimes>,
    functions: FunctionCollector<'a>,
    memo: ReplayMemo,
    partial: bool,
}

impl<'a> ReplayWorker<'a> {
    fn new(trace: &TraceFile<'a>, known: &'a TraceContext, partial: bool) -> Result<Self, Error> {
        let (machine, functions) = (ReplayState::new(known.bounds), FunctionCollector::new(known));
        Ok(Self { reader: trace.reader()?, machine, functions, memo: ReplayMemo::new(known.bounds), partial })
    }

    fn finish(mut self) -> Accumulators {
        self.memo.settle(&mut self.functions.sums);
        self.functions.sums
    }

    fn chunk(&mut self, number: usize) -> ChunkOutcome {
        let Self { reader, machine, functions, memo, partial } = self;
        let chunk = reader.read(number)?;
        if !*partial {
            let events = memo.replay(machine, functions, &chunk)?;
            return record(machine, functions, chunk, events);
        }
        // The counts of a chunk that turns out to be damaged must not be kept.
        let known = functions.known;
        let mut fresh = FunctionCollector::new(known);
        let events = replay(machine, &mut fresh, &chunk)?;
        let outcome = record(machine, &mut fresh, chunk, events);
        if outcome.is_ok() {
            functions.sums.merge(fresh.sums);
        }
        outcome
    }
}

/// Finishes a chunk in which `found` events were read.
fn record(
    machine: &mut ReplayState<FrameTimes>,
    functions: &mut FunctionCollector<'_>,
    chunk: TraceChunk<'_>,
    found: u64,
) -> ChunkOutcome {
    let expected = chunk.header.events.into();
    if found != expected {
        return Err(Error::Contents { chunk: chunk.number, what: "events", found, expected });
    }
    Ok(functions.end(machine, chunk.header.begin, found, chunk.state))
}

/// The chunks from the first that is not stitched to the last that a worker may take.
struct ChunkWindow {
    chunks: usize,
    width: usize,
    state: Mutex<WindowState>,
    changed: Condvar,
}

#[derive(Default)]
struct WindowState {
    /// The next chunk to be taken.
    taken: usize,
    /// The next chunk to be stitched.
    stitched: usize,
    done: BTreeMap<usize, ChunkOutcome>,
    stop: bool,
}

impl ChunkWindow {
    fn new(chunks: usize, width: usize) -> Self {
        Self { chunks, width, state: Mutex::default(), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, WindowState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a condition holds.
    fn when(&self, so: impl Fn(&WindowState) -> bool) -> MutexGuard<'_, WindowState> {
        let unwell = |state: &mut WindowState| !so(state);
        self.changed.wait_while(self.lock(), unwell).unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a chunk to work on; `None` when nothing is left to do.
    fn take(&self) -> Option<usize> {
        let ready = |s: &WindowState| s.stop || s.taken >= self.chunks || s.taken < s.stitched + self.width;
        let mut state = self.when(ready);
        if state.stop || state.taken >= self.chunks {
            return None;
        }
        state.taken += 1;
        Some(state.taken - 1)
    }

    fn put(&self, number: usize, outcome: ChunkOutcome) {
        self.lock().done.insert(number, outcome);
        self.changed.notify_all();
    }

    /// Waits for a chunk's result; `None` if the pool was stopped.
    fn next(&self, number: usize) -> Option<ChunkOutcome> {
        let mut state = self.when(|s| s.stop || s.done.contains_key(&number));
        let outcome = state.done.remove(&number);
        state.stitched = number + 1;
        drop(state);
        self.changed.notify_all();
        outcome
    }

    fn stop(&self) {
        self.lock().stop = true;
        self.changed.notify_all();
    }
}

/// Stops the pool when a worker panics, so that no other thread waits for its result.
struct StopOnPanic<'a>(&'a ChunkWindow);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop();
        }
    }
}
