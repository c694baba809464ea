//! Event tags of McRae's profiler (seed 001), as a box at a socket or port would see them.

use crate::translate::Insn;
use crate::Failure;
use iced_x86::{Code, Mnemonic, OpKind, Register};
use kerntune_trace::{files, TagWindow};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Bytes of addresses that stand for tags, see [`TagWindow::Memory`].
const WINDOW: u64 = 0x2_0000;

/// How an instruction says a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// This one, whenever it runs.
    Tag(u16),
    /// The value of `ax`; if `dx` is the window's port where that is to be checked.
    Ax { check_dx: bool },
}

/// What an instruction says, if it is an access to the window.
pub fn find(window: TagWindow, insn: &Insn) -> Option<Access> {
    // Most instructions are neither; decoding costs, at each translation only.
    let insn = insn.decode();
    match window {
        TagWindow::Port(port) => match insn.code() {
            Code::Out_imm8_AX if u16::from(insn.immediate8()) == port => Some(Access::Ax { check_dx: false }),
            Code::Out_DX_AX => Some(Access::Ax { check_dx: true }),
            _ => None,
        },
        TagWindow::Memory(base) => {
            // Neither of these accesses its operand.
            if matches!(insn.mnemonic(), Mnemonic::Lea | Mnemonic::Nop) {
                return None;
            }
            let memory = |at| matches!(insn.op_kind(at), OpKind::Memory);
            if !(0..insn.op_count()).any(memory) {
                return None;
            }
            // What `fs` and `gs` point to is known to nobody here.
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
            let offset = address.checked_sub(base).filter(|&offset| offset < WINDOW)?;
            Some(Access::Tag(offset as u16))
        }
    }
}

/// Writes [`files::TAGS`]: a buffer of a MiB, filled without a system call for 200,000 tags.
pub struct TagWriter {
    out: BufWriter<File>,
    path: PathBuf,
}

impl TagWriter {
    /// Begins the file in `directory`.
    pub fn create(directory: &Path) -> Result<Self, Failure> {
        let path = directory.join(files::TAGS);
        let file =
            File::create(&path).map_err(|e| Failure(format!("cannot create {}: {e}", path.display())))?;
        Ok(Self { out: BufWriter::with_capacity(1 << 20, file), path })
    }

    /// Appends a tag seen at this virtual time.
    pub fn push(&mut self, tag: u16, ns: u64) -> Result<(), Failure> {
        self.out.write_all(&record(tag, ns)).map_err(|e| self.failure(&e))
    }

    /// Everything is on its way to the disk.
    pub fn finish(mut self) -> Result<(), Failure> {
        self.out.flush().and_then(|()| self.out.get_ref().sync_data()).map_err(|e| self.failure(&e))
    }

    fn failure(&self, error: &std::io::Error) -> Failure {
        Failure(format!("cannot write {}: {error}", self.path.display()))
    }
}

fn record(tag: u16, ns: u64) -> [u8; 5] {
    let [low, high] = tag.to_le_bytes();
    let [a, b, c, ..] = (ns / 1000).to_le_bytes();
    [low, high, a, b, c]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn insn(bytes: &[u8]) -> Insn {
        let mut insn = Insn { address: 0x40_1000, length: bytes.len(), ..Insn::default() };
        insn.bytes[..bytes.len()].copy_from_slice(bytes);
        insn
    }

    #[test]
    fn ports() {
        let find = |bytes: &[u8]| find(TagWindow::Port(0x80), &insn(bytes));
        assert_eq!(find(&[0x66, 0xe7, 0x80]), Some(Access::Ax { check_dx: false }));
        assert_eq!(find(&[0x66, 0xef]), Some(Access::Ax { check_dx: true }));
        assert_eq!(find(&[0x66, 0xe7, 0x81]), None, "another port");
        assert_eq!(find(&[0xe6, 0x80]), None, "a byte, the kernel's delay");
        assert_eq!(find(&[0xe7, 0x80]), None, "32 bits");
    }

    #[test]
    fn memory() {
        let find = |bytes: &[u8]| find(TagWindow::Memory(0x50_0000), &insn(bytes));
        // testb %al, 0x50056a
        let absolute = [0x84, 0x04, 0x25, 0x6a, 0x05, 0x50, 0x00];
        assert_eq!(find(&absolute), Some(Access::Tag(0x56a)));
        // testb %al, 0xff564(%rip)
        assert_eq!(find(&[0x84, 0x05, 0x64, 0xf5, 0x0f, 0x00]), Some(Access::Tag(0x56a)));
        // mov 0x510001, %eax: the second 64 KiB say the same tags
        assert_eq!(find(&[0x8b, 0x04, 0x25, 0x01, 0x00, 0x51, 0x00]), Some(Access::Tag(1)));
        assert_eq!(find(&[0x84, 0x04, 0x25, 0xff, 0xff, 0x4f, 0x00]), None, "below");
        assert_eq!(find(&[0x84, 0x04, 0x25, 0x00, 0x00, 0x52, 0x00]), None, "above");
        assert_eq!(find(&[0x48, 0x8d, 0x05, 0x64, 0xf5, 0x0f, 0x00]), None, "lea");
        assert_eq!(find(&[0x65, 0x84, 0x04, 0x25, 0x6a, 0x05, 0x50, 0x00]), None, "gs");
        assert_eq!(find(&[0x84, 0x00]), None, "by register");
        assert_eq!(find(&[0x90]), None);
    }

    #[test]
    fn a_record_is_five_bytes_and_the_timer_wraps() {
        assert_eq!(record(0x1234, 999), [0x34, 0x12, 0, 0, 0]);
        assert_eq!(record(2, 0x0102_0304 * 1000 + 17), [2, 0, 4, 3, 2]);
    }
}
