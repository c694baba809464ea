//! Marks: long NOPs that any CPU ignores and the recorder sees.
//!
//! The instruction holds the code [`PREFIX`]` | kind`: on x86-64 it is `nopl disp32(%rax)`, bytes `0f 1f 80` and the
//! little-endian code. The C side is `guest/kt_mark.h`; arguments are those of a function.

/// The upper half of a mark's code: "KT".
pub const PREFIX: u32 = 0x4b54_0000;
/// Longest region name in bytes.
pub const NAME_MAX: usize = 63;

/// What a mark says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// A region begins; the first argument points to its name.
    Begin,
    /// A region ends; the first argument points to its name, the second is the number of operations done
    /// in it, 0 for as many as were marked.
    End,
    /// One operation of the innermost open region is done.
    Operation,
    /// The first argument points to a text for the recording's notes.
    Note,
}

impl Mark {
    /// The mark with this code, if there is one.
    pub fn of_code(code: u32) -> Option<Self> {
        match code.checked_sub(PREFIX)? {
            1 => Some(Mark::Begin),
            2 => Some(Mark::End),
            3 => Some(Mark::Operation),
            4 => Some(Mark::Note),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_codes_are_marks() {
        assert_eq!(Mark::of_code(0x4b54_0002), Some(Mark::End));
        assert_eq!([0, 9, 0x4b54_0009].map(Mark::of_code), [None; 3]);
    }
}
