//! State of a run that is still going on, for those who wait for it.

/// Position of a run: [`crate::files::PROGRESS`] holds the last one. Nothing of a result depends on
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunProgress {
    /// Instructions of all CPUs since power-on.
    pub instructions: u64,
    /// Virtual time since power-on, in ns.
    pub virtual_ns: u64,
}

impl RunProgress {
    /// Encodes both numbers, little endian.
    pub fn to_bytes(self) -> [u8; 16] {
        (u128::from(self.instructions) | u128::from(self.virtual_ns) << 64).to_le_bytes()
    }

    /// Parses a file's content; `None` before the recorder has written it.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let both = u128::from_le_bytes(bytes.try_into().ok()?);
        Some(Self { instructions: both as u64, virtual_ns: (both >> 64) as u64 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_round_trip() {
        let progress = RunProgress { instructions: 812_345_678, virtual_ns: u64::MAX - 1 };
        assert_eq!(RunProgress::parse(&progress.to_bytes()), Some(progress));
        assert_eq!(RunProgress::parse(&[]), None);
    }
}
