//! Whose turn it is of several CPUs, and which of them are halted.

use crate::board::Board;
use crate::cpus::{Cpus, Own};
use crate::recorder::Recorder;
use crate::regions::CpuSnapshot;
use crate::Failure;
use kerntune_layout::{FrontEnd, ModeCounts};
use kerntune_trace::{Event, ModeCounters};

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

    /// What each CPU has done, when all have executed `now` instructions; `rest` of those that the board of the one that
    /// executes has are still to come, of user code.
    pub(crate) fn cpu_snapshots<'a>(
        &'a self,
        boards: &'a [Board],
        now: u64,
        rest: u64,
    ) -> impl Iterator<Item = CpuSnapshot> + 'a {
        boards.iter().enumerate().map(move |(cpu, board)| {
            let is_current = cpu == self.cpus.current;
            let own = if is_current { &self.own } else { &self.cpus.others[cpu] };
            let misses = own.model.as_ref().map(FrontEnd::counts).unwrap_or_default();
            let counters = |instructions, misses: ModeCounts, taken_branches| ModeCounters {
                instructions,
                taken_branches,
                l1i_misses: misses.l1i_misses,
                itlb_misses: misses.itlb_misses,
            };
            let user = board.user.saturating_sub(if is_current { rest } else { 0 });
            CpuSnapshot {
                halted_ns: own.halted_until(now) + self.clock.idle_ns,
                kernel: counters(board.kernel, misses.kernel, own.taken[0]),
                user: counters(user, misses.user, own.taken[1]),
                second_level: own.model.as_ref().map(|model| model.second_level_counts().unwrap_or_default()),
            }
        })
    }
}
