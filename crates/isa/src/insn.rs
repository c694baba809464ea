//! Instructions as QEMU translates them, and what of them matters.

use kerntune_trace::counts::EdgeKind;

/// One instruction.
#[derive(Debug, Clone, Copy, Default)]
pub struct Insn {
    /// Virtual address.
    pub address: u64,
    /// Bytes; the first `length` count.
    pub bytes: [u8; 16],
    /// How many bytes.
    pub length: usize,
}

impl Insn {
    /// Of its bytes, 16 at most.
    pub fn new(address: u64, bytes: &[u8]) -> Self {
        let length = bytes.len().min(16);
        let mut insn = Self { address, length, ..Self::default() };
        insn.bytes[..length].copy_from_slice(&bytes[..length]);
        insn
    }

    /// Address of the instruction after this one.
    pub fn end(&self) -> u64 {
        self.address + self.length as u64
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length.min(16)]
    }
}

/// What the last instruction of a block does. QEMU ends a block at every branch and at every
/// instruction that leaves the translated code, so only the last can be any of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// A call; the target if it is in the instruction.
    Call {
        /// Address.
        target: Option<u64>,
    },
    /// A jump, always or on a condition; the target if it is in the instruction.
    Jump {
        /// Address.
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
    /// Reads the clock that counts instructions.
    ReadClock,
    /// Anything else.
    Other,
}

/// How a block ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// With a branch; going elsewhere than on is a taken branch.
    Branch(EdgeKind),
    /// With any other instruction: another block may go on after it.
    Straight,
    /// With something after which going elsewhere is no branch (`iretq`, `sysret`, `rep movs` …).
    Opaque,
}

/// What stands for a callee in code, see [`Isa::target_role`](crate::Isa::target_role).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetRole {
    /// A function that is called.
    Function,
    /// A thunk that goes where a register points.
    Indirect,
    /// A trampoline whose target is written into the code while the kernel runs (a static call).
    Patched,
    /// A thunk for returns.
    Return,
    /// The hook of a tracer, which is no part of the function.
    Hook,
}

/// Which exceptions QEMU raises for an instruction as if it had been executed, though they point at it: those
/// that its translator knows of, which are part of the translated code and end the block. What a helper or
/// a memory access raises takes the instruction back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// Of those without an error code (`#UD`, `#NM`).
    pub plain: bool,
    /// Of those with an error code (`#GP`).
    pub coded: bool,
}

impl Refusal {
    /// No exception counts.
    pub const NONE: Self = Self { plain: false, coded: false };
}

/// How an instruction says an event tag of McRae's profiler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TagAccess {
    /// This one, whenever it runs.
    Tag(u16),
    /// The value that is written to a port, in a register.
    Port {
        /// Whether the port is in a register, too: it has to be looked at when the instruction runs.
        check: bool,
    },
}
