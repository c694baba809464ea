//! State of the stand-in CPU.

use crate::memory::GuestMemory;
use kerntune_isa::{Register, StoppedCpu};

/// Reason for which the CPU stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// `hlt`: the guest is done.
    Halt,
    /// An exception. The stand-in kernel handles none, so a real machine would reset.
    Fault,
}

/// Status flags that code without floating point uses.
#[derive(Debug, Default, Clone, Copy)]
pub struct StatusFlags {
    pub carry: bool,
    pub zero: bool,
    pub sign: bool,
    pub overflow: bool,
}

/// An x86-64 CPU without vector instructions, with its memory and two serial ports.
#[derive(Debug, Default)]
pub struct EmulatedCpu {
    /// General registers in the order of their encoding.
    pub registers: [u64; 16],
    pub rip: u64,
    pub flags: StatusFlags,
    pub memory: GuestMemory,
    /// Entry address of system calls (`MSR_LSTAR`).
    pub syscall_entry: u64,
    /// Number of executed instructions, which is the virtual time.
    pub executed: u64,
    /// Output on COM1.
    pub console: Vec<u8>,
    /// Output on COM2.
    pub results: Vec<u8>,
}

/// Indices into [`EmulatedCpu::registers`].
pub const RAX: usize = 0;
pub const RCX: usize = 1;
pub const RDX: usize = 2;
pub const RSP: usize = 4;
pub const RBP: usize = 5;
pub const RSI: usize = 6;
pub const RDI: usize = 7;
pub const R11: usize = 11;

impl StoppedCpu for EmulatedCpu {
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
