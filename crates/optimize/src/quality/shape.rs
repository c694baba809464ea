//! Shape of a function's code: the properties that survive a rebuild with unrelated changes.
//!
//! A call of `__fentry__` at the beginning of a function's body, which the function tracer's
//! configuration adds, counts as part of the next instruction: the tracer turns it into a NOP.
//!
//! Two functions have **the same instructions** if corresponding instructions have the same
//! mnemonic, prefixes, registers and kinds of operands, and branches and calls have the same
//! target: the instruction of the same number inside the function, a function of the same name
//! outside. Constants, offsets into structures and addresses are ignored, so that a moved global, a
//! longer structure or another limit changes nothing.
//!
//! They have **the same flow** if they have equally many basic blocks, and corresponding blocks end
//! in the same way (condition, call, return …), to the block of the same number or a function of
//! the same name. The contents of blocks may differ. Basic blocks end at branches, calls and
//! returns, and where a branch of the function arrives. Targets of indirect jumps are not known.
//!
//! Matching a profile to changed code by names, calls and block structure is after A. Ayupov, M.
//! Panchenko, S. Pupyrev: "Stale Profile Matching" (CC 2024). Here functions match as a whole or
//! not at all, and no count is inferred.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};
use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Instruction at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LocatedInstruction {
    /// Address of its first byte.
    pub address: u64,
    /// Bytes, including a hook of the function tracer before it.
    pub length: u64,
    /// Hash of the compared properties.
    fingerprint: u64,
}

/// Target of a branch or call.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum BranchTarget {
    /// Number of an instruction, or of a basic block, of the function.
    Inside(usize),
    /// Another function, by its name in the source.
    Function(String),
    /// Unknown: indirect, or outside of all functions.
    Unknown,
}

/// End of a basic block.
#[derive(Debug, Clone, PartialEq, Eq)]
struct BlockEnd {
    /// Branch at the end; `None` if control falls through into the next block.
    branch: Option<(Mnemonic, BranchTarget)>,
}

/// Disassembled code of one function.
#[derive(Debug, Clone, Default)]
pub(super) struct CodeShape {
    /// Instructions, without the padding behind the last one.
    pub steps: Vec<LocatedInstruction>,
    /// Number of each basic block's first instruction, ascending.
    pub blocks: Vec<usize>,
    /// End of each basic block.
    ends: Vec<BlockEnd>,
}

impl CodeShape {
    /// Disassembles the bytes of a function that begins at `address`. `named` returns the name of
    /// the function at an address.
    pub fn of<'a>(code: &[u8], address: u64, named: impl Fn(u64) -> Option<&'a str>) -> Self {
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
        let goal = |instruction: &Instruction| -> Option<BranchTarget> {
            Some(match instruction.flow_control() {
                FlowControl::Next => return None,
                FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch | FlowControl::Call => {
                    let target = instruction.near_branch_target();
                    match (number.get(&target), named(target)) {
                        (Some(&at), _) => BranchTarget::Inside(at),
                        (None, Some(name)) => BranchTarget::Function(name.to_string()),
                        (None, None) => BranchTarget::Unknown,
                    }
                }
                _ => BranchTarget::Unknown,
            })
        };
        let goals: Vec<Option<BranchTarget>> = body.iter().map(goal).collect();
        let mut leaders: BTreeSet<usize> = BTreeSet::new();
        for (at, goal) in goals.iter().enumerate() {
            if let Some(goal) = goal {
                leaders.insert(at + 1);
                if let BranchTarget::Inside(target) = goal {
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
                BranchTarget::Inside(target) => {
                    BranchTarget::Inside(blocks.partition_point(|block| *block < target))
                }
                other => other,
            });
            BlockEnd { branch: branch.map(|goal| (body[last].mnemonic(), goal)) }
        });
        let ends = if body.is_empty() { Vec::new() } else { ends.collect() };
        let step = |(instruction, goal): (&Instruction, &Option<BranchTarget>)| LocatedInstruction {
            address: instruction.ip(),
            length: instruction.len() as u64,
            fingerprint: fingerprint(instruction, goal.as_ref()),
        };
        let mut steps: Vec<LocatedInstruction> = body.iter().zip(&goals).map(step).collect();
        if let Some((at, hook)) = hook {
            steps[at].address = hook.ip();
            steps[at].length += hook.len() as u64;
        }
        Self { steps, blocks, ends }
    }

    /// Checks whether both functions have the same instructions.
    pub fn same_instructions(&self, other: &Self) -> bool {
        self.steps.iter().map(|step| step.fingerprint).eq(other.steps.iter().map(|step| step.fingerprint))
    }

    /// Checks whether both functions have the same flow.
    pub fn same_flow(&self, other: &Self) -> bool {
        self.ends == other.ends
    }

    /// Returns the number of the instruction that contains `address`.
    pub fn at(&self, address: u64) -> Option<usize> {
        let at = self.steps.partition_point(|step| step.address <= address).checked_sub(1)?;
        (address < self.steps[at].address + self.steps[at].length).then_some(at)
    }
}

/// Recognizes padding up to the next function.
pub(super) fn is_padding(instruction: &Instruction) -> bool {
    matches!(instruction.mnemonic(), Mnemonic::Nop | Mnemonic::Int3 | Mnemonic::INVALID)
}

/// Removes the function tracer's hook, and returns its position: before the first instruction or
/// after `endbr64`.
pub(super) fn remove_hook<'a>(
    body: &mut Vec<Instruction>,
    named: impl Fn(u64) -> Option<&'a str>,
) -> Option<(usize, Instruction)> {
    let is_hook = |instruction: &Instruction| {
        instruction.is_call_near() && named(instruction.near_branch_target()) == Some("__fentry__")
    };
    let at = body.iter().take(2).position(is_hook).filter(|at| at + 1 < body.len())?;
    Some((at, body.remove(at)))
}

/// Hashes the compared properties of an instruction.
pub(super) fn fingerprint(instruction: &Instruction, goal: Option<&BranchTarget>) -> u64 {
    let mut hash = DefaultHasher::new();
    // The opcode is ignored: it depends on the size of constants.
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
                    // A global: both addressing forms name one.
                    Register::RIP => Register::None,
                    base => base,
                };
                let registers = [base, instruction.memory_index(), instruction.segment_prefix()];
                (2u8, registers.map(|register| register as u32)).hash(&mut hash);
                (instruction.memory_index_scale(), instruction.memory_size() as u32).hash(&mut hash);
            }
            OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64 => 3u8.hash(&mut hash),
            OpKind::FarBranch16 | OpKind::FarBranch32 => 3u8.hash(&mut hash),
            // Operands of string instructions follow from the mnemonic.
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

    /// Shape of code at an address; called functions are named by their address.
    fn shape(code: &[u8], address: u64) -> CodeShape {
        CodeShape::of(code, address, |target| match target {
            0x9000..0x9100 => Some("callee"),
            0x9100..0x9200 => Some("other"),
            0x9200..0x9300 => Some("__fentry__"),
            _ => None,
        })
    }

    /// Returns `test %edi,%edi; je 1f; call TARGET; 1: mov OFFSET(%rax),%ecx; ret`, padded.
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
        // jne: same blocks with the opposite condition.
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
