//! The stubs through which device interrupts reach the kernel, one for each vector.
//!
//! `arch/x86/include/asm/idtentry.h` makes them in a loop under one label (`irq_entries_start`,
//! `spurious_entries_start`): each pushes its vector and jumps to the common entry. Here each becomes a
//! function of its own, `asm_common_interrupt:0x23`, so that what a device costs is seen by its vector.

use crate::raw_symbols::Raw;
use crate::symbol_groups::Group;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Mnemonic};

const LABELS: [&str; 2] = ["irq_entries_start", "spurious_entries_start"];

/// Puts the stubs in the place of their label. `bytes(address, size)` reads code. A label whose code is
/// something else stays as it is.
pub(crate) fn split(groups: Vec<Group>, bytes: impl Fn(u64, u64) -> Option<Vec<u8>>) -> Vec<Group> {
    let name_at = |address: u64| {
        let at = groups.binary_search_by_key(&address, |group| group.first().address).ok()?;
        Some(groups[at].first().name.clone())
    };
    let stubs = |group: &Group| {
        let label = group.first();
        if !LABELS.contains(&label.name.as_str()) {
            return None;
        }
        let code = bytes(label.address, group.size)?;
        let found = decode(&code, label.address);
        let ends =
            found.iter().skip(1).map(|stub| stub.address).chain([label.address.saturating_add(group.size)]);
        let made: Option<Vec<Group>> = found
            .iter()
            .zip(ends)
            .map(|(stub, end)| {
                let name = format!("{}:{:#04x}", name_at(stub.target)?, stub.vector);
                let raw = Raw {
                    name,
                    address: stub.address,
                    size: end.saturating_sub(stub.address),
                    ..label.clone()
                };
                Some(Group::of(raw))
            })
            .collect();
        made.filter(|made| !made.is_empty())
    };
    let made: Vec<Option<Vec<Group>>> = groups.iter().map(stubs).collect();
    groups.into_iter().zip(made).flat_map(|(group, made)| made.unwrap_or_else(|| vec![group])).collect()
}

/// One stub: where it begins, what it pushes, where it jumps.
#[derive(Debug, PartialEq, Eq)]
struct Stub {
    address: u64,
    vector: u8,
    target: u64,
}

/// The stubs in `code`, which begins at `address`; what stands between them is padding.
fn decode(code: &[u8], address: u64) -> Vec<Stub> {
    let mut stubs = Vec::new();
    let (mut start, mut vector) = (address, None);
    for insn in &mut Decoder::with_ip(64, code, address, DecoderOptions::NONE) {
        match (insn.mnemonic(), insn.flow_control(), vector) {
            (Mnemonic::Endbr64, ..) => start = insn.ip(),
            (Mnemonic::Push, _, None) => {
                if start + 4 != insn.ip() {
                    start = insn.ip();
                }
                // Pushed with its sign, as the entry code reads it: as a byte.
                vector = Some(insn.immediate8());
            }
            (Mnemonic::Jmp, FlowControl::UnconditionalBranch, Some(pushed)) => {
                stubs.push(Stub { address: start, vector: pushed, target: insn.near_branch_target() });
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
        let expected =
            [Stub { address: at, vector: 0x20, target }, Stub { address: at + 16, vector: 0xec, target }];
        assert_eq!(decode(with, at), expected);
        // push $0x20; jmp; nop; push $0x21; jmp; nop
        let without = b"\x6a\x20\xe9\x39\x11\0\0\x90\x6a\x21\xe9\x31\x11\0\0\x90";
        let stubs = decode(without, at);
        assert_eq!((stubs[1].address, stubs[1].vector, stubs.len()), (at + 8, 0x21, 2));
        assert_eq!(decode(b"\x90\xc3", at), [], "something else");
    }
}
