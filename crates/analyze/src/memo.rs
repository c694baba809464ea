//! What repeats is analysed once.
//!
//! A kernel does the same over and over. So events are cut into *runs*, each from one anchor to the next, an
//! anchor being a place that comes again. Within a run nothing but one thread's stack changes. What it does
//! to the accumulators follows from its bytes and its [`Context`], where in the tree it begins: that is
//! its [`Effect`]. A run that is met again is compared, byte by byte, and counted; effects are multiplied
//! by these counts at the end. Events hold differences of time, so that equal bytes are equal times.
//!
//! A run is learned when it is met for the second time, and only as long as learning pays: of a trace that never
//! repeats runs are hashed, nothing more. As it was read by then, and all that is to come is later, extremes and
//! firsts stay what they are. What is kept is bounded.

mod learn;
mod run;

use crate::accumulators::Accumulators;
use crate::events::{self, Bounds, Machine};
use crate::functions::{Functions, Open};
use crate::hash::{fold, Mixed};
use crate::trace_file::Chunk;
use crate::Error;
use kerntune_trace::{Decoder, Event, How, Weights};
use run::Run;
use std::collections::hash_map::{Entry, HashMap};

/// Events of a run at least, unless something cuts it.
const SHORT: u64 = 64;
/// Events of a run after which any place will do for an anchor that the bytes alone tell.
const LONG: u64 = 512;
/// Runs that were met once are remembered by so many hashes.
const SEEN: usize = 1 << 13;
/// Bytes of all runs together.
const KEPT: usize = 8 << 20;
/// Learning an event takes as long as counting so many.
const COST: i64 = 4;
/// Events whose counting may be spent on learning before anything has repeated.
const CREDIT: i64 = 1 << 22;
/// After so many chunks in which hardly anything was known, one in so many is looked at.
const PATIENCE: u32 = 4;
const PAUSE: usize = 8;

/// All that a run's effect depends on, beside its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Context {
    /// The node of the frame on top, which stands for all frames down to the last interrupt's; the root of the
    /// thread if nothing is open.
    node: u32,
    user: bool,
}

impl Context {
    fn of(machine: &Machine<Open>, functions: &Functions<'_>) -> Self {
        let top = machine.stack.frames.last();
        let node = top.map_or_else(|| functions.root(machine), |top| top.data.place.node);
        Self { node, user: machine.user }
    }
}

/// The runs that are known.
pub(crate) struct Memo {
    runs: Vec<Run>,
    /// The run of a context to compare with first.
    first: HashMap<Context, u32, Mixed>,
    /// Where a run's bytes at a place are another one, the run to go on with: they agree up to there.
    branches: HashMap<(u32, u32, u8), u32, Mixed>,
    /// Hashes of runs that were met once.
    seen: Vec<u32>,
    /// Of all runs.
    size: usize,
    /// Events that learning may still cost.
    credit: i64,
    /// Virtual time up to which everything was read.
    end: u64,
    /// Chunks in a row in which hardly anything was known.
    fruitless: u32,
    /// Goes through runs that are learned.
    scratch: Machine<Open>,
}

impl Memo {
    pub fn new(bounds: Bounds) -> Self {
        Self {
            runs: Vec::new(),
            first: HashMap::default(),
            branches: HashMap::default(),
            seen: vec![0; SEEN],
            size: 0,
            credit: CREDIT,
            end: 0,
            fruitless: 0,
            scratch: Machine::new(Bounds { threads: 0, ..bounds }),
        }
    }

    /// Does what [`events::replay`] does, but for what [`Memo::settle`] adds.
    pub fn replay(
        &mut self,
        machine: &mut Machine<Open>,
        functions: &mut Functions<'_>,
        chunk: &Chunk<'_>,
    ) -> Result<u64, Error> {
        let tree = &functions.sums.tree;
        let (is_full, is_cut) = (tree.is_full(), tree.is_cut());
        // A tree that is about to be cut: nodes get other numbers, and some stand for several paths.
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

    /// Reads what is not known.
    fn replay_new(
        &mut self,
        machine: &mut Machine<Open>,
        functions: &mut Functions<'_>,
        chunk: &Chunk<'_>,
    ) -> Result<u64, Error> {
        machine.begin(functions, chunk)?;
        let mut decoder = chunk.decoder();
        let (mut events, mut known) = (0, 0);
        while decoder.position() < chunk.payload.len() {
            let rest = &chunk.payload[decoder.position()..];
            let context = Context::of(machine, functions);
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
                    self.credit -= COST * walk.events as i64;
                    self.learn(context, bytes, length, functions);
                }
            }
        }
        events += known;
        self.credit = self.credit.saturating_add_unsigned(known);
        self.fruitless = if known > events / 16 { 0 } else { self.fruitless + 1 };
        Ok(events)
    }

    /// The run that comes next, if it is known.
    fn find(&mut self, context: Context, rest: &[u8]) -> Option<&mut Run> {
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

    /// Whether a run was met before; from now on it was.
    fn was_seen(&mut self, context: Context, bytes: &[u8]) -> bool {
        let hash = hash(context, bytes);
        let (place, hash) = (&mut self.seen[hash as usize % SEEN], (hash >> 32) as u32);
        std::mem::replace(place, hash) == hash
    }

    fn learn(&mut self, context: Context, bytes: &[u8], length: usize, functions: &mut Functions<'_>) {
        let Some(effect) = learn::effect(&mut self.scratch, functions, context, &bytes[..length]) else {
            return;
        };
        let run = Run::new(bytes.into(), length, effect);
        if self.size + run.size() > KEPT {
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
            // One that is the beginning of another would never be found.
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

    fn keep(&mut self, run: Run) {
        self.size += run.size();
        self.runs.push(run);
    }

    /// Adds what was counted, and forgets all runs.
    pub fn settle(&mut self, sums: &mut Accumulators) {
        self.runs.drain(..).for_each(|run| run.settle(sums));
        self.first.clear();
        self.branches.clear();
        self.size = 0;
    }
}

/// What was read one by one.
struct Walk {
    events: u64,
    /// Bytes of the run that was read, unless the chunk ended in it. What was read beyond is the event that cut it.
    run: Option<usize>,
}

/// Reads events to the next anchor.
#[inline(never)]
fn walk(
    machine: &mut Machine<Open>,
    functions: &mut Functions<'_>,
    decoder: &mut Decoder<'_>,
    payload: &[u8],
) -> Result<Walk, Error> {
    let (start, interrupts) = (decoder.position(), machine.stack.interrupts);
    let mut events = 0;
    loop {
        let before = decoder.position();
        let Some((ns, event)) = machine.read(decoder)? else { return Ok(Walk { events, run: None }) };
        machine.step(functions, ns, Weights::NONE, event)?;
        events += 1;
        let is_anchor = match event {
            Event::Enter { how: How::Call | How::Jump | How::Exception, .. } => continue,
            _ if machine.stack.interrupts != interrupts || cuts(event) => {
                return Ok(Walk { events, run: (events > 1).then_some(before - start) });
            }
            _ if events < SHORT => continue,
            Event::Exit => {
                let is_long = events >= LONG && is_landmark(&payload[..decoder.position()]);
                is_long || machine.stack.frames.is_empty()
            }
            Event::Enter { .. } | Event::Leave => true,
            _ => false,
        };
        if is_anchor {
            return Ok(Walk { events, run: Some(decoder.position() - start) });
        }
    }
}

/// Whether an event does more than change the stack of the thread that runs.
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

/// Whether a place is an anchor for what stands before it: about one in 32.
fn is_landmark(bytes: &[u8]) -> bool {
    bytes.last_chunk().is_some_and(|last| fold(u64::from_le_bytes(*last), 0) % 32 == 0)
}

/// Bytes of a word.
const WORD: usize = 8;

/// How many bytes two slices have in common at their beginning.
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

fn hash(context: Context, bytes: &[u8]) -> u64 {
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
