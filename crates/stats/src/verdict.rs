//! What a row comes to.

use serde::{Deserialize, Serialize};

/// What is shown about a row. Not to have shown a difference is not to have shown that there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The tuned kernel is better.
    Faster,
    /// The tuned kernel is worse.
    Slower,
    /// Any difference is smaller than the minimum effect.
    Equivalent,
    /// Neither.
    Inconclusive,
}

impl Verdict {
    /// Its name.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Faster => "faster",
            Verdict::Slower => "slower",
            Verdict::Equivalent => "equivalent",
            Verdict::Inconclusive => "inconclusive",
        }
    }
}

/// Why it is that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Because {
    /// The row's interval says so.
    Interval,
    /// By itself the row shows a difference; among so many rows that is to be expected by chance.
    Correction,
    /// The base kernel differs from itself: the measurement is not sound.
    AaDiffers,
}

/// What the tests of a row said.
pub(crate) struct Evidence {
    /// That there is no difference: the row's own p-value.
    pub p: f64,
    /// The same, corrected for all rows.
    pub p_adjusted: f64,
    /// That the difference is at least the minimum effect.
    pub p_not_equivalent: f64,
    /// Whether the tuned kernel is better, if there is a difference.
    pub better: bool,
    /// Whether the A/A pair differs.
    pub aa_differs: bool,
}

impl Evidence {
    /// With the risk `alpha` (1 − confidence) of finding a difference that is none. Equivalence is said where the whole
    /// interval of that confidence is within the minimum effect: the risk of that is half as large.
    pub fn verdict(&self, alpha: f64) -> (Verdict, Because) {
        match () {
            () if self.aa_differs => (Verdict::Inconclusive, Because::AaDiffers),
            () if self.p_not_equivalent <= alpha / 2.0 => (Verdict::Equivalent, Because::Interval),
            () if self.p_adjusted <= alpha && self.better => (Verdict::Faster, Because::Interval),
            () if self.p_adjusted <= alpha => (Verdict::Slower, Because::Interval),
            () if self.p <= alpha => (Verdict::Inconclusive, Because::Correction),
            () => (Verdict::Inconclusive, Because::Interval),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_evidence_has_its_verdict() {
        let evidence = |p, p_adjusted, p_not_equivalent, better, aa_differs| {
            Evidence { p, p_adjusted, p_not_equivalent, better, aa_differs }.verdict(0.05)
        };
        use {Because::*, Verdict::*};
        assert_eq!(evidence(0.001, 0.01, 0.9, true, false), (Faster, Interval));
        assert_eq!(evidence(0.001, 0.01, 0.9, false, false), (Slower, Interval));
        assert_eq!(evidence(0.3, 0.9, 0.02, true, false), (Equivalent, Interval));
        // A difference that is there and too small to matter.
        assert_eq!(evidence(0.001, 0.01, 0.02, false, false), (Equivalent, Interval));
        assert_eq!(evidence(0.04, 0.4, 0.9, true, false), (Inconclusive, Correction));
        assert_eq!(evidence(0.3, 0.9, 0.03, true, false), (Inconclusive, Interval));
        assert_eq!(evidence(0.001, 0.01, 0.9, true, true), (Inconclusive, AaDiffers));
    }
}
