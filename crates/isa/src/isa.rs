//! What an instruction set has to answer.

use crate::{
    AddressSpace, Cpu, Ending, ExceptionFrame, Flow, Insn, KbuildNames, Names, Refusal, Register, TagAccess,
    TargetRole,
};
use kerntune_trace::mark::Mark;
use kerntune_trace::{FunctionKind, TagWindow};
use std::fmt::Debug;

/// An instruction set and the kernels that are compiled for it.
///
/// Functions that take a CPU are asked at the moments that the recorder watches; each says which.
pub trait Isa {
    /// A decoded instruction.
    type Decoded: Clone + Debug + PartialEq;

    /// What it is called.
    const NAMES: Names;
    /// What Kbuild calls things.
    const KBUILD: KbuildNames;

    /// The smallest disk that a machine boots from, and the status that QEMU ends with when it did: the code writes to the
    /// device `isa-debug-exit`.
    const BOOT_SECTOR: ([u8; 512], i32);

    /// General registers, and what else is looked at, as QEMU calls them.
    const REGISTERS: &'static [&'static str];
    /// The register of this name.
    fn register(name: &str) -> Option<Register> {
        Self::REGISTERS
            .iter()
            .zip(0..)
            .find_map(|(known, number)| (*known == name).then_some(Register(number)))
    }
    /// The first two arguments of a function, and of a mark.
    const ARGUMENTS: [Register; 2];
    /// Where `struct task_struct` says whether a thread can run: `__state`, 4 bytes, 0 if it can. It is the first member
    /// after `struct thread_info`, which begins it.
    const TASK_STATE: u64;
    /// Where a function's return address is when its first instruction runs, and when its `ret` does.
    const STACK_POINTER: Register;
    /// How far below its addresses the kernel's image lies in physical memory, where its first code runs before there are
    /// page tables.
    const IMAGE_OFFSET: u64;
    /// What the kernel would measure when it boots, and takes if it is there.
    const MEASURED: Measured;
    /// CPUs that need mitigations, which the emulator can pass for.
    const VULNERABLE: &'static [VulnerableCpu];
    /// Where user code goes on after a system call: from its first instruction on, and before its return.
    const SYSTEM_CALL_RETURN: Register;
    /// The port, where it is in a register, and the value of [`TagAccess::Port`].
    const PORT_AND_TAG: [Register; 2];

    /// The instructions of `code`, which is at `address`, one after the other. What is none is an instruction, too.
    fn instructions(code: &[u8], address: u64) -> impl Iterator<Item = Insn> + '_;
    /// Takes an instruction apart.
    fn decode(insn: &Insn) -> Self::Decoded;
    /// What the last instruction of a block does, and how the block ends with it.
    fn ending(last: &Insn) -> (Ending, Flow);
    /// Whether an indirect jump picks its target from a table of its own function (a `switch`), and is no call.
    fn is_table_jump(jump: &Insn) -> bool;
    /// What a call or jump to the function of this name is, for who reads code and does not run it.
    fn target_role(name: &str) -> TargetRole;
    /// Which exceptions of the last instruction of a block count it as executed, in user or kernel code.
    fn refusal(last: &Insn, user: bool) -> Refusal;
    /// Whether the instruction writes to memory.
    fn stores(insn: &Insn) -> bool;
    /// Where an instruction that is about to run writes, and how many bytes; what cannot be known is left out.
    fn writes(insn: &Self::Decoded, cpu: &mut dyn Cpu) -> Vec<(u64, u64)>;
    /// Where an indirect jump that is about to run leads; `None` if that cannot be known.
    fn jump_target(jump: &Self::Decoded, cpu: &mut dyn Cpu) -> Option<u64>;
    /// The mark that the instruction is.
    fn mark(insn: &Insn) -> Option<Mark>;
    /// The event tag that the instruction says, if it accesses the window.
    fn tag(window: TagWindow, insn: &Insn) -> Option<TagAccess>;

    /// The kernel's half of the address space, of the kernel that runs.
    fn address_space(cpu: &mut dyn Cpu) -> AddressSpace;
    /// Physical address of the page table in use.
    fn page_table(cpu: &mut dyn Cpu) -> u64;
    /// log2 of the bytes of the page that `address` is in, as that table says; of the smallest if there is none.
    fn page_shift(space: &AddressSpace, table: u64, address: u64, cpu: &mut dyn Cpu) -> u8;
    /// Whether an address is in the kernel's half of the address space.
    fn is_kernel(address: u64) -> bool;
    /// What the clock showed, right after it was read.
    fn clock(cpu: &mut dyn Cpu) -> u64;
    /// What an exception left, before the first instruction of the kernel; `None` if it cannot be read.
    fn exception_frame(cpu: &mut dyn Cpu) -> Option<ExceptionFrame>;
    /// Where an interrupt or exception that has just come will go back to, if that is user code.
    fn interrupted_user(cpu: &mut dyn Cpu) -> Option<u64>;
    /// Where the return from an interrupt that is about to run leads; 0 if that cannot be read.
    fn interrupt_return(cpu: &mut dyn Cpu) -> u64;
    /// What the stack pointer will be after that return; `None` if that cannot be read.
    fn interrupt_return_stack(cpu: &mut dyn Cpu) -> Option<u64>;

    /// The part that a function of this name plays for the stacks, if it plays one.
    fn function_kind(name: &str) -> Option<FunctionKind>;
    /// What names of functions begin with that are system calls, before the name that users know; the first found is the one
    /// that the kernel's entry code calls.
    const SYSTEM_CALLS: &'static [&'static str];
    /// Whether a function of this name is what all device interrupts share, reached from a stub for each of them.
    fn is_common_interrupt(name: &str) -> bool;
    /// The labels that stand for the stubs of device interrupts.
    const STUB_LABELS: &'static [&'static str];
    /// The stubs in code at `address`; none if it is something else.
    fn interrupt_stubs(code: &[u8], address: u64) -> Vec<InterruptStub>;
    /// What `uname -r` says in the kernel of this image to boot.
    ///
    /// # Errors
    /// What is wrong with the image, in words.
    fn image_release(image: &[u8]) -> Result<String, &'static str>;
    /// The kernel in this image to boot, as it was packed; none if the image does not say where it is.
    fn image_payload(image: &[u8]) -> Option<&[u8]>;
}

/// Something that a kernel measures while it boots, unless a variable of its says it.
#[derive(Debug)]
pub struct Measured {
    /// The function that looks for it.
    pub stop: &'static str,
    /// The variable, of four bytes: how often per tick.
    pub variable: &'static str,
    /// How often per second, on QEMU's machine.
    pub hertz: u32,
}

/// A CPU that the kernel knows to be vulnerable by what it says of itself.
#[derive(Debug)]
pub struct VulnerableCpu {
    /// What users call it.
    pub name: &'static str,
    /// Properties of QEMU's CPU `max` by which the kernel takes it for this one.
    pub properties: &'static str,
}

/// The stub of one device interrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InterruptStub {
    /// Its first instruction.
    pub address: u64,
    /// The interrupt's number.
    pub vector: u8,
    /// Where it jumps.
    pub target: u64,
}
