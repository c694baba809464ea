//! Marks, inline points and event tags of programs, and the guest's clock.

use crate::clock::ClockCheck;
use crate::counters::BlockCounters;
use crate::inline_counters::InlineCounters;
use crate::recorder::Recorder;
use crate::regions::CounterSnapshot;
use crate::Failure;
use kerntune_isa::{GuestIsa, Isa, StoppedCpu};
use kerntune_trace::mark::{Mark, NAME_MAX};
use kerntune_trace::{Event, RecordedThread, RunProgress, TagWindow};

impl Recorder {
    /// Handles a `hlt`.
    pub fn on_halt(&mut self, board: &InlineCounters, rest: u64) {
        // The CPU is halted after this instruction.
        let at = self.now(board, rest);
        if !self.halt_cpu(self.now(board, 0)) {
            return;
        }
        self.clock.halt();
        self.cpus.asleep = self.clock.at(at);
        if !self.recording {
            return;
        }
        self.settle_if_wide(board, rest);
        let weights = self.weigh();
        if let Some(trace) = &mut self.trace {
            trace.halt(at, weights);
        }
    }

    /// Handles the beginning of the block after an `rdtsc`, before it is counted.
    pub fn on_clock(&mut self, board: &InlineCounters, id: u32, cpu: &mut dyn StoppedCpu) {
        // If an interrupt came in between, or this address was reached otherwise, the value read
        // (if any) is not the present time.
        let before = self.last(board).and_then(|before| self.blocks.get(before));
        let (Some(before), Some(block)) = (before, self.blocks.get(id)) else { return };
        if (before.end, before.space) != (block.start, block.space) {
            return;
        }
        // Without the trace of functions the running thread is unknown.
        let before_halt = !self.planner.capture.functions || self.threads.running().thread.pid == 0;
        if !self.clock.due(before_halt) {
            return;
        }
        let instructions = self.now(board, 0);
        let check = self.clock.check(GuestIsa::clock(cpu), instructions);
        self.progress.update(RunProgress { instructions, virtual_ns: self.clock.at(instructions) });
        if !self.recording {
            return;
        }
        self.health.clock_checks += 1;
        match check {
            ClockCheck::Agrees => {}
            ClockCheck::Idle(ns) => {
                self.threads.idle(self.cpus.asleep, ns);
                if let Some(trace) = &mut self.trace {
                    trace.idle(instructions, ns);
                }
            }
            ClockCheck::Error(ns) => {
                self.health.clock_errors += 1;
                self.health.clock_error_ns += ns.unsigned_abs();
                let RecordedThread { comm, pid, .. } = &self.threads.running().thread;
                let thread = format!("{comm} [{pid}]");
                self.clock_errors.add(thread, ns, self.clock.at(instructions));
            }
        }
    }

    /// Handles a mark, with `rest` instructions left in its block. `boards` are those of
    /// all CPUs.
    pub fn on_mark(
        &mut self,
        boards: &[InlineCounters],
        counts: &mut BlockCounters,
        mark: Mark,
        rest: u64,
        cpu: &mut dyn StoppedCpu,
    ) -> Result<(), Failure> {
        let Some(board) = boards.get(self.cpus.current()) else { return Ok(()) };
        let at = self.now(board, rest);
        match mark {
            Mark::Operation => {
                if self.regions.operation() {
                    self.emit(board, rest, Event::Operation)?;
                }
            }
            Mark::Note => self.notes.push(string(cpu)),
            Mark::Begin => {
                let name = string(cpu);
                if self.regions.depth() == 0 {
                    self.recording = true;
                    self.note_used(counts);
                    counts.clear(self.blocks.len());
                    // Marks run in user mode.
                    self.cpu_state.user = true;
                    self.settle(board, rest);
                    self.begin_counting();
                    self.begin_chunk(at);
                    self.read_per_cpu(cpu);
                }
                let snapshot = self.snapshot(boards, rest);
                let region = self.regions.begin(name, snapshot);
                self.regions_change();
                self.stream_follows();
                self.emit(board, rest, Event::RegionBegin { region })?;
            }
            Mark::End => {
                let name = string(cpu);
                let operations = cpu.register(GuestIsa::ARGUMENTS[1]);
                let snapshot = self.snapshot(boards, rest);
                match self.regions.end(&name, operations, snapshot) {
                    Some(region) => self.emit(board, rest, Event::RegionEnd { region })?,
                    None => self.notes.push(format!("region {name:?} was ended without having begun")),
                }
                self.regions_change();
                self.stream_follows();
                if self.regions.depth() == 0 && self.recording {
                    self.stop(counts)?;
                }
            }
        }
        Ok(())
    }

    pub(crate) fn stop(&mut self, counts: &BlockCounters) -> Result<(), Failure> {
        self.recording = false;
        let blocks = self.blocks.len();
        self.block_totals.resize(blocks.max(self.block_totals.len()), 0);
        for (block, count) in counts.ran(blocks) {
            self.block_totals[block] += count;
        }
        match &mut self.trace {
            Some(trace) => trace.close(),
            None => Ok(()),
        }
    }

    fn snapshot(&mut self, boards: &[InlineCounters], rest: u64) -> CounterSnapshot {
        let mut snapshot = CounterSnapshot { idle_ns: self.clock.idle_ns, ..CounterSnapshot::default() };
        let Some(board) = boards.get(self.cpus.current()) else { return snapshot };
        self.settle(board, rest);
        let now = self.now(board, rest);
        snapshot.now_ns = self.clock.at(now);
        // Marks run in user mode, and the rest of the block is still to come.
        let cpus: Vec<_> = self.cpu_snapshots(boards, now, rest).collect();
        for cpu in &cpus {
            snapshot.kernel = snapshot.kernel + cpu.kernel;
            snapshot.user = snapshot.user + cpu.user;
            snapshot.second_level = snapshot.second_level + cpu.second_level.unwrap_or_default();
        }
        if cpus.len() > 1 {
            snapshot.cpus = cpus;
        }
        snapshot
    }

    /// Handles the instruction of an inline point.
    pub fn on_point(&mut self, board: &InlineCounters, point: u32, rest: u64) -> Result<(), Failure> {
        self.emit(board, rest, Event::Point { point })
    }

    /// Handles an event tag.
    pub fn on_tag(&mut self, board: &InlineCounters, tag: u32, rest: u64) -> Result<(), Failure> {
        let ns = self.clock.at(self.now(board, rest));
        match self.tags.as_mut().filter(|_| self.recording) {
            Some(tags) => tags.push(tag.into(), ns),
            None => Ok(()),
        }
    }

    /// Handles a write of a tag to a port. If `check` is set, a register holds the port.
    pub fn on_port_tag(
        &mut self,
        board: &InlineCounters,
        check: bool,
        rest: u64,
        cpu: &mut dyn StoppedCpu,
    ) -> Result<(), Failure> {
        let [port, tag] = GuestIsa::PORT_AND_TAG;
        if check {
            let port = cpu.register(port) as u16;
            if self.planner.tags.map(|tags| tags.window) != Some(TagWindow::Port(port)) {
                return Ok(());
            }
        }
        // Tags of 16 bits leave out the upper half when they are written.
        self.on_tag(board, cpu.register(tag) as u32, rest)
    }
}

/// Reads the text that the first argument points to, as far as it is readable.
fn string(cpu: &mut dyn StoppedCpu) -> String {
    let address = cpu.register(GuestIsa::ARGUMENTS[0]);
    let mut bytes = [0; NAME_MAX];
    // Read up to the end of the page first: the next page may be unmapped.
    let first = ((4096 - (address & 4095)) as usize).min(NAME_MAX);
    let (head, tail) = bytes.split_at_mut(first);
    if cpu.read(address, head) && !head.contains(&0) && !tail.is_empty() {
        cpu.read(address + first as u64, tail);
    }
    text(&bytes)
}

pub(crate) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
