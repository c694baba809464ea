//! Control flow between blocks: taken branches, the front-end model, and blocks that are cut short.

use crate::blocks::{stored_id, BlockExit};
use crate::counters::BlockCounters;
use crate::cpus::PerCpuState;
use crate::data::DataTracker;
use crate::inline_counters::InlineCounters;
use crate::plan::not_taken;
use crate::recorder::Recorder;
use kerntune_isa::{BlockFlow, ExceptionFrame, GuestIsa, Isa, StoppedCpu};
use kerntune_layout::{CpuMode, FrontEnd, TakenBranch};

/// Block that was left before its end.
#[derive(Debug, Clone, Copy)]
struct InterruptedBlock {
    /// Number of the block.
    block: u32,
    /// Number of executed instructions.
    done: u64,
    /// Address of the next instruction, as at the block's translation.
    address: u64,
}

impl Recorder {
    /// Handles the beginning of block `id`, which may overlap the end of another block.
    #[inline]
    pub fn on_announce(&mut self, board: &InlineCounters, id: u32) {
        self.cpu_state.announced = Some((board.total(), id));
    }

    /// Returns the most recently begun block, if it stored or announced its number.
    pub(crate) fn last(&self, board: &InlineCounters) -> Option<u32> {
        if self.planner.follows_branches() {
            return Some(stored_id(board.block));
        }
        // Each block counts at least one instruction, so no block has begun since the announcement.
        self.cpu_state.announced.filter(|&(at, _)| at == board.total()).map(|(_, id)| id)
    }

    /// Returns the most recently begun block that contains the instruction at `address`, or a block
    /// with as many instructions from there to its end.
    ///
    /// Storing every block's number would be half of the cost of recording functions, and the number
    /// is needed only when a block is left early. Branches, `rep movs` and similar instructions end
    /// every block, so all blocks that contain an address and end with one of them end with the same
    /// one. All other blocks are announced.
    pub(crate) fn running(&self, board: &InlineCounters, address: u64) -> Option<u32> {
        self.last(board).or_else(|| match GuestIsa::is_kernel(address) {
            true => self.blocks.ending(address),
            // Control comes from user code: this is its last block.
            false => Some(stored_id(board.block)),
        })
    }

    /// Handles the arrival at block `id` from elsewhere than the preceding block in memory, or by a
    /// conditional branch.
    #[inline]
    pub fn on_jump(&mut self, board: &InlineCounters, id: u32) {
        match self.cpu_state.model {
            Some(_) => self.on_jump_with_model(board, id),
            None => self.count_branch(board, id),
        }
    }

    // Apart, so that the way without a model saves no registers for it.
    #[inline(never)]
    fn on_jump_with_model(&mut self, board: &InlineCounters, id: u32) {
        if self.fetches(board, stored_id(board.block), id) {
            self.count_branch(board, id);
        }
    }

    #[inline]
    fn count_branch(&mut self, board: &InlineCounters, id: u32) {
        let way = BlockExit::of_stored(board.block);
        if board.next != 0 && way.is_branch() {
            self.cpu_state.taken[usize::from(way.is_user())] += 1;
            if self.recording && self.planner.capture.edges && !way.is_user() {
                self.edges.count(stored_id(board.block), id, way.is_return());
            }
        }
    }

    /// Passes to the model the straight run of code that ended with `previous` and the branch to
    /// block `id`. Returns false if this was only a conditional branch that was not taken.
    fn fetches(&mut self, board: &InlineCounters, previous: u32, id: u32) -> bool {
        let (Some(from), Some(to)) = (self.blocks.get(previous), self.blocks.get(id)) else { return false };
        let PerCpuState { model: Some(model), range_start, .. } = &mut self.cpu_state else { return true };
        let target = to.start;
        let mode = if from.user { CpuMode::User } else { CpuMode::Kernel };
        if board.next == not_taken(target) {
            model.not_taken(from.last, from.target, mode, from.space);
            return false;
        }
        if *range_start != 0 && *range_start < from.end {
            let run = (*range_start, from.end - 1);
            fetch(model, &mut self.data, self.cpus.current(), run, mode, from.space);
        }
        *range_start = target;
        if let (true, BlockFlow::Branch(kind)) = (board.next != 0, from.flow) {
            let branch = TakenBranch { source: from.last, after: from.end, target, kind };
            model.branch(&branch, mode, from.space);
        }
        true
    }

    /// Handles the beginning of an interrupt's or exception's first block, before it is counted.
    pub fn on_interrupt(
        &mut self,
        board: &mut InlineCounters,
        counts: &mut BlockCounters,
        id: u32,
        exception: bool,
        cpu: &mut dyn StoppedCpu,
    ) {
        if !self.planner.binaries.is_empty() {
            if let Some(address) = GuestIsa::interrupted_user(cpu) {
                self.threads.running().leave_user(address, board.call);
            }
        }
        let interrupted = if exception { self.interrupted_block(board, cpu) } else { None };
        if let Some(InterruptedBlock { block, done, .. }) = interrupted {
            self.cut(board, counts, block, done);
        }
        self.wake_cpu(board);
        let Some(from) = self.blocks.get(stored_id(board.block)) else { return };
        let PerCpuState { model, range_start, .. } = &mut self.cpu_state;
        if let Some(model) = model {
            let (mode, space) = (if from.user { CpuMode::User } else { CpuMode::Kernel }, from.space);
            let end = interrupted.map_or(from.end, |at| at.address);
            if *range_start != 0 && *range_start < end {
                fetch(model, &mut self.data, self.cpus.current(), (*range_start, end - 1), mode, space);
            }
            *range_start = self.blocks.get(id).map_or(0, |b| b.start);
        }
    }

    /// Returns the block that an exception left before its end; `None` if the block ran to its end.
    fn interrupted_block(
        &self,
        board: &InlineCounters,
        cpu: &mut dyn StoppedCpu,
    ) -> Option<InterruptedBlock> {
        let ExceptionFrame { address, coded } = GuestIsa::exception_frame(cpu)?;
        let id = self.running(board, address)?;
        let block = self.blocks.get(id)?;
        let before = match block.position(address) {
            Some(before) => before,
            // A fetch fault may point at the same offset of a page that is not present.
            None if block.user && cpu.read(address, &mut [0]) => block.position_in_page(address)?,
            None => return None,
        };
        let counts = if coded { block.counted_faults.coded } else { block.counted_faults.plain };
        if before + 1 == block.instructions() && counts {
            return None;
        }
        let address = block.address_of(block.instructions() - before)?;
        Some(InterruptedBlock { block: id, done: before, address })
    }

    /// Handles the beginning of the one-instruction block `id`, which writes to memory, before it
    /// is counted.
    ///
    /// If the instruction belongs to the running block and writes to that block's code, QEMU left
    /// the block before the instruction and executes it alone, so that the code after it is
    /// translated anew.
    pub fn on_rewrite(
        &mut self,
        board: &mut InlineCounters,
        counts: &mut BlockCounters,
        id: u32,
        cpu: &mut dyn StoppedCpu,
    ) {
        let Some(alone) = self.blocks.get(id) else { return };
        let start = alone.start;
        let Some(running) = self.running(board, start) else { return };
        let Some(block) = self.blocks.get(running) else { return };
        let Some(done) = block.position(start) else { return };
        if running == id || block.instructions() == 1 || block.space != alone.space {
            return;
        }
        let Some(insn) = self.planner.rewrites.get(&id) else { return };
        let hit = |&(at, size): &(u64, u64)| at < block.end && at.saturating_add(size) > block.start;
        if !GuestIsa::writes(insn, cpu).iter().any(hit) {
            return;
        }
        self.cut(board, counts, running, done);
        if let Some(part) = self.blocks.prefix(running, done) {
            board.block = self.blocks.stored_number(part);
        }
        board.next = start;
    }

    /// Handles a memory access of the one-instruction block `id`. If the instruction lies in the
    /// middle of the running block, that block ends with it.
    pub fn on_access(&mut self, board: &mut InlineCounters, counts: &mut BlockCounters, id: u32) {
        let Some(access) = self.blocks.get(id) else { return };
        let Some(running) = self.running(board, access.start) else { return };
        let Some(block) = self.blocks.get(running) else { return };
        let done = match block.position(access.start) {
            Some(before) if before + 1 < block.instructions() => before + 1,
            _ => return,
        };
        self.cut(board, counts, running, done);
        if let Some(part) = self.blocks.prefix(running, done) {
            self.on_announce(board, part);
            board.block = self.blocks.stored_number(part);
            board.next = self.blocks.get(part).map_or(0, |part| part.end);
        }
    }

    /// Corrects the counts of block `id`, which executed only its first `done` instructions.
    fn cut(&mut self, board: &mut InlineCounters, counts: &mut BlockCounters, id: u32, done: u64) {
        let Some(block) = self.blocks.get(id) else { return };
        let rest = block.instructions() - done;
        self.cpu_state.announced = None;
        if block.user {
            board.user = board.user.saturating_sub(rest);
        } else {
            board.kernel = board.kernel.saturating_sub(rest);
        }
        if self.recording {
            self.health.cut_blocks += 1;
        }
        if !block.user && self.planner.capture.edges {
            if let Some(count) = counts.of(id) {
                *count = count.saturating_sub(1);
            }
            if let Some(part) = self.blocks.prefix(id, done) {
                if let Some(count) = counts.of(part) {
                    *count += 1;
                }
            }
        }
    }

    /// Lets the model fetch the code before the instruction with `rest` instructions to the end of
    /// its block, so that its misses belong to the time before an event.
    ///
    /// The model gets straight runs of code at the jumps that end them. An event in the middle of a
    /// run splits it in two. The model then fetches the same lines in the same order, and the split
    /// line twice in a row, which changes nothing under LRU replacement.
    pub(crate) fn settle(&mut self, board: &InlineCounters, rest: u64) {
        let PerCpuState { model, range_start, .. } = &mut self.cpu_state;
        let Some(model) = model else { return };
        let Some(block) = self.blocks.get(stored_id(board.block)) else { return };
        let Some(address) = block.address_of(rest) else { return };
        if *range_start != 0 && *range_start < address {
            let mode = if block.user { CpuMode::User } else { CpuMode::Kernel };
            let run = (*range_start, address - 1);
            fetch(model, &mut self.data, self.cpus.current(), run, mode, block.space);
            *range_start = address;
        }
    }
}

/// Fetches a straight run of code. L1I misses allocate lines in the data caches' L2 and L3.
#[inline]
fn fetch(
    model: &mut FrontEnd,
    data: &mut Option<Box<DataTracker>>,
    cpu: usize,
    (start, end): (u64, u64),
    mode: CpuMode,
    space: u64,
) {
    match data {
        None => model.fetch(start, end, mode, space),
        Some(data) => {
            model.fetch_with_misses(start, end, mode, space, |line, salt| data.code(cpu, line, salt))
        }
    }
}
