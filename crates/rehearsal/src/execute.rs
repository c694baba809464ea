//! Execution of instructions: those that GCC generates for C without floating point, and those of
//! the stand-in kernel's assembly.
//!
//! A missing instruction is not the guest's fault: it panics, and has to be added here.

use crate::cpu::{EmulatedCpu, StatusFlags, StopReason, R11, RAX, RBP, RCX, RDI, RDX, RSI, RSP};
use crate::operand::{mask, signed, size};
use iced_x86::{ConditionCode, FlowControl, Instruction, Mnemonic, OpKind};

const LSTAR: u32 = 0xc000_0082;
const CONSOLE: u64 = 0x3f8;
const RESULTS: u64 = 0x2f8;
/// Offset of a serial port's line status register, which reports that the port is ready.
const STATUS: u64 = 5;
const ROOM: u64 = 0x20;

type Result<T = ()> = std::result::Result<T, StopReason>;

impl EmulatedCpu {
    /// Executes one instruction; of a repeated one, one iteration.
    ///
    /// # Errors
    /// The reason for which the CPU stops.
    pub fn execute(&mut self, insn: &Instruction) -> Result {
        self.executed += 1;
        self.rip = insn.next_ip();
        match insn.flow_control() {
            _ if insn.mnemonic() == Mnemonic::Hlt => Err(StopReason::Halt),
            FlowControl::Next => self.straight(insn),
            _ => self.branch(insn),
        }
    }

    fn branch(&mut self, insn: &Instruction) -> Result {
        match insn.mnemonic() {
            Mnemonic::Call => {
                let target = self.target(insn)?;
                self.push(insn.next_ip())?;
                self.rip = target;
            }
            Mnemonic::Jmp => self.rip = self.target(insn)?,
            Mnemonic::Ret => self.rip = self.pop()?,
            Mnemonic::Syscall => {
                self.registers[RCX] = insn.next_ip();
                self.registers[R11] = 0x202;
                self.rip = self.syscall_entry;
            }
            Mnemonic::Sysretq => self.rip = self.registers[RCX],
            _ if insn.is_jcc_short_or_near() => {
                if self.holds(insn) {
                    self.rip = insn.near_branch_target();
                }
            }
            // `ud2`, `int3`, and invalid instructions.
            _ => return Err(StopReason::Fault),
        }
        Ok(())
    }

    fn target(&self, insn: &Instruction) -> Result<u64> {
        match insn.op0_kind() {
            OpKind::NearBranch64 => Ok(insn.near_branch_target()),
            _ => self.get(insn, 0),
        }
    }

    fn straight(&mut self, insn: &Instruction) -> Result {
        use Mnemonic::*;
        match insn.mnemonic() {
            Nop | Endbr64 | Pause => Ok(()),
            Mov | Movzx => self.set(insn, 0, self.get(insn, 1)?),
            Movsx | Movsxd => self.set(insn, 0, signed(self.get(insn, 1)?, size(insn, 1)) as u64),
            Lea => self.set(insn, 0, self.address(insn, 1)),
            Push => self.push(self.get(insn, 0)?),
            Pop => {
                let value = self.pop()?;
                self.set(insn, 0, value)
            }
            Leave => {
                self.registers[RSP] = self.registers[RBP];
                self.registers[RBP] = self.pop()?;
                Ok(())
            }
            Add | Adc | Sub | Sbb | Cmp | And | Or | Xor | Test => self.arithmetic(insn),
            Inc | Dec | Neg | Not => self.one_operand(insn),
            Shl | Sal | Shr | Sar | Rol | Ror => self.shift(insn),
            Imul | Mul | Div | Idiv => self.multiply(insn),
            Bt | Bts | Btr | Btc | Bsf | Bsr | Tzcnt | Bswap => self.bits(insn),
            Xchg | Xadd | Cmpxchg => self.exchange(insn),
            Cdq | Cqo | Cwde | Cdqe => self.extend(insn),
            In | Out | Wrmsr | Rdtsc => self.device(insn),
            Movsb | Movsw | Movsd | Movsq | Stosb | Stosw | Stosd | Stosq => self.string(insn),
            _ if insn.condition_code() != ConditionCode::None => match insn.op_count() {
                1 => self.set(insn, 0, self.holds(insn).into()),
                _ => self.set(insn, 0, self.get(insn, u32::from(self.holds(insn)))?),
            },
            _ => panic!("the stand-in CPU does not know `{insn:?}` at {:#x}", insn.ip()),
        }
    }

    fn push(&mut self, value: u64) -> Result {
        self.registers[RSP] = self.registers[RSP].wrapping_sub(8);
        self.memory.write(self.registers[RSP], 8, value).ok_or(StopReason::Fault)
    }

    fn pop(&mut self) -> Result<u64> {
        let value = self.memory.read(self.registers[RSP], 8).ok_or(StopReason::Fault)?;
        self.registers[RSP] = self.registers[RSP].wrapping_add(8);
        Ok(value)
    }

    fn holds(&self, insn: &Instruction) -> bool {
        let StatusFlags { carry, zero, sign, overflow } = self.flags;
        match insn.condition_code() {
            ConditionCode::o => overflow,
            ConditionCode::no => !overflow,
            ConditionCode::b => carry,
            ConditionCode::ae => !carry,
            ConditionCode::e => zero,
            ConditionCode::ne => !zero,
            ConditionCode::be => carry || zero,
            ConditionCode::a => !(carry || zero),
            ConditionCode::s => sign,
            ConditionCode::ns => !sign,
            ConditionCode::l => sign != overflow,
            ConditionCode::ge => sign == overflow,
            ConditionCode::le => zero || sign != overflow,
            ConditionCode::g => !zero && sign == overflow,
            other => panic!("the stand-in CPU does not know the condition {other:?} at {:#x}", insn.ip()),
        }
    }

    /// Sets zero and sign flags by a result.
    fn result(&mut self, value: u64, size: usize) {
        self.flags.zero = value & mask(size) == 0;
        self.flags.sign = signed(value, size) < 0;
    }

    fn arithmetic(&mut self, insn: &Instruction) -> Result {
        let size = size(insn, 0);
        let mask = mask(size);
        let (a, b) = (self.get(insn, 0)? & mask, self.get(insn, 1)? & mask);
        let top = |bits: u64| signed(bits, size) < 0;
        let carried = self.flags.carry;
        let (value, carry, overflow) = match insn.mnemonic() {
            Mnemonic::Add | Mnemonic::Adc => {
                let carry = u64::from(insn.mnemonic() == Mnemonic::Adc && carried);
                let sum = u128::from(a) + u128::from(b) + u128::from(carry);
                let value = sum as u64 & mask;
                (value, sum > u128::from(mask), top((a ^ value) & (b ^ value)))
            }
            Mnemonic::Sub | Mnemonic::Sbb | Mnemonic::Cmp => {
                let borrow = u64::from(insn.mnemonic() == Mnemonic::Sbb && carried);
                let value = a.wrapping_sub(b).wrapping_sub(borrow) & mask;
                (value, u128::from(a) < u128::from(b) + u128::from(borrow), top((a ^ b) & (a ^ value)))
            }
            Mnemonic::Or => (a | b, false, false),
            Mnemonic::Xor => (a ^ b, false, false),
            _ => (a & b, false, false),
        };
        (self.flags.carry, self.flags.overflow) = (carry, overflow);
        self.result(value, size);
        match insn.mnemonic() {
            Mnemonic::Cmp | Mnemonic::Test => Ok(()),
            _ => self.set(insn, 0, value),
        }
    }

    fn one_operand(&mut self, insn: &Instruction) -> Result {
        let size = size(insn, 0);
        let value = self.get(insn, 0)?;
        let min = 1u64 << (8 * size - 1);
        let result = match insn.mnemonic() {
            Mnemonic::Inc => value.wrapping_add(1),
            Mnemonic::Dec => value.wrapping_sub(1),
            Mnemonic::Neg => value.wrapping_neg(),
            _ => return self.set(insn, 0, !value),
        } & mask(size);
        match insn.mnemonic() {
            Mnemonic::Inc => self.flags.overflow = result == min,
            Mnemonic::Dec => self.flags.overflow = value == min,
            _ => (self.flags.carry, self.flags.overflow) = (value != 0, value == min),
        }
        self.result(result, size);
        self.set(insn, 0, result)
    }

    fn shift(&mut self, insn: &Instruction) -> Result {
        let size = size(insn, 0);
        let bits = 8 * size as u64;
        let count = self.get(insn, 1)? & if size == 8 { 63 } else { 31 };
        let value = self.get(insn, 0)?;
        if count == 0 {
            // A 32-bit register is written in any case, which clears its upper half.
            return self.set(insn, 0, value);
        }
        let bit = |at: u64| at < 64 && value >> at & 1 == 1;
        let (result, carry) = match insn.mnemonic() {
            Mnemonic::Shl | Mnemonic::Sal => {
                (value.checked_shl(count as u32).unwrap_or(0), count <= bits && bit(bits - count))
            }
            Mnemonic::Shr => (value.checked_shr(count as u32).unwrap_or(0), bit(count - 1)),
            Mnemonic::Sar => {
                let value = signed(value, size);
                ((value >> count.min(63)) as u64, value >> (count - 1).min(63) & 1 == 1)
            }
            rotation => {
                let left = match rotation {
                    Mnemonic::Rol => count % bits,
                    _ => (bits - count % bits) % bits,
                };
                let result = match left {
                    0 => value,
                    left => (value << left | value >> (bits - left)) & mask(size),
                };
                self.flags.carry = match rotation {
                    Mnemonic::Rol => result & 1 == 1,
                    _ => result >> (bits - 1) & 1 == 1,
                };
                return self.set(insn, 0, result);
            }
        };
        self.flags.carry = carry;
        // Defined for shifts by one bit: whether the sign changed.
        self.flags.overflow = signed(result ^ value, size) < 0;
        self.result(result, size);
        self.set(insn, 0, result)
    }

    fn multiply(&mut self, insn: &Instruction) -> Result {
        let size = size(insn, 0);
        if insn.op_count() > 1 {
            let (a, b) = match insn.op_count() {
                2 => (self.get(insn, 0)?, self.get(insn, 1)?),
                _ => (self.get(insn, 1)?, self.get(insn, 2)?),
            };
            let product = i128::from(signed(a, size)) * i128::from(signed(b, size));
            let value = product as u64 & mask(size);
            let lost = i128::from(signed(value, size)) != product;
            (self.flags.carry, self.flags.overflow) = (lost, lost);
            return self.set(insn, 0, value);
        }
        assert!(size >= 4, "the stand-in CPU does not know `{insn:?}` at {:#x}", insn.ip());
        let bits = 8 * size;
        let operand = self.get(insn, 0)?;
        let [low, high] = [RAX, RDX].map(|register| u128::from(self.registers[register] & mask(size)));
        let (first, second) = match insn.mnemonic() {
            Mnemonic::Mul => {
                let product = low * u128::from(operand);
                let high = (product >> bits) as u64;
                (self.flags.carry, self.flags.overflow) = (high != 0, high != 0);
                (product as u64, high)
            }
            Mnemonic::Imul => {
                let product = i128::from(signed(low as u64, size)) * i128::from(signed(operand, size));
                let lost = i128::from(signed(product as u64, size)) != product;
                (self.flags.carry, self.flags.overflow) = (lost, lost);
                (product as u64, (product >> bits) as u64)
            }
            Mnemonic::Div => {
                let (dividend, divisor) = (high << bits | low, u128::from(operand));
                let quotient = dividend.checked_div(divisor).ok_or(StopReason::Fault)?;
                if quotient > u128::from(mask(size)) {
                    return Err(StopReason::Fault);
                }
                (quotient as u64, (dividend % divisor) as u64)
            }
            _ => {
                let unused = 128 - 2 * bits;
                let dividend = ((high << bits | low) << unused) as i128 >> unused;
                let divisor = i128::from(signed(operand, size));
                let quotient = dividend.checked_div(divisor).ok_or(StopReason::Fault)?;
                if i128::from(signed(quotient as u64, size)) != quotient {
                    return Err(StopReason::Fault);
                }
                (quotient as u64, (dividend % divisor) as u64)
            }
        };
        self.registers[RAX] = first & mask(size);
        self.registers[RDX] = second & mask(size);
        Ok(())
    }

    fn bits(&mut self, insn: &Instruction) -> Result {
        let size = size(insn, 0);
        if insn.mnemonic() == Mnemonic::Bswap {
            let value = self.get(insn, 0)?.swap_bytes() >> (64 - 8 * size);
            return self.set(insn, 0, value);
        }
        let value = self.get(insn, 1)?;
        match insn.mnemonic() {
            Mnemonic::Bsf | Mnemonic::Bsr | Mnemonic::Tzcnt => {
                self.flags.zero = value == 0;
                match (insn.mnemonic(), value) {
                    (Mnemonic::Bsr, 1..) => self.set(insn, 0, u64::from(value.ilog2())),
                    (_, 1..) => self.set(insn, 0, u64::from(value.trailing_zeros())),
                    // Like a CPU without `tzcnt`, which executes `bsf`.
                    (_, 0) => Ok(()),
                }
            }
            test => {
                let in_string = insn.op0_kind() == OpKind::Memory && insn.op1_kind() == OpKind::Register;
                assert!(!in_string, "the stand-in CPU does not know `{insn:?}` at {:#x}", insn.ip());
                let bit = 1u64 << (value % (8 * size as u64));
                let target = self.get(insn, 0)?;
                self.flags.carry = target & bit != 0;
                match test {
                    Mnemonic::Bts => self.set(insn, 0, target | bit),
                    Mnemonic::Btr => self.set(insn, 0, target & !bit),
                    Mnemonic::Btc => self.set(insn, 0, target ^ bit),
                    _ => Ok(()),
                }
            }
        }
    }

    fn exchange(&mut self, insn: &Instruction) -> Result {
        let size = size(insn, 0);
        let (target, value) = (self.get(insn, 0)?, self.get(insn, 1)?);
        match insn.mnemonic() {
            Mnemonic::Xchg => {
                self.set(insn, 0, value)?;
                self.set(insn, 1, target)
            }
            Mnemonic::Xadd => {
                let sum = target.wrapping_add(value) & mask(size);
                self.flags.carry = sum < target;
                self.flags.overflow = signed((target ^ sum) & (value ^ sum), size) < 0;
                self.result(sum, size);
                self.set(insn, 1, target)?;
                self.set(insn, 0, sum)
            }
            _ => {
                let expected = self.registers[RAX] & mask(size);
                self.flags.carry = expected < target;
                self.result(expected.wrapping_sub(target), size);
                match expected == target {
                    true => self.set(insn, 0, value),
                    false => {
                        self.registers[RAX] = target;
                        Ok(())
                    }
                }
            }
        }
    }

    fn extend(&mut self, insn: &Instruction) -> Result {
        let value = self.registers[RAX];
        match insn.mnemonic() {
            Mnemonic::Cwde => self.registers[RAX] = signed(value, 2) as u64 & mask(4),
            Mnemonic::Cdqe => self.registers[RAX] = signed(value, 4) as u64,
            Mnemonic::Cdq => self.registers[RDX] = (signed(value, 4) >> 63) as u64 & mask(4),
            _ => self.registers[RDX] = (value as i64 >> 63) as u64,
        }
        Ok(())
    }

    fn device(&mut self, insn: &Instruction) -> Result {
        match insn.mnemonic() {
            Mnemonic::Wrmsr => {
                if self.registers[RCX] as u32 == LSTAR {
                    self.syscall_entry = self.registers[RDX] << 32 | self.registers[RAX] & mask(4);
                }
                Ok(())
            }
            Mnemonic::Rdtsc => {
                self.registers[RAX] = self.executed & mask(4);
                self.registers[RDX] = self.executed >> 32;
                Ok(())
            }
            Mnemonic::In => {
                let port = self.get(insn, 1)? & 0xffff;
                let ready = port == CONSOLE + STATUS || port == RESULTS + STATUS;
                self.set(insn, 0, if ready { ROOM } else { u64::MAX })
            }
            _ => {
                let byte = self.get(insn, 1)? as u8;
                match self.get(insn, 0)? & 0xffff {
                    CONSOLE => self.console.push(byte),
                    RESULTS => self.results.push(byte),
                    _ => {}
                }
                Ok(())
            }
        }
    }

    fn string(&mut self, insn: &Instruction) -> Result {
        let repeats = insn.has_rep_prefix();
        if repeats && self.registers[RCX] == 0 {
            return Ok(());
        }
        let size = insn.memory_size().size();
        let copies =
            matches!(insn.mnemonic(), Mnemonic::Movsb | Mnemonic::Movsw | Mnemonic::Movsd | Mnemonic::Movsq);
        let value = match copies {
            true => self.memory.read(self.registers[RSI], size).ok_or(StopReason::Fault)?,
            false => self.registers[RAX],
        };
        self.memory.write(self.registers[RDI], size, value).ok_or(StopReason::Fault)?;
        self.registers[RDI] += size as u64;
        if copies {
            self.registers[RSI] += size as u64;
        }
        if repeats {
            self.registers[RCX] -= 1;
            if self.registers[RCX] != 0 {
                self.rip = insn.ip();
            }
        }
        Ok(())
    }
}
