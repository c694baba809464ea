//! Following control from block to block: taken branches, the front-end model, blocks cut short.

use crate::board::Board;
use crate::counters::Counters;
use crate::cpus::Own;
use crate::data::Data;
use crate::plan::not_taken;
use crate::recorder::Recorder;
use kerntune_isa::{Cpu, ExceptionFrame, Flow, Guest, Isa};
use kerntune_layout::{BranchKind, FrontEnd, Mode, TakenBranch};
use kerntune_trace::counts::EdgeKind;

/// A block that was left before its end.
#[derive(Debug, Clone, Copy)]
struct Interrupted {
    /// Its number.
    block: u32,
    /// How many of its instructions were executed.
    done: u64,
    /// The address of the next, where the block was translated.
    address: u64,
}

impl Recorder {
    /// Block `id` begins, whose end another block might run over.
    #[inline]
    pub fn on_announce(&mut self, board: &Board, id: u32) {
        self.own.announced = Some((board.total(), id));
    }

    /// The block that was begun last, if it said so.
    pub(crate) fn last(&self, board: &Board) -> Option<u32> {
        if self.planner.follows_branches() {
            return Some(board.block as u32);
        }
        // Each block counts at least one instruction: none was begun since.
        self.own.announced.filter(|&(at, _)| at == board.total()).map(|(_, id)| id)
    }

    /// The block that was begun last and has an instruction at `address`, or one that has as many
    /// instructions from there to its end.
    ///
    /// That every block says its number would be half of what a recording of functions costs, and is
    /// needed only where one is left before its end. Branches, `rep movs` and their like end every block: all
    /// that have an instruction at an address and end with one of them end with the same. Any other is announced.
    pub(crate) fn running(&self, board: &Board, address: u64) -> Option<u32> {
        self.last(board).or_else(|| match Guest::is_kernel(address) {
            true => self.blocks.ending(address),
            // Control comes here from user code: the last of its blocks is the one.
            false => Some(board.block as u32),
        })
    }

    /// Control reaches block `id` from elsewhere than the block before it in memory, or by a conditional branch.
    #[inline]
    pub fn on_jump(&mut self, board: &Board, id: u32) {
        let previous = board.block as u32;
        let Some(way) = self.blocks.way_out(previous) else { return };
        if self.own.model.is_some() && !self.fetches(board, previous, id) {
            return;
        }
        if board.next != 0 && way.is_branch() {
            self.own.taken[usize::from(way.is_user())] += 1;
            if self.recording && self.planner.capture.edges && !way.is_user() {
                self.edges.count(previous, id, way.is_return());
            }
        }
    }

    /// Tells the model of code that ran straight on up to block `id`, which control reaches from `previous`, and of the branch
    /// that led there. Whether there was more to it than a conditional branch that was not taken.
    #[inline(never)]
    fn fetches(&mut self, board: &Board, previous: u32, id: u32) -> bool {
        let (Some(from), Some(to)) = (self.blocks.get(previous), self.blocks.get(id)) else { return false };
        let Own { model: Some(model), range_start, .. } = &mut self.own else { return true };
        let target = to.start;
        let mode = if from.user { Mode::User } else { Mode::Kernel };
        if board.next == not_taken(target) {
            model.not_taken(from.last, from.target, mode, from.space);
            return false;
        }
        if *range_start != 0 && *range_start < from.end {
            let run = (*range_start, from.end - 1);
            fetch(model, &mut self.data, self.cpus.current(), run, mode, from.space);
        }
        *range_start = target;
        if let (true, Flow::Branch(kind)) = (board.next != 0, from.flow) {
            let branch = TakenBranch { source: from.last, after: from.end, target, kind: branch_kind(kind) };
            model.branch(&branch, mode, from.space);
        }
        true
    }

    /// The first block of an interrupt or exception begins; nothing of it is counted yet.
    pub fn on_interrupt(
        &mut self,
        board: &mut Board,
        counts: &mut dyn Counters,
        id: u32,
        exception: bool,
        cpu: &mut dyn Cpu,
    ) {
        if !self.planner.binaries.is_empty() {
            if let Some(address) = Guest::interrupted_user(cpu) {
                self.threads.running().leave_user(address, board.call);
            }
        }
        let interrupted = if exception { self.interrupted_block(board, cpu) } else { None };
        if let Some(Interrupted { block, done, .. }) = interrupted {
            self.cut(board, counts, block, done);
        }
        self.awake(board);
        let Some(from) = self.blocks.get(board.block as u32) else { return };
        let Own { model, range_start, .. } = &mut self.own;
        if let Some(model) = model {
            let (mode, space) = (if from.user { Mode::User } else { Mode::Kernel }, from.space);
            let end = interrupted.map_or(from.end, |at| at.address);
            if *range_start != 0 && *range_start < end {
                fetch(model, &mut self.data, self.cpus.current(), (*range_start, end - 1), mode, space);
            }
            *range_start = self.blocks.get(id).map_or(0, |b| b.start);
        }
    }

    /// The block that an exception left before its end; `None` if it ran to its end.
    fn interrupted_block(&self, board: &Board, cpu: &mut dyn Cpu) -> Option<Interrupted> {
        let ExceptionFrame { address, coded } = Guest::exception_frame(cpu)?;
        let id = self.running(board, address)?;
        let block = self.blocks.get(id)?;
        let before = match block.position(address) {
            Some(before) => before,
            // A fetch fault may point at the same place of a page that is not there.
            None if block.user && cpu.read(address, &mut [0]) => block.position_in_page(address)?,
            None => return None,
        };
        let counts = if coded { block.refusal.coded } else { block.refusal.plain };
        if before + 1 == block.instructions() && counts {
            return None;
        }
        let address = block.address_of(block.instructions() - before)?;
        Some(Interrupted { block: id, done: before, address })
    }

    /// Block `id` of one instruction begins, which writes to memory; nothing of it is counted yet.
    ///
    /// If the instruction is one of the block that ran, and writes to that block's code, QEMU left that
    /// block before the instruction and executes it alone, so that what follows is translated anew.
    pub fn on_rewrite(&mut self, board: &mut Board, counts: &mut dyn Counters, id: u32, cpu: &mut dyn Cpu) {
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
        if !Guest::writes(insn, cpu).iter().any(hit) {
            return;
        }
        self.cut(board, counts, running, done);
        if let Some(part) = self.blocks.prefix(running, done) {
            board.block = part.into();
        }
        board.next = start;
    }

    /// The only instruction of block `id` reads or writes memory: if it is one in the middle of the
    /// block that runs, that block ends with it.
    pub fn on_access(&mut self, board: &mut Board, counts: &mut dyn Counters, id: u32) {
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
            board.block = part.into();
            board.next = self.blocks.get(part).map_or(0, |part| part.end);
        }
    }

    /// Block `id` was executed only up to its `done`-th instruction: puts the counts right.
    fn cut(&mut self, board: &mut Board, counts: &mut dyn Counters, id: u32, done: u64) {
        let Some(block) = self.blocks.get(id) else { return };
        let rest = block.instructions() - done;
        self.own.announced = None;
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

    /// Lets the model fetch what ran before the instruction with `rest` instructions to the end of its
    /// block, so that its misses belong to what was before.
    ///
    /// The model is told of straight runs of code when they end, by the jump that ends them. An event
    /// in the middle of a run cuts it in two: the same lines in the same order, the one that is cut
    /// touched twice in a row, which changes nothing in a cache that replaces the least recently used.
    pub(crate) fn settle(&mut self, board: &Board, rest: u64) {
        let Own { model, range_start, .. } = &mut self.own;
        let Some(model) = model else { return };
        let Some(block) = self.blocks.get(board.block as u32) else { return };
        let Some(address) = block.address_of(rest) else { return };
        if *range_start != 0 && *range_start < address {
            let mode = if block.user { Mode::User } else { Mode::Kernel };
            let run = (*range_start, address - 1);
            fetch(model, &mut self.data, self.cpus.current(), run, mode, block.space);
            *range_start = address;
        }
    }
}

/// Fetches a straight run of code; what the L1I misses takes room in the caches of data behind it.
#[inline]
fn fetch(
    model: &mut FrontEnd,
    data: &mut Option<Box<Data>>,
    cpu: usize,
    (start, end): (u64, u64),
    mode: Mode,
    space: u64,
) {
    match data {
        None => model.fetch(start, end, mode, space),
        Some(data) => model.fetch_and_tell(start, end, mode, space, |line, salt| data.code(cpu, line, salt)),
    }
}

/// The model's word for it.
fn branch_kind(kind: EdgeKind) -> BranchKind {
    match kind {
        EdgeKind::Conditional => BranchKind::Conditional,
        EdgeKind::Jump => BranchKind::Jump,
        EdgeKind::IndirectJump => BranchKind::IndirectJump,
        EdgeKind::Call => BranchKind::Call,
        EdgeKind::IndirectCall => BranchKind::IndirectCall,
        EdgeKind::Return => BranchKind::Return,
    }
}
