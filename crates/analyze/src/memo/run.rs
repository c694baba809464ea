//! Learned runs and their effects.

use crate::accumulators::Accumulators;
use crate::events::{CallTimes, ReplayState, StackFrame, DEPTH_LIMIT, TIME_LIMIT};
use crate::functions::{FrameTimes, FunctionCollector};

/// Changes that a run makes. Times count from its beginning.
#[derive(Debug, Default)]
pub(super) struct RunEffect {
    pub events: u64,
    pub ns: u64,
    /// Maximum number of frames above those at the beginning.
    pub rise: usize,
    /// True if the CPU is in user mode afterwards.
    pub user: bool,
    /// Times of the frames that were open before: of those that end, from the top, and of the one
    /// that is on top afterwards.
    pub ended: Vec<CallTimes>,
    pub top: CallTimes,
    /// Frames that the run opened and did not end.
    pub opened: Vec<StackFrame<FrameTimes>>,
    /// Time with an empty stack, in user mode and otherwise.
    pub bare_user: u64,
    pub bare: u64,
    /// Self time of calls of user functions.
    pub user_functions: u64,
    /// Calls that began and ended within the run.
    pub calls: Box<[RepeatedCalls]>,
}

/// Calls of one path whose total times are in one bucket.
#[derive(Debug, Clone, Copy)]
pub(super) struct RepeatedCalls {
    pub node: u32,
    pub bucket: u32,
    pub count: u64,
    /// Sums over these calls.
    pub self_time: u64,
    pub total: u64,
}

/// A learned run.
pub(super) struct EventRun {
    /// With the event that cuts the run.
    pub bytes: Box<[u8]>,
    /// Length without that event, in bytes.
    pub length: usize,
    pub effect: RunEffect,
    /// Number of repetitions since the run was learned.
    times: u64,
}

impl EventRun {
    pub fn new(bytes: Box<[u8]>, length: usize, effect: RunEffect) -> Self {
        Self { bytes, length, effect, times: 0 }
    }

    /// Returns the memory that the run takes, in bytes.
    pub fn size(&self) -> usize {
        let RunEffect { calls, opened, ended, .. } = &self.effect;
        size_of::<Self>()
            + size_of_val(&*self.bytes)
            + size_of_val(&**calls)
            + size_of_val(opened.as_slice())
            + size_of_val(ended.as_slice())
    }

    /// Applies the run; returns `false` if a limit forbids it, which replaying its events will
    /// report.
    #[inline]
    pub fn repeat(
        &mut self,
        machine: &mut ReplayState<FrameTimes>,
        functions: &mut FunctionCollector<'_>,
    ) -> bool {
        let (effect, start) = (&self.effect, machine.now);
        let now = start + effect.ns;
        if now >= TIME_LIMIT || machine.stack.frames.len() + effect.rise > DEPTH_LIMIT {
            return false;
        }
        let add = |machine: &mut ReplayState<FrameTimes>, times: CallTimes| {
            if let Some(top) = machine.stack.frames.last_mut() {
                top.data.times += times;
            }
        };
        for &times in &effect.ended {
            add(machine, times);
            machine.end_top(functions);
        }
        add(machine, effect.top);
        machine.stack.frames.extend(effect.opened.iter().map(|frame| {
            let data = FrameTimes { begin: start + frame.data.begin, ..frame.data };
            StackFrame { data, ..*frame }
        }));
        let pending = &mut functions.pending[machine.running];
        pending.user.ns += effect.bare_user;
        pending.unattributed.ns += effect.bare;
        pending.account.user += effect.user_functions;
        (machine.now, machine.user) = (now, effect.user);
        self.times += 1;
        true
    }

    /// Adds the counts of all repetitions.
    pub fn settle(self, sums: &mut Accumulators) {
        let times = self.times;
        for &RepeatedCalls { node, bucket, count, self_time, total } in
            self.effect.calls.iter().filter(|_| times > 0)
        {
            let node = &mut sums.tree.nodes[node as usize];
            let (count, self_time) = (count * times, self_time.wrapping_mul(times));
            node.self_time = node.self_time.wrapping_add(self_time);
            node.calls += count;
            sums.accounts.repeat(node.account, bucket, count, self_time, total.saturating_mul(times));
        }
    }
}
