//! A run and what it does.

use crate::accounts::Account;
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
    /// The calls that began and ended, by account and by node, there with net time and number.
    pub accounts: Vec<(u32, Account)>,
    pub nodes: Vec<(u32, u64, u64)>,
}

/// A run that was learned.
pub(super) struct Run {
    /// With those of the event that cuts it.
    pub bytes: Box<[u8]>,
    /// Those of the run.
    pub length: usize,
    pub effect: Effect,
    /// How often it was met, and virtual time at which the first of these began.
    times: u64,
    first: u64,
}

impl Run {
    pub fn new(bytes: Box<[u8]>, length: usize, effect: Effect) -> Self {
        Self { bytes, length, effect, times: 0, first: u64::MAX }
    }

    /// What it takes, in units of about 200 bytes.
    pub fn size(&self) -> usize {
        let Effect { accounts, nodes, opened, ended, .. } = &self.effect;
        1 + accounts.len() + nodes.len() + opened.len() + ended.len() + self.bytes.len() / 200
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
        self.first = self.first.min(start);
        true
    }

    /// Adds what all of its repetitions counted.
    pub fn settle(self, sums: &mut Accumulators) {
        if self.times == 0 {
            return;
        }
        for (number, account) in &self.effect.accounts {
            sums.accounts.repeat(*number, account, self.times, self.first);
        }
        for &(node, net, calls) in &self.effect.nodes {
            let node = &mut sums.tree.nodes[node as usize];
            node.net = node.net.wrapping_add(net.wrapping_mul(self.times));
            node.calls += calls * self.times;
        }
    }
}
