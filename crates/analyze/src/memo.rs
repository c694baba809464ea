//! Memoization of repeated event sequences.
//!
//! A kernel repeats itself. So events are cut into *runs*, from one anchor to the next; an anchor
//! is a point that can be recognized when it comes again. Within a run only the stack of one thread
//! changes. The run's changes of the accumulators follow from its bytes and its [`RunContext`]
//! (mode and tree node at its beginning); they are its [`RunEffect`]. A run that comes again is
//! compared byte by byte and counted; at the end each effect is multiplied by its count. Events
//! hold differences of time, so that equal bytes mean equal times.
//!
//! A run is learned when it comes for the second time, and only as long as learning pays: in a
//! trace without repetitions runs are hashed, nothing more. By then the run was replayed in full
//! once, and repetitions are later, so that extremes and first calls do not change. Memory is
//! bounded.

mod learn;
mod run;

use crate::accumulators::Accumulators;
use crate::events::{self, ReplayState, TraceBounds};
use crate::functions::{FrameTimes, FunctionCollector};
use crate::hash::{fold, BuildIntegerHasher};
use crate::trace_file::TraceChunk;
use crate::Error;
use kerntune_trace::{EnterKind, Event, EventDecoder, EventWeights};
use run::EventRun;
use std::collections::hash_map::{Entry, HashMap};

/// Minimum number of events of a run, unless an event cuts it.
const MIN_RUN_EVENTS: u64 = 64;
/// Number of events after which a run may end at a landmark, a point chosen by a hash of the bytes
/// before it.
const LANDMARK_RUN_EVENTS: u64 = 512;
/// Number of hashes of runs that came once.
const SEEN_SLOTS: usize = 1 << 13;
/// Maximum size of all learned runs together, in bytes.
const MAX_RUN_BYTES: usize = 8 << 20;
/// Cost of learning an event, in events that a hit saves.
const LEARNING_COST: i64 = 4;
/// Initial budget for learning, in saved events.
const INITIAL_CREDIT: i64 = 1 << 22;
/// After `PATIENCE` chunks with a low hit rate, only every `PAUSE`-th chunk is memoized.
const PATIENCE: u32 = 4;
const PAUSE: usize = 8;

/// Everything beside its bytes that determines a run's effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct RunContext {
    /// Node of the top frame, which determines the frames down to the last interrupt's; the
    /// thread's root if no frame is open.
    node: u32,
    user: bool,
}

impl RunContext {
    fn of(machine: &ReplayState<FrameTimes>, functions: &FunctionCollector<'_>) -> Self {
        let top = machine.stack.frames.last();
        let node = top.map_or_else(|| functions.root(machine), |top| top.data.place.node);
        Self { node, user: machine.user }
    }
}

/// The learned runs.
pub(crate) struct ReplayMemo {
    runs: Vec<EventRun>,
    /// First candidate for each context.
    first: HashMap<RunContext, u32, BuildIntegerHasher>,
    /// Next candidate, by run, position of the first difference, and byte there; the two runs agree
    /// before it.
    branches: HashMap<(u32, u32, u8), u32, BuildIntegerHasher>,
    /// Hashes of runs that came once.
    seen: Vec<u32>,
    /// Size of all runs, in bytes.
    size: usize,
    /// Remaining budget for learning, in events.
    credit: i64,
    /// Virtual time up to which all events were read.
    end: u64,
    /// Number of consecutive chunks with a low hit rate.
    fruitless: u32,
    /// Replay state for learning runs.
    scratch: ReplayState<FrameTimes>,
}

impl ReplayMemo {
    pub fn new(bounds: TraceBounds) -> Self {
        Self {
            runs: Vec::new(),
            first: HashMap::default(),
            branches: HashMap::default(),
            seen: vec![0; SEEN_SLOTS],
            size: 0,
            credit: INITIAL_CREDIT,
            end: 0,
            fruitless: 0,
            scratch: ReplayState::new(TraceBounds { threads: 0, ..bounds }),
        }
    }

    /// Like [`events::replay`], but leaves the counts of repeated runs to [`ReplayMemo::settle`].
    pub fn replay(
        &mut self,
        machine: &mut ReplayState<FrameTimes>,
        functions: &mut FunctionCollector<'_>,
        chunk: &TraceChunk<'_>,
    ) -> Result<u64, Error> {
        let tree = &functions.sums.tree;
        let (is_full, is_cut) = (tree.is_full(), tree.is_cut());
        // A tree that is about to be cut: nodes get other numbers, and some come to stand for
        // several paths.
        if is_full || chunk.header.begin < self.end {
            self.settle(&mut functions.sums);
        }
        let rests = self.fruitless > PATIENCE && chunk.number % PAUSE != 0;
        let events = if chunk.wide || is_full || is_cut || rests {
            events::replay(machine, functions, chunk)
        } else {
            self.replay_new(machine, functions, chunk)
        };
        self.end = machine.now;
        events
    }

    /// Replays a chunk, skipping known runs.
    fn replay_new(
        &mut self,
        machine: &mut ReplayState<FrameTimes>,
        functions: &mut FunctionCollector<'_>,
        chunk: &TraceChunk<'_>,
    ) -> Result<u64, Error> {
        machine.begin(functions, chunk)?;
        let mut decoder = chunk.decoder();
        let (mut events, mut known) = (0, 0);
        while decoder.position() < chunk.payload.len() {
            let rest = &chunk.payload[decoder.position()..];
            let context = RunContext::of(machine, functions);
            if let Some(run) = self.find(context, rest) {
                if run.repeat(machine, functions) {
                    decoder.skip(run.length);
                    known += run.effect.events;
                    continue;
                }
            }
            let start = decoder.position();
            let walk = walk(machine, functions, &mut decoder, chunk.payload)?;
            events += walk.events;
            if let Some(length) = walk.run {
                let bytes = &chunk.payload[start..decoder.position()];
                if self.was_seen(context, bytes) && self.credit > 0 {
                    self.credit -= LEARNING_COST * walk.events as i64;
                    self.learn(context, bytes, length, functions);
                }
            }
        }
        events += known;
        self.credit = self.credit.saturating_add_unsigned(known);
        self.fruitless = if known > events / 16 { 0 } else { self.fruitless + 1 };
        Ok(events)
    }

    /// Finds the known run with which `rest` begins.
    fn find(&mut self, context: RunContext, rest: &[u8]) -> Option<&mut EventRun> {
        let mut run = *self.first.get(&context)?;
        let mut at = 0;
        loop {
            let bytes = &self.runs[run as usize].bytes;
            at += common(&bytes[at..], &rest[at..]);
            if at == bytes.len() {
                return Some(&mut self.runs[run as usize]);
            }
            run = *self.branches.get(&(run, at as u32, *rest.get(at)?))?;
        }
    }

    /// Checks whether a run came before, and remembers it.
    fn was_seen(&mut self, context: RunContext, bytes: &[u8]) -> bool {
        let hash = hash(context, bytes);
        let (place, hash) = (&mut self.seen[hash as usize % SEEN_SLOTS], (hash >> 32) as u32);
        std::mem::replace(place, hash) == hash
    }

    fn learn(
        &mut self,
        context: RunContext,
        bytes: &[u8],
        length: usize,
        functions: &mut FunctionCollector<'_>,
    ) {
        let Some(effect) = learn::effect(&mut self.scratch, functions, context, &bytes[..length]) else {
            return;
        };
        let run = EventRun::new(bytes.into(), length, effect);
        if self.size + run.size() > MAX_RUN_BYTES {
            self.settle(&mut functions.sums);
        }
        let number = self.runs.len() as u32;
        let Some(&(mut other)) = self.first.get(&context) else {
            self.first.insert(context, number);
            return self.keep(run);
        };
        let mut at = 0;
        loop {
            let known = &self.runs[other as usize].bytes;
            at += common(&known[at..], &bytes[at..]);
            // A run that is a prefix of another one would never be found.
            let (Some(&byte), true) = (bytes.get(at), at < known.len()) else { return };
            match self.branches.entry((other, at as u32, byte)) {
                Entry::Occupied(next) => other = *next.get(),
                Entry::Vacant(free) => {
                    free.insert(number);
                    return self.keep(run);
                }
            }
        }
    }

    fn keep(&mut self, run: EventRun) {
        self.size += run.size();
        self.runs.push(run);
    }

    /// Adds the counts of all runs, and forgets the runs.
    pub fn settle(&mut self, sums: &mut Accumulators) {
        self.runs.drain(..).for_each(|run| run.settle(sums));
        self.first.clear();
        self.branches.clear();
        self.size = 0;
    }
}

/// Events that were replayed one by one.
struct WalkedRun {
    events: u64,
    /// Length of the run in bytes; `None` if the chunk ended within it. Bytes that were read beyond
    /// it are the event that cuts it.
    run: Option<usize>,
}

/// Replays events up to the next anchor.
#[inline(never)]
fn walk(
    machine: &mut ReplayState<FrameTimes>,
    functions: &mut FunctionCollector<'_>,
    decoder: &mut EventDecoder<'_>,
    payload: &[u8],
) -> Result<WalkedRun, Error> {
    let (start, interrupts) = (decoder.position(), machine.stack.interrupts);
    let mut events = 0;
    loop {
        let before = decoder.position();
        let Some((ns, event)) = machine.read(decoder)? else { return Ok(WalkedRun { events, run: None }) };
        machine.step(functions, ns, EventWeights::NONE, event)?;
        events += 1;
        let is_anchor = match event {
            Event::Enter { how: EnterKind::Call | EnterKind::Jump | EnterKind::Exception, .. } => continue,
            _ if machine.stack.interrupts != interrupts || cuts(event) => {
                return Ok(WalkedRun { events, run: (events > 1).then_some(before - start) });
            }
            _ if events < MIN_RUN_EVENTS => continue,
            Event::Exit => {
                let is_long = events >= LANDMARK_RUN_EVENTS && is_landmark(&payload[..decoder.position()]);
                is_long || machine.stack.frames.is_empty()
            }
            Event::Enter { .. } | Event::Leave => true,
            _ => false,
        };
        if is_anchor {
            return Ok(WalkedRun { events, run: Some(decoder.position() - start) });
        }
    }
}

/// Checks whether an event changes more than the running thread's stack.
fn cuts(event: Event) -> bool {
    !matches!(
        event,
        Event::Enter { .. }
            | Event::Exit
            | Event::Resume
            | Event::Leave
            | Event::Unwind { .. }
            | Event::Operation
    )
}

/// Checks whether a position is a landmark, by the bytes before it: about one in 32 is.
fn is_landmark(bytes: &[u8]) -> bool {
    bytes.last_chunk().is_some_and(|last| fold(u64::from_le_bytes(*last), 0) % 32 == 0)
}

const WORD: usize = 8;

/// Returns the length of the common prefix of two slices.
#[inline]
fn common(a: &[u8], b: &[u8]) -> usize {
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap_or_default());
    let mut same = 0;
    for (a, b) in a.chunks_exact(WORD).zip(b.chunks_exact(WORD)) {
        let difference = word(a) ^ word(b);
        if difference != 0 {
            return same + difference.trailing_zeros() as usize / 8;
        }
        same += WORD;
    }
    same + a[same..].iter().zip(&b[same..]).take_while(|(a, b)| a == b).count()
}

fn hash(context: RunContext, bytes: &[u8]) -> u64 {
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap_or_default());
    let step = |hash: u64, low, high| fold(hash ^ low, hash.rotate_left(32) ^ high);
    let start = fold(u64::from(context.node) << 1 | u64::from(context.user), bytes.len() as u64);
    let pairs = bytes.chunks_exact(2 * WORD);
    let mut last = [0; 2 * WORD];
    last[..pairs.remainder().len()].copy_from_slice(pairs.remainder());
    let (low, high) = last.split_at(WORD);
    let hash = pairs.fold(start, |hash, pair| step(hash, word(&pair[..WORD]), word(&pair[WORD..])));
    step(hash, word(low), word(high))
}

#[cfg(test)]
mod tests;
