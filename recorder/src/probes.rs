//! What several CPUs do to each other: who is woken, where threads run, whom a CPU interrupts, what is waited for. The
//! arguments of some functions say it. And what passes others: requests to block devices, network packets.

use crate::board::Board;
use crate::io::word;
use crate::recorder::Recorder;
use crate::threads::{Life, Wait};
use crate::Failure;
use kerntune_isa::{Cpu, Guest, Isa};
use kerntune_trace::{Event, How, Probe, Waker};

/// States of a thread (include/linux/sched.h): none of these is set while it can run.
const NEW: u32 = 0x800;
/// It is being woken up, and may not have left its CPU yet.
const WAKING: u32 = 0x200;

impl Recorder {
    /// A function whose arguments are looked at begins; its entry has been seen.
    pub fn on_probe(
        &mut self,
        board: &Board,
        function: u32,
        rest: u64,
        cpu: &mut dyn Cpu,
    ) -> Result<(), Failure> {
        let Some(probe) = self.planner.functions.probe(function) else { return Ok(()) };
        let [first, second] = Guest::ARGUMENTS.map(|register| cpu.register(register));
        match probe {
            Probe::Wake => self.wakes(board, function, (first, second as u32), rest, cpu),
            Probe::Place => self.places(board, (first, second as u32), rest, cpu),
            Probe::Signal => self.emit(board, rest, Event::Signal { cpu: first as u32 }),
            Probe::SignalAll => {
                // One word has room for more CPUs than a recording can have.
                let mut mask = [0; 8];
                if !cpu.read(first, &mut mask) {
                    return Ok(());
                }
                let mask = u64::from_le_bytes(mask);
                let wanted = (0..self.cpus.count() as u32).filter(|cpu| mask >> cpu & 1 == 1);
                wanted.into_iter().try_for_each(|cpu| self.emit(board, rest, Event::Signal { cpu }))
            }
            Probe::Lock => {
                let since = self.clock.at(self.now(board, rest));
                let stack = self.threads.running();
                // A function of a selection that is not traced has no frame, whose end would tell.
                let depth = stack.frames.len().checked_sub(1);
                let is_open = stack.frames.last().is_some_and(|&(top, _)| top == function);
                if let Some(depth) = depth.filter(|_| is_open) {
                    stack.waits.push(Wait { depth, function, address: first, since });
                }
                Ok(())
            }
            Probe::Issue
            | Probe::Complete
            | Probe::CompleteBatch
            | Probe::Release
            | Probe::Send
            | Probe::Receive => {
                self.passes(board, probe, rest, cpu);
                Ok(())
            }
        }
    }

    /// A request or a packet is at a function whose argument it is.
    fn passes(&mut self, board: &Board, probe: Probe, rest: u64, cpu: &mut dyn Cpu) {
        let now = self.clock.at(self.now(board, rest));
        let region = self.regions.open().last().filter(|_| self.recording);
        let Some(io) = &mut self.io else { return };
        let [argument, _] = Guest::ARGUMENTS.map(|register| cpu.register(register));
        let read = match (probe, region) {
            (Probe::Issue, _) => io.issue(argument, now, region, cpu),
            (Probe::CompleteBatch, _) => io.complete_batch(argument, now, region, cpu),
            (Probe::Complete, _) => {
                io.complete(argument, now, region);
                Some(())
            }
            (Probe::Release, _) => {
                io.forget(argument);
                Some(())
            }
            (Probe::Send, Some(region)) => io.packet(argument, true, region, cpu),
            (Probe::Receive, Some(region)) => {
                word(cpu, argument, 0).and_then(|packet| io.packet(packet, false, region, cpu))
            }
            _ => Some(()),
        };
        if read.is_none() && region.is_some() {
            io.unread += 1;
        }
    }

    /// The running thread's top frames have ended.
    #[inline]
    pub(crate) fn waited(&mut self, board: &Board, rest: u64) -> Result<(), Failure> {
        while let Some(Wait { function, address, since, .. }) = self.threads.running().waited() {
            let ns = self.clock.at(self.now(board, rest)).saturating_sub(since);
            self.emit(board, rest, Event::Lock { function, address, ns })?;
        }
        Ok(())
    }

    /// The scheduler is asked to wake a task up, if it is in one of these states, or new.
    fn wakes(
        &mut self,
        board: &Board,
        function: u32,
        (task, states): (u64, u32),
        rest: u64,
        cpu: &mut dyn Cpu,
    ) -> Result<(), Failure> {
        let Some(thread) = self.identify(task, cpu) else { return Ok(()) };
        if state(task, cpu) & (states | NEW) == 0 {
            return Ok(()); // it does nothing then
        }
        let by_interrupt = self.threads.running().frames.iter().any(|&(_, how)| how == How::Interrupt);
        let waker = match by_interrupt {
            true => Waker::Interrupt,
            false => Waker::Thread(self.threads.running_index()),
        };
        let since = self.clock.at(self.now(board, rest));
        let depth = self.threads.running().frames.len().saturating_sub(1);
        let here = (self.threads.running_index(), depth, function);
        let thread = self.threads.meet(thread);
        let life = &mut self.threads.get(thread).life;
        (life.ready, life.woken_in) = (Some((since, waker)), Some(here));
        self.emit(board, rest, Event::Wake { thread })
    }

    /// The scheduler puts a task on a CPU.
    fn places(
        &mut self,
        board: &Board,
        (task, to): (u64, u32),
        rest: u64,
        cpu: &mut dyn Cpu,
    ) -> Result<(), Failure> {
        let Some(thread) = self.identify(task, cpu) else { return Ok(()) };
        let thread = self.threads.meet(thread);
        match self.threads.get(thread).life.cpu.replace(to) {
            Some(from) if from != to => self.emit(board, rest, Event::Migrate { thread, from, to }),
            _ => Ok(()),
        }
    }

    /// The running thread is about to lose its CPU; `task` is its `struct task_struct`.
    pub(crate) fn leaves(&mut self, board: &Board, task: u64, rest: u64, cpu: &mut dyn Cpu) {
        let now = self.clock.at(self.now(board, rest));
        let here = Some(self.cpus.current() as u32);
        let Life { ready, woken_in, .. } = self.threads.running().life;
        let ready = match state(task, cpu) {
            // The idle task is always ready, and waits for nothing.
            0 => (self.threads.running().thread.pid != 0).then_some((now, Waker::Nobody)),
            // Somebody on another CPU was faster than the switch, or is about to be.
            WAKING => ready,
            _ => ready.filter(|_| woken_in.is_some_and(|frame| self.threads.is_open(frame))),
        };
        self.threads.running().life = Life { cpu: here, ready, woken_in: None };
    }

    /// The thread that runs has just got its CPU.
    pub(crate) fn arrives(&mut self, board: &Board, rest: u64) -> Result<(), Failure> {
        let now = self.clock.at(self.now(board, rest));
        let here = Some(self.cpus.current() as u32);
        let life = &mut self.threads.running().life;
        let ready = std::mem::replace(life, Life { cpu: here, ready: None, woken_in: None }).ready;
        match ready {
            Some((since, waker)) => {
                self.emit(board, rest, Event::Delay { waker, ns: now.saturating_sub(since) })
            }
            None => Ok(()),
        }
    }

    /// Reads once where each CPU keeps what it has one of.
    pub(crate) fn read_per_cpu(&mut self, cpu: &mut dyn Cpu) {
        let (Some(address), true) = (self.per_cpu.0, self.per_cpu.1.is_empty()) else { return };
        let mut bytes = vec![0; self.cpus.count() * 8];
        if cpu.read(address, &mut bytes) {
            let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap_or_default());
            self.per_cpu.1 = bytes.chunks_exact(8).map(word).collect();
        }
    }
}

/// A task's state; that of one that can run if it cannot be read.
fn state(task: u64, cpu: &mut dyn Cpu) -> u32 {
    let mut state = [0; 4];
    match cpu.read(task.wrapping_add(Guest::TASK_STATE), &mut state) {
        true => u32::from_le_bytes(state),
        false => 0,
    }
}
