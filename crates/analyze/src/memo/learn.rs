//! Learning: finds the effect of a run.

use super::run::{RepeatedCalls, RunEffect};
use super::RunContext;
use crate::accounts::NO_CALLER;
use crate::accumulators::Accumulators;
use crate::events::{credit_caller, CallTimes, EventVisitor, ReplayState, StackFrame};
use crate::functions::{FrameTimes, FunctionCollector};
use crate::hash::BuildIntegerHasher;
use crate::tree::{node_kind, CallLocation};
use kerntune_profile::{bucket_of, Ticks};
use kerntune_trace::{EnterKind, Event, EventDecoder, EventWeights};
use std::collections::HashMap;

/// Returns the effect of the run `bytes` in a context; `None` if it depends on more than that.
pub(super) fn effect(
    machine: &mut ReplayState<FrameTimes>,
    functions: &mut FunctionCollector<'_>,
    context: RunContext,
    bytes: &[u8],
) -> Option<RunEffect> {
    let sums = &mut functions.sums;
    let root = inherited(&mut machine.stack.frames, sums, context.node)?;
    let before = machine.stack.frames.len();
    machine.stack.interrupts = before as u32; // an upper bound
    (machine.now, machine.user) = (0, context.user);
    let idle = functions.known.is_idle_root(sums.tree.nodes[root as usize].function);
    let mut learner = RunLearner {
        sums,
        root,
        idle,
        effect: RunEffect::default(),
        calls: HashMap::default(),
        deepest: before,
        is_alone: true,
    };
    let mut decoder = EventDecoder::new(bytes);
    while let Ok(Some((ns, event))) = decoder.next() {
        machine.step(&mut learner, ns, EventWeights::NONE, event).ok()?;
        learner.effect.events += 1;
    }
    let RunLearner { mut effect, calls, deepest, is_alone: true, .. } = learner else {
        return None;
    };
    let left = before - effect.ended.len();
    let (inherited, opened) = machine.stack.frames.split_at(left);
    effect.top = inherited.last().map_or(CallTimes::default(), |top| top.data.times);
    effect.opened = opened.to_vec();
    (effect.ns, effect.user, effect.rise) = (machine.now, machine.user, deepest - before);
    effect.calls = calls.into_values().collect();
    Some(effect)
}

/// Fills `frames` with the path of a node, and returns the node's root.
fn inherited(frames: &mut Vec<StackFrame<FrameTimes>>, sums: &Accumulators, node: u32) -> Option<u32> {
    frames.clear();
    let mut at = node;
    loop {
        let found = &sums.tree.nodes[at as usize];
        if found.kind == node_kind::ROOT {
            break;
        }
        let place = CallLocation { node: at, account: found.account, folded: false };
        let data = FrameTimes { place, ..FrameTimes::default() };
        frames.push(StackFrame { function: found.function, how: found.how()?, data });
        at = found.parent;
    }
    frames.reverse();
    Some(at)
}

struct RunLearner<'a> {
    sums: &'a mut Accumulators,
    root: u32,
    /// True if the thread is an idle task.
    idle: bool,
    effect: RunEffect,
    /// Key: node and bucket.
    calls: HashMap<(u32, u32), RepeatedCalls, BuildIntegerHasher>,
    deepest: usize,
    /// True if only the stack changed.
    is_alone: bool,
}

impl EventVisitor for RunLearner<'_> {
    type PerFrame = FrameTimes;

    fn pass(&mut self, machine: &mut ReplayState<FrameTimes>, ns: u64, _: EventWeights, _: &Event) {
        if machine.charge(ns).is_none() {
            match machine.user && !self.idle {
                true => self.effect.bare_user += ns,
                false => self.effect.bare += ns,
            }
        }
    }

    fn enter(&mut self, machine: &mut ReplayState<FrameTimes>, function: u32, how: EnterKind) -> FrameTimes {
        let Accumulators { tree, accounts, .. } = &mut *self.sums;
        let top = machine.stack.frames.last();
        let (node, caller) = top.map_or((self.root, NO_CALLER), |top| (top.data.place.node, top.function));
        self.is_alone &= how != EnterKind::Interrupt;
        self.deepest = self.deepest.max(machine.stack.frames.len() + 1);
        FrameTimes::new(tree.enter(accounts, node, caller, function, how), machine.now)
    }

    fn ended(&mut self, machine: &mut ReplayState<FrameTimes>, frame: StackFrame<FrameTimes>) {
        let FrameTimes { inherited, place: CallLocation { node, .. }, times, .. } = frame.data;
        self.is_alone &= frame.how != EnterKind::Interrupt;
        if inherited {
            self.effect.ended.push(times);
            return;
        }
        let (self_time, total) = (times.self_ticks, credit_caller(&mut machine.stack.frames, frame));
        let bucket = bucket_of(Ticks(total));
        let none = RepeatedCalls { node, bucket, count: 0, self_time: 0, total: 0 };
        let calls = self.calls.entry((node, bucket)).or_insert(none);
        calls.count += 1;
        calls.self_time += self_time;
        calls.total = calls.total.saturating_add(total);
        if machine.bounds.is_user(frame.function) {
            self.effect.user_functions += self_time;
        }
    }

    fn unmatched_exit(&mut self) {
        self.is_alone = false;
    }
}
