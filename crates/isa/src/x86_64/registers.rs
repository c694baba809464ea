//! General registers in the order of their encoding, and the register with the page table's
//! address.

use crate::Register;

/// QEMU's names of the registers.
pub const NAMES: [&str; 17] = [
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14",
    "r15", "cr3",
];

pub const RAX: Register = Register(0);
pub const RCX: Register = Register(1);
pub const RDX: Register = Register(2);
pub const RSP: Register = Register(4);
pub const RSI: Register = Register(6);
pub const RDI: Register = Register(7);
pub const R8: Register = Register(8);
pub const CR3: Register = Register(16);

/// Converts a register of the decoder, if it is one of these.
pub fn of(register: iced_x86::Register) -> Option<Register> {
    register.is_gpr64().then(|| Register(register.number() as u8))
}
