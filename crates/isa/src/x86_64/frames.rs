//! Frames that the CPU pushes when an interrupt or exception enters the kernel: instruction pointer
//! and code segment, and below them an error code for some exceptions.

use super::registers::RSP;
use crate::{ExceptionFrame, StoppedCpu};

/// Upper bound of the kernel's segment selectors; addresses of code are greater.
const SELECTORS: u64 = 0xff;

/// Privilege level in the selectors of user code.
const USER: u64 = 3;

/// Returns the frame of an exception that has just begun.
pub fn exception(cpu: &mut dyn StoppedCpu) -> Option<ExceptionFrame> {
    let stack = cpu.register(RSP);
    let mut word = |slot| {
        let mut word = [0; 8];
        cpu.read(stack.wrapping_add(slot), &mut word).then(|| u64::from_le_bytes(word))
    };
    let coded = word(8)? > SELECTORS;
    Some(ExceptionFrame { address: word(if coded { 8 } else { 0 })?, coded })
}

/// Returns the address to which an interrupt that has just begun will return, if that is user code.
/// On the stack an error code, or the vector that a stub pushed, may precede instruction pointer
/// and code segment.
pub fn interrupted_user(cpu: &mut dyn StoppedCpu) -> Option<u64> {
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

/// Returns the stack pointer after `iretq`, from the frame's slot above instruction pointer, code
/// segment and flags.
pub fn interrupt_return_stack(cpu: &mut dyn StoppedCpu) -> Option<u64> {
    let stack = cpu.register(RSP);
    let mut word = [0; 8];
    cpu.read(stack.wrapping_add(24), &mut word).then(|| u64::from_le_bytes(word))
}

/// Returns the target of `iretq`; 0 if the stack cannot be read.
pub fn interrupt_return(cpu: &mut dyn StoppedCpu) -> u64 {
    let stack = cpu.register(RSP);
    let mut word = [0; 8];
    cpu.read(stack, &mut word);
    u64::from_le_bytes(word)
}
