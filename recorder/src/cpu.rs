//! The virtual CPU, as far as it is looked at.

/// General registers, in the order of their encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Register {
    Rax,
    Rcx,
    Rdx,
    Rbx,
    Rsp,
    Rbp,
    Rsi,
    Rdi,
    R8,
    R9,
    R10,
    R11,
    R12,
    R13,
    R14,
    R15,
}

impl Register {
    /// All of them.
    pub const ALL: [Self; 16] = {
        use Register::*;
        [Rax, Rcx, Rdx, Rbx, Rsp, Rbp, Rsi, Rdi, R8, R9, R10, R11, R12, R13, R14, R15]
    };

    /// The same register as the decoder calls it.
    pub fn decoded(register: iced_x86::Register) -> Option<Self> {
        let number = register.is_gpr64().then(|| register.number())?;
        Self::ALL.get(number).copied()
    }
}

/// The virtual CPU, where it stopped.
pub trait Cpu {
    /// A register's value.
    fn register(&mut self, register: Register) -> u64;
    /// Reads memory at a virtual address; false if it is not mapped.
    fn read(&mut self, address: u64, into: &mut [u8]) -> bool;
}
