//! Finding out what a run does.

use super::run::{Calls, Effect};
use super::Context;
use crate::accounts::NO_CALLER;
use crate::accumulators::Accumulators;
use crate::events::{Frame, Machine, Visitor};
use crate::functions::{Functions, Open};
use crate::hash::Mixed;
use crate::tree::{what, Place};
use kerntune_profile::{bucket_of, Nanoseconds};
use kerntune_trace::{Decoder, Event, How, Weights};
use std::collections::HashMap;

/// What the run of `bytes` does that begins in a context; `None` if more than that decides it.
pub(super) fn effect(
    machine: &mut Machine<Open>,
    functions: &mut Functions<'_>,
    context: Context,
    bytes: &[u8],
) -> Option<Effect> {
    let sums = &mut functions.sums;
    let root = carried(&mut machine.stack.frames, sums, context.node)?;
    let before = machine.stack.frames.len();
    machine.stack.interrupts = before as u32; // as many as there can be
    (machine.now, machine.user) = (0, context.user);
    let idle = functions.known.is_idle_root(sums.tree.nodes[root as usize].function);
    let mut learner = Learner {
        sums,
        root,
        idle,
        effect: Effect::default(),
        calls: HashMap::default(),
        deepest: before,
        is_alone: true,
    };
    let mut decoder = Decoder::new(bytes);
    while let Ok(Some((ns, event))) = decoder.next() {
        machine.step(&mut learner, ns, Weights::NONE, event).ok()?;
        learner.effect.events += 1;
    }
    let Learner { mut effect, calls, deepest, is_alone: true, .. } = learner else {
        return None;
    };
    let left = before - effect.ended.len();
    let (carried, opened) = machine.stack.frames.split_at(left);
    effect.top = carried.last().map_or((0, 0), |top| (top.data.net, top.data.callees));
    effect.opened = opened.to_vec();
    (effect.ns, effect.user, effect.rise) = (machine.now, machine.user, deepest - before);
    effect.calls = calls.into_values().collect();
    Some(effect)
}

/// Makes `frames` those that a node stands for, and returns its root.
fn carried(frames: &mut Vec<Frame<Open>>, sums: &Accumulators, node: u32) -> Option<u32> {
    frames.clear();
    let mut at = node;
    loop {
        let found = &sums.tree.nodes[at as usize];
        if found.what == what::ROOT {
            break;
        }
        let place = Place { node: at, account: found.account, folded: false };
        let data = Open { place, ..Open::default() };
        frames.push(Frame { function: found.function, how: found.how()?, data });
        at = found.parent;
    }
    frames.reverse();
    Some(at)
}

struct Learner<'a> {
    sums: &'a mut Accumulators,
    root: u32,
    /// Whether the thread is an idle task.
    idle: bool,
    effect: Effect,
    /// By node and bucket.
    calls: HashMap<(u32, u32), Calls, Mixed>,
    deepest: usize,
    /// Whether nothing happened but to the stack.
    is_alone: bool,
}

impl Visitor for Learner<'_> {
    type Frame = Open;

    fn pass(&mut self, machine: &mut Machine<Open>, ns: u64, _: Weights, _: &Event) {
        match machine.stack.frames.last_mut() {
            Some(top) => top.data.net += ns,
            None if machine.user && !self.idle => self.effect.bare_user += ns,
            None => self.effect.bare += ns,
        }
    }

    fn enter(&mut self, machine: &mut Machine<Open>, function: u32, how: How) -> Open {
        let Accumulators { tree, accounts, .. } = &mut *self.sums;
        let top = machine.stack.frames.last();
        let (node, caller) = top.map_or((self.root, NO_CALLER), |top| (top.data.place.node, top.function));
        self.is_alone &= how != How::Interrupt;
        self.deepest = self.deepest.max(machine.stack.frames.len() + 1);
        Open::new(tree.enter(accounts, node, caller, function, how), machine.now)
    }

    fn ended(&mut self, machine: &mut Machine<Open>, frame: Frame<Open>) {
        let Open { carried, place: Place { node, .. }, net, callees, .. } = frame.data;
        self.is_alone &= frame.how != How::Interrupt;
        if carried {
            self.effect.ended.push((net, callees));
            return;
        }
        let elapsed = net + callees;
        if let Some(below) = machine.stack.frames.last_mut() {
            below.data.callees += elapsed;
        }
        let bucket = bucket_of(Nanoseconds(elapsed));
        let none = Calls { node, bucket, count: 0, net: 0, elapsed: 0 };
        let calls = self.calls.entry((node, bucket)).or_insert(none);
        calls.count += 1;
        calls.net += net;
        calls.elapsed = calls.elapsed.saturating_add(elapsed);
        if machine.bounds.is_user(frame.function) {
            self.effect.user_functions += net;
        }
    }

    fn unmatched_exit(&mut self) {
        self.is_alone = false;
    }
}
