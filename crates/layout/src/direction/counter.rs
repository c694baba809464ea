//! Saturating counters, of which predictors are made.

/// A counter of two bits: taken from 2 on.
#[derive(Debug, Clone, Copy)]
pub(super) struct TwoBits(u8);

impl TwoBits {
    /// Just not taken.
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
