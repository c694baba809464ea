//! Runs hooks as QEMU does, for machines that are not QEMU: those of tests.
//!
//! A machine hands over each block of instructions as it begins, and each instruction before it executes it; what QEMU
//! would count, store and call back happens here.

use crate::board::Board;
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
    pub(crate) board: Board,
    counts: Vec<u64>,
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
        let recorder = Recorder::new(spec)?;
        let board = Board { call: recorder.first_call(), ..Board::default() };
        Ok(Self { recorder, board, counts: vec![0; BLOCKS] })
    }

    /// Translates the instructions of a block.
    pub fn translate(&mut self, insns: &[Insn], cpu: &mut dyn Cpu) -> Block {
        let mut hooks = Vec::new();
        let page = insns.first().map_or(0, |first| first.address >> 12);
        self.recorder.translate(insns, page, cpu, &mut hooks);
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
        let alone = self.translate(&[*insn], cpu);
        for hook in &alone.hooks {
            if let Action::Access { block } = hook.action {
                self.recorder.on_access(&mut self.board, &mut self.counts, block);
            }
        }
    }

    /// The run is over: writes everything.
    ///
    /// # Errors
    /// Files that cannot be written.
    pub fn finish(&mut self) -> Result<(), Failure> {
        self.recorder.finish(&mut self.counts)
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
                    if let Some(count) = self.counts.get_mut(block as usize) {
                        *count += 1;
                    }
                }
                Action::Access { block } => {
                    self.recorder.on_access(&mut self.board, &mut self.counts, block);
                }
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
        let Self { recorder, board, counts } = self;
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
            Callback::Switch => {
                recorder.on_entry(board, number, rest)?;
                recorder.on_switch(board, rest, cpu)?;
            }
            Callback::Exec => recorder.on_exec(),
            Callback::Halt => recorder.on_halt(board, rest),
            Callback::Mark => {
                let mark = [Mark::Begin, Mark::End, Mark::Operation, Mark::Note][number as usize & 3];
                recorder.on_mark(board, counts, mark, rest, cpu)?;
            }
            Callback::Point => recorder.on_point(board, number, rest)?,
            Callback::Tag => recorder.on_tag(board, number as u16, rest)?,
            Callback::PortTag => recorder.on_port_tag(board, number != 0, rest, cpu)?,
        }
        Ok(())
    }
}

impl Block {
    /// The hooks of a place.
    fn place(&self, at: Option<usize>) -> Range<usize> {
        let from = self.hooks.partition_point(|hook| hook.at < at);
        let count = self.hooks[from..].iter().take_while(|hook| hook.at == at).count();
        from..from + count
    }
}
