//! What is to happen when a translated block runs (pure).
//!
//! # The call flag
//!
//! [`Board::call`] says, when a function's first instruction runs, whether a call led there. Where
//! everything is traced a call instruction sets it and the entry that it leads to takes it. Where some
//! code is not traced, it is a statement on the code that runs:
//!
//! - traced code runs with 0 or 1, and says 0 before it jumps to where a traced function begins, and 1
//!   before it calls or returns;
//! - code that is not traced runs with 1: whatever it enters, by call or jump, returns to code that is
//!   not traced, so that the entry is a call and its return ends it alone.
//!
//! A jump out of traced code to a function that is not traced is a tail call: the return of that function,
//! which nobody will see, will end the frame of the code that jumped. That frame ends right there
//! ([`Callback::Left`]), and 1 is said for what follows. In the kernel it is the code that jumps that says so:
//! the target is in the instruction, or is read from the CPU ([`Callback::Indirect`]), so that code that is not
//! traced costs nothing but its count. Only of a conditional jump is it not known in advance where it leads:
//! it says 0, and the functions that such jumps lead to look whether they were entered with 0
//! ([`Functions::guarded`]). User code that is not traced has no known functions, there it is looked for at
//! each block.
//!
//! Labels of assembly code are functions only if they are called: they do not end frames. Interrupts
//! save the flag and bring it back, as the kernel does for user code.

use crate::blocks::BlockInfo;
use crate::board::Board;
use crate::functions::Functions;
use crate::stream::Stream;
use crate::user::{Binaries, Page};
use kerntune_isa::{Decoded, Ending, Flow, Guest, Insn, Isa, TagAccess};
use kerntune_trace::counts::EdgeKind;
use kerntune_trace::{Capture, FunctionKind, TagWindow};
use std::collections::{HashMap, HashSet};
use std::mem::offset_of;

/// Blocks that have a counter of their own.
pub const MAX_BLOCKS: usize = 1 << 22;

/// What is called back. The hook's number is the function's, the block's or as said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Callback {
    /// The block (number), whose only instruction writes to memory, begins.
    Rewrite,
    /// The block (number) after an `rdtsc` begins.
    Clock,
    /// The block (number) of an interrupt's first instruction begins.
    Interrupt,
    /// The same of an exception.
    Exception,
    /// The block (number), whose last instruction does not end every block, begins, and is counted.
    Announce,
    /// Control reaches the block (number) from elsewhere than the block before it in memory, or by a conditional branch
    /// where directions are guessed.
    Jump,
    /// A function's first instruction.
    Entry,
    /// The same where the stack pointer says whether it was called.
    EntryAt,
    /// A traced function was left by a jump to code that is not traced, of the user's if the number
    /// is not 0.
    Left,
    /// A jump of traced kernel code, whose target is in a register or in memory: the place in
    /// [`Planner::jumps`].
    Indirect,
    /// `__switch_to_asm`'s first instruction.
    Switch,
    /// The first instruction of a function whose arguments are looked at, after its entry.
    Probe,
    /// A system call's first instruction, before its entry.
    System,
    /// The thread's program is about to be replaced.
    Exec,
    /// `ret` inside of the function.
    Return,
    /// The same where the stack pointer says which function returns.
    ReturnAt,
    /// `iretq`.
    InterruptReturn,
    /// `sysretq`.
    SystemReturn,
    /// `hlt`.
    Halt,
    /// A mark; the number is [`kerntune_trace::mark::Mark`]'s place.
    Mark,
    /// An inline point (number).
    Point,
    /// An event tag (number) of McRae's profiler.
    Tag,
    /// An event tag in `ax`, for the port in `dx` if the number is not 0.
    PortTag,
    /// An instruction that is written down, by its number in the stream's list.
    Insn,
}

impl Callback {
    /// Whether it looks at registers or memory.
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
                    | System
                    | Mark
                    | PortTag
            )
    }
}

/// What a hook does. Fields are offsets in [`Board`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Calls back with a number and the count of instructions from there to the block's end.
    Call {
        /// What is called.
        callback: Callback,
        /// The number that it is called with.
        number: u32,
        /// Instructions from there to the block's end; 0 if the callback does not ask for them.
        rest: usize,
    },
    /// The same unless the field has this value. Of blocks only.
    CallUnless {
        /// The field, as its offset in bytes.
        field: usize,
        /// The value with which nothing is called.
        value: u64,
        /// What is called.
        callback: Callback,
        /// The number that it is called with.
        number: u32,
        /// Instructions of the block.
        rest: usize,
    },
    /// Stores into the field.
    Store {
        /// The field, as its offset in bytes.
        field: usize,
        /// What is stored.
        value: u64,
    },
    /// Adds to the field.
    Add {
        /// The field, as its offset in bytes.
        field: usize,
        /// What is added.
        value: u64,
    },
    /// Counts the block.
    Count {
        /// The block's number.
        block: u32,
    },
    /// Calls back with the block's number when its only instruction reads or writes memory.
    ///
    /// Under icount QEMU finds only on the way that an instruction in the middle of a block reaches a
    /// device: it leaves the block there, executes the instruction as a block of its own of which it
    /// instruments nothing but memory (`CF_MEMI_ONLY`), and goes on after it with the next block.
    Access {
        /// The block's number.
        block: u32,
    },
    /// Calls back with the instruction's address each time that it reads or writes memory.
    Data {
        /// The address.
        code: u64,
    },
    /// Calls back each time that the instruction reads or writes memory: accesses are written down.
    Touch,
}

/// An action and its place: before the block (`None`) or before one of its instructions.
///
/// Those of one place happen in the order in which they are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hook {
    /// The instruction's index in the block, from 0; `None`: before the block.
    pub at: Option<usize>,
    /// What happens there.
    pub action: Action,
}

/// All that decides which hooks a block gets.
pub struct Planner {
    pub functions: Functions,
    pub binaries: Binaries,
    pub capture: Capture,
    pub has_model: bool,
    /// Whether accesses to data are followed.
    pub data: bool,
    /// Until the kernel's image runs. Models begin with it: what boots the machine and unpacks the kernel is most jumps of a boot, and
    /// leaves nothing in caches and TLBs that the kernel's own boot does not replace.
    pub unpacking: bool,
    /// Whether conditional branches that are not taken are told of, too.
    pub directions: bool,
    /// Whether the stack pointer says what is called and what returns.
    pub stack_pointer: bool,
    /// Kernel addresses of inline points.
    pub points: HashMap<u64, u32>,
    pub tags: Option<TagWindow>,
    /// Where instructions are written down, if they are.
    pub stream: Option<Stream>,
    /// Jumps of traced kernel code whose target is in a register or in memory.
    pub jumps: Vec<Decoded>,
    /// Conditional jumps out of traced code to functions that do not look for them.
    pub unguarded_jumps: u64,
    /// The only instructions of blocks that write to memory, by the block's number.
    pub rewrites: HashMap<u32, Decoded>,
    /// Addresses after an `rdtsc`.
    after_clock: HashSet<u64>,
    /// First instructions of functions that do not look for jumps to them and have been translated.
    unguarded: HashSet<u64>,
}

/// Where a jump out of traced kernel code leads, in a selection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Landing {
    /// Code that is traced.
    Traced,
    /// A function that is not: the frame that jumped has ended.
    Left,
    /// The middle of code that is not traced, on behalf of the code that jumped.
    Through,
}

/// A block on its way to be instrumented.
pub struct Block<'a> {
    pub id: u32,
    pub info: &'a BlockInfo,
    pub insns: &'a [Insn],
    pub ending: Ending,
    /// The page of a traced binary that it is in, of user code.
    pub page: Option<Page>,
}

/// What an address is, seen by the planner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    /// The function whose first instruction it is.
    starting: Option<u32>,
    /// The function that it is in.
    containing: u32,
    /// Whether that function is traced.
    traced: bool,
}

impl Planner {
    pub fn new(functions: Functions, binaries: Binaries, capture: Capture, has_model: bool) -> Self {
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
            tags: None,
            stream: None,
            jumps: Vec::new(),
            unguarded_jumps: 0,
            rewrites: HashMap::new(),
            after_clock: HashSet::new(),
            unguarded: HashSet::new(),
        }
    }

    /// Whether every block says its number and where it ends. Otherwise user blocks say their number,
    /// and blocks whose end another block might run over are announced, see [`Recorder::running`].
    ///
    /// [`Recorder::running`]: crate::recorder::Recorder::running
    pub fn follows_branches(&self) -> bool {
        self.has_model || self.capture.edges
    }

    /// What is called at a function's first instruction.
    fn entry(&self) -> Callback {
        match self.stack_pointer {
            true => Callback::EntryAt,
            false => Callback::Entry,
        }
    }

    /// Whether the flag is needed for more than entries by call.
    fn selective(&self, user: bool) -> bool {
        user || self.functions.is_selection()
    }

    fn place(&self, block: &Block, address: u64) -> Place {
        if block.info.user {
            let Some(page) = block.page else {
                return Place { starting: None, containing: 0, traced: false };
            };
            let (starting, containing) = self.binaries.at(page, address);
            return Place { starting, containing: containing.unwrap_or(0), traced: containing.is_some() };
        }
        let containing = self.functions.containing(address);
        Place {
            starting: self.functions.starting(address),
            containing,
            traced: self.functions.traced(containing),
        }
    }

    /// Whether a jump from `place` to `target` may lead to where a function begins.
    fn leaves(&self, block: &Block, place: Place, target: Option<u64>) -> bool {
        let Some(target) = target else { return true };
        if Guest::is_kernel(target) == block.info.user {
            return true;
        }
        let there = self.place(block, target);
        there.starting.is_some() || (there.containing, there.traced) != (place.containing, place.traced)
    }

    /// Where a jump of traced kernel code to `target` leads.
    pub fn landing(&self, target: u64) -> Landing {
        if !Guest::is_kernel(target) {
            return Landing::Through;
        }
        if self.functions.traced(self.functions.containing(target)) {
            return Landing::Traced;
        }
        if !self.functions.covers(target) {
            return Landing::Left;
        }
        match self.functions.starting(target).map(|function| self.functions.kind(function)) {
            None | Some(FunctionKind::Label) => Landing::Through,
            Some(_) => Landing::Left,
        }
    }

    /// Whether the instruction before the one at `at` is traced code of the same block.
    fn fallen_into(&self, block: &Block, at: usize) -> bool {
        let before = at.checked_sub(1).and_then(|at| block.insns.get(at));
        before.is_some_and(|insn| self.place(block, insn.address).traced)
    }

    /// Appends the block's hooks.
    pub fn plan(&mut self, block: &Block, hooks: &mut Vec<Hook>) {
        let mut out = Hooks { hooks, rest: block.insns.len() };
        self.whole(block, &mut out);
        self.instructions(block, &mut out);
        // A mark on the same instruction has opened or closed the region by then.
        if let Some(stream) = &mut self.stream {
            for (at, insn) in block.insns.iter().enumerate() {
                out.insn(at, Callback::Insn, stream.number(insn));
                out.push(Some(at), Action::Touch);
            }
        }
        if block.ending == Ending::ReadClock {
            self.after_clock.insert(block.info.end);
        }
    }

    /// What happens when the block begins, in this order: looks at the block before and at the
    /// clock, then the counts of this one, then what needs them.
    fn whole(&mut self, block: &Block, out: &mut Hooks) {
        let BlockInfo { start, user, .. } = *block.info;
        if let ([alone], Flow::Straight) = (block.insns, block.info.flow) {
            if Guest::stores(alone) {
                self.rewrites.insert(block.id, Guest::decode(alone));
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
                out.block_unless(offset_of!(Board, next), start, Callback::Jump, block.id);
            }
            _ => {}
        }
        if block.insns.len() == 1 && block.info.flow == Flow::Straight {
            out.push(Some(0), Action::Access { block: block.id });
        }
        if user || self.follows_branches() {
            out.push(None, Action::Store { field: offset_of!(Board, block), value: block.id.into() });
        }
        let field = if user { offset_of!(Board, user) } else { offset_of!(Board, kernel) };
        out.push(None, Action::Add { field, value: block.insns.len() as u64 });
        if !self.follows_branches() && block.info.flow == Flow::Straight {
            out.block(Callback::Announce, block.id);
        }
        if self.capture.edges && !user && (block.id as usize) < MAX_BLOCKS {
            out.push(None, Action::Count { block: block.id });
        }
        if !self.capture.functions {
            return;
        }
        let call = offset_of!(Board, call);
        if user {
            if !self.binaries.is_empty() && !self.place(block, start).traced {
                out.block_unless(call, 1, Callback::Left, 1);
            }
        } else if !self.functions.covers(start) {
            let unknown = self.functions.unknown();
            if self.functions.traced(unknown) {
                out.block_unless(call, 0, self.entry(), unknown);
            }
        } else if entry.is_some() && self.landing(start) == Landing::Left {
            if self.functions.guarded(start) {
                out.block_unless(call, 1, Callback::Left, 0);
            } else {
                self.unguarded.insert(start);
            }
        }
    }

    /// What happens at single instructions.
    fn instructions(&mut self, block: &Block, out: &mut Hooks) {
        let user = block.info.user;
        let watched = self.capture.functions && (!user || block.page.is_some());
        for (at, insn) in block.insns.iter().enumerate() {
            if self.data {
                out.push(Some(at), Action::Data { code: insn.address });
            }
            if user {
                if let Some(mark) = Guest::mark(insn) {
                    out.insn(at, Callback::Mark, mark as u32);
                }
            }
            if let Some(window) = self.tags {
                match Guest::tag(window, insn) {
                    Some(TagAccess::Tag(tag)) => out.insn(at, Callback::Tag, tag.into()),
                    Some(TagAccess::Port { check }) => out.insn(at, Callback::PortTag, check.into()),
                    None => {}
                }
            }
            if !watched {
                continue;
            }
            let place = self.place(block, insn.address);
            if let Some(function) = place.starting {
                let kind = if user { FunctionKind::Plain } else { self.functions.kind(function) };
                let fallen_into = self.selective(user) && self.fallen_into(block, at);
                if place.traced && fallen_into {
                    out.say(at, 0);
                } else if !place.traced && !user && (fallen_into || kind == FunctionKind::Label) {
                    out.say(at, 1);
                }
                if kind == FunctionKind::Syscall && !self.binaries.is_empty() {
                    out.insn(at, Callback::System, function);
                }
                match kind {
                    FunctionKind::SwitchTo => out.insn(at, Callback::Switch, function),
                    // Its instructions are those of the function that returns.
                    FunctionKind::ReturnThunk if self.stack_pointer => {}
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
        self.end(block, watched, out);
    }

    /// What happens at the last instruction.
    fn end(&mut self, block: &Block, watched: bool, out: &mut Hooks) {
        let (Some(last), user) = (block.insns.last(), block.info.user) else { return };
        let at = block.insns.len() - 1;
        if self.follows_branches() {
            let next = match block.info.flow {
                Flow::Opaque => 0,
                Flow::Branch(EdgeKind::Conditional) if self.directions => not_taken(last.end()),
                _ => last.end(),
            };
            out.push(Some(at), Action::Store { field: offset_of!(Board, next), value: next });
        }
        if block.ending == Ending::Halt && !user {
            out.insn(at, Callback::Halt, 0);
        }
        if !watched {
            return;
        }
        let place = self.place(block, last.address);
        let kind = if user { FunctionKind::Plain } else { self.functions.kind(place.containing) };
        let selective = self.selective(user);
        match block.ending {
            // Elsewhere the flag is 1.
            Ending::Call { target } if place.traced || user || !selective => {
                // A call to a label inside a function (return stack stuffing, finding the own
                // address) is no call of a function.
                let to_label = |t| match self.functions.starting(t) {
                    None => !user && self.functions.covers(t),
                    // Nothing would take the flag.
                    Some(function) => {
                        let kind = self.functions.kind(function);
                        !user && self.stack_pointer && kind == FunctionKind::ReturnThunk
                    }
                };
                if !target.is_some_and(to_label) {
                    out.say(at, 1);
                }
            }
            Ending::Jump { target } if selective && place.traced && self.leaves(block, place, target) => {
                match target {
                    _ if user => out.say(at, 0),
                    Some(target) => self.jump(block, at, target, out),
                    None => {
                        let number = self.jump_number(last);
                        out.push(Some(at), Action::Call { callback: Callback::Indirect, number, rest: 0 });
                    }
                }
            }
            Ending::Return if place.traced => {
                if selective {
                    out.say(at, u64::from(kind != FunctionKind::Thunk));
                }
                // A thunk's is a jump.
                if kind != FunctionKind::Thunk {
                    let callback = if self.stack_pointer { Callback::ReturnAt } else { Callback::Return };
                    out.insn(at, callback, place.containing);
                }
            }
            // In C code `iretq` is a way to serialise (sync_core), not the end of an interrupt.
            Ending::InterruptReturn if !user && kind != FunctionKind::Plain => {
                out.insn(at, Callback::InterruptReturn, 0);
            }
            Ending::SystemReturn if !user => out.insn(at, Callback::SystemReturn, 0),
            Ending::Other
                if selective
                    && place.traced
                    && block.info.flow == Flow::Straight
                    && self.leaves(block, place, Some(last.end())) =>
            {
                let traced = user || self.landing(last.end()) == Landing::Traced;
                out.say(at, u64::from(!traced));
            }
            _ => {}
        }
    }

    /// What happens at the block's last instruction, a jump of traced kernel code that may leave it.
    fn jump(&mut self, block: &Block, at: usize, target: u64, out: &mut Hooks) {
        match self.landing(target) {
            Landing::Traced => out.say(at, 0),
            Landing::Through => out.say(at, 1),
            Landing::Left if block.info.flow == Flow::Branch(EdgeKind::Conditional) => {
                if self.unguarded.contains(&target) {
                    self.unguarded_jumps += 1;
                } else {
                    self.functions.guard(target);
                }
                out.say(at, 0);
            }
            // The jump itself is still the function's.
            Landing::Left => {
                out.push(Some(at), Action::Call { callback: Callback::Left, number: 0, rest: 0 });
            }
        }
    }

    /// The place of a jump in [`Planner::jumps`].
    fn jump_number(&mut self, jump: &Insn) -> u32 {
        let jump = Guest::decode(jump);
        let place = self.jumps.iter().position(|known| *known == jump);
        place.unwrap_or_else(|| {
            self.jumps.push(jump);
            self.jumps.len() - 1
        }) as u32
    }
}

/// What [`Board::next`] says after a conditional branch where directions are guessed: no block begins there, so that
/// [`Callback::Jump`] is called whether it is taken or not. Addresses of one half are turned into those of the other,
/// where no branch leads.
pub fn not_taken(next: u64) -> u64 {
    !next
}

/// The list under way.
struct Hooks<'a> {
    hooks: &'a mut Vec<Hook>,
    /// Instructions of the block.
    rest: usize,
}

impl Hooks<'_> {
    fn push(&mut self, at: Option<usize>, action: Action) {
        self.hooks.push(Hook { at, action });
    }

    fn block(&mut self, callback: Callback, number: u32) {
        self.push(None, Action::Call { callback, number, rest: self.rest });
    }

    fn block_unless(&mut self, field: usize, value: u64, callback: Callback, number: u32) {
        self.push(None, Action::CallUnless { field, value, callback, number, rest: self.rest });
    }

    /// Stores the call flag.
    fn say(&mut self, at: usize, value: u64) {
        self.push(Some(at), Action::Store { field: offset_of!(Board, call), value });
    }

    fn insn(&mut self, at: usize, callback: Callback, number: u32) {
        self.push(Some(at), Action::Call { callback, number, rest: self.rest - at });
    }
}
