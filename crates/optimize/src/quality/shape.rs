//! The shape of a function's code: what stays when a kernel is built again with something else changed.
//!
//! A call of `__fentry__` in front of a function's body, which the function tracer's configuration puts there, is taken for a
//! part of the instruction behind it: the tracer makes a NOP of it.
//!
//! Two functions have **the same instructions** if, one by one, these have the same mnemonic, prefixes, registers and
//! kinds of operands, and branches and calls go to the same place: the instruction of the same number inside the
//! function, a function of the same name outside. Constants, offsets into structures and addresses are left out, so
//! that a moved global, a longer structure or another limit changes nothing.
//!
//! They have **the same flow** if their basic blocks are as many, and end one by one in the same way (condition,
//! call, return …), to the block of the same number or a function of the same name. What the blocks do may
//! differ. Basic blocks end at branches, calls and returns, and where a branch of the function arrives. Targets of
//! indirect jumps are not known.
//!
//! Matching a profile to changed code by names, calls and block structure is after A. Ayupov, M. Panchenko,
//! S. Pupyrev: "Stale Profile Matching" (CC 2024); here a function is taken whole or not at all, and no
//! count is guessed.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};
use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

/// An instruction in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    /// Address of its first byte.
    pub address: u64,
    /// Bytes.
    pub length: u64,
    /// What of it counts; equal for equal ones.
    word: u64,
}

/// Where a branch or call goes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Goal {
    /// The number of an instruction, or of a basic block, of the function.
    Inside(usize),
    /// Another function, by its name in the source.
    Function(String),
    /// Not known: indirect, or into no function.
    Unknown,
}

/// How a basic block ends.
#[derive(Debug, Clone, PartialEq, Eq)]
struct End {
    /// None where it goes on into the next block.
    branch: Option<(Mnemonic, Goal)>,
}

/// The code of one function, taken apart.
#[derive(Debug, Clone, Default)]
pub(super) struct Shape {
    /// Its instructions, without the padding behind the last.
    pub steps: Vec<Step>,
    /// The number of each basic block's first instruction, rising.
    pub blocks: Vec<usize>,
    /// How each basic block ends.
    ends: Vec<End>,
}

impl Shape {
    /// Of the bytes of a function that begins at `address`. `named` gives the name of the function that an address is in.
    pub fn of<'a>(code: &[u8], address: u64, named: impl Fn(u64) -> Option<&'a str>) -> Self {
        let mut body: Vec<Instruction> =
            Decoder::with_ip(64, code, address, DecoderOptions::NONE).iter().collect();
        while body.last().is_some_and(is_padding) {
            body.pop();
        }
        let hook = take_hook(&mut body, &named);
        let mut number: HashMap<u64, usize> = body.iter().zip(0..).map(|(i, at)| (i.ip(), at)).collect();
        if let Some((at, hook)) = &hook {
            number.insert(hook.ip(), *at);
        }
        let goal = |instruction: &Instruction| -> Option<Goal> {
            Some(match instruction.flow_control() {
                FlowControl::Next => return None,
                FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch | FlowControl::Call => {
                    let target = instruction.near_branch_target();
                    match (number.get(&target), named(target)) {
                        (Some(&at), _) => Goal::Inside(at),
                        (None, Some(name)) => Goal::Function(name.to_string()),
                        (None, None) => Goal::Unknown,
                    }
                }
                _ => Goal::Unknown,
            })
        };
        let goals: Vec<Option<Goal>> = body.iter().map(goal).collect();
        let mut leaders: BTreeSet<usize> = BTreeSet::new();
        for (at, goal) in goals.iter().enumerate() {
            if let Some(goal) = goal {
                leaders.insert(at + 1);
                if let Goal::Inside(target) = goal {
                    leaders.insert(*target);
                }
            }
        }
        leaders.insert(0);
        let blocks: Vec<usize> = leaders.into_iter().filter(|at| *at < body.len()).collect();
        let after = blocks.iter().skip(1).copied().chain([body.len()]);
        let ends = after.map(|end| {
            let last = end.saturating_sub(1);
            let branch = goals.get(last).cloned().flatten().map(|goal| match goal {
                Goal::Inside(target) => Goal::Inside(blocks.partition_point(|block| *block < target)),
                other => other,
            });
            End { branch: branch.map(|goal| (body[last].mnemonic(), goal)) }
        });
        let ends = if body.is_empty() { Vec::new() } else { ends.collect() };
        let step = |(instruction, goal): (&Instruction, &Option<Goal>)| Step {
            address: instruction.ip(),
            length: instruction.len() as u64,
            word: word(instruction, goal.as_ref()),
        };
        let mut steps: Vec<Step> = body.iter().zip(&goals).map(step).collect();
        if let Some((at, hook)) = hook {
            steps[at].address = hook.ip();
            steps[at].length += hook.len() as u64;
        }
        Self { steps, blocks, ends }
    }

    /// Whether both have the same instructions.
    pub fn same_instructions(&self, other: &Self) -> bool {
        self.steps.iter().map(|step| step.word).eq(other.steps.iter().map(|step| step.word))
    }

    /// Whether both have the same flow.
    pub fn same_flow(&self, other: &Self) -> bool {
        self.ends == other.ends
    }

    /// The number of the instruction that `address` is in.
    pub fn at(&self, address: u64) -> Option<usize> {
        let at = self.steps.partition_point(|step| step.address <= address).checked_sub(1)?;
        (address < self.steps[at].address + self.steps[at].length).then_some(at)
    }
}

/// What fills the space to the next function.
fn is_padding(instruction: &Instruction) -> bool {
    matches!(instruction.mnemonic(), Mnemonic::Nop | Mnemonic::Int3 | Mnemonic::INVALID)
}

/// Takes the function tracer's hook out, and tells where it was: before the first instruction or after `endbr64`.
fn take_hook<'a>(
    body: &mut Vec<Instruction>,
    named: impl Fn(u64) -> Option<&'a str>,
) -> Option<(usize, Instruction)> {
    let is_hook = |instruction: &Instruction| {
        instruction.is_call_near() && named(instruction.near_branch_target()) == Some("__fentry__")
    };
    let at = body.iter().take(2).position(is_hook).filter(|at| at + 1 < body.len())?;
    Some((at, body.remove(at)))
}

/// What of an instruction counts.
fn word(instruction: &Instruction, goal: Option<&Goal>) -> u64 {
    let mut hash = DefaultHasher::new();
    // Not its code: that differs by how long its constants are.
    (instruction.mnemonic() as u32).hash(&mut hash);
    goal.hash(&mut hash);
    let prefixes =
        [instruction.has_rep_prefix(), instruction.has_repne_prefix(), instruction.has_lock_prefix()];
    prefixes.hash(&mut hash);
    for operand in 0..instruction.op_count() {
        match instruction.op_kind(operand) {
            OpKind::Register => (1u8, instruction.op_register(operand) as u32).hash(&mut hash),
            OpKind::Memory => {
                let base = match instruction.memory_base() {
                    // A global: both forms name one.
                    Register::RIP => Register::None,
                    base => base,
                };
                let registers = [base, instruction.memory_index(), instruction.segment_prefix()];
                (2u8, registers.map(|register| register as u32)).hash(&mut hash);
                (instruction.memory_index_scale(), instruction.memory_size() as u32).hash(&mut hash);
            }
            OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64 => 3u8.hash(&mut hash),
            OpKind::FarBranch16 | OpKind::FarBranch32 => 3u8.hash(&mut hash),
            // What string instructions work on: it follows from the mnemonic.
            OpKind::MemorySegSI
            | OpKind::MemorySegESI
            | OpKind::MemorySegRSI
            | OpKind::MemorySegDI
            | OpKind::MemorySegEDI
            | OpKind::MemorySegRDI
            | OpKind::MemoryESDI
            | OpKind::MemoryESEDI
            | OpKind::MemoryESRDI => 4u8.hash(&mut hash),
            _ => 5u8.hash(&mut hash),
        }
    }
    hash.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of code at an address; functions called have names by their address.
    fn shape(code: &[u8], address: u64) -> Shape {
        Shape::of(code, address, |target| match target {
            0x9000..0x9100 => Some("callee"),
            0x9100..0x9200 => Some("other"),
            0x9200..0x9300 => Some("__fentry__"),
            _ => None,
        })
    }

    /// `test %edi,%edi; je 1f; call TARGET; 1: mov OFFSET(%rax),%ecx; ret`, padded.
    fn code(address: u64, target: u64, offset: u8, condition: u8) -> Vec<u8> {
        let call = (target as i64 - (address as i64 + 9)) as i32;
        let mut code = vec![0x85, 0xff, condition, 0x05, 0xe8];
        code.extend(call.to_le_bytes());
        code.extend([0x8b, 0x48, offset, 0xc3, 0xcc, 0xcc]);
        code
    }

    #[test]
    fn addresses_and_offsets_do_not_count_and_targets_do() {
        let here = shape(&code(0x1000, 0x9000, 8, 0x74), 0x1000);
        assert_eq!((here.steps.len(), here.blocks.as_slice()), (5, [0, 2, 3].as_slice()));
        let moved = shape(&code(0x2010, 0x9004, 24, 0x74), 0x2010);
        assert!(here.same_instructions(&moved) && here.same_flow(&moved));
        let elsewhere = shape(&code(0x2010, 0x9100, 8, 0x74), 0x2010);
        assert!(!here.same_instructions(&elsewhere) && !here.same_flow(&elsewhere));
        // jne: the same blocks, the other way round.
        let turned = shape(&code(0x2010, 0x9000, 8, 0x75), 0x2010);
        assert!(!here.same_instructions(&turned) && !here.same_flow(&turned));
    }

    #[test]
    fn long_and_short_jumps_are_one_and_other_registers_keep_the_flow() {
        let short = shape(&[0x85, 0xff, 0x74, 0x01, 0xc3, 0x31, 0xc0, 0xc3], 0x1000);
        let long = shape(&[0x85, 0xff, 0x0f, 0x84, 0x01, 0, 0, 0, 0xc3, 0x31, 0xc0, 0xc3], 0x1000);
        assert!(short.same_instructions(&long));
        assert_eq!((short.at(0x1004), long.at(0x1004), long.at(0x1008)), (Some(2), Some(1), Some(2)));
        // `xor %ecx,%ecx; mov %ecx,%eax` instead of `xor %eax,%eax`.
        let other = shape(&[0x85, 0xff, 0x74, 0x01, 0xc3, 0x31, 0xc9, 0x89, 0xc8, 0xc3], 0x1000);
        assert!(!short.same_instructions(&other) && short.same_flow(&other));
    }

    #[test]
    fn the_function_tracers_hook_is_no_part_of_a_function() {
        let plain = code(0x1005, 0x9000, 8, 0x74);
        let mut hooked = vec![0xe8];
        hooked.extend((0x9200 - 0x1005i32).to_le_bytes());
        hooked.extend(&plain);
        let (plain, hooked) = (shape(&plain, 0x1005), shape(&hooked, 0x1000));
        assert!(plain.same_instructions(&hooked) && plain.same_flow(&hooked));
        assert_eq!((hooked.steps[0].address, hooked.steps[0].length), (0x1000, 7));
        assert_eq!((hooked.at(0x1000), hooked.at(0x1005), hooked.at(0x1007)), (Some(0), Some(0), Some(1)));
    }

    #[test]
    fn no_code_has_no_shape() {
        let empty = shape(&[0xcc, 0x90], 0x1000);
        assert!(empty.steps.is_empty() && empty.blocks.is_empty() && empty.at(0x1000).is_none());
    }
}
