//! Classification of x86-64 instructions.

use super::registers;
use crate::{
    BlockEnding, BlockFlow, CountedFaults, ForgottenTranslations, Insn, InstructionText, StoppedCpu,
};
use iced_x86::{
    Code, CpuidFeature, Decoder, DecoderOptions, FlowControl, Formatter, GasFormatter, Instruction,
    InstructionInfoFactory, InstructionInfoOptions, Mnemonic, OpAccess, OpKind, Register as Segment,
    UsedMemory,
};
use kerntune_trace::counts::BranchKind;
use kerntune_trace::mark::Mark;

/// Iterates over the instructions of `code` at `address`.
pub fn instructions(code: &[u8], address: u64) -> impl Iterator<Item = Insn> + '_ {
    let mut decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
    std::iter::from_fn(move || {
        let (start, address) = (decoder.position(), decoder.ip());
        let end = decoder.can_decode().then(|| (decoder.decode(), decoder.position()))?.1;
        Some(Insn::new(address, code.get(start..end)?))
    })
}

/// Disassembles the instructions of `code` at `address`.
pub fn disassemble(code: &[u8], address: u64) -> impl Iterator<Item = InstructionText> + '_ {
    let mut formatter = GasFormatter::new();
    formatter.options_mut().set_branch_leading_zeros(false);
    formatter.options_mut().set_uppercase_hex(false);
    let decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
    decoder.into_iter().map(move |decoded| {
        let mut text = String::new();
        formatter.format(&decoded, &mut text);
        let leads = !matches!(decoded.flow_control(), FlowControl::Next);
        let is_near = leads && matches!(decoded.op0_kind(), OpKind::NearBranch64);
        let target = is_near.then(|| decoded.near_branch_target());
        InstructionText { address: decoded.ip(), end: decoded.next_ip(), text, target }
    })
}

pub fn decode(insn: &Insn) -> Instruction {
    Decoder::with_ip(64, insn.bytes(), insn.address, DecoderOptions::NONE).decode()
}

/// Classifies the last instruction of a block.
pub fn ending(last: &Insn) -> (BlockEnding, BlockFlow) {
    let insn = decode(last);
    let branch = |kind| BlockFlow::Branch(kind);
    match insn.mnemonic() {
        Mnemonic::Iret | Mnemonic::Iretd | Mnemonic::Iretq => {
            return (BlockEnding::InterruptReturn, BlockFlow::Opaque)
        }
        Mnemonic::Sysret | Mnemonic::Sysretq => return (BlockEnding::SystemReturn, BlockFlow::Opaque),
        Mnemonic::Syscall | Mnemonic::Sysenter => return (BlockEnding::Other, BlockFlow::Opaque),
        Mnemonic::Hlt => return (BlockEnding::Halt, BlockFlow::Opaque),
        Mnemonic::Rdtsc | Mnemonic::Rdtscp => return (BlockEnding::ReadClock, BlockFlow::Straight),
        _ => {}
    }
    if insn.has_rep_prefix() || insn.has_repne_prefix() {
        // With icount each iteration is a block of its own that "jumps" to itself. A `rep ret` is
        // still a return.
        if insn.flow_control() == FlowControl::Next {
            return (BlockEnding::Other, BlockFlow::Opaque);
        }
    }
    match insn.flow_control() {
        FlowControl::Call => {
            let target = (insn.code() == Code::Call_rel32_64).then(|| insn.near_branch_target());
            (BlockEnding::Call { target }, branch(BranchKind::Call))
        }
        FlowControl::IndirectCall => (BlockEnding::Call { target: None }, branch(BranchKind::IndirectCall)),
        FlowControl::Return => (BlockEnding::Return, branch(BranchKind::Return)),
        FlowControl::UnconditionalBranch => (jump(&insn), branch(BranchKind::Jump)),
        FlowControl::IndirectBranch => (BlockEnding::Jump { target: None }, branch(BranchKind::IndirectJump)),
        FlowControl::ConditionalBranch => (jump(&insn), branch(BranchKind::Conditional)),
        FlowControl::Next | FlowControl::XbeginXabortXend => (BlockEnding::Other, BlockFlow::Straight),
        FlowControl::Interrupt | FlowControl::Exception => (BlockEnding::Other, BlockFlow::Opaque),
    }
}

/// Checks for a scaled index: a jump through a table has one, a call through a pointer has not.
pub fn is_table_jump(jump: &Insn) -> bool {
    let insn = decode(jump);
    insn.flow_control() == FlowControl::IndirectBranch
        && insn.op0_kind() == OpKind::Memory
        && insn.memory_index() != Segment::None
}

/// Returns the exceptions after which the last instruction of a block of user or kernel code
/// counts.
pub fn counted_faults(last: &Insn, user: bool) -> CountedFaults {
    let insn = decode(last);
    let of_helper = matches!(insn.mnemonic(), Mnemonic::Div | Mnemonic::Idiv | Mnemonic::Wait)
        || insn.cpuid_features().contains(&CpuidFeature::FPU);
    // The translator checks the privilege level, except for ports, whose bitmap a helper reads.
    let refused = match insn.mnemonic() {
        Mnemonic::In | Mnemonic::Out | Mnemonic::Xsetbv => false,
        Mnemonic::Insb | Mnemonic::Insw | Mnemonic::Insd => false,
        Mnemonic::Outsb | Mnemonic::Outsw | Mnemonic::Outsd => false,
        Mnemonic::Sgdt | Mnemonic::Sidt | Mnemonic::Sldt | Mnemonic::Smsw | Mnemonic::Str => user,
        _ => user && insn.is_privileged(),
    };
    // `int` counts before its gate turns out not to be for user code.
    let coded = refused || insn.is_invalid() || insn.mnemonic() == Mnemonic::Int;
    CountedFaults { plain: !of_helper, coded }
}

/// Returns address and size of the writes of an instruction that is about to run. Writes relative
/// to a segment's base are left out.
pub fn writes(insn: &Instruction, cpu: &mut dyn StoppedCpu) -> Vec<(u64, u64)> {
    let mut factory = InstructionInfoFactory::new();
    let info = factory.info_options(insn, InstructionInfoOptions::NO_REGISTER_USAGE);
    let stores = info.used_memory().iter().filter(|memory| writes_to(memory));
    let places = stores.filter_map(|memory| {
        let address = memory.virtual_address(0, |register, _, _| match register {
            Segment::CS | Segment::DS | Segment::ES | Segment::SS => Some(0),
            register => Some(cpu.register(registers::of(register)?)),
        })?;
        Some((address, memory.memory_size().size() as u64))
    });
    places.collect()
}

pub fn stores(insn: &Insn) -> bool {
    let mut factory = InstructionInfoFactory::new();
    let info = factory.info_options(&decode(insn), InstructionInfoOptions::NO_REGISTER_USAGE);
    info.used_memory().iter().any(writes_to)
}

/// Returns the translations that an instruction makes the CPU forget (Intel's manual, volume 3,
/// 5.10.4.1). A new page table leaves those of the kernel, which are the same in all tables. A
/// hypervisor executes some of these instructions before and after its guest runs.
pub fn forgotten_translations(insn: &Insn) -> Option<ForgottenTranslations> {
    if !insn.bytes().contains(&TWO_BYTE_OPCODE) {
        return None;
    }
    let insn = decode(insn);
    match insn.mnemonic() {
        Mnemonic::Mov if insn.op0_register() == Segment::CR3 => Some(ForgottenTranslations::User),
        Mnemonic::Mov if insn.op0_register().is_cr() => Some(ForgottenTranslations::All),
        Mnemonic::Invlpg
        | Mnemonic::Invlpga
        | Mnemonic::Invlpgb
        | Mnemonic::Invpcid
        | Mnemonic::Rsm
        | Mnemonic::Vmrun
        | Mnemonic::Vmload
        | Mnemonic::Vmsave => Some(ForgottenTranslations::All),
        _ => None,
    }
}

/// First byte of the opcodes of all instructions that forget translations.
const TWO_BYTE_OPCODE: u8 = 0x0f;

fn writes_to(memory: &UsedMemory) -> bool {
    use OpAccess::{CondWrite, ReadCondWrite, ReadWrite, Write};
    matches!(memory.access(), Write | CondWrite | ReadWrite | ReadCondWrite)
}

fn jump(insn: &Instruction) -> BlockEnding {
    let near = matches!(insn.op0_kind(), OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64);
    BlockEnding::Jump { target: near.then(|| insn.near_branch_target()) }
}

/// Returns the target of an indirect jump that is about to run; `None` if unknown.
pub fn jump_target(jump: &Instruction, cpu: &mut dyn StoppedCpu) -> Option<u64> {
    let mut general = |register| Some(cpu.register(registers::of(register)?));
    match jump.op0_kind() {
        OpKind::Register => general(jump.op0_register()),
        OpKind::Memory => {
            let address = jump.virtual_address(0, 0, |register, _, _| match register {
                Segment::CS | Segment::DS | Segment::SS => Some(0),
                register => general(register),
            })?;
            let mut word = [0; 8];
            cpu.read(address, &mut word).then(|| u64::from_le_bytes(word))
        }
        _ => None,
    }
}

/// Encoding of a mark, `nopl disp32(%rax)`, before its displacement.
const MARK: [u8; 3] = [0x0f, 0x1f, 0x80];

/// Returns the mark that an instruction encodes.
pub fn mark(insn: &Insn) -> Option<Mark> {
    let code = insn.bytes().strip_prefix(&MARK)?;
    Mark::from_code(u32::from_le_bytes(code.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn insn(bytes: &[u8]) -> Insn {
        Insn::new(0xffff_ffff_8100_0000, bytes)
    }

    #[test]
    fn endings_of_kernel_code() {
        let call = ending(&insn(&[0xe8, 0x10, 0, 0, 0]));
        assert_eq!(call.0, BlockEnding::Call { target: Some(0xffff_ffff_8100_0015) });
        assert_eq!(ending(&insn(&[0xff, 0xd0])).1, BlockFlow::Branch(BranchKind::IndirectCall));
        assert_eq!(ending(&insn(&[0xc3])), (BlockEnding::Return, BlockFlow::Branch(BranchKind::Return)));
        assert_eq!(ending(&insn(&[0xf3, 0xc3])).0, BlockEnding::Return);
        assert_eq!(ending(&insn(&[0xf3, 0x48, 0xa5])), (BlockEnding::Other, BlockFlow::Opaque));
        assert_eq!(ending(&insn(&[0x48, 0xcf])).0, BlockEnding::InterruptReturn);
        assert_eq!(ending(&insn(&[0x48, 0x0f, 0x07])).0, BlockEnding::SystemReturn);
        assert_eq!(ending(&insn(&[0xf4])).0, BlockEnding::Halt);
        assert_eq!(ending(&insn(&[0x0f, 0x31])), (BlockEnding::ReadClock, BlockFlow::Straight));
        let conditional = (
            BlockEnding::Jump { target: Some(0xffff_ffff_8100_0012) },
            BlockFlow::Branch(BranchKind::Conditional),
        );
        assert_eq!(ending(&insn(&[0x74, 0x10])), conditional);
        assert_eq!(ending(&insn(&[0xff, 0xe0])).0, BlockEnding::Jump { target: None });
        assert_eq!(ending(&insn(&[0x90])), (BlockEnding::Other, BlockFlow::Straight));
        assert_eq!(ending(&insn(&[0x06])), (BlockEnding::Other, BlockFlow::Opaque), "not an instruction");
    }

    #[test]
    fn translations_are_forgotten() {
        let of = |bytes: &[u8]| forgotten_translations(&insn(bytes));
        assert_eq!(of(&[0x0f, 0x22, 0xdf]), Some(ForgottenTranslations::User), "mov %rdi,%cr3");
        assert_eq!(of(&[0x0f, 0x22, 0xe0]), Some(ForgottenTranslations::All), "mov %rax,%cr4");
        assert_eq!(of(&[0x41, 0x0f, 0x22, 0xc0]), Some(ForgottenTranslations::All), "mov %r8,%cr0");
        assert_eq!(of(&[0x0f, 0x01, 0x3f]), Some(ForgottenTranslations::All), "invlpg (%rdi)");
        assert_eq!(of(&[0x66, 0x0f, 0x38, 0x82, 0x07]), Some(ForgottenTranslations::All), "invpcid");
        assert_eq!(of(&[0x0f, 0x20, 0xd8]), None, "mov %cr3,%rax");
        assert_eq!(of(&[0x0f, 0xb6, 0xc0]), None, "movzx");
    }

    #[test]
    fn jumps_through_tables_are_no_calls() {
        assert!(is_table_jump(&insn(&[0xff, 0x24, 0xc5, 0, 0, 0, 0x82])), "jmp *-0x7e000000(,%rax,8)");
        assert!(!is_table_jump(&insn(&[0xff, 0xe0])), "jmp *%rax");
        assert!(!is_table_jump(&insn(&[0xff, 0x60, 0x18])), "jmp *0x18(%rax)");
        assert!(!is_table_jump(&insn(&[0xff, 0x14, 0xc5, 0, 0, 0, 0x82])), "call *-0x7e000000(,%rax,8)");
    }

    #[test]
    fn refused_instructions_count_unless_a_helper_refuses_them() {
        let of = |bytes: &[u8], user| {
            let CountedFaults { plain, coded } = counted_faults(&insn(bytes), user);
            (plain, coded)
        };
        assert_eq!(of(&[0x0f, 0x0b], true), (true, false), "ud2");
        assert_eq!(of(&[0xf0, 0x89, 0xc0], true), (true, true), "lock without memory");
        for privileged in
            [&[0xfa][..], &[0xf4], &[0x0f, 0x30], &[0x0f, 0x20, 0xc0], &[0x0f, 0x01, 0x14, 0x24]]
        {
            assert_eq!(of(privileged, true), (true, true), "{privileged:x?}");
            assert_eq!(of(privileged, false), (true, false), "{privileged:x?}");
        }
        assert_eq!(of(&[0xe4, 0x80], true), (true, false), "in");
        assert_eq!(of(&[0xf3, 0x6c], true), (true, false), "rep insb");
        assert_eq!(of(&[0xcd, 0x80], true), (true, true), "int");
        assert_eq!(of(&[0xf7, 0xf1], true), (false, false), "div");
        assert_eq!(of(&[0x9b], true), (false, false), "fwait");
        assert_eq!(of(&[0x8b, 0x00], true), (true, false), "mov");
    }

    #[test]
    fn marks_are_seven_bytes() {
        assert_eq!(mark(&insn(&[0x0f, 0x1f, 0x80, 1, 0, 0x54, 0x4b])), Some(Mark::Begin));
        assert_eq!(mark(&insn(&[0x0f, 0x1f, 0x80, 1, 0, 0x54])), None);
        assert_eq!(mark(&insn(&[0x90])), None);
    }
}
