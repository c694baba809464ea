//! Decoding of an instruction for ChampSim: registers and kind of branch.

use super::{FLAGS, INSTRUCTION_POINTER, STACK_POINTER};
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, Register,
};

/// Stand-in for an operand without a register, such as the target of a jump in memory.
const OTHER_OPERAND: u8 = 127;

/// Successor of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowClass {
    /// The next instruction.
    Straight,
    /// The next instruction, or the target.
    Conditional {
        /// Address of the target.
        target: u64,
    },
    /// Another address than the next instruction's.
    Always,
}

/// Instruction as ChampSim needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodedInstruction {
    /// Address of the instruction.
    pub address: u64,
    /// Address of the next instruction.
    pub end: u64,
    /// Successor of the instruction.
    pub class: FlowClass,
    /// Registers written; 0 for none.
    pub written: [u8; 2],
    /// Registers read; 0 for none.
    pub read: [u8; 4],
    /// The bytes are no valid instruction.
    pub is_unknown: bool,
}

/// Kind of branch that ChampSim shall recognize.
enum BranchType {
    None,
    Direct,
    Conditional,
    Indirect,
    Call,
    IndirectCall,
    Return,
}

impl DecodedInstruction {
    /// Decodes the bytes.
    pub fn of(address: u64, bytes: &[u8]) -> Self {
        let mut decoder = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE);
        let instruction = decoder.decode();
        let end = address.wrapping_add(bytes.len() as u64);
        if instruction.is_invalid() {
            let (written, read) = ([0; 2], [0; 4]);
            return Self { address, end, class: FlowClass::Straight, written, read, is_unknown: true };
        }
        let (read, written) = registers(&instruction);
        let branch = branch(&instruction);
        let class = match branch {
            BranchType::None => FlowClass::Straight,
            BranchType::Conditional => FlowClass::Conditional { target: instruction.near_branch_target() },
            _ => FlowClass::Always,
        };
        let others = || {
            let is_other = |number: &u8| ![STACK_POINTER, FLAGS].contains(number);
            let others: Vec<u8> = read.iter().copied().filter(is_other).collect();
            if others.is_empty() {
                vec![OTHER_OPERAND]
            } else {
                others
            }
        };
        let (ip, sp) = (INSTRUCTION_POINTER, STACK_POINTER);
        let (read, written) = match branch {
            BranchType::None => (read, written),
            BranchType::Direct => (vec![ip], vec![ip]),
            // A conditional branch that tests a register and no flag, such as `jrcxz`, reads the
            // register instead.
            BranchType::Conditional if read.contains(&FLAGS) => (vec![ip, FLAGS], vec![ip]),
            BranchType::Conditional => ([vec![ip], others()].concat(), vec![ip]),
            BranchType::Indirect => (others(), vec![ip]),
            BranchType::Call => (vec![ip, sp], vec![ip, sp]),
            BranchType::IndirectCall => ([vec![ip, sp], others()].concat(), vec![ip, sp]),
            BranchType::Return => (vec![sp], vec![ip, sp]),
        };
        Self { address, end, class, written: first(&written), read: first(&read), is_unknown: false }
    }
}

/// Returns as many registers as there is room for.
fn first<const N: usize>(numbers: &[u8]) -> [u8; N] {
    std::array::from_fn(|at| numbers.get(at).copied().unwrap_or(0))
}

fn branch(instruction: &Instruction) -> BranchType {
    use Mnemonic::*;
    match (instruction.flow_control(), instruction.mnemonic()) {
        // They enter or leave the kernel, and no return stack predicts them.
        (_, Syscall | Sysret | Sysretq | Sysenter | Sysexit | Sysexitq | Iret | Iretd | Iretq | Int) => {
            BranchType::Indirect
        }
        (FlowControl::UnconditionalBranch, _) => BranchType::Direct,
        (FlowControl::ConditionalBranch, _) => BranchType::Conditional,
        (FlowControl::IndirectBranch, _) => BranchType::Indirect,
        (FlowControl::Return, _) => BranchType::Return,
        (FlowControl::Call, Call) => BranchType::Call,
        (FlowControl::IndirectCall, _) => BranchType::IndirectCall,
        _ => BranchType::None,
    }
}

/// Returns registers read and written, without the instruction pointer: each number once, the flags
/// last.
fn registers(instruction: &Instruction) -> (Vec<u8>, Vec<u8>) {
    let (mut read, mut written) = (Vec::new(), Vec::new());
    let add = |list: &mut Vec<u8>, number: u8| {
        if !list.contains(&number) {
            list.push(number);
        }
    };
    let mut factory = InstructionInfoFactory::new();
    for used in factory.info(instruction).used_registers() {
        let Some(number) = number(used.register()) else { continue };
        use OpAccess::*;
        if matches!(used.access(), Read | CondRead | ReadWrite | ReadCondWrite) {
            add(&mut read, number);
        }
        if matches!(used.access(), Write | CondWrite | ReadWrite | ReadCondWrite) {
            add(&mut written, number);
        }
    }
    if instruction.rflags_read() != 0 {
        add(&mut read, FLAGS);
    }
    if instruction.rflags_modified() != 0 {
        add(&mut written, FLAGS);
    }
    (read, written)
}

/// Returns a register number that does not clash with ChampSim's own: 1 to 16 for the general
/// registers with the stack pointer's own number, from 32 on for vector registers, from 64 on for
/// others. `None` for segments and the instruction pointer.
fn number(register: Register) -> Option<u8> {
    let full = register.full_register();
    if full.is_gpr64() {
        let at = full as usize - Register::RAX as usize;
        return Some(match at {
            0..=3 => at as u8 + 1,
            4 => STACK_POINTER,
            5 => 5,
            _ => at as u8 + 1,
        });
    }
    match full {
        _ if full.is_zmm() => Some(32 + (full as usize - Register::ZMM0 as usize) as u8),
        _ if full.is_segment_register() || full.is_ip() || full == Register::None => None,
        _ => Some(64 + (full as usize % 60) as u8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(bytes: &[u8]) -> DecodedInstruction {
        DecodedInstruction::of(0x1000, bytes)
    }

    #[test]
    fn registers_have_numbers_of_their_own() {
        // add rsp, 8: the stack pointer and the flags.
        let add = code(&[0x48, 0x83, 0xc4, 0x08]);
        assert_eq!((add.read, add.written, add.class), ([6, 0, 0, 0], [6, 25], FlowClass::Straight));
        // mov r15, rbp
        assert_eq!((code(&[0x49, 0x89, 0xef]).read[0], code(&[0x49, 0x89, 0xef]).written[0]), (5, 16));
        // mov al, [rip+0]: the instruction pointer is no dependency.
        let relative = code(&[0x8a, 0x05, 0, 0, 0, 0]);
        assert_eq!(relative.read, [0; 4]);
        assert_eq!(relative.written[0], 1);
        // movaps xmm1, xmm2
        assert_eq!(code(&[0x0f, 0x28, 0xca]).read[0], 34);
        assert!(code(&[0xff, 0xff]).is_unknown);
        let mut numbers: Vec<u8> = (0..16)
            .filter_map(|at| number(Register::try_from(Register::RAX as usize + at).unwrap()))
            .collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers, (1..=16).collect::<Vec<_>>());
    }

    #[test]
    fn branches_are_of_champsims_kinds() {
        // jmp [rip+0]: no register is read, but it is indirect.
        let jump = code(&[0xff, 0x25, 0, 0, 0, 0]);
        assert_eq!((jump.read, jump.written, jump.class), ([127, 0, 0, 0], [26, 0], FlowClass::Always));
        // call [rax+8]
        assert_eq!(code(&[0xff, 0x50, 0x08]).read, [26, 6, 1, 0]);
        // jrcxz
        let zero = code(&[0xe3, 0x10]);
        assert_eq!((zero.read, zero.class), ([26, 2, 0, 0], FlowClass::Conditional { target: 0x1012 }));
        // jmp +0
        assert_eq!(code(&[0xeb, 0x00]).read, [26, 0, 0, 0]);
        // iretq and sysretq are no returns of calls.
        for bytes in [&[0x48, 0xcf][..], &[0x48, 0x0f, 0x07]] {
            assert!(!code(bytes).read.contains(&26) && code(bytes).written == [26, 0], "{bytes:?}");
        }
        // vmcall continues with the next instruction.
        assert_eq!(code(&[0x0f, 0x01, 0xc1]).class, FlowClass::Straight);
    }
}
