//! Whose turn it is of several CPUs, and which of them are halted.

use crate::board::Board;
use crate::cpus::{Cpus, Own};
use crate::recorder::Recorder;
use crate::Failure;
use kerntune_trace::{CpuCounters, Event};

impl Recorder {
    /// Another CPU executes from here on. The boards are those of all CPUs, up to date.
    pub fn on_cpu(&mut self, cpu: usize, boards: &[Board]) -> Result<(), Failure> {
        let weights = self.weigh();
        let at = boards.iter().map(Board::total).sum::<u64>();
        self.own.thread = self.threads.running_index();
        let halts = self.own.halted.is_some();
        let Cpus { others, current, elsewhere, .. } = &mut self.cpus;
        std::mem::swap(&mut self.own, &mut others[*current]);
        std::mem::swap(&mut self.own, &mut others[cpu]);
        *current = cpu;
        *elsewhere = at - boards[cpu].total();
        self.threads.run(self.own.thread);
        if let Some(data) = &mut self.data {
            data.turn(cpu);
        }
        match self.recording {
            true => self.append(at, weights, Event::Cpu { cpu: cpu as u32, halts }),
            false => Ok(()),
        }
    }

    fn cpu(&mut self, cpu: usize) -> &mut Own {
        match cpu == self.cpus.current {
            true => &mut self.own,
            false => &mut self.cpus.others[cpu],
        }
    }

    /// A recording begins: what passed before is none of it.
    pub(crate) fn begin_counting(&mut self) {
        (0..self.cpus.count()).for_each(|cpu| {
            let own = self.cpu(cpu);
            own.weighed = own.weights();
        });
    }

    /// The CPU that executes halts after so many instructions of all. Whether none is left that does not.
    pub(crate) fn halts(&mut self, now: u64) -> bool {
        if self.own.halted.replace(now).is_none() {
            self.cpus.halted += 1;
        }
        self.cpus.halted == self.cpus.count()
    }

    /// The CPU that executes is not halted any more.
    #[inline]
    pub(crate) fn awake(&mut self, board: &Board) {
        if self.own.halted.is_some() {
            self.own.halted_for = self.own.halted_until(self.now(board, 0));
            self.own.halted = None;
            self.cpus.halted -= 1;
        }
    }

    /// What each of several CPUs has done, when all have executed `now` instructions; `rest` of those that the board of
    /// the one that executes has are still to come.
    pub(crate) fn cpu_counters(&self, boards: &[Board], now: u64, rest: u64) -> Vec<CpuCounters> {
        if boards.len() < 2 {
            return Vec::new();
        }
        let counters = boards.iter().enumerate().map(|(cpu, board)| {
            let is_current = cpu == self.cpus.current;
            let own = if is_current { &self.own } else { &self.cpus.others[cpu] };
            CpuCounters {
                kernel: board.kernel,
                user: board.user.saturating_sub(if is_current { rest } else { 0 }),
                halted_ns: own.halted_until(now) + self.clock.idle_ns,
            }
        });
        counters.collect()
    }

    /// The models of all CPUs, and their branches.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Own> {
        let current = self.cpus.current;
        let others = self.cpus.others.iter().enumerate().filter(move |(at, _)| *at != current);
        std::iter::once(&self.own).chain(others.map(|(_, own)| own))
    }
}
