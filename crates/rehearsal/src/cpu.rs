//! The state of the stand-in CPU.

use crate::memory::Memory;
use kerntune_isa::{Cpu as Watched, Register};

/// Why the CPU stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// `hlt`: nothing is left to do.
    Halt,
    /// An exception. Nobody handles any, so that a machine would be reset.
    Fault,
}

/// Status flags, as far as code without floating point asks for them.
#[derive(Debug, Default, Clone, Copy)]
pub struct Flags {
    pub carry: bool,
    pub zero: bool,
    pub sign: bool,
    pub overflow: bool,
}

/// A CPU of x86-64 without vectors, with its memory and two serial ports.
#[derive(Debug, Default)]
pub struct Cpu {
    /// In the order of their encoding.
    pub registers: [u64; 16],
    pub rip: u64,
    pub flags: Flags,
    pub memory: Memory,
    /// Where a system call goes (`MSR_LSTAR`).
    pub syscall_entry: u64,
    /// Instructions so far, which are nanoseconds.
    pub executed: u64,
    /// What came out of COM1.
    pub console: Vec<u8>,
    /// What came out of COM2.
    pub results: Vec<u8>,
}

/// Places of registers in [`Cpu::registers`].
pub const RAX: usize = 0;
pub const RCX: usize = 1;
pub const RDX: usize = 2;
pub const RSP: usize = 4;
pub const RBP: usize = 5;
pub const RSI: usize = 6;
pub const RDI: usize = 7;
pub const R11: usize = 11;

impl Watched for Cpu {
    fn register(&mut self, register: Register) -> u64 {
        self.registers[register.index()]
    }

    fn read(&mut self, address: u64, into: &mut [u8]) -> bool {
        match self.memory.slice(address, into.len()) {
            Some(bytes) => into.copy_from_slice(bytes),
            None => return false,
        }
        true
    }
}
