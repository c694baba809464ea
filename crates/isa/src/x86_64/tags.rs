//! Event tags of McRae's profiler, as hardware at a socket or port would see them.

use super::code::decode;
use crate::{Insn, TagAccess};
use iced_x86::{Code, Mnemonic, OpKind, Register};
use kerntune_trace::{TagLayout, TagSource, TagWindow};

/// Returns the tag that an instruction emits, if it accesses the window.
pub fn find(tags: TagSource, insn: &Insn) -> Option<TagAccess> {
    // Most instructions access neither; decoding costs time only at translation.
    let insn = decode(insn);
    let TagSource { window, layout } = tags;
    let wide = layout.tag_bits() > TagLayout::MCRAE.tag_bits();
    match window {
        TagWindow::Port(port) => {
            let (at_port, at_register) = match wide {
                true => (Code::Out_imm8_EAX, Code::Out_DX_EAX),
                false => (Code::Out_imm8_AX, Code::Out_DX_AX),
            };
            match insn.code() {
                code if code == at_port && u16::from(insn.immediate8()) == port => {
                    Some(TagAccess::Port { check: false })
                }
                code if code == at_register => Some(TagAccess::Port { check: true }),
                _ => None,
            }
        }
        TagWindow::Memory { base, size } => {
            // Neither of these accesses its operand.
            if matches!(insn.mnemonic(), Mnemonic::Lea | Mnemonic::Nop) {
                return None;
            }
            let memory = |at| matches!(insn.op_kind(at), OpKind::Memory);
            if !(0..insn.op_count()).any(memory) {
                return None;
            }
            // The bases of `fs` and `gs` are not known here.
            if matches!(insn.memory_segment(), Register::FS | Register::GS) {
                return None;
            }
            let absolute = insn.memory_base() == Register::None && insn.memory_index() == Register::None;
            let address = if insn.is_ip_rel_memory_operand() {
                insn.ip_rel_memory_address()
            } else if absolute {
                insn.memory_displacement64()
            } else {
                return None;
            };
            let offset = address.checked_sub(base).filter(|&offset| offset < size)?;
            u32::try_from(offset & layout.max_tag()).ok().map(TagAccess::Tag)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn insn(bytes: &[u8]) -> Insn {
        Insn::new(0x40_1000, bytes)
    }

    const WIDE: Option<TagLayout> = TagLayout::new(32, 64, 1000);

    fn source(window: TagWindow, layout: TagLayout) -> TagSource {
        TagSource { window, layout }
    }

    #[test]
    fn ports() {
        let wide = |bytes: &[u8]| find(source(TagWindow::Port(0x80), WIDE.unwrap()), &insn(bytes));
        assert_eq!(wide(&[0xe7, 0x80]), Some(TagAccess::Port { check: false }));
        assert_eq!(wide(&[0xef]), Some(TagAccess::Port { check: true }));
        assert_eq!(wide(&[0x66, 0xe7, 0x80]), None, "16 bits");
        let find = |bytes: &[u8]| find(source(TagWindow::Port(0x80), TagLayout::MCRAE), &insn(bytes));
        assert_eq!(find(&[0x66, 0xe7, 0x80]), Some(TagAccess::Port { check: false }));
        assert_eq!(find(&[0x66, 0xef]), Some(TagAccess::Port { check: true }));
        assert_eq!(find(&[0x66, 0xe7, 0x81]), None, "another port");
        assert_eq!(find(&[0xe6, 0x80]), None, "a byte, the kernel's delay");
        assert_eq!(find(&[0xe7, 0x80]), None, "32 bits");
    }

    #[test]
    fn memory() {
        let window = TagWindow::Memory { base: 0x50_0000, size: 0x2_0000 };
        let wide = |bytes: &[u8]| find(source(window, WIDE.unwrap()), &insn(bytes));
        assert_eq!(wide(&[0x8b, 0x04, 0x25, 0x01, 0x00, 0x51, 0x00]), Some(TagAccess::Tag(0x1_0001)));
        let find = |bytes: &[u8]| find(source(window, TagLayout::MCRAE), &insn(bytes));
        // testb %al, 0x50056a
        let absolute = [0x84, 0x04, 0x25, 0x6a, 0x05, 0x50, 0x00];
        assert_eq!(find(&absolute), Some(TagAccess::Tag(0x56a)));
        // testb %al, 0xff564(%rip)
        assert_eq!(find(&[0x84, 0x05, 0x64, 0xf5, 0x0f, 0x00]), Some(TagAccess::Tag(0x56a)));
        // mov 0x510001, %eax: the second 64 KiB emit the same tags
        assert_eq!(find(&[0x8b, 0x04, 0x25, 0x01, 0x00, 0x51, 0x00]), Some(TagAccess::Tag(1)));
        assert_eq!(find(&[0x84, 0x04, 0x25, 0xff, 0xff, 0x4f, 0x00]), None, "below");
        assert_eq!(find(&[0x84, 0x04, 0x25, 0x00, 0x00, 0x52, 0x00]), None, "above");
        assert_eq!(find(&[0x48, 0x8d, 0x05, 0x64, 0xf5, 0x0f, 0x00]), None, "lea");
        assert_eq!(find(&[0x65, 0x84, 0x04, 0x25, 0x6a, 0x05, 0x50, 0x00]), None, "gs");
        assert_eq!(find(&[0x84, 0x00]), None, "by register");
        assert_eq!(find(&[0x90]), None);
    }
}
