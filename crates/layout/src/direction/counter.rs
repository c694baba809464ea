//! Saturating counters for the direction predictors.

/// Two-bit saturating counter; predicts taken from 2 on.
#[derive(Debug, Clone, Copy)]
pub(super) struct TwoBitCounter(u8);

impl TwoBitCounter {
    /// Weakly not taken.
    pub(super) const WEAK: Self = Self(1);

    #[inline]
    pub(super) fn taken(self) -> bool {
        self.0 >= 2
    }

    #[inline]
    pub(super) fn learn(&mut self, taken: bool) {
        self.0 = if taken { (self.0 + 1).min(3) } else { self.0.saturating_sub(1) };
    }
}
