//! Operands of instructions: registers, memory, constants.

use crate::cpu::{EmulatedCpu, StopReason};
use iced_x86::{Instruction, OpKind, Register};

/// Returns the mask of a value of `size` bytes.
pub fn mask(size: usize) -> u64 {
    u64::MAX >> (64 - 8 * size)
}

/// Sign-extends a value of `size` bytes.
pub fn signed(value: u64, size: usize) -> i64 {
    let unused = 64 - 8 * size;
    ((value << unused) as i64) >> unused
}

/// Returns the size of an operand in bytes; of one that is not a register, the size of the memory
/// access.
pub fn size(insn: &Instruction, operand: u32) -> usize {
    match insn.op_kind(operand) {
        OpKind::Register => insn.op_register(operand).size(),
        _ => insn.memory_size().size(),
    }
}

impl EmulatedCpu {
    /// Reads an operand, zero-extended; a constant has all 64 bits.
    pub fn get(&self, insn: &Instruction, operand: u32) -> Result<u64, StopReason> {
        match insn.op_kind(operand) {
            OpKind::Register => Ok(self.register(insn.op_register(operand))),
            OpKind::Memory => {
                let address = self.address(insn, operand);
                self.memory.read(address, insn.memory_size().size()).ok_or(StopReason::Fault)
            }
            _ => Ok(insn.immediate(operand)),
        }
    }

    /// Writes an operand; a 32-bit register loses its upper half.
    pub fn set(&mut self, insn: &Instruction, operand: u32, value: u64) -> Result<(), StopReason> {
        match insn.op_kind(operand) {
            OpKind::Register => {
                self.set_register(insn.op_register(operand), value);
                Ok(())
            }
            _ => {
                let address = self.address(insn, operand);
                self.memory.write(address, insn.memory_size().size(), value).ok_or(StopReason::Fault)
            }
        }
    }

    /// Returns the address of an operand in memory; segments begin at 0.
    pub fn address(&self, insn: &Instruction, operand: u32) -> u64 {
        let of =
            |register: Register| if register.is_segment_register() { 0 } else { self.register(register) };
        insn.virtual_address(operand, 0, |register, _, _| Some(of(register))).unwrap_or(0)
    }

    fn register(&self, register: Register) -> u64 {
        let value = self.registers[place(register)];
        if is_high(register) {
            return value >> 8 & 0xff;
        }
        value & mask(register.size())
    }

    fn set_register(&mut self, register: Register, value: u64) {
        let whole = &mut self.registers[place(register)];
        match register.size() {
            8 => *whole = value,
            4 => *whole = value & mask(4),
            2 => *whole = *whole & !mask(2) | value & mask(2),
            _ if is_high(register) => *whole = *whole & !0xff00 | (value & 0xff) << 8,
            _ => *whole = *whole & !0xff | value & 0xff,
        }
    }
}

/// Checks for `ah`, `ch`, `dh`, `bh`.
fn is_high(register: Register) -> bool {
    matches!(register, Register::AH | Register::CH | Register::DH | Register::BH)
}

fn place(register: Register) -> usize {
    assert!(register.is_gpr(), "the stand-in CPU has no register {register:?}");
    register.full_register().number()
}
