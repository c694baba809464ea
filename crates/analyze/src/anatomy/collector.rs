//! Follows the calls of a function through a trace.

use super::followed::{Different, Followed, Gate, FOLLOWED};
use super::model::{Figures, Part, Spreads, Sums};
use super::spread::{Gather, Place};
use super::tree::Tree;
use super::Request;
use crate::events::{self, Opening, Visitor};
use kerntune_trace::{Event, How, Weights};
use std::collections::BTreeMap;

type Machine = events::Machine<Open>;
type Frame = events::Frame<Open>;

/// Stands for no call of the operation.
const NONE: u32 = u32::MAX;
/// Stands for a call of the operation that is not followed: some of it was not seen, or another one is looked for.
const UNSEEN: u32 = u32::MAX - 1;

/// What is kept of an open call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Open {
    net: u64,
    /// Elapsed time of callees that ended.
    callees: u64,
    /// The call of the operation that it is part of, by its number among those that are followed; or [`NONE`], [`UNSEEN`].
    part: u32,
    /// Its entry there. Of a call that found no room in the tree, that of the one below it.
    entry: u32,
    /// 1 for the operation.
    depth: u32,
}

impl Default for Open {
    fn default() -> Self {
        Self { net: 0, callees: 0, part: NONE, entry: 0, depth: 0 }
    }
}

impl Open {
    fn is_followed(&self) -> bool {
        self.part < UNSEEN
    }
}

/// A call that was looked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    pub begin: u64,
    pub thread: u32,
    pub figures: Figures,
    pub gate: Option<Gate>,
}

/// Figures of calls, under construction.
#[derive(Debug, Default)]
pub(super) struct Gathers {
    pub ns: Gather,
    pub calls: Gather,
    pub functions: Gather,
    pub depth: Gather,
}

impl Gathers {
    fn add(&mut self, figures: &Figures, place: Place) {
        self.ns.add(figures.ns, place);
        self.calls.add(figures.calls, place);
        self.functions.add(figures.functions, place);
        self.depth.add(figures.depth, place);
    }

    pub fn spreads(&self) -> Spreads {
        Spreads {
            ns: self.ns.spread(),
            calls: self.calls.spread(),
            functions: self.functions.spread(),
            depth: self.depth.spread(),
        }
    }
}

/// What was found. Sums are by node of the tree.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub tree: Tree,
    pub sums: Vec<Sums>,
    pub all: Gathers,
    pub before: Gathers,
    pub after: Gather,
    /// The boundary's functions that were the first, and in how many calls.
    pub first: BTreeMap<u32, u64>,
    pub cut: u64,
    pub elsewhere: u64,
    pub crowded: u64,
    pub folded: u64,
    /// The call that was looked for.
    pub call: Option<Seen>,
}

pub(super) struct Collector<'a> {
    request: &'a Request<'a>,
    /// The one call that is looked for; all if none.
    only: Option<Place>,
    /// The chunk that was read last.
    previous: Option<usize>,
    /// Calls of the operation that began in this chunk.
    begun: u32,
    followed: Vec<Followed>,
    /// Those of them that have ended.
    free: Vec<u32>,
    different: Different,
    found: Found,
}

impl Visitor for Collector<'_> {
    type Frame = Open;

    fn begin(&mut self, machine: &mut Machine, opening: &Opening<'_>) {
        let follows = self.previous.is_some_and(|previous| previous + 1 == machine.chunk)
            && !machine.regions.is_empty()
            && (opening.begin, opening.running) == (machine.now, machine.running);
        self.previous = Some(machine.chunk);
        self.begun = 0;
        if follows && machine.is_as(opening) {
            return;
        }
        for (thread, stated) in opening.stacks.iter().enumerate() {
            let frames = &machine.stack_of(thread).frames;
            let ours = frames.iter().map(|frame| (frame.function, frame.how));
            let kept = ours.zip(*stated).take_while(|(ours, stated)| ours == *stated).count();
            self.lose(thread, machine);
            let operation = self.request.function.get();
            self.found.cut += outermost(operation, stated).filter(|at| *at >= kept).count() as u64;
        }
        machine.take(opening);
        for (thread, stated) in opening.stacks.iter().enumerate() {
            let frames = &mut machine.stack_of(thread).frames;
            for at in outermost(self.request.function.get(), stated) {
                let interrupt = |frame: &Frame| frame.how == How::Interrupt;
                let end =
                    frames[at + 1..].iter().position(interrupt).map_or(frames.len(), |end| at + 1 + end);
                frames[at..end].iter_mut().for_each(|frame| frame.data.part = UNSEEN);
            }
        }
    }

    #[inline]
    fn is_done(&self) -> bool {
        self.found.call.is_some()
    }

    #[inline]
    fn pass(&mut self, machine: &mut Machine, ns: u64, _: Weights, _: &Event) {
        if let Some(top) = machine.stack.frames.last_mut() {
            top.data.net += ns;
        }
    }

    #[inline]
    fn enter(&mut self, machine: &mut Machine, function: u32, how: How) -> Open {
        let below = machine.stack.frames.last().map_or(Open::default(), |frame| frame.data);
        match how {
            How::Interrupt => {}
            _ if below.is_followed() => return self.enter_within(machine, below, function, how),
            _ if below.part == UNSEEN => return Open { part: UNSEEN, ..Open::default() },
            _ => {}
        }
        match function == self.request.function.get() {
            true => self.begin_call(machine),
            false => Open::default(),
        }
    }

    #[inline]
    fn ended(&mut self, machine: &mut Machine, frame: Frame) {
        let open = frame.data;
        if !open.is_followed() {
            return;
        }
        let call = &mut self.followed[open.part as usize];
        call.entries[open.entry as usize].net += open.net;
        let total = open.net + open.callees;
        match machine.stack.frames.last_mut() {
            Some(below) if open.depth > 1 => below.data.callees += total,
            _ => self.end_call(machine, open.part, total),
        }
    }
}

impl<'a> Collector<'a> {
    /// Looks at all calls, or for one.
    pub fn new(request: &'a Request<'a>, only: Option<Place>, tree: Tree) -> Self {
        Self {
            request,
            only,
            previous: None,
            begun: 0,
            followed: Vec::new(),
            free: Vec::new(),
            different: Different::new(request.functions),
            found: Found { tree, ..Found::default() },
        }
    }

    /// What was found.
    pub fn finish(self) -> Found {
        self.found
    }

    /// The trace is over.
    pub fn lose_all(&mut self, machine: &mut Machine) {
        for thread in 0..=machine.nobody() {
            self.lose(thread, machine);
        }
    }

    /// Nothing more is known of a thread's frames.
    fn lose(&mut self, thread: usize, machine: &mut Machine) {
        for frame in &machine.stack_of(thread).frames {
            if frame.data.is_followed() && frame.data.depth == 1 {
                self.found.cut += 1;
                self.free.push(frame.data.part);
            }
        }
    }

    #[inline(never)]
    fn begin_call(&mut self, machine: &Machine) -> Open {
        let place = Place { chunk: machine.chunk as u32, nth: self.begun };
        self.begun = self.begun.saturating_add(1);
        let unseen = Open { part: UNSEEN, ..Open::default() };
        if self.only.is_some_and(|only| only != place) {
            return unseen;
        }
        let part = match self.free.pop() {
            Some(part) => part,
            None if self.followed.len() >= FOLLOWED => {
                self.found.crowded += 1;
                return unseen;
            }
            None => {
                self.followed.push(Followed::default());
                self.followed.len() as u32 - 1
            }
        };
        self.followed[part as usize].begin(place, machine.now, machine.running as u32);
        Open { part, depth: 1, ..Open::default() }
    }

    /// A function begins within a call of the operation.
    #[inline]
    fn enter_within(&mut self, machine: &Machine, below: Open, function: u32, how: How) -> Open {
        if self.request.until.get(function as usize).is_some_and(|until| *until) {
            self.reach(machine, below, function);
        }
        let call = &mut self.followed[below.part as usize];
        let depth = below.depth + 1;
        call.calls += 1;
        call.depth = call.depth.max(depth.into());
        let node = call.entries[below.entry as usize].node;
        let entry = match self.found.tree.enter(node, function, how) {
            Some(node) => {
                let entry = call.entry(node);
                call.entries[entry as usize].calls += 1;
                entry
            }
            None => {
                call.folded += 1;
                below.entry
            }
        };
        Open { part: below.part, entry, depth, ..Open::default() }
    }

    /// A function of the boundary is about to begin within a call.
    #[inline(never)]
    fn reach(&mut self, machine: &Machine, below: Open, function: u32) {
        let call = &mut self.followed[below.part as usize];
        if call.gate.is_some() {
            return;
        }
        for entry in &mut call.entries {
            (entry.calls_before, entry.net_before) = (entry.calls, entry.net);
        }
        let mut ns = 0;
        for frame in machine.stack.frames.iter().rev() {
            let open = frame.data;
            call.entries[open.entry as usize].net_before += open.net;
            ns += open.net + open.callees;
            if open.depth == 1 {
                break;
            }
        }
        let functions = self.different.count(&self.found.tree, &call.entries);
        let figures = Figures { ns, calls: call.calls, functions, depth: call.depth };
        call.gate = Some(Gate { function, node: call.entries[below.entry as usize].node, figures });
    }

    /// A call of the operation has ended.
    #[inline(never)]
    fn end_call(&mut self, machine: &Machine, part: u32, ns: u64) {
        self.free.push(part);
        let call = &self.followed[part as usize];
        let counts = |region: &u32| self.request.regions.get(*region as usize).is_some_and(|counts| *counts);
        if !machine.regions.last().is_some_and(counts) {
            self.found.elsewhere += 1;
            return;
        }
        let found = &mut self.found;
        let functions = self.different.count(&found.tree, &call.entries);
        let figures = Figures { ns, calls: call.calls, functions, depth: call.depth };
        found.sums.resize(found.tree.nodes.len(), Sums::default());
        for (order, entry) in (0..).zip(&call.entries) {
            let sums = &mut found.sums[entry.node as usize];
            sums.operations += 1;
            sums.order = order;
            add(&mut sums.whole, entry.calls, entry.net);
            add(&mut sums.before, entry.calls_before, entry.net_before);
        }
        found.folded += call.folded;
        found.all.add(&figures, call.place);
        if let Some(gate) = &call.gate {
            found.before.add(&gate.figures, call.place);
            found.after.add(ns - gate.figures.ns, call.place);
            *found.first.entry(gate.function).or_default() += 1;
        }
        if self.only.is_some() {
            found.call = Some(Seen { begin: call.begin, thread: call.thread, figures, gate: call.gate });
        }
    }
}

fn add(part: &mut Part, calls: u64, net: u64) {
    part.calls += calls;
    part.net_ns += net;
}

/// The places of the operation's calls on a stack that are not within another one: an interrupt is within none.
fn outermost(operation: u32, frames: &[(u32, How)]) -> impl Iterator<Item = usize> + '_ {
    let mut within = false;
    frames.iter().enumerate().filter_map(move |(at, &(function, how))| {
        within &= how != How::Interrupt;
        let begins = !within && function == operation;
        within |= begins;
        begins.then_some(at)
    })
}
