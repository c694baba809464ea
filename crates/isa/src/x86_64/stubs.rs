//! Stubs through which device interrupts reach the kernel, one for each vector.
//!
//! `arch/x86/include/asm/idtentry.h` generates them in a loop below one label: each pushes its
//! vector and jumps to the common entry.

use crate::InterruptStub;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Mnemonic};

/// Labels at the beginning of the stubs.
pub const LABELS: [&str; 2] = ["irq_entries_start", "spurious_entries_start"];

/// Returns the stubs in `code` at `address`, skipping the padding between them.
pub fn decode(code: &[u8], address: u64) -> Vec<InterruptStub> {
    let mut stubs = Vec::new();
    let (mut start, mut vector) = (address, None);
    for insn in &mut Decoder::with_ip(64, code, address, DecoderOptions::NONE) {
        match (insn.mnemonic(), insn.flow_control(), vector) {
            (Mnemonic::Endbr64, ..) => start = insn.ip(),
            (Mnemonic::Push, _, None) => {
                if start + 4 != insn.ip() {
                    start = insn.ip();
                }
                // Pushed sign-extended, but the entry code reads a byte.
                vector = Some(insn.immediate8());
            }
            (Mnemonic::Jmp, FlowControl::UnconditionalBranch, Some(pushed)) => {
                stubs.push(InterruptStub {
                    address: start,
                    vector: pushed,
                    target: insn.near_branch_target(),
                });
                vector = None;
            }
            (Mnemonic::Int3 | Mnemonic::Nop, _, None) => {}
            _ => return Vec::new(),
        }
    }
    stubs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stubs_with_and_without_landing_pads() {
        let at = 0xffff_ffff_8160_0140;
        // endbr64; push $0x20; jmp +0x1135; int3 …; endbr64; push $-0x14; jmp; int3 …
        let with = b"\xf3\x0f\x1e\xfa\x6a\x20\xe9\x35\x11\0\0\xcc\xcc\xcc\xcc\xcc\
                     \xf3\x0f\x1e\xfa\x6a\xec\xe9\x25\x11\0\0\xcc\xcc\xcc\xcc\xcc";
        let target = 0xffff_ffff_8160_1280;
        let expected = [
            InterruptStub { address: at, vector: 0x20, target },
            InterruptStub { address: at + 16, vector: 0xec, target },
        ];
        assert_eq!(decode(with, at), expected);
        // push $0x20; jmp; nop; push $0x21; jmp; nop
        let without = b"\x6a\x20\xe9\x39\x11\0\0\x90\x6a\x21\xe9\x31\x11\0\0\x90";
        let stubs = decode(without, at);
        assert_eq!((stubs[1].address, stubs[1].vector, stubs.len()), (at + 8, 0x21, 2));
        assert_eq!(decode(b"\x90\xc3", at), [], "something else");
    }
}
