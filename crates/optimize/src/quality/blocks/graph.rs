//! Control flow of one function's machine code.

use crate::quality::shape::{fingerprint, is_padding, remove_hook, BranchTarget};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

/// End of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::quality) enum BlockExit {
    /// Control goes on to the next block without a branch.
    Next,
    /// Conditional branch inside the function.
    Conditional,
    /// Conditional branch to the code at this address outside of the function.
    ConditionalLeave(u64),
    /// Jump inside the function.
    Jump,
    /// Jump to the code at this address outside of the function.
    Leave(u64),
    /// Jump through a register or memory.
    IndirectJump,
    /// Call of the code at this address.
    Call(u64),
    /// Call through a register or memory.
    IndirectCall,
    /// String instruction with a prefix, which repeats itself.
    Repeat,
    /// NOP that the kernel may replace with a jump at run time.
    Patched,
    /// Return, trap, halt.
    End,
}

impl BlockExit {
    /// Checks whether both have the same kind.
    pub fn is_like(self, other: Self) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }

    /// Checks whether control can reach the next block.
    fn goes_on(self) -> bool {
        !matches!(self, Self::Jump | Self::Leave(_) | Self::IndirectJump | Self::End)
    }
}

/// Way of control from one block to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::quality) enum EdgeRole {
    /// To the next block, by address.
    Fall,
    /// By a taken branch.
    Taken,
}

/// Way of control between two blocks of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::quality) struct GraphEdge {
    /// Numbers of the blocks.
    pub from: usize,
    pub to: usize,
    /// Kind of the way.
    pub role: EdgeRole,
}

/// Greatest offset into a structure; beyond are addresses.
const MAX_OFFSET: u64 = 1 << 20;

/// Number of hashes of a block's contents, without NOPs and addresses, strongest first: everything; without
/// constants and offsets; without registers; mnemonics in order; kinds of uncommon mnemonics; names of
/// called functions.
pub(in crate::quality) const STRENGTHS: usize = 6;

/// Basic block.
#[derive(Debug, Clone)]
pub(in crate::quality) struct CodeBlock {
    /// Address of the first byte.
    pub start: u64,
    /// Address of the last instruction.
    pub last: u64,
    /// Address behind the last byte.
    pub end: u64,
    /// Number of instructions.
    pub instructions: u64,
    /// Kind of the end.
    pub exit: BlockExit,
    /// Instructions that tell blocks apart: all except NOPs and direct jumps.
    pub content: usize,
    /// Checks whether it calls a function with a known name.
    pub has_call: bool,
    /// Hashes ([`STRENGTHS`]); `None` where nothing is left to compare.
    pub hashes: [Option<u64>; STRENGTHS],
}

/// Blocks of a function, by address, and the ways between them.
#[derive(Debug, Clone, Default)]
pub(in crate::quality) struct CodeGraph {
    pub blocks: Vec<CodeBlock>,
    /// Sorted by source, kind and target.
    pub edges: Vec<GraphEdge>,
    /// Numbers of the edges that leave and that enter each block.
    pub leaving: Vec<Vec<usize>>,
    pub entering: Vec<Vec<usize>>,
}

impl CodeGraph {
    /// Disassembles a function that begins at `address`. `named` returns the name of the function at
    /// an address. `seen` are branches of the function that were taken, source and target: they show
    /// targets of indirect jumps and of code that the kernel patched.
    pub fn of<'a>(
        code: &[u8],
        address: u64,
        named: impl Fn(u64) -> Option<&'a str>,
        seen: &[(u64, u64)],
    ) -> Self {
        let mut body: Vec<Instruction> =
            Decoder::with_ip(64, code, address, DecoderOptions::NONE).iter().collect();
        while body.last().is_some_and(is_padding) {
            body.pop();
        }
        let hook = remove_hook(&mut body, &named);
        let mut number: HashMap<u64, usize> = body.iter().zip(0..).map(|(i, at)| (i.ip(), at)).collect();
        if let Some((at, hook)) = &hook {
            number.insert(hook.ip(), *at);
        }
        let mut leaders = BTreeSet::from([0]);
        let mut jumps: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        let exits: Vec<BlockExit> = body.iter().map(|instruction| exit(instruction, &number)).collect();
        for (at, (instruction, exit)) in body.iter().zip(&exits).enumerate() {
            if *exit != BlockExit::Next {
                leaders.insert(at + 1);
            }
            match exit {
                BlockExit::Conditional | BlockExit::Jump => {
                    if let Some(&target) = number.get(&instruction.near_branch_target()) {
                        leaders.insert(target);
                        jumps.entry(at).or_default().insert(target);
                    }
                }
                BlockExit::Repeat => {
                    leaders.insert(at);
                    jumps.entry(at).or_default().insert(at);
                }
                _ => {}
            }
        }
        for (source, target) in seen {
            let (Some(&source), Some(&target)) = (number.get(source), number.get(target)) else { continue };
            leaders.extend([source + 1, target]);
            if !matches!(exits[source], BlockExit::Call(_) | BlockExit::IndirectCall) {
                jumps.entry(source).or_default().insert(target);
            }
        }
        let firsts: Vec<usize> = leaders.into_iter().filter(|at| *at < body.len()).collect();
        let after = firsts.iter().skip(1).copied().chain([body.len()]);
        let blocks: Vec<CodeBlock> = firsts
            .iter()
            .zip(after)
            .map(|(&first, end)| {
                let mut block = block(&body[first..end], exits[end - 1], &named, &number);
                if let Some((_, hook)) = hook.as_ref().filter(|(at, _)| *at == first) {
                    block.start = hook.ip();
                }
                block
            })
            .collect();
        let of = |instruction: usize| firsts.partition_point(|first| *first <= instruction) - 1;
        let mut edges = BTreeSet::new();
        for (at, targets) in &jumps {
            edges.extend(targets.iter().map(|target| (of(*at), EdgeRole::Taken, of(*target))));
        }
        for (at, block) in blocks.iter().enumerate() {
            if block.exit.goes_on() && at + 1 < blocks.len() {
                edges.insert((at, EdgeRole::Fall, at + 1));
            }
        }
        let edges = edges.into_iter().map(|(from, role, to)| GraphEdge { from, to, role }).collect();
        Self::linked(blocks, edges)
    }

    fn linked(blocks: Vec<CodeBlock>, edges: Vec<GraphEdge>) -> Self {
        let (mut leaving, mut entering) = (vec![Vec::new(); blocks.len()], vec![Vec::new(); blocks.len()]);
        for (at, edge) in edges.iter().enumerate() {
            leaving[edge.from].push(at);
            entering[edge.to].push(at);
        }
        Self { blocks, edges, leaving, entering }
    }

    /// Adds ways by taken branches that the code alone does not show.
    pub fn with(self, more: impl IntoIterator<Item = (usize, usize)>) -> Self {
        let mut edges: BTreeSet<(usize, EdgeRole, usize)> =
            self.edges.iter().map(|edge| (edge.from, edge.role, edge.to)).collect();
        edges.extend(more.into_iter().map(|(from, to)| (from, EdgeRole::Taken, to)));
        let edges = edges.into_iter().map(|(from, role, to)| GraphEdge { from, to, role }).collect();
        Self::linked(self.blocks, edges)
    }

    /// Returns the target of the edge from `from` with a role; `None` with none or several.
    pub fn successor(&self, from: usize, role: EdgeRole) -> Option<usize> {
        let mut to = self.leaving[from].iter().map(|at| self.edges[*at]).filter(|edge| edge.role == role);
        to.next().filter(|_| to.next().is_none()).map(|edge| edge.to)
    }
}

/// Returns the kind of a block's end after an instruction.
fn exit(instruction: &Instruction, number: &HashMap<u64, usize>) -> BlockExit {
    let inside = || number.contains_key(&instruction.near_branch_target());
    match instruction.flow_control() {
        FlowControl::ConditionalBranch if inside() => BlockExit::Conditional,
        FlowControl::ConditionalBranch => BlockExit::ConditionalLeave(instruction.near_branch_target()),
        FlowControl::UnconditionalBranch if inside() => BlockExit::Jump,
        FlowControl::UnconditionalBranch => BlockExit::Leave(instruction.near_branch_target()),
        FlowControl::IndirectBranch => BlockExit::IndirectJump,
        FlowControl::Call if instruction.is_call_near() => BlockExit::Call(instruction.near_branch_target()),
        FlowControl::Call => BlockExit::Next,
        FlowControl::IndirectCall => BlockExit::IndirectCall,
        FlowControl::Next if instruction.has_rep_prefix() || instruction.has_repne_prefix() => {
            match instruction.is_string_instruction() {
                true => BlockExit::Repeat,
                false => BlockExit::Next,
            }
        }
        // Lengths of the jumps that may replace it.
        FlowControl::Next
            if instruction.mnemonic() == Mnemonic::Nop && matches!(instruction.len(), 2 | 5) =>
        {
            BlockExit::Patched
        }
        FlowControl::Next => BlockExit::Next,
        FlowControl::Interrupt | FlowControl::XbeginXabortXend => BlockExit::Next,
        FlowControl::Return | FlowControl::Exception => BlockExit::End,
    }
}

fn block<'a>(
    body: &[Instruction],
    exit: BlockExit,
    named: &impl Fn(u64) -> Option<&'a str>,
    number: &HashMap<u64, usize>,
) -> CodeBlock {
    let (first, last) = (&body[0], &body[body.len() - 1]);
    let mut full = DefaultHasher::new();
    let mut shape = DefaultHasher::new();
    let mut values = DefaultHasher::new();
    let mut opcodes = DefaultHasher::new();
    let mut kinds: BTreeSet<u32> = BTreeSet::new();
    let mut calls: Vec<&str> = Vec::new();
    let mut content = 0;
    for instruction in body {
        if matches!(instruction.mnemonic(), Mnemonic::Nop | Mnemonic::Endbr64) {
            continue;
        }
        if instruction.flow_control() == FlowControl::UnconditionalBranch
            && number.contains_key(&instruction.near_branch_target())
        {
            continue;
        }
        content += 1;
        let call = match instruction.flow_control() {
            FlowControl::Call | FlowControl::UnconditionalBranch => named(instruction.near_branch_target()),
            _ => None,
        };
        calls.extend(call);
        let goal = call.map(|name| BranchTarget::Function(name.to_string()));
        let same = fingerprint(instruction, goal.as_ref());
        same.hash(&mut full);
        constants(instruction, &mut full);
        same.hash(&mut shape);
        let mnemonic = normal(instruction);
        (mnemonic, call).hash(&mut values);
        constants(instruction, &mut values);
        (mnemonic, call).hash(&mut opcodes);
        if !is_common(instruction) {
            kinds.insert(mnemonic);
        }
    }
    let some = |hash: DefaultHasher| (content > 0).then(|| hash.finish());
    let of = |value: &dyn Fn(&mut DefaultHasher)| {
        let mut hash = DefaultHasher::new();
        value(&mut hash);
        hash.finish()
    };
    let loose =
        (!kinds.is_empty() || !calls.is_empty()).then(|| of(&|mut hash| (&kinds, &calls).hash(&mut hash)));
    let anchors = (!calls.is_empty()).then(|| of(&|mut hash| calls.hash(&mut hash)));
    CodeBlock {
        start: first.ip(),
        last: last.ip(),
        end: last.next_ip(),
        instructions: body.len() as u64,
        exit,
        content,
        has_call: !calls.is_empty(),
        hashes: [some(full), some(shape), some(values), some(opcodes), loose, anchors],
    }
}

/// Returns the number of an instruction's mnemonic. A condition and its opposite are one, since
/// they change with the order of blocks; so do `xor` and `mov` for a constant.
fn normal(instruction: &Instruction) -> u32 {
    if instruction.is_jcc_short_or_near() {
        let mut turned = *instruction;
        turned.negate_condition_code();
        return (instruction.mnemonic() as u32).min(turned.mnemonic() as u32);
    }
    instruction.mnemonic() as u32
}

/// Checks for instructions that depend on the allocation of registers and on the order of blocks
/// rather than on the source.
fn is_common(instruction: &Instruction) -> bool {
    use Mnemonic::{Jmp, Lea, Mov, Movsxd, Movzx, Pop, Push, Test, Xor};
    instruction.is_jcc_short_or_near()
        || matches!(instruction.mnemonic(), Jmp | Lea | Mov | Movsxd | Movzx | Pop | Push | Test | Xor)
}

/// Hashes constants, and offsets into structures, with the sizes of accesses.
fn constants(instruction: &Instruction, hash: &mut DefaultHasher) {
    for operand in 0..instruction.op_count() {
        match instruction.op_kind(operand) {
            OpKind::Memory => {
                let base = instruction.memory_base();
                let global = matches!(base, Register::RIP | Register::None);
                // The place of a variable on the stack is the compiler's choice.
                let stack = matches!(base, Register::RSP | Register::RBP);
                let offset = instruction.memory_displacement64();
                let is_address = (offset as i64).unsigned_abs() > MAX_OFFSET;
                let offset = if global || stack || is_address { 0 } else { offset };
                (1u8, offset, instruction.memory_size() as u32, global, stack).hash(hash);
            }
            OpKind::Register | OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64 => {}
            OpKind::Immediate8
            | OpKind::Immediate16
            | OpKind::Immediate32
            | OpKind::Immediate64
            | OpKind::Immediate8to16
            | OpKind::Immediate8to32
            | OpKind::Immediate8to64
            | OpKind::Immediate32to64 => {
                let value = instruction.immediate(operand);
                // Addresses of the image are no constants of the source.
                let is_address = (value as i64) < -(MAX_OFFSET as i64)
                    && instruction.op_kind(operand) == OpKind::Immediate32to64;
                (2u8, if is_address { 0 } else { value }).hash(hash);
            }
            _ => 3u8.hash(hash),
        }
    }
}
