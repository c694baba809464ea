//! Runs hooks as QEMU does: for machines that are not QEMU, those of tests, and for QEMU with several CPUs, whose generated
//! code cannot tell them apart.
//!
//! A machine hands over each block of instructions as it begins, and each instruction before it executes it; what QEMU
//! would count, store and call back happens here.

use crate::board::Board;
use crate::counters::Counters;
use crate::plan::{Action, Callback, Hook};
use crate::recorder::Recorder;
use crate::Failure;
use kerntune_isa::{Cpu, Insn};
use kerntune_trace::mark::Mark;
use kerntune_trace::RecorderSpec;
use std::mem::offset_of;
use std::ops::Range;

/// Blocks that have a counter; there are no more in what tests run.
const BLOCKS: usize = 1 << 16;

/// A recorder, and what translated code does to it.
pub struct Driver {
    pub(crate) recorder: Recorder,
    /// That of the CPU that executes.
    pub(crate) board: Board,
    /// Those of all CPUs; its own is not up to date while a CPU executes.
    boards: Vec<Board>,
    counts: Vec<Vec<u64>>,
    cpu: usize,
}

/// A block as it was translated once: its hooks in the order in which they happen.
#[derive(Debug, Clone)]
pub struct Block {
    hooks: Vec<Hook>,
}

impl Driver {
    /// Ready for a run.
    ///
    /// # Errors
    /// As [`Recorder::new`].
    pub fn new(spec: &RecorderSpec) -> Result<Self, Failure> {
        Self::with_cpus(spec, 1, BLOCKS)
    }

    /// The same on so many CPUs, of which the first executes, with so many counters of blocks each.
    ///
    /// # Errors
    /// As [`Recorder::new`].
    pub fn with_cpus(spec: &RecorderSpec, cpus: usize, blocks: usize) -> Result<Self, Failure> {
        let recorder = Recorder::new(spec, cpus)?;
        let board = Board { call: recorder.first_call(), ..Board::default() };
        let counts = (0..cpus).map(|_| vec![0; blocks]).collect();
        Ok(Self { recorder, board, boards: vec![board; cpus], counts, cpu: 0 })
    }

    /// Another CPU executes from here on.
    ///
    /// # Errors
    /// A trace that cannot be written.
    pub fn turn(&mut self, cpu: usize) -> Result<(), Failure> {
        if cpu == self.cpu {
            return Ok(());
        }
        self.boards[self.cpu] = self.board;
        self.board = self.boards[cpu];
        self.cpu = cpu;
        self.recorder.on_cpu(cpu, &self.boards)
    }

    /// Translates the instructions of a block, which is in this page of the machine's memory.
    pub fn translate(&mut self, insns: &[Insn], page: u64, cpu: &mut dyn Cpu) -> Block {
        let mut hooks = Vec::new();
        self.recorder.translate(insns, page, cpu, &mut hooks);
        if self.recorder.awaits_programs() {
            self.recorder.programs_begin(&mut all(&mut self.counts));
        }
        // Those of one place stay in their order.
        hooks.sort_by_key(|hook| hook.at);
        Block { hooks }
    }

    /// A block begins.
    ///
    /// # Errors
    /// A trace that cannot be written.
    pub fn begin(&mut self, block: &Block, cpu: &mut dyn Cpu) -> Result<(), Failure> {
        self.act(block, block.place(None), cpu)
    }

    /// The instruction at `at` is about to run.
    ///
    /// # Errors
    /// A trace that cannot be written.
    pub fn before(&mut self, block: &Block, at: usize, cpu: &mut dyn Cpu) -> Result<(), Failure> {
        self.act(block, block.place(Some(at)), cpu)
    }

    /// An instruction in the middle of a block reached a device: the block ends with it. QEMU executes it as a block of
    /// its own, of which it instruments only the memory access.
    pub fn device(&mut self, insn: &Insn, cpu: &mut dyn Cpu) {
        let alone = self.translate(&[*insn], insn.address >> 12, cpu);
        alone.accesses().for_each(|(_, block)| self.access(block));
    }

    /// The only instruction of a block reads or writes memory.
    pub(crate) fn access(&mut self, block: u32) {
        self.recorder.on_access(&mut self.board, &mut self.counts[self.cpu], block);
    }

    /// The run is over: writes everything.
    ///
    /// # Errors
    /// Files that cannot be written.
    pub fn finish(&mut self) -> Result<(), Failure> {
        self.recorder.finish(&mut all(&mut self.counts))
    }

    fn act(&mut self, block: &Block, hooks: Range<usize>, cpu: &mut dyn Cpu) -> Result<(), Failure> {
        for hook in &block.hooks[hooks] {
            match hook.action {
                Action::Call { callback, number, rest } => self.call_back(callback, number, rest, cpu)?,
                Action::CallUnless { field, value, callback, number, rest } => {
                    if *self.field(field) != value {
                        self.call_back(callback, number, rest, cpu)?;
                    }
                }
                Action::Store { field, value } => *self.field(field) = value,
                Action::Add { field, value } => *self.field(field) += value,
                Action::Count { block } => {
                    if let Some(count) = self.counts[self.cpu].of(block) {
                        *count += 1;
                    }
                }
                // QEMU says itself when that happens.
                Action::Access { .. } | Action::Data { .. } | Action::Touch => {}
            }
        }
        Ok(())
    }

    fn field(&mut self, offset: usize) -> &mut u64 {
        let board = &mut self.board;
        match offset {
            o if o == offset_of!(Board, kernel) => &mut board.kernel,
            o if o == offset_of!(Board, user) => &mut board.user,
            o if o == offset_of!(Board, block) => &mut board.block,
            o if o == offset_of!(Board, next) => &mut board.next,
            _ => &mut board.call,
        }
    }

    fn call_back(
        &mut self,
        callback: Callback,
        number: u32,
        rest: usize,
        cpu: &mut dyn Cpu,
    ) -> Result<(), Failure> {
        let rest = rest as u64;
        let Self { recorder, board, counts: all_counts, boards, cpu: number_of_cpu } = self;
        let counts = &mut all_counts[*number_of_cpu];
        match callback {
            Callback::Entry => recorder.on_entry(board, number, rest)?,
            Callback::Indirect => recorder.on_indirect(board, number, rest, cpu)?,
            Callback::Left => recorder.on_left(board, number != 0, rest)?,
            Callback::Return => recorder.on_return(board, number, rest)?,
            Callback::System => recorder.on_system(board, cpu),
            Callback::SystemReturn => recorder.on_system_return(board, rest, cpu)?,
            Callback::InterruptReturn => recorder.on_interrupt_return(board, rest, cpu)?,
            Callback::Interrupt => recorder.on_interrupt(board, counts, number, false, cpu),
            Callback::Exception => recorder.on_interrupt(board, counts, number, true, cpu),
            Callback::Announce => recorder.on_announce(board, number),
            Callback::Jump => recorder.on_jump(board, number),
            Callback::Rewrite => recorder.on_rewrite(board, counts, number, cpu),
            Callback::Clock => recorder.on_clock(board, number, cpu),
            Callback::EntryAt => recorder.on_entry_at(board, number, rest, cpu)?,
            Callback::ReturnAt => recorder.on_return_at(board, rest, cpu)?,
            Callback::Switch => recorder.on_switch(board, number, rest, cpu)?,
            Callback::Probe => recorder.on_probe(board, number, rest, cpu)?,
            Callback::Exec => recorder.on_exec(),
            Callback::Halt => recorder.on_halt(board, rest),
            Callback::Mark => {
                let mark = [Mark::Begin, Mark::End, Mark::Operation, Mark::Note][number as usize & 3];
                boards[*number_of_cpu] = *board;
                recorder.on_mark(boards, &mut all(all_counts), mark, rest, cpu)?;
            }
            Callback::Point => recorder.on_point(board, number, rest)?,
            Callback::Tag => recorder.on_tag(board, number as u16, rest)?,
            Callback::PortTag => recorder.on_port_tag(board, number != 0, rest, cpu)?,
            Callback::Insn => recorder.on_insn(number)?,
        }
        Ok(())
    }
}

/// The counters of all CPUs.
fn all(counts: &mut [Vec<u64>]) -> Vec<&mut dyn Counters> {
    counts.iter_mut().map(|counts| counts as &mut dyn Counters).collect()
}

impl Block {
    /// The instructions that have hooks.
    pub(crate) fn places(&self) -> impl Iterator<Item = usize> + '_ {
        let is_done_here = |hook: &&Hook| {
            !matches!(hook.action, Action::Access { .. } | Action::Data { .. } | Action::Touch)
        };
        let mut places: Vec<usize> =
            self.hooks.iter().filter(is_done_here).filter_map(|hook| hook.at).collect();
        places.dedup();
        places.into_iter()
    }

    /// The instructions whose access to memory is watched, each with the block's number.
    pub(crate) fn accesses(&self) -> impl Iterator<Item = (usize, u32)> + '_ {
        self.hooks.iter().filter_map(|hook| match hook.action {
            Action::Access { block } => Some((hook.at.unwrap_or(0), block)),
            _ => None,
        })
    }

    /// The instructions whose data is followed, each with its address.
    pub(crate) fn data(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.hooks.iter().filter_map(|hook| match hook.action {
            Action::Data { code } => Some((hook.at.unwrap_or(0), code)),
            _ => None,
        })
    }

    /// Whether anything that happens at a place looks at registers or memory.
    pub(crate) fn reads_cpu(&self, at: Option<usize>) -> bool {
        self.hooks[self.place(at)].iter().any(|hook| match hook.action {
            Action::Call { callback, .. } | Action::CallUnless { callback, .. } => callback.reads_cpu(),
            _ => false,
        })
    }

    /// Whether the CPU halts at a place.
    pub(crate) fn halts(&self, at: usize) -> bool {
        let is_halt = |hook: &Hook| matches!(hook.action, Action::Call { callback: Callback::Halt, .. });
        self.hooks[self.place(Some(at))].iter().any(is_halt)
    }

    /// The hooks of a place.
    fn place(&self, at: Option<usize>) -> Range<usize> {
        let from = self.hooks.partition_point(|hook| hook.at < at);
        let count = self.hooks[from..].iter().take_while(|hook| hook.at == at).count();
        from..from + count
    }
}
