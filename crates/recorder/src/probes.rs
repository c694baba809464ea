//! Probes: functions whose arguments are read.
//!
//! They show how CPUs affect each other (wakeups, migrations, interprocessor interrupts, contended
//! locks), and requests to block devices and network packets.

use crate::inline_counters::InlineCounters;
use crate::io::read_u64;
use crate::recorder::Recorder;
use crate::threads::{LockWait, ScheduleState};
use crate::Failure;
use kerntune_isa::{GuestIsa, Isa, StoppedCpu};
use kerntune_trace::{EnterKind, Event, ProbeKind, Waker};

/// Thread state (include/linux/sched.h) of a new task. A runnable thread has none of these states.
const NEW: u32 = 0x800;
/// Thread state of a task that is being woken, and may not have left its CPU yet.
const WAKING: u32 = 0x200;

impl Recorder {
    /// Handles the beginning of a function with a probe, after its entry.
    pub fn on_probe(
        &mut self,
        board: &InlineCounters,
        function: u32,
        rest: u64,
        cpu: &mut dyn StoppedCpu,
    ) -> Result<(), Failure> {
        let Some(probe) = self.planner.functions.probe(function) else { return Ok(()) };
        let [first, second] = GuestIsa::ARGUMENTS.map(|register| cpu.register(register));
        match probe {
            ProbeKind::Wake => self.on_wake(board, function, (first, second as u32), rest, cpu),
            ProbeKind::Place => self.on_place(board, (first, second as u32), rest, cpu),
            ProbeKind::Signal => self.emit(board, rest, Event::Signal { cpu: first as u32 }),
            ProbeKind::SignalAll => {
                // One word covers more CPUs than a recording can have.
                let mut mask = [0; 8];
                if !cpu.read(first, &mut mask) {
                    return Ok(());
                }
                let mask = u64::from_le_bytes(mask);
                let wanted = (0..self.cpus.count() as u32).filter(|cpu| mask >> cpu & 1 == 1);
                wanted.into_iter().try_for_each(|cpu| self.emit(board, rest, Event::Signal { cpu }))
            }
            ProbeKind::Lock => {
                let since = self.clock.at(self.now(board, rest));
                let stack = self.threads.running();
                // An untraced function has no frame whose end could be seen.
                let depth = stack.frames.len().checked_sub(1);
                let is_open = stack.frames.last().is_some_and(|&(top, _)| top == function);
                if let Some(depth) = depth.filter(|_| is_open) {
                    stack.waits.push(LockWait { depth, function, address: first, since });
                }
                Ok(())
            }
            ProbeKind::Issue
            | ProbeKind::Complete
            | ProbeKind::CompleteBatch
            | ProbeKind::Release
            | ProbeKind::Send
            | ProbeKind::Receive => {
                self.on_io(board, probe, rest, cpu);
                Ok(())
            }
        }
    }

    /// Handles a function whose argument is a request or a packet.
    fn on_io(&mut self, board: &InlineCounters, probe: ProbeKind, rest: u64, cpu: &mut dyn StoppedCpu) {
        let now = self.clock.at(self.now(board, rest));
        let region = self.regions.open().last().filter(|_| self.recording);
        let Some(io) = &mut self.io else { return };
        let [argument, _] = GuestIsa::ARGUMENTS.map(|register| cpu.register(register));
        let read = match (probe, region) {
            (ProbeKind::Issue, _) => io.issue(argument, now, region, cpu),
            (ProbeKind::CompleteBatch, _) => io.complete_batch(argument, now, region, cpu),
            (ProbeKind::Complete, _) => {
                io.complete(argument, now, region);
                Some(())
            }
            (ProbeKind::Release, _) => {
                io.forget(argument);
                Some(())
            }
            (ProbeKind::Send, Some(region)) => io.packet(argument, true, region, cpu),
            (ProbeKind::Receive, Some(region)) => {
                read_u64(cpu, argument, 0).and_then(|packet| io.packet(packet, false, region, cpu))
            }
            _ => Some(()),
        };
        if read.is_none() && region.is_some() {
            io.unread += 1;
        }
    }

    /// Emits the lock waits whose frames have ended.
    #[inline]
    pub(crate) fn emit_lock_waits(&mut self, board: &InlineCounters, rest: u64) -> Result<(), Failure> {
        while let Some(LockWait { function, address, since, .. }) = self.threads.running().pop_ended_wait() {
            let ns = self.clock.at(self.now(board, rest)).saturating_sub(since);
            self.emit(board, rest, Event::Lock { function, address, ns })?;
        }
        Ok(())
    }

    /// Handles a wakeup request, which has an effect if the task is in one of these states or new.
    fn on_wake(
        &mut self,
        board: &InlineCounters,
        function: u32,
        (task, states): (u64, u32),
        rest: u64,
        cpu: &mut dyn StoppedCpu,
    ) -> Result<(), Failure> {
        let Some(thread) = self.identify(task, cpu) else { return Ok(()) };
        if state(task, cpu) & (states | NEW) == 0 {
            return Ok(()); // it does nothing then
        }
        let by_interrupt = self.threads.running().frames.iter().any(|&(_, how)| how == EnterKind::Interrupt);
        let waker = match by_interrupt {
            true => Waker::Interrupt,
            false => Waker::Thread(self.threads.running_index()),
        };
        let since = self.clock.at(self.now(board, rest));
        let depth = self.threads.running().frames.len().saturating_sub(1);
        let here = (self.threads.running_index(), depth, function);
        let thread = self.threads.meet(thread);
        let schedule = &mut self.threads.get(thread).schedule;
        (schedule.ready, schedule.woken_in) = (Some((since, waker)), Some(here));
        self.emit(board, rest, Event::Wake { thread })
    }

    /// Handles the scheduler's choice of a CPU for a task.
    fn on_place(
        &mut self,
        board: &InlineCounters,
        (task, to): (u64, u32),
        rest: u64,
        cpu: &mut dyn StoppedCpu,
    ) -> Result<(), Failure> {
        let Some(thread) = self.identify(task, cpu) else { return Ok(()) };
        let thread = self.threads.meet(thread);
        match self.threads.get(thread).schedule.cpu.replace(to) {
            Some(from) if from != to => self.emit(board, rest, Event::Migrate { thread, from, to }),
            _ => Ok(()),
        }
    }

    /// Notes that the running thread is about to lose its CPU. `task` is its `struct task_struct`.
    pub(crate) fn thread_leaves_cpu(
        &mut self,
        board: &InlineCounters,
        task: u64,
        rest: u64,
        cpu: &mut dyn StoppedCpu,
    ) {
        let now = self.clock.at(self.now(board, rest));
        let here = Some(self.cpus.current() as u32);
        let ScheduleState { ready, woken_in, .. } = self.threads.running().schedule;
        let ready = match state(task, cpu) {
            // The idle task is always ready and never waits.
            0 => (self.threads.running().thread.pid != 0).then_some((now, Waker::Nobody)),
            // Another CPU woke the thread before the switch, or is about to.
            WAKING => ready,
            _ => ready.filter(|_| woken_in.is_some_and(|frame| self.threads.is_open(frame))),
        };
        self.threads.running().schedule = ScheduleState { cpu: here, ready, woken_in: None };
    }

    /// Emits the scheduling delay of the thread that has just got its CPU.
    pub(crate) fn thread_gets_cpu(&mut self, board: &InlineCounters, rest: u64) -> Result<(), Failure> {
        let now = self.clock.at(self.now(board, rest));
        let here = Some(self.cpus.current() as u32);
        let schedule = &mut self.threads.running().schedule;
        let ready =
            std::mem::replace(schedule, ScheduleState { cpu: here, ready: None, woken_in: None }).ready;
        match ready {
            Some((since, waker)) => {
                self.emit(board, rest, Event::Delay { waker, ns: now.saturating_sub(since) })
            }
            None => Ok(()),
        }
    }

    /// Reads the offsets of the per-CPU variables, once.
    pub(crate) fn read_per_cpu(&mut self, cpu: &mut dyn StoppedCpu) {
        let (Some(address), true) = (self.per_cpu.0, self.per_cpu.1.is_empty()) else { return };
        let mut bytes = vec![0; self.cpus.count() * 8];
        if cpu.read(address, &mut bytes) {
            let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap_or_default());
            self.per_cpu.1 = bytes.chunks_exact(8).map(word).collect();
        }
    }
}

/// Returns the state of a task; 0 (runnable) if it cannot be read.
fn state(task: u64, cpu: &mut dyn StoppedCpu) -> u32 {
    let mut state = [0; 4];
    match cpu.read(task.wrapping_add(GuestIsa::TASK_STATE), &mut state) {
        true => u32::from_le_bytes(state),
        false => 0,
    }
}
