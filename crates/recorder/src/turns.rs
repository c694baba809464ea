//! Turns of several CPUs, and their halts.

use crate::cpus::{CpuStates, PerCpuState};
use crate::inline_counters::InlineCounters;
use crate::recorder::Recorder;
use crate::regions::CpuSnapshot;
use crate::Failure;
use kerntune_layout::{FrontEnd, ModeCounts};
use kerntune_trace::{Event, ModeCounters};

impl Recorder {
    /// Switches to another CPU. `boards` are the current counters of all CPUs.
    pub fn on_cpu(&mut self, cpu: usize, boards: &[InlineCounters]) -> Result<(), Failure> {
        let weights = self.weigh();
        let at = boards.iter().map(InlineCounters::total).sum::<u64>();
        self.cpu_state.thread = self.threads.running_index();
        let halts = self.cpu_state.halted.is_some();
        let CpuStates { others, current, elsewhere, .. } = &mut self.cpus;
        std::mem::swap(&mut self.cpu_state, &mut others[*current]);
        std::mem::swap(&mut self.cpu_state, &mut others[cpu]);
        *current = cpu;
        *elsewhere = at - boards[cpu].total();
        self.threads.run(self.cpu_state.thread);
        if let Some(data) = &mut self.data {
            data.turn(cpu);
        }
        match self.recording {
            true => self.append(at, weights, Event::Cpu { cpu: cpu as u32, halts }),
            false => Ok(()),
        }
    }

    fn cpu(&mut self, cpu: usize) -> &mut PerCpuState {
        match cpu == self.cpus.current {
            true => &mut self.cpu_state,
            false => &mut self.cpus.others[cpu],
        }
    }

    /// Prepares the begin of a recording, which excludes earlier branches and misses.
    pub(crate) fn begin_counting(&mut self) {
        (0..self.cpus.count()).for_each(|cpu| {
            let state = self.cpu(cpu);
            state.weighed = state.weights();
        });
    }

    /// Halts the executing CPU at instruction count `now`. Returns true if all CPUs are halted.
    pub(crate) fn halt_cpu(&mut self, now: u64) -> bool {
        if self.cpu_state.halted.replace(now).is_none() {
            self.cpus.halted += 1;
        }
        self.cpus.halted == self.cpus.count()
    }

    /// Wakes the executing CPU if it is halted.
    #[inline]
    pub(crate) fn wake_cpu(&mut self, board: &InlineCounters) {
        if self.cpu_state.halted.is_some() {
            self.cpu_state.halted_for = self.cpu_state.halted_until(self.now(board, 0));
            self.cpu_state.halted = None;
            self.cpus.halted -= 1;
        }
    }

    /// Returns each CPU's counters at instruction count `now`. The executing CPU's user counter
    /// includes `rest` instructions that are still to come.
    pub(crate) fn cpu_snapshots<'a>(
        &'a self,
        boards: &'a [InlineCounters],
        now: u64,
        rest: u64,
    ) -> impl Iterator<Item = CpuSnapshot> + 'a {
        boards.iter().enumerate().map(move |(cpu, board)| {
            let is_current = cpu == self.cpus.current;
            let state = if is_current { &self.cpu_state } else { &self.cpus.others[cpu] };
            let misses = state.model.as_ref().map(FrontEnd::counts).unwrap_or_default();
            let counters = |instructions, misses: ModeCounts, taken_branches| ModeCounters {
                instructions,
                taken_branches,
                l1i_misses: misses.l1i_misses,
                itlb_misses: misses.itlb_misses,
            };
            let user = board.user.saturating_sub(if is_current { rest } else { 0 });
            CpuSnapshot {
                halted_ns: state.halted_until(now) + self.clock.idle_ns,
                kernel: counters(board.kernel, misses.kernel, state.taken[0]),
                user: counters(user, misses.user, state.taken[1]),
                second_level: state
                    .model
                    .as_ref()
                    .map(|model| model.second_level_counts().unwrap_or_default()),
            }
        })
    }
}
