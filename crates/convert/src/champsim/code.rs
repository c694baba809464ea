//! What ChampSim is told of an instruction.

use super::{FLAGS, INSTRUCTION_POINTER, STACK_POINTER};
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, Register,
};

/// What is read that has no register: the target of a jump in memory.
const SOMETHING: u8 = 127;

/// How an instruction goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// With the one after it.
    Straight,
    /// With one of two.
    Conditional {
        /// Where it goes if it is taken.
        target: u64,
    },
    /// Elsewhere.
    Always,
}

/// One instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Code {
    /// Where it is.
    pub address: u64,
    /// Where the one after it is.
    pub end: u64,
    /// How it goes on.
    pub class: Class,
    /// Registers that it writes; 0 for none.
    pub written: [u8; 2],
    /// Registers that it reads; 0 for none.
    pub read: [u8; 4],
    /// Whether it is no instruction.
    pub is_unknown: bool,
}

/// What kind of branch ChampSim is to see.
enum Branch {
    None,
    Direct,
    Conditional,
    Indirect,
    Call,
    IndirectCall,
    Return,
}

impl Code {
    /// Of its bytes.
    pub fn of(address: u64, bytes: &[u8]) -> Self {
        let mut decoder = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE);
        let instruction = decoder.decode();
        let end = address.wrapping_add(bytes.len() as u64);
        if instruction.is_invalid() {
            let (written, read) = ([0; 2], [0; 4]);
            return Self { address, end, class: Class::Straight, written, read, is_unknown: true };
        }
        let (read, written) = registers(&instruction);
        let branch = branch(&instruction);
        let class = match branch {
            Branch::None => Class::Straight,
            Branch::Conditional => Class::Conditional { target: instruction.near_branch_target() },
            _ => Class::Always,
        };
        let others = || {
            let is_other = |number: &u8| ![STACK_POINTER, FLAGS].contains(number);
            let others: Vec<u8> = read.iter().copied().filter(is_other).collect();
            if others.is_empty() {
                vec![SOMETHING]
            } else {
                others
            }
        };
        let (ip, sp) = (INSTRUCTION_POINTER, STACK_POINTER);
        let (read, written) = match branch {
            Branch::None => (read, written),
            Branch::Direct => (vec![ip], vec![ip]),
            // One that asks a register and no flag reads it instead.
            Branch::Conditional if read.contains(&FLAGS) => (vec![ip, FLAGS], vec![ip]),
            Branch::Conditional => ([vec![ip], others()].concat(), vec![ip]),
            Branch::Indirect => (others(), vec![ip]),
            Branch::Call => (vec![ip, sp], vec![ip, sp]),
            Branch::IndirectCall => ([vec![ip, sp], others()].concat(), vec![ip, sp]),
            Branch::Return => (vec![sp], vec![ip, sp]),
        };
        Self { address, end, class, written: first(&written), read: first(&read), is_unknown: false }
    }
}

/// As many as there is room for.
fn first<const N: usize>(numbers: &[u8]) -> [u8; N] {
    std::array::from_fn(|at| numbers.get(at).copied().unwrap_or(0))
}

fn branch(instruction: &Instruction) -> Branch {
    use Mnemonic::*;
    match (instruction.flow_control(), instruction.mnemonic()) {
        // They lead to the kernel and back, and no return stack knows of them.
        (_, Syscall | Sysret | Sysretq | Sysenter | Sysexit | Sysexitq | Iret | Iretd | Iretq | Int) => {
            Branch::Indirect
        }
        (FlowControl::UnconditionalBranch, _) => Branch::Direct,
        (FlowControl::ConditionalBranch, _) => Branch::Conditional,
        (FlowControl::IndirectBranch, _) => Branch::Indirect,
        (FlowControl::Return, _) => Branch::Return,
        (FlowControl::Call, Call) => Branch::Call,
        (FlowControl::IndirectCall, _) => Branch::IndirectCall,
        _ => Branch::None,
    }
}

/// What it reads and writes, without the instruction pointer: each number once, the flags last.
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

/// A number that is none of ChampSim's own: 1 to 16 for the general registers, the stack pointer's among them, from 32 on for those
/// of vectors, from 64 on for the others. None of segments and of the instruction pointer.
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

    fn code(bytes: &[u8]) -> Code {
        Code::of(0x1000, bytes)
    }

    #[test]
    fn registers_have_numbers_of_their_own() {
        // add rsp, 8: the stack pointer and the flags.
        let add = code(&[0x48, 0x83, 0xc4, 0x08]);
        assert_eq!((add.read, add.written, add.class), ([6, 0, 0, 0], [6, 25], Class::Straight));
        // mov r15, rbp
        assert_eq!((code(&[0x49, 0x89, 0xef]).read[0], code(&[0x49, 0x89, 0xef]).written[0]), (5, 16));
        // mov al, [rip+0]: nobody waits for the branch before.
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
        // jmp [rip+0]: no register is read, and it is indirect all the same.
        let jump = code(&[0xff, 0x25, 0, 0, 0, 0]);
        assert_eq!((jump.read, jump.written, jump.class), ([127, 0, 0, 0], [26, 0], Class::Always));
        // call [rax+8]
        assert_eq!(code(&[0xff, 0x50, 0x08]).read, [26, 6, 1, 0]);
        // jrcxz
        let zero = code(&[0xe3, 0x10]);
        assert_eq!((zero.read, zero.class), ([26, 2, 0, 0], Class::Conditional { target: 0x1012 }));
        // jmp +0
        assert_eq!(code(&[0xeb, 0x00]).read, [26, 0, 0, 0]);
        // iretq and sysretq are no returns of calls.
        for bytes in [&[0x48, 0xcf][..], &[0x48, 0x0f, 0x07]] {
            assert!(!code(bytes).read.contains(&26) && code(bytes).written == [26, 0], "{bytes:?}");
        }
        // vmcall goes on.
        assert_eq!(code(&[0x0f, 0x01, 0xc1]).class, Class::Straight);
    }
}
