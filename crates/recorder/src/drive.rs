//! Recorder together with the state that translated code updates, and the execution of hooks.
//!
//! QEMU's generated code counts, stores and calls back by itself. For machines other than QEMU, such
//! as those of tests, and for QEMU's blocks that cannot do so, the hooks are executed here: the machine
//! passes each block of instructions as it begins, and each instruction before its execution.

use crate::counters::BlockCounters;
use crate::inline_counters::InlineCounters;
use crate::plan::{Callback, Hook, HookAction};
use crate::recorder::Recorder;
use crate::Failure;
use kerntune_isa::{ForgottenTranslations, Insn, StoppedCpu};
use kerntune_trace::mark::Mark;
use kerntune_trace::RecorderSpec;
use std::mem::offset_of;
use std::ops::Range;

/// Number of block counters, enough for tests.
const BLOCKS: usize = 1 << 16;

/// Recorder together with the state that translated code updates.
pub struct HookRunner {
    pub(crate) recorder: Recorder,
    /// Inline counters of the executing CPU.
    pub(crate) board: InlineCounters,
    /// Inline counters of all CPUs; those of the executing CPU are outdated.
    boards: Vec<InlineCounters>,
    pub(crate) counts: BlockCounters,
    cpu: usize,
}

/// Translated block: its hooks in execution order.
#[derive(Debug, Clone)]
pub struct HookedBlock {
    hooks: Vec<Hook>,
}

impl HookRunner {
    /// Creates a runner for one CPU.
    ///
    /// # Errors
    /// Those of [`Recorder::new`].
    pub fn new(spec: &RecorderSpec) -> Result<Self, Failure> {
        Self::with_cpus(spec, 1, BLOCKS)
    }

    /// Creates a runner for `cpus` CPUs, of which the first executes, with `blocks` block counters.
    ///
    /// # Errors
    /// Those of [`Recorder::new`].
    pub fn with_cpus(spec: &RecorderSpec, cpus: usize, blocks: usize) -> Result<Self, Failure> {
        let recorder = Recorder::new(spec, cpus)?;
        let board = InlineCounters { call: recorder.first_call(), ..InlineCounters::default() };
        Ok(Self { recorder, board, boards: vec![board; cpus], counts: BlockCounters::new(blocks), cpu: 0 })
    }

    /// Switches to another CPU.
    ///
    /// # Errors
    /// The trace cannot be written.
    pub fn turn(&mut self, cpu: usize) -> Result<(), Failure> {
        if cpu == self.cpu {
            return Ok(());
        }
        self.boards[self.cpu] = self.board;
        self.board = self.boards[cpu];
        self.cpu = cpu;
        self.recorder.on_cpu(cpu, &self.boards)
    }

    /// Translates the instructions of a block in this page of the machine's memory.
    pub fn translate(&mut self, insns: &[Insn], page: u64, cpu: &mut dyn StoppedCpu) -> HookedBlock {
        let mut hooks = Vec::new();
        self.plan(insns, page, cpu, &mut hooks);
        HookedBlock::new(hooks)
    }

    /// Appends the hooks of a block to translate.
    pub(crate) fn plan(
        &mut self,
        insns: &[Insn],
        page: u64,
        cpu: &mut dyn StoppedCpu,
        hooks: &mut Vec<Hook>,
    ) {
        self.recorder.translate(insns, page, cpu, hooks);
        if self.recorder.awaits_programs() {
            self.recorder.programs_begin(&mut self.counts);
        }
    }

    /// Runs the hooks at the beginning of a block.
    ///
    /// # Errors
    /// The trace cannot be written.
    pub fn begin(&mut self, block: &HookedBlock, cpu: &mut dyn StoppedCpu) -> Result<(), Failure> {
        self.act(block, block.place(None), cpu)
    }

    /// Runs the hooks before the instruction at index `at`.
    ///
    /// # Errors
    /// The trace cannot be written.
    pub fn before(
        &mut self,
        block: &HookedBlock,
        at: usize,
        cpu: &mut dyn StoppedCpu,
    ) -> Result<(), Failure> {
        self.act(block, block.place(Some(at)), cpu)
    }

    /// Handles a device access in the middle of a block, which ends the block. QEMU executes the
    /// instruction as a block of its own, of which it instruments only the memory access.
    pub fn device(&mut self, insn: &Insn, cpu: &mut dyn StoppedCpu) {
        let alone = self.translate(&[*insn], insn.address >> 12, cpu);
        alone.accesses().for_each(|(_, block)| self.access(block));
    }

    /// Handles a memory access of a block's only instruction.
    pub(crate) fn access(&mut self, block: u32) {
        self.recorder.on_access(&mut self.board, &mut self.counts, block);
    }

    /// Ends the run and writes all files.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn finish(&mut self) -> Result<(), Failure> {
        self.recorder.finish(&mut self.counts)
    }

    fn act(
        &mut self,
        block: &HookedBlock,
        hooks: Range<usize>,
        cpu: &mut dyn StoppedCpu,
    ) -> Result<(), Failure> {
        for hook in &block.hooks[hooks] {
            match hook.action {
                HookAction::Call { callback, number, rest } => {
                    self.call_back(callback, number, rest as u64, cpu)?
                }
                HookAction::CallUnless { field, value, callback, number, rest } => {
                    if *self.field(field) != value {
                        self.call_back(callback, number, rest as u64, cpu)?;
                    }
                }
                HookAction::Store { field, value } => *self.field(field) = value,
                HookAction::Add { field, value } => *self.field(field) += value,
                HookAction::Count { block } => {
                    if let Some(count) = self.counts.of(block) {
                        *count += 1;
                    }
                }
                // QEMU itself reports these.
                HookAction::Access { .. } | HookAction::Data { .. } | HookAction::Touch => {}
            }
        }
        Ok(())
    }

    /// Returns the field at a byte offset in [`InlineCounters`].
    pub(crate) fn field(&mut self, offset: usize) -> &mut u64 {
        let board = &mut self.board;
        match offset {
            o if o == offset_of!(InlineCounters, kernel) => &mut board.kernel,
            o if o == offset_of!(InlineCounters, user) => &mut board.user,
            o if o == offset_of!(InlineCounters, block) => &mut board.block,
            o if o == offset_of!(InlineCounters, next) => &mut board.next,
            _ => &mut board.call,
        }
    }

    /// Runs a callback.
    ///
    /// # Errors
    /// The trace cannot be written.
    #[inline(always)]
    pub(crate) fn call_back(
        &mut self,
        callback: Callback,
        number: u32,
        rest: u64,
        cpu: &mut dyn StoppedCpu,
    ) -> Result<(), Failure> {
        let Self { recorder, board, counts, boards, cpu: number_of_cpu } = self;
        match callback {
            Callback::Entry => recorder.on_entry(board, number, rest)?,
            Callback::PlainEntry => recorder.on_plain_entry(board, number, rest)?,
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
            Callback::Load => recorder.on_load(number, cpu),
            Callback::Exec => recorder.on_exec(),
            Callback::Halt => recorder.on_halt(board, rest),
            Callback::Mark => {
                let mark = [Mark::Begin, Mark::End, Mark::Operation, Mark::Note][number as usize & 3];
                boards[*number_of_cpu] = *board;
                recorder.on_mark(boards, counts, mark, rest, cpu)?;
            }
            Callback::Point => recorder.on_point(board, number, rest)?,
            Callback::Tag => recorder.on_tag(board, number, rest)?,
            Callback::PortTag => recorder.on_port_tag(board, number != 0, rest, cpu)?,
            Callback::Forget => recorder.on_forget(match number {
                0 => ForgottenTranslations::User,
                _ => ForgottenTranslations::All,
            }),
            Callback::Insn => recorder.on_insn(number)?,
        }
        Ok(())
    }
}

impl HookedBlock {
    pub(crate) fn new(mut hooks: Vec<Hook>) -> Self {
        // Stable: hooks at one place keep their order.
        hooks.sort_by_key(|hook| hook.at);
        Self { hooks }
    }

    /// Returns the indices of the instructions that have hooks.
    pub(crate) fn places(&self) -> impl Iterator<Item = usize> + '_ {
        let is_done_here = |hook: &&Hook| {
            !matches!(hook.action, HookAction::Access { .. } | HookAction::Data { .. } | HookAction::Touch)
        };
        let mut places: Vec<usize> =
            self.hooks.iter().filter(is_done_here).filter_map(|hook| hook.at).collect();
        places.dedup();
        places.into_iter()
    }

    /// Returns the indices of the instructions whose memory accesses are watched, with the block's
    /// number.
    pub(crate) fn accesses(&self) -> impl Iterator<Item = (usize, u32)> + '_ {
        self.hooks.iter().filter_map(|hook| match hook.action {
            HookAction::Access { block } => Some((hook.at.unwrap_or(0), block)),
            _ => None,
        })
    }

    /// Returns true if a hook at this place reads registers or memory.
    pub(crate) fn reads_cpu(&self, at: Option<usize>) -> bool {
        self.hooks[self.place(at)].iter().any(|hook| match hook.action {
            HookAction::Call { callback, .. } | HookAction::CallUnless { callback, .. } => {
                callback.reads_cpu()
            }
            _ => false,
        })
    }

    /// Returns true if the CPU halts at this place.
    pub(crate) fn halts(&self, at: usize) -> bool {
        let is_halt = |hook: &Hook| matches!(hook.action, HookAction::Call { callback: Callback::Halt, .. });
        self.hooks[self.place(Some(at))].iter().any(is_halt)
    }

    /// Returns the hooks at a place.
    fn place(&self, at: Option<usize>) -> Range<usize> {
        let from = self.hooks.partition_point(|hook| hook.at < at);
        let count = self.hooks[from..].iter().take_while(|hook| hook.at == at).count();
        from..from + count
    }
}
