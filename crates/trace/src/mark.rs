//! Marks: long NOPs that have no effect on a CPU and that the recorder recognizes.
//!
//! The instruction holds the code [`PREFIX`]` | kind`. On x86-64 it is `nopl disp32(%rax)`: bytes
//! `0f 1f 80`, then the code in little endian. `embedded/guest/kt_mark.h` is the C side. Arguments are
//! passed as those of a function.

/// Upper half of a mark's code: "KT".
pub const PREFIX: u32 = 0x4b54_0000;
/// Maximum length of a region name, in bytes.
pub const NAME_MAX: usize = 63;

/// Kind of a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// Begin of a region; the first argument points to the region's name.
    Begin,
    /// End of a region; the first argument points to the region's name, the second is the number of
    /// operations, or 0 to use the number of [`Mark::Operation`] marks.
    End,
    /// One completed operation of the innermost open region.
    Operation,
    /// Note; the first argument points to a text for [`crate::Recording::notes`].
    Note,
}

impl Mark {
    /// Returns the mark with this code, or `None` if the code is not a mark.
    pub fn from_code(code: u32) -> Option<Self> {
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
        assert_eq!(Mark::from_code(0x4b54_0002), Some(Mark::End));
        assert_eq!([0, 9, 0x4b54_0009].map(Mark::from_code), [None; 3]);
    }
}
