//! Plan of the hooks of a translated block (pure).
//!
//! # The call flag
//!
//! [`InlineCounters::call`] states, when a function's first instruction runs, whether a call led
//! there. If all code is traced, a call instruction sets the flag and the function entry clears it.
//! If some code is not traced, the flag describes the running code:
//!
//! - Traced code runs with 0 or 1. It sets 0 before it jumps to the beginning of a traced function,
//!   and 1 before it calls or returns.
//! - Untraced code runs with 1. Whatever it enters, by call or jump, returns to untraced code, so
//!   the entry counts as a call, and its return ends only that frame.
//!
//! A jump from traced code to an untraced function is a tail call: the return of that function,
//! which nobody sees, would end the frame of the code that jumped. That frame therefore ends at the
//! jump ([`Callback::Left`]), and the flag becomes 1. In the kernel the jumping code does this: it
//! knows the target from the instruction or reads it from the CPU ([`Callback::Indirect`]), so that
//! untraced code costs nothing but its counting. Only a conditional jump is not known in advance to
//! be taken: it sets 0, and the functions that such jumps lead to check whether they were entered
//! with 0 ([`TracedFunctions::guarded`]). In untraced user code no functions are known, so every
//! block checks the flag.
//!
//! Labels in assembly code are functions only if they are called; they do not end frames.
//! Interrupts save and restore the flag, as the kernel does for user code.

use crate::blocks::BlockInfo;
use crate::functions::TracedFunctions;
use crate::inline_counters::InlineCounters;
use crate::stream::StreamWriter;
use crate::user::{BinaryPage, TracedBinaries};
use kerntune_isa::{BlockEnding, BlockFlow, Decoded, ForgottenTranslations, GuestIsa, Insn, Isa, TagAccess};
use kerntune_trace::counts::BranchKind;
use kerntune_trace::{CaptureSpec, FunctionKind, TagSource};
use std::collections::{HashMap, HashSet};
use std::mem::offset_of;

/// Maximum number of blocks with a counter of their own.
pub const MAX_BLOCKS: usize = 1 << 22;

/// Function that a hook calls. The hook's number is that of the function or block unless stated
/// otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Callback {
    /// Begin of a block whose only instruction writes to memory.
    Rewrite,
    /// Begin of the block after an `rdtsc`.
    Clock,
    /// Begin of the block with an interrupt's first instruction.
    Interrupt,
    /// Begin of the block with an exception's first instruction.
    Exception,
    /// Begin of a block that may overlap another block's end, after it is counted.
    Announce,
    /// Arrival at a block from elsewhere than the preceding block in memory or, if directions are
    /// predicted, by a conditional branch.
    Jump,
    /// First instruction of a function.
    Entry,
    /// First instruction of a plain kernel function.
    PlainEntry,
    /// First instruction of a function, if the stack pointer decides whether it was called.
    EntryAt,
    /// Jump from a traced function to untraced code. The number is 0 in the kernel and 1 in user
    /// code.
    Left,
    /// Jump of traced kernel code through a register or memory. The number is an index into
    /// [`HookPlanner::jumps`].
    Indirect,
    /// First instruction of `__switch_to_asm`.
    Switch,
    /// First instruction of a function with a probe, after its entry.
    Probe,
    /// First instruction of a system call, before its entry.
    System,
    /// Imminent replacement of the thread's program.
    Exec,
    /// `ret` inside the function.
    Return,
    /// `ret`, if the stack pointer decides which function returns.
    ReturnAt,
    /// `iretq` instruction.
    InterruptReturn,
    /// `sysretq` instruction.
    SystemReturn,
    /// `hlt` instruction.
    Halt,
    /// Mark. The number is the position in [`kerntune_trace::mark::Mark`].
    Mark,
    /// Inline point. The number is that of the point.
    Point,
    /// Event tag of McRae's profiler. The number is the tag.
    Tag,
    /// Event tag in `ax`. If the number is not 0, the port in `dx` is checked.
    PortTag,
    /// First instruction of a function that loads or frees code. The number is its index in
    /// [`kerntune_trace::loaded::LoadSpec::points`].
    Load,
    /// Instruction that makes the CPU forget translations: those of user memory if the number is 0,
    /// otherwise all.
    Forget,
    /// Instruction of the instruction stream. The number is its number in [`StreamWriter`].
    Insn,
}

impl Callback {
    /// Returns true if the callback reads registers or memory.
    pub fn reads_cpu(self) -> bool {
        use Callback::*;
        let leaves = matches!(self, InterruptReturn | SystemReturn);
        leaves
            || matches!(
                self,
                Rewrite
                    | Clock
                    | Interrupt
                    | Exception
                    | EntryAt
                    | ReturnAt
                    | Indirect
                    | Switch
                    | Probe
                    | Load
                    | System
                    | Mark
                    | PortTag
            )
    }
}

/// Action of a hook. Fields are byte offsets in [`InlineCounters`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookAction {
    /// Calls back.
    Call {
        /// Function to call.
        callback: Callback,
        /// Number to pass.
        number: u32,
        /// Instructions from there to the block's end; 0 if the callback does not need them.
        rest: usize,
    },
    /// Calls back unless the field has this value. Only at the beginning of a block.
    CallUnless {
        /// Byte offset of the field.
        field: usize,
        /// Value at which nothing is called.
        value: u64,
        /// Function to call.
        callback: Callback,
        /// Number to pass.
        number: u32,
        /// Number of instructions in the block.
        rest: usize,
    },
    /// Stores a value into the field.
    Store {
        /// Byte offset of the field.
        field: usize,
        /// Value to store.
        value: u64,
    },
    /// Adds a value to the field.
    Add {
        /// Byte offset of the field.
        field: usize,
        /// Value to add.
        value: u64,
    },
    /// Counts an execution of the block.
    Count {
        /// Number of the block.
        block: u32,
    },
    /// Calls back when the block's only instruction accesses memory.
    ///
    /// Under icount, QEMU notices only during execution that an instruction in the middle of a
    /// block accesses a device. It then leaves the block, executes the instruction as a block of
    /// its own, of which it instruments only memory accesses (`CF_MEMI_ONLY`), and continues with
    /// the next block.
    Access {
        /// Number of the block.
        block: u32,
    },
    /// Calls back for each memory access of the instruction, for the data caches.
    Data {
        /// Address of the instruction.
        code: u64,
    },
    /// Calls back for each memory access of the instruction, for the instruction stream.
    Touch,
}

/// Action at the beginning of a block or before one of its instructions.
///
/// Actions at one place run in the order in which they are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hook {
    /// Index of the instruction in the block, from 0; `None` for the beginning of the block.
    pub at: Option<usize>,
    /// Action to run.
    pub action: HookAction,
}

/// Inputs and state that decide which hooks a block gets.
pub struct HookPlanner {
    pub functions: TracedFunctions,
    pub binaries: TracedBinaries,
    pub capture: CaptureSpec,
    pub has_model: bool,
    /// True if data accesses go through the data caches.
    pub data: bool,
    /// True until the kernel's image runs. Models begin with the image: most jumps of a boot belong
    /// to the firmware and the decompressor, and the kernel's own boot replaces all that they leave
    /// in caches and TLBs.
    pub unpacking: bool,
    /// True if the model also needs conditional branches that are not taken.
    pub directions: bool,
    /// True if the stack pointer decides about calls and returns.
    pub stack_pointer: bool,
    /// Kernel addresses of inline points, with their numbers.
    pub points: HashMap<u64, u32>,
    /// Functions that load or free code, with their numbers.
    pub loads: HashMap<u64, u32>,
    pub tags: Option<TagSource>,
    /// Instruction stream, if requested.
    pub stream: Option<StreamWriter>,
    /// Jumps of traced kernel code through a register or memory.
    pub jumps: Vec<Decoded>,
    /// Number of conditional jumps from traced code to functions that do not check for them.
    pub unguarded_jumps: u64,
    /// Decoded instruction of each one-instruction block that writes to memory, by block number.
    pub rewrites: HashMap<u32, Decoded>,
    /// Addresses after an `rdtsc`.
    after_clock: HashSet<u64>,
    /// First instructions of already translated functions that do not check for conditional jumps.
    unguarded: HashSet<u64>,
}

/// Destination of a jump from traced kernel code, if functions are selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JumpLanding {
    /// Traced code.
    Traced,
    /// Untraced function: the frame that jumped has ended.
    Left,
    /// Middle of untraced code, which runs on behalf of the code that jumped.
    Through,
}

/// Translated block that needs hooks.
pub struct BlockToPlan<'a> {
    pub id: u32,
    pub info: &'a BlockInfo,
    pub insns: &'a [Insn],
    pub ending: BlockEnding,
    /// Page of a traced binary that contains the block, for user code.
    pub page: Option<BinaryPage>,
}

/// Function membership of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct AddressKind {
    /// Function that begins at the address.
    starting: Option<u32>,
    /// Function that contains the address.
    containing: u32,
    /// True if the containing function is traced.
    traced: bool,
}

impl HookPlanner {
    pub fn new(
        functions: TracedFunctions,
        binaries: TracedBinaries,
        capture: CaptureSpec,
        has_model: bool,
    ) -> Self {
        Self {
            functions,
            binaries,
            capture,
            has_model,
            data: false,
            unpacking: false,
            directions: false,
            stack_pointer: false,
            points: HashMap::new(),
            loads: HashMap::new(),
            tags: None,
            stream: None,
            jumps: Vec::new(),
            unguarded_jumps: 0,
            rewrites: HashMap::new(),
            after_clock: HashSet::new(),
            unguarded: HashSet::new(),
        }
    }

    /// Returns true if every block stores its number and its end. Otherwise user blocks store their
    /// number, and blocks that may overlap another block's end are announced, see
    /// [`Recorder::running`].
    ///
    /// [`Recorder::running`]: crate::recorder::Recorder::running
    pub fn follows_branches(&self) -> bool {
        self.has_model || self.capture.edges
    }

    /// Returns the callback for a function's first instruction.
    fn entry(&self) -> Callback {
        match self.stack_pointer {
            true => Callback::EntryAt,
            false => Callback::Entry,
        }
    }

    /// Returns true if the flag must describe more than entries by call.
    fn selective(&self, user: bool) -> bool {
        user || self.functions.is_selection()
    }

    fn place(&self, block: &BlockToPlan, address: u64) -> AddressKind {
        if block.info.user {
            let Some(page) = block.page else {
                return AddressKind { starting: None, containing: 0, traced: false };
            };
            let (starting, containing) = self.binaries.at(page, address);
            return AddressKind {
                starting,
                containing: containing.unwrap_or(0),
                traced: containing.is_some(),
            };
        }
        let containing = self.functions.containing(address);
        AddressKind {
            starting: self.functions.starting(address),
            containing,
            traced: self.functions.traced(containing),
        }
    }

    /// Returns true if a jump from `place` to `target` may lead to the beginning of a function.
    fn leaves(&self, block: &BlockToPlan, place: AddressKind, target: Option<u64>) -> bool {
        let Some(target) = target else { return true };
        if GuestIsa::is_kernel(target) == block.info.user {
            return true;
        }
        let there = self.place(block, target);
        there.starting.is_some() || (there.containing, there.traced) != (place.containing, place.traced)
    }

    /// Returns the destination kind of a jump from traced kernel code to `target`.
    pub fn landing(&self, target: u64) -> JumpLanding {
        if !GuestIsa::is_kernel(target) {
            return JumpLanding::Through;
        }
        if self.functions.traced(self.functions.containing(target)) {
            return JumpLanding::Traced;
        }
        if !self.functions.covers(target) {
            return JumpLanding::Left;
        }
        match self.functions.starting(target).map(|function| self.functions.kind(function)) {
            None | Some(FunctionKind::Label) => JumpLanding::Through,
            Some(_) => JumpLanding::Left,
        }
    }

    /// Returns true if the preceding instruction is traced code of the same block.
    fn fallen_into(&self, block: &BlockToPlan, at: usize) -> bool {
        let before = at.checked_sub(1).and_then(|at| block.insns.get(at));
        before.is_some_and(|insn| self.place(block, insn.address).traced)
    }

    /// Appends the hooks of a block.
    pub fn plan(&mut self, block: &BlockToPlan, hooks: &mut Vec<Hook>) {
        let mut out = HookList { hooks, rest: block.insns.len() };
        self.plan_start(block, &mut out);
        self.plan_instructions(block, &mut out);
        // Last, so that a mark on the same instruction has already opened or closed its region.
        if let Some(stream) = &mut self.stream {
            for (at, insn) in block.insns.iter().enumerate() {
                out.insn(at, Callback::Insn, stream.number(insn));
                out.push(Some(at), HookAction::Touch);
            }
        }
        if block.ending == BlockEnding::ReadClock {
            self.after_clock.insert(block.info.end);
        }
    }

    /// Appends the hooks at the block's beginning. Order: checks of the previous block and the
    /// clock, then the counts of this block, then callbacks that need them.
    fn plan_start(&mut self, block: &BlockToPlan, out: &mut HookList) {
        let BlockInfo { start, user, .. } = *block.info;
        if let ([alone], BlockFlow::Straight) = (block.insns, block.info.flow) {
            if GuestIsa::stores(alone) {
                self.rewrites.insert(block.id, GuestIsa::decode(alone));
                out.block(Callback::Rewrite, block.id);
            }
        }
        if self.after_clock.contains(&start) {
            out.block(Callback::Clock, block.id);
        }
        let entry = self.functions.starting(start).filter(|_| !user);
        match entry.map(|function| self.functions.kind(function)) {
            Some(FunctionKind::Interrupt) => out.block(Callback::Interrupt, block.id),
            Some(FunctionKind::Exception) => out.block(Callback::Exception, block.id),
            _ if self.unpacking => {}
            _ if self.has_model || (self.capture.edges && !user) => {
                out.block_unless(offset_of!(InlineCounters, next), start, Callback::Jump, block.id);
            }
            _ => {}
        }
        if block.insns.len() == 1 && block.info.flow == BlockFlow::Straight {
            out.push(Some(0), HookAction::Access { block: block.id });
        }
        if user || self.follows_branches() {
            out.push(
                None,
                HookAction::Store {
                    field: offset_of!(InlineCounters, block),
                    value: block.info.stored_number(block.id),
                },
            );
        }
        let field = if user { offset_of!(InlineCounters, user) } else { offset_of!(InlineCounters, kernel) };
        out.push(None, HookAction::Add { field, value: block.insns.len() as u64 });
        if !self.follows_branches() && block.info.flow == BlockFlow::Straight {
            out.block(Callback::Announce, block.id);
        }
        if self.capture.edges && !user && (block.id as usize) < MAX_BLOCKS {
            out.push(None, HookAction::Count { block: block.id });
        }
        if !self.capture.functions {
            return;
        }
        let call = offset_of!(InlineCounters, call);
        if user {
            if !self.binaries.is_empty() && !self.place(block, start).traced {
                out.block_unless(call, 1, Callback::Left, 1);
            }
        } else if !self.functions.covers(start) {
            let around = self.functions.containing(start);
            if self.functions.traced(around) {
                out.block_unless(call, 0, self.entry(), around);
            }
        } else if entry.is_some() && self.landing(start) == JumpLanding::Left {
            if self.functions.guarded(start) {
                out.block_unless(call, 1, Callback::Left, 0);
            } else {
                self.unguarded.insert(start);
            }
        }
    }

    /// Appends the hooks of single instructions.
    fn plan_instructions(&mut self, block: &BlockToPlan, out: &mut HookList) {
        let user = block.info.user;
        let watched = self.capture.functions && (!user || block.page.is_some());
        for (at, insn) in block.insns.iter().enumerate() {
            if self.data {
                if let Some(part) = GuestIsa::forgotten_translations(insn) {
                    out.insn(at, Callback::Forget, (part == ForgottenTranslations::All).into());
                }
                out.push(Some(at), HookAction::Data { code: insn.address });
            }
            if user {
                if let Some(mark) = GuestIsa::mark(insn) {
                    out.insn(at, Callback::Mark, mark as u32);
                }
            }
            if let Some(tags) = self.tags {
                match GuestIsa::tag(tags, insn) {
                    Some(TagAccess::Tag(tag)) => out.insn(at, Callback::Tag, tag),
                    Some(TagAccess::Port { check }) => out.insn(at, Callback::PortTag, check.into()),
                    None => {}
                }
            }
            if let Some(&load) = self.loads.get(&insn.address).filter(|_| !user) {
                out.insn(at, Callback::Load, load);
            }
            if !watched {
                continue;
            }
            let place = self.place(block, insn.address);
            if let Some(function) = place.starting {
                let kind = if user { FunctionKind::Plain } else { self.functions.kind(function) };
                let fallen_into = self.selective(user) && self.fallen_into(block, at);
                if place.traced && fallen_into {
                    out.set_call_flag(at, 0);
                } else if !place.traced && !user && (fallen_into || kind == FunctionKind::Label) {
                    out.set_call_flag(at, 1);
                }
                if kind == FunctionKind::Syscall && !self.binaries.is_empty() {
                    out.insn(at, Callback::System, function);
                }
                match kind {
                    FunctionKind::SwitchTo => out.insn(at, Callback::Switch, function),
                    // A return thunk's instructions belong to the function that returns.
                    FunctionKind::ReturnThunk if self.stack_pointer => {}
                    FunctionKind::Plain if place.traced && !user && !self.stack_pointer => {
                        out.insn(at, Callback::PlainEntry, function);
                    }
                    _ if place.traced => out.insn(at, self.entry(), function),
                    _ => {}
                }
                if !user && self.functions.probe(function).is_some() {
                    out.insn(at, Callback::Probe, function);
                }
                if kind == FunctionKind::Exec && !self.binaries.is_empty() {
                    out.insn(at, Callback::Exec, function);
                }
            }
            if let Some(&point) = self.points.get(&insn.address).filter(|_| !user) {
                out.insn(at, Callback::Point, point);
            }
        }
        self.plan_end(block, watched, out);
    }

    /// Appends the hooks of the last instruction.
    fn plan_end(&mut self, block: &BlockToPlan, watched: bool, out: &mut HookList) {
        let (Some(last), user) = (block.insns.last(), block.info.user) else { return };
        let at = block.insns.len() - 1;
        if self.follows_branches() {
            let next = match block.info.flow {
                BlockFlow::Opaque => 0,
                BlockFlow::Branch(BranchKind::Conditional) if self.directions => not_taken(last.end()),
                _ => last.end(),
            };
            out.push(Some(at), HookAction::Store { field: offset_of!(InlineCounters, next), value: next });
        }
        if block.ending == BlockEnding::Halt && !user {
            out.insn(at, Callback::Halt, 0);
        }
        if !watched {
            return;
        }
        let place = self.place(block, last.address);
        let kind = if user { FunctionKind::Plain } else { self.functions.kind(place.containing) };
        let selective = self.selective(user);
        match block.ending {
            // Otherwise the flag is already 1.
            BlockEnding::Call { target } if place.traced || user || !selective => {
                // A call to a label inside a function (return stack stuffing, or reading the own
                // address) is not a call of a function.
                let to_label = |t| match self.functions.starting(t) {
                    None => !user && self.functions.covers(t),
                    // Nothing would clear the flag there.
                    Some(function) => {
                        let kind = self.functions.kind(function);
                        !user && self.stack_pointer && kind == FunctionKind::ReturnThunk
                    }
                };
                if !target.is_some_and(to_label) {
                    out.set_call_flag(at, 1);
                }
            }
            BlockEnding::Jump { target }
                if selective && place.traced && self.leaves(block, place, target) =>
            {
                match target {
                    _ if user => out.set_call_flag(at, 0),
                    Some(target) => self.jump(block, at, target, out),
                    None => {
                        let number = self.jump_number(last);
                        out.push(
                            Some(at),
                            HookAction::Call { callback: Callback::Indirect, number, rest: 0 },
                        );
                    }
                }
            }
            BlockEnding::Return if place.traced => {
                if selective {
                    out.set_call_flag(at, u64::from(kind != FunctionKind::Thunk));
                }
                // The `ret` of a retpoline thunk is a jump.
                if kind != FunctionKind::Thunk {
                    let callback = if self.stack_pointer { Callback::ReturnAt } else { Callback::Return };
                    out.insn(at, callback, place.containing);
                }
            }
            // In C code `iretq` serializes (sync_core) and does not end an interrupt.
            BlockEnding::InterruptReturn if !user && kind != FunctionKind::Plain => {
                out.insn(at, Callback::InterruptReturn, 0);
            }
            BlockEnding::SystemReturn if !user => out.insn(at, Callback::SystemReturn, 0),
            BlockEnding::Other
                if selective
                    && place.traced
                    && block.info.flow == BlockFlow::Straight
                    && self.leaves(block, place, Some(last.end())) =>
            {
                let traced = user || self.landing(last.end()) == JumpLanding::Traced;
                out.set_call_flag(at, u64::from(!traced));
            }
            _ => {}
        }
    }

    /// Appends the hooks of the block's last instruction, a jump from traced kernel code that may
    /// leave its function.
    fn jump(&mut self, block: &BlockToPlan, at: usize, target: u64, out: &mut HookList) {
        match self.landing(target) {
            JumpLanding::Traced => out.set_call_flag(at, 0),
            JumpLanding::Through => out.set_call_flag(at, 1),
            JumpLanding::Left if block.info.flow == BlockFlow::Branch(BranchKind::Conditional) => {
                if self.unguarded.contains(&target) {
                    self.unguarded_jumps += 1;
                } else {
                    self.functions.guard(target);
                }
                out.set_call_flag(at, 0);
            }
            // The jump instruction itself still belongs to the function.
            JumpLanding::Left => {
                out.push(Some(at), HookAction::Call { callback: Callback::Left, number: 0, rest: 0 });
            }
        }
    }

    /// Returns the index of a jump in [`HookPlanner::jumps`].
    fn jump_number(&mut self, jump: &Insn) -> u32 {
        let jump = GuestIsa::decode(jump);
        let place = self.jumps.iter().position(|known| *known == jump);
        place.unwrap_or_else(|| {
            self.jumps.push(jump);
            self.jumps.len() - 1
        }) as u32
    }
}

/// Returns the value of [`InlineCounters::next`] after a conditional branch if directions are
/// predicted.
///
/// No block begins at this address, so [`Callback::Jump`] is called whether the branch is taken or
/// not. The address is inverted into the other half of the address space, where no branch leads.
pub fn not_taken(next: u64) -> u64 {
    !next
}

/// List of hooks under construction.
struct HookList<'a> {
    hooks: &'a mut Vec<Hook>,
    /// Number of instructions in the block.
    rest: usize,
}

impl HookList<'_> {
    fn push(&mut self, at: Option<usize>, action: HookAction) {
        self.hooks.push(Hook { at, action });
    }

    fn block(&mut self, callback: Callback, number: u32) {
        self.push(None, HookAction::Call { callback, number, rest: self.rest });
    }

    fn block_unless(&mut self, field: usize, value: u64, callback: Callback, number: u32) {
        self.push(None, HookAction::CallUnless { field, value, callback, number, rest: self.rest });
    }

    /// Appends a store of the call flag.
    fn set_call_flag(&mut self, at: usize, value: u64) {
        self.push(Some(at), HookAction::Store { field: offset_of!(InlineCounters, call), value });
    }

    fn insn(&mut self, at: usize, callback: Callback, number: u32) {
        self.push(Some(at), HookAction::Call { callback, number, rest: self.rest - at });
    }
}
