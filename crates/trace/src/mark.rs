//! Marks: long NOPs that any CPU ignores and the recorder sees.
//!
//! The instruction is `nopl disp32(%rax)`, bytes `0f 1f 80` and the little-endian code
//! [`PREFIX`]` | kind`. The C side is `guest/kt_mark.h`.

/// The upper half of a mark's displacement: "KT".
pub const PREFIX: u32 = 0x4b54_0000;
/// Bytes of the instruction.
pub const LENGTH: usize = 7;
/// Longest region name in bytes.
pub const NAME_MAX: usize = 63;

/// What a mark says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// A region begins; `rdi` points to its name.
    Begin,
    /// A region ends; `rdi` points to its name, `rsi` is the number of operations done in it,
    /// 0 for as many as were marked.
    End,
    /// One operation of the innermost open region is done.
    Operation,
    /// `rdi` points to a text for the recording's notes.
    Note,
}

/// Reads an instruction's bytes as a mark.
pub fn decode(bytes: &[u8]) -> Option<Mark> {
    let (head, code) = bytes.split_at_checked(3)?;
    let code = u32::from_le_bytes(code.try_into().ok()?);
    if head != [0x0f, 0x1f, 0x80] || code & 0xffff_0000 != PREFIX {
        return None;
    }
    match code & 0xffff {
        1 => Some(Mark::Begin),
        2 => Some(Mark::End),
        3 => Some(Mark::Operation),
        4 => Some(Mark::Note),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_nops_are_marks() {
        assert_eq!(decode(&[0x0f, 0x1f, 0x80, 2, 0, 0x54, 0x4b]), Some(Mark::End));
        assert_eq!(decode(&[0x0f, 0x1f, 0x80, 0, 0, 0, 0]), None);
        assert_eq!(decode(&[0x0f, 0x1f, 0x80, 9, 0, 0x54, 0x4b]), None);
        assert_eq!(decode(&[0x90]), None);
    }
}
