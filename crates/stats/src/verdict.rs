//! Verdicts on rows.

use serde::{Deserialize, Serialize};

/// Verdict on a row. A difference that is not shown is not an absence of difference: that is a
/// verdict of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RowVerdict {
    /// The tuned kernel is better.
    Faster,
    /// The tuned kernel is worse.
    Slower,
    /// Any difference is smaller than the minimum effect.
    Equivalent,
    /// Neither a difference nor equivalence is shown.
    Inconclusive,
}

impl RowVerdict {
    /// Returns the verdict as reports print it.
    pub fn name(self) -> &'static str {
        match self {
            RowVerdict::Faster => "faster",
            RowVerdict::Slower => "slower",
            RowVerdict::Equivalent => "equivalent",
            RowVerdict::Inconclusive => "inconclusive",
        }
    }
}

/// Reason of a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VerdictReason {
    /// The row's own interval.
    Interval,
    /// The row alone shows a difference, but one is expected by chance among so many rows.
    Correction,
    /// The base kernel differs from itself, so the measurement is not sound.
    AaDiffers,
}

/// Results of a row's tests.
pub(crate) struct RowEvidence {
    /// Row's own p-value of the hypothesis of no difference.
    pub p: f64,
    /// `p`, corrected for the number of rows.
    pub p_adjusted: f64,
    /// P-value of the hypothesis that the difference is at least the minimum effect.
    pub p_not_equivalent: f64,
    /// True if the estimate favors the tuned kernel.
    pub better: bool,
    /// True if the A/A pair differs.
    pub aa_differs: bool,
}

impl RowEvidence {
    /// Returns the verdict at the risk `alpha` (1 − confidence) of a false difference. Equivalence
    /// requires that the whole interval of that confidence lies within the minimum effect, so its
    /// risk is half as large.
    pub fn verdict(&self, alpha: f64) -> (RowVerdict, VerdictReason) {
        match () {
            () if self.aa_differs => (RowVerdict::Inconclusive, VerdictReason::AaDiffers),
            () if self.p_not_equivalent <= alpha / 2.0 => (RowVerdict::Equivalent, VerdictReason::Interval),
            () if self.p_adjusted <= alpha && self.better => (RowVerdict::Faster, VerdictReason::Interval),
            () if self.p_adjusted <= alpha => (RowVerdict::Slower, VerdictReason::Interval),
            () if self.p <= alpha => (RowVerdict::Inconclusive, VerdictReason::Correction),
            () => (RowVerdict::Inconclusive, VerdictReason::Interval),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_evidence_has_its_verdict() {
        let evidence = |p, p_adjusted, p_not_equivalent, better, aa_differs| {
            RowEvidence { p, p_adjusted, p_not_equivalent, better, aa_differs }.verdict(0.05)
        };
        use {RowVerdict::*, VerdictReason::*};
        assert_eq!(evidence(0.001, 0.01, 0.9, true, false), (Faster, Interval));
        assert_eq!(evidence(0.001, 0.01, 0.9, false, false), (Slower, Interval));
        assert_eq!(evidence(0.3, 0.9, 0.02, true, false), (Equivalent, Interval));
        // There is a difference, but it is too small to matter.
        assert_eq!(evidence(0.001, 0.01, 0.02, false, false), (Equivalent, Interval));
        assert_eq!(evidence(0.04, 0.4, 0.9, true, false), (Inconclusive, Correction));
        assert_eq!(evidence(0.3, 0.9, 0.03, true, false), (Inconclusive, Interval));
        assert_eq!(evidence(0.001, 0.01, 0.9, true, true), (Inconclusive, AaDiffers));
    }
}
