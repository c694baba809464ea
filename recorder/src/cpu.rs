//! The virtual CPU, as far as it is looked at.

/// General registers, in the order of their encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Register {
    /// `rax`, encoded as 0.
    Rax,
    /// `rcx`, encoded as 1.
    Rcx,
    /// `rdx`, encoded as 2.
    Rdx,
    /// `rbx`, encoded as 3.
    Rbx,
    /// `rsp`, encoded as 4.
    Rsp,
    /// `rbp`, encoded as 5.
    Rbp,
    /// `rsi`, encoded as 6.
    Rsi,
    /// `rdi`, encoded as 7.
    Rdi,
    /// `r8`, encoded as 8.
    R8,
    /// `r9`, encoded as 9.
    R9,
    /// `r10`, encoded as 10.
    R10,
    /// `r11`, encoded as 11.
    R11,
    /// `r12`, encoded as 12.
    R12,
    /// `r13`, encoded as 13.
    R13,
    /// `r14`, encoded as 14.
    R14,
    /// `r15`, encoded as 15.
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
