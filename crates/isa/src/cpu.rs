//! The virtual CPU, as far as it is looked at.

/// A general register: its place in [`Isa::REGISTERS`](crate::Isa::REGISTERS).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Register(pub(crate) u8);

impl Register {
    /// Its place in the list of registers.
    pub fn index(self) -> usize {
        self.0.into()
    }
}

/// The virtual CPU, where it stopped.
pub trait Cpu {
    /// A register's value.
    fn register(&mut self, register: Register) -> u64;
    /// Reads memory at a virtual address; false if it is not mapped.
    fn read(&mut self, address: u64, into: &mut [u8]) -> bool;
}

/// What the CPU left behind when it raised an exception.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExceptionFrame {
    /// Address of the instruction that raised it, or of the one after it.
    pub address: u64,
    /// Whether there is an error code.
    pub coded: bool,
}
