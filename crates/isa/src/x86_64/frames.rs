//! What the CPU pushes when it enters the kernel by an interrupt or exception: instruction pointer and code segment, and
//! an error code below them or none.

use super::registers::RSP;
use crate::{Cpu, ExceptionFrame};

/// Selectors of the kernel's descriptor table are not larger, addresses of code are.
const SELECTORS: u64 = 0xff;

/// Selectors of user code end with privilege level 3.
const USER: u64 = 3;

/// An exception has just come.
pub fn exception(cpu: &mut dyn Cpu) -> Option<ExceptionFrame> {
    let stack = cpu.register(RSP);
    let mut word = |slot| {
        let mut word = [0; 8];
        cpu.read(stack.wrapping_add(slot), &mut word).then(|| u64::from_le_bytes(word))
    };
    let coded = word(8)? > SELECTORS;
    Some(ExceptionFrame { address: word(if coded { 8 } else { 0 })?, coded })
}

/// Where an interrupt that has just come will go back to, if that is user code. Above instruction pointer and code
/// segment may be an error code, or the vector that a stub pushed.
pub fn interrupted_user(cpu: &mut dyn Cpu) -> Option<u64> {
    let stack = cpu.register(RSP);
    let mut words = [0; 24];
    if !cpu.read(stack, &mut words) {
        return None;
    }
    let word = |at: usize| words[at..at + 8].try_into().map(u64::from_le_bytes).unwrap_or_default();
    let is_user = |selector: u64| selector <= SELECTORS && selector & USER == USER;
    match (is_user(word(8)), is_user(word(16))) {
        (true, _) => Some(word(0)),
        (false, true) => Some(word(8)),
        _ => None,
    }
}

/// The stack pointer after `iretq`: above instruction pointer, code segment and flags.
pub fn interrupt_return_stack(cpu: &mut dyn Cpu) -> Option<u64> {
    let stack = cpu.register(RSP);
    let mut word = [0; 8];
    cpu.read(stack.wrapping_add(24), &mut word).then(|| u64::from_le_bytes(word))
}

/// Where `iretq` leads; 0 if the stack cannot be read.
pub fn interrupt_return(cpu: &mut dyn Cpu) -> u64 {
    let stack = cpu.register(RSP);
    let mut word = [0; 8];
    cpu.read(stack, &mut word);
    u64::from_le_bytes(word)
}
