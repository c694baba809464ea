//! A run and what it does.

use crate::accumulators::Accumulators;
use crate::events::{Frame, Machine, DEPTH_LIMIT, TIME_LIMIT};
use crate::functions::{Functions, Open};

/// Net time, and elapsed time of callees that ended.
pub(super) type Times = (u64, u64);

/// What a run does. Times count from its beginning.
#[derive(Debug, Default)]
pub(super) struct Effect {
    pub events: u64,
    pub ns: u64,
    /// Frames above those at its beginning, at most.
    pub rise: usize,
    /// Whether the CPU is in user mode afterwards.
    pub user: bool,
    /// What the frames get that were open before: those that end, from the top, and the one that is on top then.
    pub ended: Vec<Times>,
    pub top: Times,
    /// The frames that are open afterwards.
    pub opened: Vec<Frame<Open>>,
    /// Time with an empty stack, in user mode and otherwise.
    pub bare_user: u64,
    pub bare: u64,
    /// Net time of calls of user functions.
    pub user_functions: u64,
    /// The calls that began and ended.
    pub calls: Box<[Calls]>,
}

/// Calls of one path whose elapsed times are in one bucket.
#[derive(Debug, Clone, Copy)]
pub(super) struct Calls {
    pub node: u32,
    pub bucket: u32,
    pub count: u64,
    /// All of them together.
    pub net: u64,
    pub elapsed: u64,
}

/// A run that was learned.
pub(super) struct Run {
    /// With those of the event that cuts it.
    pub bytes: Box<[u8]>,
    /// Those of the run.
    pub length: usize,
    pub effect: Effect,
    /// How often it was met since it was learned.
    times: u64,
}

impl Run {
    pub fn new(bytes: Box<[u8]>, length: usize, effect: Effect) -> Self {
        Self { bytes, length, effect, times: 0 }
    }

    /// Bytes that it takes.
    pub fn size(&self) -> usize {
        let Effect { calls, opened, ended, .. } = &self.effect;
        size_of::<Self>()
            + size_of_val(&*self.bytes)
            + size_of_val(&**calls)
            + size_of_val(opened.as_slice())
            + size_of_val(ended.as_slice())
    }

    /// It happens; false if something forbids it, which reading its events finds out.
    #[inline]
    pub fn repeat(&mut self, machine: &mut Machine<Open>, functions: &mut Functions<'_>) -> bool {
        let (effect, start) = (&self.effect, machine.now);
        let now = start + effect.ns;
        if now >= TIME_LIMIT || machine.stack.frames.len() + effect.rise > DEPTH_LIMIT {
            return false;
        }
        let add = |machine: &mut Machine<Open>, (net, callees): Times| {
            if let Some(top) = machine.stack.frames.last_mut() {
                top.data.net += net;
                top.data.callees += callees;
            }
        };
        for &times in &effect.ended {
            add(machine, times);
            machine.end_top(functions);
        }
        add(machine, effect.top);
        machine.stack.frames.extend(effect.opened.iter().map(|frame| {
            let data = Open { begin: start + frame.data.begin, ..frame.data };
            Frame { data, ..*frame }
        }));
        let pending = &mut functions.pending[machine.running];
        pending.user.ns += effect.bare_user;
        pending.unattributed.ns += effect.bare;
        pending.account.user += effect.user_functions;
        (machine.now, machine.user) = (now, effect.user);
        self.times += 1;
        true
    }

    /// Adds what all of its repetitions counted.
    pub fn settle(self, sums: &mut Accumulators) {
        let times = self.times;
        for &Calls { node, bucket, count, net, elapsed } in self.effect.calls.iter().filter(|_| times > 0) {
            let node = &mut sums.tree.nodes[node as usize];
            let (count, net) = (count * times, net.wrapping_mul(times));
            node.net = node.net.wrapping_add(net);
            node.calls += count;
            sums.accounts.repeat(node.account, bucket, count, net, elapsed.saturating_mul(times));
        }
    }
}
