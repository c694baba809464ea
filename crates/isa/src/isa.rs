//! Trait for instruction sets.

use crate::{
    AddressSpace, BlockEnding, BlockFlow, CountedFaults, ExceptionFrame, ForgottenTranslations, Insn,
    InstructionText, IsaNames, KbuildNames, Register, StoppedCpu, TagAccess, TargetRole,
};
use kerntune_trace::mark::Mark;
use kerntune_trace::{FunctionKind, TagSource};
use std::fmt::Debug;

/// An instruction set and the kernels compiled for it.
///
/// Functions with a `cpu` argument may be called only at certain points of execution; each
/// documents its own.
pub trait Isa {
    /// A decoded instruction.
    type Decoded: Clone + Debug + PartialEq;

    /// Names of the instruction set.
    const NAMES: IsaNames;
    /// Kbuild's names for it.
    const KBUILD: KbuildNames;
    /// Debian's name of the architecture.
    const DEBIAN: &'static str;
    /// The kernel's name of the first serial line of QEMU's machine.
    const SERIAL: &'static str;

    /// The smallest disk that a machine boots from, and QEMU's exit status after it: the code
    /// writes to the device `isa-debug-exit`.
    const BOOT_SECTOR: ([u8; 512], i32);

    /// QEMU's names of the general registers and of the other registers that are read.
    const REGISTERS: &'static [&'static str];
    /// Returns the register of this name.
    fn register(name: &str) -> Option<Register> {
        Self::REGISTERS
            .iter()
            .zip(0..)
            .find_map(|(known, number)| (*known == name).then_some(Register(number)))
    }
    /// Registers of the first two arguments of a function, and of a mark.
    const ARGUMENTS: [Register; 2];
    /// Registers of a function's third to fifth argument.
    const FURTHER_ARGUMENTS: [Register; 3];
    /// Offset in `struct task_struct` of `__state`: 4 bytes, 0 if the thread can run. It is the
    /// first member after `struct thread_info`, with which the structure begins.
    const TASK_STATE: u64;
    /// Register that points to a function's return address when its first instruction runs, and
    /// when its `ret` does.
    const STACK_POINTER: Register;
    /// Virtual minus physical address of the kernel's image. Its first code runs at physical
    /// addresses, before there are page tables.
    const IMAGE_OFFSET: u64;
    /// A calibration that the kernel skips if its result is set beforehand.
    const MEASURED: BootMeasurement;
    /// Waits that let kernels start at round times.
    const START_CLOCK: ClockWait;
    /// The CPU of runs that repeat exactly.
    const EMULATED: EmulatedCpu;
    /// Vulnerable CPUs, which need mitigations, that the emulator can imitate.
    const VULNERABLE: &'static [VulnerableCpu];
    /// Register with the user address to which a system call returns: valid at its first
    /// instruction and before its return.
    const SYSTEM_CALL_RETURN: Register;
    /// Registers of the port (if it is in a register) and of the value for [`TagAccess::Port`].
    const PORT_AND_TAG: [Register; 2];

    /// Iterates over the instructions of `code`, which lies at `address`. Invalid bytes are
    /// returned as instructions, too.
    fn instructions(code: &[u8], address: u64) -> impl Iterator<Item = Insn> + '_;
    /// Disassembles the instructions of `code`, which lies at `address`.
    fn disassemble(code: &[u8], address: u64) -> impl Iterator<Item = InstructionText> + '_;
    /// Decodes an instruction.
    fn decode(insn: &Insn) -> Self::Decoded;
    /// Classifies the last instruction of a block.
    fn ending(last: &Insn) -> (BlockEnding, BlockFlow);
    /// Checks whether an indirect jump takes its target from a table of its own function (a
    /// `switch`), and so is not a call.
    fn is_table_jump(jump: &Insn) -> bool;
    /// Returns the role of a call or jump target with this name, for static analysis.
    fn target_role(name: &str) -> TargetRole;
    /// Returns the exceptions after which the last instruction of a block counts as executed, in
    /// user or kernel code.
    fn counted_faults(last: &Insn, user: bool) -> CountedFaults;
    /// Checks whether an instruction writes to memory.
    fn stores(insn: &Insn) -> bool;
    /// Returns address and size of the writes of an instruction that is about to run; unknown ones
    /// are left out.
    fn writes(insn: &Self::Decoded, cpu: &mut dyn StoppedCpu) -> Vec<(u64, u64)>;
    /// Returns the target of an indirect jump that is about to run; `None` if unknown.
    fn jump_target(jump: &Self::Decoded, cpu: &mut dyn StoppedCpu) -> Option<u64>;
    /// Returns the translations that an instruction makes the CPU forget.
    fn forgotten_translations(insn: &Insn) -> Option<ForgottenTranslations>;
    /// Returns the mark that an instruction encodes.
    fn mark(insn: &Insn) -> Option<Mark>;
    /// Returns the event tag that an instruction emits, if it accesses the window.
    fn tag(tags: TagSource, insn: &Insn) -> Option<TagAccess>;

    /// Returns the layout of the running kernel's half of the address space.
    fn address_space(cpu: &mut dyn StoppedCpu) -> AddressSpace;
    /// Returns the physical address of the page table in use.
    fn page_table(cpu: &mut dyn StoppedCpu) -> u64;
    /// Returns the base-2 logarithm of the size of the page at `address` in this page table; of the
    /// smallest size if the address is not mapped.
    fn page_shift(space: &AddressSpace, table: u64, address: u64, cpu: &mut dyn StoppedCpu) -> u8;
    /// Checks whether an address is in the kernel's half of the address space.
    fn is_kernel(address: u64) -> bool;
    /// Returns the value of the clock, right after an instruction that reads it.
    fn clock(cpu: &mut dyn StoppedCpu) -> u64;
    /// Returns the frame of an exception, before the first instruction of the kernel; `None` if it
    /// cannot be read.
    fn exception_frame(cpu: &mut dyn StoppedCpu) -> Option<ExceptionFrame>;
    /// Returns the address to which an interrupt or exception that has just begun will return, if
    /// that is user code.
    fn interrupted_user(cpu: &mut dyn StoppedCpu) -> Option<u64>;
    /// Returns the target of a return from an interrupt that is about to run; 0 if it cannot be
    /// read.
    fn interrupt_return(cpu: &mut dyn StoppedCpu) -> u64;
    /// Returns the stack pointer after a return from an interrupt that is about to run; `None` if
    /// it cannot be read.
    fn interrupt_return_stack(cpu: &mut dyn StoppedCpu) -> Option<u64>;

    /// Returns the role of a function for the tracking of stacks, by name.
    fn function_kind(name: &str) -> Option<FunctionKind>;
    /// Prefixes of the names of system call functions, which are followed by the name that users
    /// know. The first one found is the function that the kernel's entry code calls.
    const SYSTEM_CALLS: &'static [&'static str];
    /// Checks whether a function is the common entry of all device interrupts, reached from a stub
    /// for each of them.
    fn is_common_interrupt(name: &str) -> bool;
    /// Labels of the stubs of device interrupts.
    const STUB_LABELS: &'static [&'static str];
    /// Returns the stubs in code at `address`; empty if the code is something else.
    fn interrupt_stubs(code: &[u8], address: u64) -> Vec<InterruptStub>;
    /// Returns the release (`uname -r`) of the kernel in a boot image.
    ///
    /// # Errors
    /// A description of the defect of the image.
    fn image_release(image: &[u8]) -> Result<String, &'static str>;
    /// Returns the compressed kernel in a boot image; `None` if the image does not tell its
    /// position.
    fn image_payload(image: &[u8]) -> Option<&[u8]>;
}

/// A calibration that the kernel makes while it boots, unless a variable has its result.
#[derive(Debug)]
pub struct BootMeasurement {
    /// Variable of four bytes: the count per timer tick.
    pub variable: &'static str,
    /// Frequency on QEMU's machine, in hertz.
    pub hertz: u32,
}

/// A wait of a booting kernel for a time of its clock, which counts nanoseconds.
#[derive(Debug)]
pub struct ClockWait {
    /// Functions of at most two arguments before which the kernel waits when it first calls them:
    /// what uses the clock after times that depend on the firmware. All kernels call the last one,
    /// after the others.
    pub stops: &'static [&'static str],
    /// Register with the stack's end, by the number of QEMU's server for gdb.
    pub stack_pointer: u32,
    /// Register with the next instruction's address.
    pub program_counter: u32,
    /// Returns code that waits for the next multiple of a power of two, and then jumps to a
    /// function. It may lie anywhere, and changes no register that has an argument or that a
    /// function keeps. It reads the clock once, so it always ends as long after the multiple.
    pub code: fn(u32, u64) -> Vec<u8>,
}

/// QEMU's CPU for runs that repeat exactly.
#[derive(Debug)]
pub struct EmulatedCpu {
    /// All features of TCG in QEMU 10.0, except instructions whose results differ between runs.
    pub features: &'static str,
    /// Appended to the features, disables those for which the kernel copies and clears memory with
    /// one instruction: icount charges each byte as an instruction, unlike any CPU with these
    /// features.
    pub no_fast_strings: &'static str,
    /// Additions to the kernel's command line: use the clock that is exact under icount.
    pub kernel_options: &'static str,
}

/// A CPU that the kernel recognizes as vulnerable by its `cpuid`.
#[derive(Debug)]
pub struct VulnerableCpu {
    /// Name for users.
    pub name: &'static str,
    /// Properties of QEMU's CPU `max` that make the kernel take it for this CPU.
    pub properties: &'static str,
}

/// The stub of one device interrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InterruptStub {
    /// Address of its first instruction.
    pub address: u64,
    /// Number of the interrupt.
    pub vector: u8,
    /// Address to which the stub jumps.
    pub target: u64,
}
