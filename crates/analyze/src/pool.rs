//! A pool of workers replays chunks, one stitches them, in their order.

use crate::accumulators::Accumulators;
use crate::events::{replay, Machine};
use crate::functions::{Functions, Open};
use crate::known::Known;
use crate::memo::Memo;
use crate::record::Record;
use crate::{Chunk, ChunkReader, Error, TraceFile};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Chunks that may be done before one that is not, for each worker.
const AHEAD: usize = 4;

/// Workers at most: so many full trees and their buffers stay below 512 MiB.
const MAX_WORKERS: usize = 8;

/// What became of a chunk.
pub(crate) type Outcome = Result<Record, Error>;

/// Replays all chunks with so many threads, and hands their records to `each` in order, on this thread,
/// until it breaks. Returns what was counted.
pub(crate) fn replay_all(
    trace: &TraceFile<'_>,
    known: &Known,
    threads: usize,
    partial: bool,
    mut each: impl FnMut(usize, Outcome) -> ControlFlow<()>,
) -> Result<Accumulators, Error> {
    let chunks = trace.chunks();
    let threads = threads.clamp(1, chunks.clamp(1, MAX_WORKERS));
    if threads == 1 {
        let mut worker = Worker::new(trace, known, partial)?;
        for number in 0..chunks {
            if each(number, worker.chunk(number)).is_break() {
                break;
            }
        }
        return Ok(worker.finish());
    }
    let workers = (0..threads).map(|_| Worker::new(trace, known, partial)).collect::<Result<Vec<_>, _>>()?;
    let window = Window::new(chunks, AHEAD * threads);
    std::thread::scope(|scope| {
        let work = |mut worker: Worker<'_>| {
            let _leaving = Leaving(&window);
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

struct Worker<'a> {
    reader: ChunkReader<'a>,
    machine: Machine<Open>,
    functions: Functions<'a>,
    memo: Memo,
    partial: bool,
}

impl<'a> Worker<'a> {
    fn new(trace: &TraceFile<'a>, known: &'a Known, partial: bool) -> Result<Self, Error> {
        let (machine, functions) = (Machine::new(known.bounds), Functions::new(known));
        Ok(Self { reader: trace.reader()?, machine, functions, memo: Memo::new(known.bounds), partial })
    }

    /// What was counted.
    fn finish(mut self) -> Accumulators {
        self.memo.settle(&mut self.functions.sums);
        self.functions.sums
    }

    fn chunk(&mut self, number: usize) -> Outcome {
        let Self { reader, machine, functions, memo, partial } = self;
        let chunk = reader.read(number)?;
        if !*partial {
            let events = memo.replay(machine, functions, &chunk)?;
            return record(machine, functions, chunk, events);
        }
        // What a chunk that turns out to be damaged has counted must not be kept.
        let known = functions.known;
        let mut fresh = Functions::new(known);
        let events = replay(machine, &mut fresh, &chunk)?;
        let outcome = record(machine, &mut fresh, chunk, events);
        if outcome.is_ok() {
            functions.sums.merge(fresh.sums);
        }
        outcome
    }
}

/// Ends a chunk of which so many events were found.
fn record(
    machine: &mut Machine<Open>,
    functions: &mut Functions<'_>,
    chunk: Chunk<'_>,
    found: u64,
) -> Outcome {
    let expected = chunk.header.events.into();
    if found != expected {
        return Err(Error::Contents { chunk: chunk.number, what: "events", found, expected });
    }
    Ok(functions.end(machine, chunk.header.begin, found, chunk.state))
}

/// The chunks between the first that is not stitched and the last that a worker may take.
struct Window {
    chunks: usize,
    width: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The next chunk to be taken.
    taken: usize,
    /// The next chunk to be stitched.
    stitched: usize,
    done: BTreeMap<usize, Outcome>,
    stop: bool,
}

impl Window {
    fn new(chunks: usize, width: usize) -> Self {
        Self { chunks, width, state: Mutex::default(), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something is so.
    fn when(&self, so: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        let unwell = |state: &mut State| !so(state);
        self.changed.wait_while(self.lock(), unwell).unwrap_or_else(PoisonError::into_inner)
    }

    /// A chunk to work on; `None` when there is nothing left to do.
    fn take(&self) -> Option<usize> {
        let ready = |s: &State| s.stop || s.taken >= self.chunks || s.taken < s.stitched + self.width;
        let mut state = self.when(ready);
        if state.stop || state.taken >= self.chunks {
            return None;
        }
        state.taken += 1;
        Some(state.taken - 1)
    }

    fn put(&self, number: usize, outcome: Outcome) {
        self.lock().done.insert(number, outcome);
        self.changed.notify_all();
    }

    /// Waits for a chunk; `None` if it will not come.
    fn next(&self, number: usize) -> Option<Outcome> {
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

/// Lets nobody wait for a worker that panicked.
struct Leaving<'a>(&'a Window);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop();
        }
    }
}
