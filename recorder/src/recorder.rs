//! What the watched instructions mean.

use crate::blocks::{BlockInfo, Blocks, Flow};
use crate::clock::{Check, Clock};
use crate::edges::Edges;
use crate::functions::Functions;
use crate::regions::{Regions, Snapshot};
use crate::threads::Threads;
use crate::writer::TraceWriter;
use crate::Failure;
use kerntune_layout::{FrontEnd, FrontEndConfig, Mode};
use kerntune_trace::counts::{Block, Counts, Edge};
use kerntune_trace::mark::{Mark, NAME_MAX};
use kerntune_trace::{
    files, Capture, Event, FunctionKind, Health, How, ModeCounters, RecorderSpec, Recording, Thread, VERSION,
};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Counters that translated code updates by itself, one set per virtual CPU.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Board {
    /// Kernel instructions of all blocks begun.
    pub kernel: u64,
    /// User instructions of all blocks begun.
    pub user: u64,
    /// Number of the block that runs or ran last.
    pub block: u64,
    /// Address that follows the last completed block; 0 where going elsewhere is no branch.
    pub next: u64,
    /// Not 0 between a call instruction and the first instruction of what it calls.
    pub call: u64,
}

impl Board {
    fn total(&self) -> u64 {
        self.kernel + self.user
    }
}

/// Registers that the recorder reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Register {
    Rax,
    Rdx,
    Rdi,
    Rsi,
    Rsp,
}

/// The virtual CPU, where it stopped.
pub trait Cpu {
    /// A register's value.
    fn register(&mut self, register: Register) -> u64;
    /// Reads memory at a virtual address; false if it is not mapped.
    fn read(&mut self, address: u64, into: &mut [u8]) -> bool;
}

/// Pairs of blocks for which edges are counted: 2^20, in 16 MiB.
const EDGE_BITS: u32 = 20;

/// The state of one recording.
pub struct Recorder {
    pub(crate) functions: Functions,
    pub(crate) capture: Capture,
    pub(crate) blocks: Blocks,
    output: PathBuf,
    task: kerntune_trace::TaskOffsets,
    threads: Threads,
    regions: Regions,
    clock: Clock,
    trace: Option<TraceWriter>,
    recording: bool,
    /// What the event before says of the CPU's mode.
    user: bool,
    edges: Edges,
    block_totals: Vec<u64>,
    taken: [u64; 2],
    model: Option<FrontEnd>,
    range_start: u64,
    health: Health,
    notes: Vec<String>,
}

impl Recorder {
    /// Gets ready for a run.
    pub fn new(spec: &RecorderSpec) -> Result<Self, Failure> {
        if spec.version != VERSION {
            return Err(Failure(format!(
                "the machine speaks version {}, this recorder version {VERSION}: build both again",
                spec.version
            )));
        }
        let output = PathBuf::from(&spec.output);
        let model = match &spec.model {
            Some(text) => Some(FrontEnd::new(&FrontEndConfig::parse(text)?)?),
            None => None,
        };
        let trace = if spec.capture.functions { Some(TraceWriter::create(&output)?) } else { None };
        Ok(Self {
            functions: Functions::new(&spec.functions)?,
            capture: spec.capture,
            blocks: Blocks::new(),
            output,
            task: spec.task,
            threads: Threads::new(),
            regions: Regions::default(),
            clock: Clock::default(),
            trace,
            recording: false,
            user: true,
            edges: Edges::new(if spec.capture.edges { EDGE_BITS } else { 4 }),
            block_totals: Vec::new(),
            taken: [0; 2],
            model,
            range_start: 0,
            health: Health::default(),
            notes: Vec::new(),
        })
    }

    /// Whether a front-end model runs along.
    pub fn has_model(&self) -> bool {
        self.model.is_some()
    }

    /// Control reaches block `id` from elsewhere than the block before it in memory.
    #[inline]
    pub fn on_jump(&mut self, board: &mut Board, counts: &mut [u64], id: u32) {
        let previous = board.block as u32;
        let (Some(from), Some(to)) = (self.blocks.get(previous), self.blocks.get(id)) else { return };
        let target = to.start;
        if board.next != 0 && board.next != from.end {
            // The block before did not get to its end: a device access made QEMU cut it.
            if let Some(done) = from.position(target) {
                self.cut(board, counts, previous, done);
            }
            return;
        }
        let user = from.user;
        if let Some(model) = &mut self.model {
            let mode = if user { Mode::User } else { Mode::Kernel };
            if self.range_start != 0 && self.range_start < from.end {
                model.fetch(self.range_start, from.end - 1, mode, from.space);
            }
            self.range_start = target;
        }
        if board.next != 0 && matches!(from.flow, Flow::Branch(_)) {
            self.taken[usize::from(user)] += 1;
            if self.recording && self.capture.edges && !user {
                self.edges.count(previous, id);
            }
        }
    }

    /// The first block of an interrupt or exception begins; nothing of it is counted yet.
    pub fn on_interrupt(
        &mut self,
        board: &mut Board,
        counts: &mut [u64],
        id: u32,
        exception: bool,
        cpu: &mut dyn Cpu,
    ) {
        let previous = board.block as u32;
        let Some(from) = self.blocks.get(previous) else { return };
        let (mode, space) = (if from.user { Mode::User } else { Mode::Kernel }, from.space);
        let mut end = from.end;
        let incomplete = board.next != 0 && board.next != from.end;
        if exception || incomplete {
            let (start, mut at) = (from.start, None);
            let stack = cpu.register(Register::Rsp);
            // With an error code the interrupted address is the second word, else the first.
            for slot in [8, 0] {
                let mut word = [0; 8];
                if cpu.read(stack.wrapping_add(slot), &mut word) {
                    let address = u64::from_le_bytes(word);
                    at = at.or(from.position(address).map(|done| (done, address)));
                }
            }
            if let Some((done, address)) = at {
                end = address.max(start);
                self.cut(board, counts, previous, done);
            }
        }
        if let Some(model) = &mut self.model {
            if self.range_start != 0 && self.range_start < end {
                model.fetch(self.range_start, end - 1, mode, space);
            }
            self.range_start = self.blocks.get(id).map_or(0, |b| b.start);
        }
    }

    /// Block `id` was executed only up to its `done`-th instruction: puts the counts right.
    fn cut(&mut self, board: &mut Board, counts: &mut [u64], id: u32, done: u64) {
        let Some(block) = self.blocks.get(id) else { return };
        let rest = block.instructions() - done;
        if block.user {
            board.user = board.user.saturating_sub(rest);
        } else {
            board.kernel = board.kernel.saturating_sub(rest);
        }
        if self.recording {
            self.health.cut_blocks += 1;
        }
        if !block.user && self.capture.edges {
            if let Some(count) = counts.get_mut(id as usize) {
                *count = count.saturating_sub(1);
            }
            if let Some(part) = self.blocks.prefix(id, done) {
                if let Some(count) = counts.get_mut(part as usize) {
                    *count += 1;
                }
            }
        }
    }

    /// The first instruction of `function` runs, `rest` instructions before the end of its block.
    #[inline]
    pub fn on_entry(&mut self, board: &mut Board, function: u32, rest: u64) -> Result<(), Failure> {
        let call = std::mem::take(&mut board.call);
        let at = board.total() - rest;
        let stack = self.threads.running();
        let how = match self.functions.kind(function) {
            FunctionKind::Plain | FunctionKind::SwitchTo | FunctionKind::Thunk | FunctionKind::Part(_) => {
                if call != 0 {
                    How::Call
                } else if stack.frames.last().is_some_and(|&(top, _)| top == function) {
                    return Ok(()); // a loop back to the function's first instruction
                } else {
                    How::Jump
                }
            }
            FunctionKind::Label => match (call != 0, stack.frames.is_empty()) {
                (true, _) => How::Call,
                (false, true) => How::Jump,
                (false, false) => return Ok(()),
            },
            FunctionKind::Interrupt => {
                stack.interrupted_calls.push(call);
                How::Interrupt
            }
            FunctionKind::Exception => {
                stack.interrupted_calls.push(call);
                How::Exception
            }
            FunctionKind::Syscall => {
                let open = stack.clear() as u32;
                if open != 0 {
                    self.unwound(at, open)?;
                }
                How::Syscall
            }
        };
        self.threads.running().frames.push((function, how));
        self.emit(at, Event::Enter { function, how })
    }

    /// `__switch_to_asm(prev, next)` runs; its entry has been seen.
    pub fn on_switch(&mut self, board: &Board, rest: u64, cpu: &mut dyn Cpu) -> Result<(), Failure> {
        let (prev, next) = (cpu.register(Register::Rdi), cpu.register(Register::Rsi));
        if let Some(thread) = self.identify(prev, cpu) {
            self.threads.identify_running(thread);
        }
        let next = self.identify(next, cpu).unwrap_or(Thread {
            task: next,
            pid: u32::MAX,
            tgid: u32::MAX,
            comm: "[unreadable]".into(),
        });
        let thread = self.threads.switch(next);
        self.emit(board.total() - rest, Event::Switch { thread })
    }

    fn identify(&self, task: u64, cpu: &mut dyn Cpu) -> Option<Thread> {
        let mut number = |offset: u32| {
            let mut word = [0; 4];
            cpu.read(task.wrapping_add(offset.into()), &mut word).then(|| u32::from_le_bytes(word))
        };
        let (pid, tgid) = (number(self.task.pid)?, number(self.task.tgid)?);
        let mut comm = [0; 16];
        cpu.read(task.wrapping_add(self.task.comm.into()), &mut comm);
        Some(Thread { task, pid, tgid, comm: text(&comm) })
    }

    /// A `ret` inside `function` is about to run.
    #[inline]
    pub fn on_return(&mut self, board: &Board, function: u32, rest: u64) -> Result<(), Failure> {
        if self.functions.kind(function) == FunctionKind::Thunk {
            return Ok(());
        }
        let at = board.total() - rest;
        let result = self.threads.running().ret(function);
        if !self.recording {
            return Ok(());
        }
        if result.unwound != 0 {
            // The stack is already as it will be after the exit: no chunk may begin in between.
            self.health.unwound_frames += u64::from(result.unwound);
            if let Some(trace) = &mut self.trace {
                trace.push(at, Event::Unwind { frames: result.unwound });
            }
        }
        self.health.foreign_returns += u64::from(result.foreign);
        self.health.unmatched_returns += u64::from(!result.popped);
        if result.popped {
            self.emit(at, Event::Exit)
        } else {
            Ok(())
        }
    }

    /// `iretq` in assembly code is about to run.
    pub fn on_interrupt_return(&mut self, board: &mut Board, rest: u64) -> Result<(), Failure> {
        let at = board.total() - rest;
        match self.threads.running().resume() {
            Some(call) => {
                board.call = call;
                self.emit(at, Event::Resume)
            }
            None => {
                board.call = 0;
                self.emit(at, Event::Leave)
            }
        }
    }

    /// `sysretq` is about to run.
    pub fn on_system_return(&mut self, board: &mut Board, rest: u64) -> Result<(), Failure> {
        board.call = 0;
        self.threads.running().clear();
        self.emit(board.total() - rest, Event::Leave)
    }

    fn unwound(&mut self, at: u64, frames: u32) -> Result<(), Failure> {
        if self.recording {
            self.health.unwound_frames += u64::from(frames);
        }
        self.emit(at, Event::Unwind { frames })
    }

    /// `hlt` is about to run.
    pub fn on_halt(&mut self, board: &Board, rest: u64) {
        self.clock.halt();
        if let Some(trace) = self.trace.as_mut().filter(|_| self.recording) {
            trace.halt(board.total() - rest);
        }
    }

    /// The block after an `rdtsc` begins; nothing of it is counted yet.
    pub fn on_clock(&mut self, board: &Board, cpu: &mut dyn Cpu) {
        let low = cpu.register(Register::Rax) & 0xffff_ffff;
        let high = cpu.register(Register::Rdx) & 0xffff_ffff;
        let instructions = board.total();
        let check = self.clock.check(high << 32 | low, instructions);
        if !self.recording {
            return;
        }
        self.health.clock_checks += 1;
        match check {
            Check::Agrees => {}
            Check::Idle(ns) => {
                if let Some(trace) = &mut self.trace {
                    trace.idle(instructions, ns);
                }
            }
            Check::Error(ns) => {
                self.health.clock_errors += 1;
                self.health.clock_error_ns += ns;
            }
        }
    }

    /// A mark runs, `rest` instructions before the end of its block.
    pub fn on_mark(
        &mut self,
        board: &Board,
        counts: &mut [u64],
        mark: Mark,
        rest: u64,
        cpu: &mut dyn Cpu,
    ) -> Result<(), Failure> {
        let at = board.total() - rest;
        match mark {
            Mark::Operation => {
                if self.regions.operation() {
                    self.emit(at, Event::Operation)?;
                }
            }
            Mark::Note => self.notes.push(string(cpu)),
            Mark::Begin => {
                let name = string(cpu);
                if self.regions.depth() == 0 {
                    self.recording = true;
                    let used = self.blocks.len().min(counts.len());
                    counts[..used].fill(0);
                    // A mark is user code.
                    self.user = true;
                    self.begin_chunk(at);
                }
                let snapshot = self.snapshot(board, rest);
                let region = self.regions.begin(name, snapshot);
                self.emit(at, Event::RegionBegin { region })?;
            }
            Mark::End => {
                let name = string(cpu);
                let operations = cpu.register(Register::Rsi);
                let snapshot = self.snapshot(board, rest);
                match self.regions.end(&name, operations, snapshot) {
                    Some(region) => self.emit(at, Event::RegionEnd { region })?,
                    None => self.notes.push(format!("region {name:?} was ended without having begun")),
                }
                if self.regions.depth() == 0 && self.recording {
                    self.stop(counts)?;
                }
            }
        }
        Ok(())
    }

    fn stop(&mut self, counts: &mut [u64]) -> Result<(), Failure> {
        self.recording = false;
        let used = self.blocks.len().min(counts.len());
        self.block_totals.resize(used.max(self.block_totals.len()), 0);
        for (total, count) in self.block_totals.iter_mut().zip(counts.iter()) {
            *total += count;
        }
        match &mut self.trace {
            Some(trace) => trace.close(),
            None => Ok(()),
        }
    }

    fn snapshot(&self, board: &Board, rest: u64) -> Snapshot {
        let misses = self.model.as_ref().map(FrontEnd::counts).unwrap_or_default();
        let mode = |instructions, user: bool, misses: kerntune_layout::ModeCounts| ModeCounters {
            instructions,
            taken_branches: self.taken[usize::from(user)],
            l1i_misses: misses.l1i_misses,
            itlb_misses: misses.itlb_misses,
        };
        Snapshot {
            now_ns: self.clock.at(board.total() - rest),
            idle_ns: self.clock.idle_ns,
            kernel: mode(board.kernel, false, misses.kernel),
            // A mark is user code: the rest of its block is still to come.
            user: mode(board.user - rest, true, misses.user),
        }
    }

    #[inline]
    fn emit(&mut self, at: u64, event: Event) -> Result<(), Failure> {
        if !self.recording {
            return Ok(());
        }
        match event {
            Event::Enter { .. } | Event::Switch { .. } => self.user = false,
            Event::Leave => self.user = true,
            _ => {}
        }
        if let Some(trace) = &mut self.trace {
            if trace.push(at, event) {
                trace.close()?;
                self.begin_chunk(at);
            }
        }
        Ok(())
    }

    fn begin_chunk(&mut self, at: u64) {
        if let Some(trace) = &mut self.trace {
            trace.begin(at, self.clock.at(at), self.user, self.regions.open(), &self.threads);
        }
    }

    /// The run is over: writes everything.
    pub fn finish(&mut self, counts: &mut [u64]) -> Result<(), Failure> {
        if self.recording {
            // The guest ended inside a region; what there is is kept, the region stays open.
            self.notes.push("the guest ended inside a region".into());
            self.stop(counts)?;
        }
        let (chunks, events) = match self.trace.take() {
            Some(trace) => trace.finish()?,
            None => (Vec::new(), 0),
        };
        self.health.uncounted_edges = self.edges.uncounted;
        self.health.uncounted_blocks = self.blocks.len().saturating_sub(counts.len()) as u64;
        if self.capture.edges {
            write(&self.output.join(files::COUNTS), &self.counts().to_bytes())?;
        }
        let recording = Recording {
            version: VERSION,
            capture: self.capture,
            kernel_functions: self.functions.unknown(),
            regions: std::mem::take(&mut self.regions.list),
            threads: self.threads.iter().map(|stack| stack.thread.clone()).collect(),
            chunks,
            events,
            health: self.health,
            notes: std::mem::take(&mut self.notes),
        };
        write(&self.output.join(files::RECORDING), &serde_json::to_vec_pretty(&recording)?)
    }

    /// Blocks and edges by address. The same code in blocks of different cut adds up.
    fn counts(&self) -> Counts {
        let mut blocks: BTreeMap<(u64, u64), Block> = BTreeMap::new();
        for (id, &count) in self.block_totals.iter().enumerate().filter(|(_, &count)| count != 0) {
            let Some(info) = self.blocks.get(id as u32).filter(|info| !info.user) else { continue };
            let BlockInfo { start, last, end, .. } = *info;
            blocks
                .entry((start, end))
                .or_insert(Block {
                    start,
                    last,
                    count: 0,
                    instructions: info.instructions() as u32,
                    bytes: (end - start) as u32,
                })
                .count += count;
        }
        let mut edges: BTreeMap<(u64, u64), Edge> = BTreeMap::new();
        for (from, to, count) in self.edges.iter() {
            let (Some(from), Some(to)) = (self.blocks.get(from), self.blocks.get(to)) else { continue };
            let Flow::Branch(kind) = from.flow else { continue };
            edges
                .entry((from.last, to.start))
                .or_insert(Edge { source: from.last, target: to.start, count: 0, kind })
                .count += count;
        }
        Counts { blocks: blocks.into_values().collect(), edges: edges.into_values().collect() }
    }
}

fn write(path: &std::path::Path, bytes: &[u8]) -> Result<(), Failure> {
    std::fs::write(path, bytes).map_err(|e| Failure(format!("cannot write {}: {e}", path.display())))
}

/// The text that `rdi` points to, as far as it is readable.
fn string(cpu: &mut dyn Cpu) -> String {
    let address = cpu.register(Register::Rdi);
    let mut bytes = [0; NAME_MAX];
    // Up to the end of the page first, so that an unmapped page after it does no harm.
    let first = ((4096 - (address & 4095)) as usize).min(NAME_MAX);
    let (head, tail) = bytes.split_at_mut(first);
    if cpu.read(address, head) && !head.contains(&0) && !tail.is_empty() {
        cpu.read(address + first as u64, tail);
    }
    text(&bytes)
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
