//! Version word of a `.gcda`, and the file layout that it implies.

use std::fmt;

/// Version word of a `.gcda`: `B22*` for GCC 12.2, release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GcovVersion(pub u32);

impl GcovVersion {
    /// Oldest GCC whose files are supported.
    pub const FIRST_MAJOR: u32 = 11;
    /// Newest GCC whose files are supported.
    pub const LAST_MAJOR: u32 = 16;

    /// Returns major and minor number; `None` if the word is not in GCC's format. The first
    /// character counts tens from `A`, the next two are digits (`gcc/gcov-iov.cc`).
    pub fn major_minor(self) -> Option<(u32, u32)> {
        let [tens, ones, minor, _status] = self.0.to_be_bytes();
        let well_formed = tens.is_ascii_uppercase() && ones.is_ascii_digit() && minor.is_ascii_digit();
        well_formed.then(|| (u32::from(tens - b'A') * 10 + u32::from(ones - b'0'), u32::from(minor - b'0')))
    }

    /// Returns the number of kinds of counters that this compiler knows; `None` if it is not supported.
    pub fn counter_kinds(self) -> Option<u32> {
        self.layout().map(|layout| layout.kinds)
    }

    /// Returns the layout of that compiler's files; `None` if it is not supported.
    pub(super) fn layout(self) -> Option<GcdaLayout> {
        let (major, _) = self.major_minor()?;
        (Self::FIRST_MAJOR..=Self::LAST_MAJOR).contains(&major).then_some(GcdaLayout {
            word_length: if major >= 12 { 4 } else { 1 },
            has_checksum: major >= 12,
            // `gcov-counter.def`: 14 appended conditions, 15 paths.
            kinds: match major {
                ..=13 => 8,
                14 => 9,
                _ => 10,
            },
        })
    }
}

/// File layout, which depends on the version.
#[derive(Debug, Clone, Copy)]
pub(super) struct GcdaLayout {
    /// Contribution of one 32-bit word to a record's length.
    pub word_length: u32,
    /// The header has a checksum word.
    pub has_checksum: bool,
    /// Number of counter kinds.
    pub kinds: u32,
}

impl fmt::Display for GcovVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.major_minor() {
            Some((major, minor)) => {
                write!(f, "GCC {major}.{minor} (version \"{}\")", self.0.to_be_bytes().escape_ascii())
            }
            None => write!(f, "an unknown compiler (version {:#010x})", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gcda::Gcda;

    #[test]
    fn version_words_are_named() {
        let text = |v: &[u8; 4]| GcovVersion(u32::from_be_bytes(*v)).to_string();
        assert_eq!(text(b"B22*"), "GCC 12.2 (version \"B22*\")");
        assert_eq!(text(b"A93r"), "GCC 9.3 (version \"A93r\")");
        assert_eq!(text(b"408*"), "an unknown compiler (version 0x3430382a)");
    }

    /// Counters of one program by several compilers (`files/README.md`).
    const FILES: [(u32, &[u8]); 5] = [
        (12, include_bytes!("files/gcc-12.gcda")),
        (13, include_bytes!("files/gcc-13.gcda")),
        (14, include_bytes!("files/gcc-14.gcda")),
        (15, include_bytes!("files/gcc-15.gcda")),
        (16, include_bytes!("files/gcc-16.gcda")),
    ];

    #[test]
    fn files_of_each_compiler_have_the_same_counters() {
        let counters = |bytes: &[u8]| {
            let gcda = Gcda::parse(bytes).unwrap();
            assert_eq!(gcda.to_bytes(), bytes);
            (gcda.functions, gcda.summary)
        };
        let (_, first) = FILES[0];
        for (major, bytes) in FILES {
            let gcda = Gcda::parse(bytes).unwrap();
            assert_eq!(gcda.version.major_minor().map(|(major, _)| major), Some(major));
            assert_eq!(counters(bytes), counters(first), "GCC {major}");
            assert!(gcda.total() > 0 && gcda.functions.len() == 2);
        }
    }

    #[test]
    fn lengths_are_bytes_from_12_on() {
        let layout = |v: &[u8; 4]| GcovVersion(u32::from_be_bytes(*v)).layout();
        assert_eq!(layout(b"B14*").map(|l| (l.word_length, l.has_checksum)), Some((1, false)));
        assert_eq!(layout(b"B22*").map(|l| (l.word_length, l.has_checksum, l.kinds)), Some((4, true, 8)));
        assert_eq!(layout(b"B53*").map(|l| l.kinds), Some(10));
        assert_eq!(layout(b"B62*").map(|l| (l.word_length, l.has_checksum, l.kinds)), Some((4, true, 10)));
        assert!(layout(b"A93*").is_none() && layout(b"B70*").is_none());
    }
}
