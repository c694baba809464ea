//! Instructions as QEMU translates them, and their classification.

use kerntune_trace::counts::BranchKind;

/// An undecoded instruction.
#[derive(Debug, Clone, Copy, Default)]
pub struct Insn {
    /// Virtual address.
    pub address: u64,
    /// Encoding; only the first `length` bytes are valid.
    pub bytes: [u8; 16],
    /// Number of bytes, at most 16.
    pub length: usize,
}

impl Insn {
    /// Makes an instruction of at most 16 bytes.
    pub fn new(address: u64, bytes: &[u8]) -> Self {
        let length = bytes.len().min(16);
        let mut insn = Self { address, length, ..Self::default() };
        insn.bytes[..length].copy_from_slice(&bytes[..length]);
        insn
    }

    /// Returns the address of the following instruction.
    pub fn end(&self) -> u64 {
        self.address + self.length as u64
    }

    /// Returns the encoding.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length.min(16)]
    }
}

/// A disassembled instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstructionText {
    /// Address of the instruction.
    pub address: u64,
    /// Address of the following instruction.
    pub end: u64,
    /// Text in the syntax of GNU's assembler.
    pub text: String,
    /// Target of a direct branch or call.
    pub target: Option<u64>,
}

/// Effect of the last instruction of a block. QEMU ends a block at every branch and at every
/// instruction that leaves the translated code, so only the last instruction can have one of these
/// effects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockEnding {
    /// A call.
    Call {
        /// Target address; `None` for an indirect call.
        target: Option<u64>,
    },
    /// A jump, conditional or not.
    Jump {
        /// Target address; `None` for an indirect jump.
        target: Option<u64>,
    },
    /// A near return.
    Return,
    /// The return from an interrupt or exception.
    InterruptReturn,
    /// The return from a system call.
    SystemReturn,
    /// Waits for an interrupt.
    Halt,
    /// Reads the clock, which counts instructions.
    ReadClock,
    /// Anything else.
    Other,
}

/// Control flow at the end of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockFlow {
    /// A branch. It is taken if the next block is not the following one.
    Branch(BranchKind),
    /// Falls through into the next block.
    Straight,
    /// May continue elsewhere without a branch (`iretq`, `sysret`, `rep movs` …).
    Opaque,
}

/// Role of a call target in static code, see [`Isa::target_role`](crate::Isa::target_role).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetRole {
    /// The called function itself.
    Function,
    /// A thunk that jumps to the address in a register.
    Indirect,
    /// A trampoline whose target is patched while the kernel runs (a static call).
    Patched,
    /// A thunk for returns.
    Return,
    /// The hook of a tracer, not part of the function's code.
    Hook,
}

/// Translations of addresses that an instruction makes the CPU forget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForgottenTranslations {
    /// Those of user memory.
    User,
    /// Some of user memory or the kernel's, or all.
    All,
}

/// Exceptions after which QEMU counts an instruction as executed, although they point at it. These
/// are the ones that its translator knows: they are raised by translated code and end the block.
/// For exceptions from a helper or a memory access QEMU takes the instruction back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountedFaults {
    /// True if exceptions without an error code count (`#UD`, `#NM`).
    pub plain: bool,
    /// True if exceptions with an error code count (`#GP`).
    pub coded: bool,
}

impl CountedFaults {
    /// No exception counts.
    pub const NONE: Self = Self { plain: false, coded: false };
}

/// Instruction that emits an event tag of McRae's profiler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TagAccess {
    /// Emits this tag whenever it runs.
    Tag(u32),
    /// Writes the tag, from a register, to a port.
    Port {
        /// True if the port is in a register, too, which must be checked when the instruction runs.
        check: bool,
    },
}
