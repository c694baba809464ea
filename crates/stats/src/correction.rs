//! Corrections of p-values for multiple tests.

use serde::{Deserialize, Serialize};

/// Correction of the p-values of many rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PValueCorrection {
    /// Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of
    /// Statistics 6(2), 1979. Controls the probability of *one or more* false findings, for any
    /// dependence between rows.
    Holm,
    /// Benjamini and Hochberg, "Controlling the false discovery rate", JRSS B 57(1), 1995. Controls
    /// the expected *share* of false findings, if rows are independent or positively dependent.
    BenjaminiHochberg,
    /// No correction: one in twenty rows without a difference is reported to have one.
    None,
}

impl PValueCorrection {
    /// Returns the name of the correction, as reports print it.
    pub fn name(self) -> &'static str {
        match self {
            PValueCorrection::Holm => "Holm",
            PValueCorrection::BenjaminiHochberg => "Benjamini-Hochberg",
            PValueCorrection::None => "none",
        }
    }

    /// Returns the corrected p-values in the given order: those of at most α are findings at α.
    /// There must be no NaN.
    pub fn adjust(self, p_values: &[f64]) -> Vec<f64> {
        let n = p_values.len();
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
        let mut adjusted = p_values.to_vec();
        match self {
            PValueCorrection::None => {}
            PValueCorrection::Holm => {
                let mut min = 0.0f64;
                for (rank, &at) in order.iter().enumerate() {
                    min = min.max((n - rank) as f64 * p_values[at]);
                    adjusted[at] = min.min(1.0);
                }
            }
            PValueCorrection::BenjaminiHochberg => {
                let mut max = 1.0f64;
                for (rank, &at) in order.iter().enumerate().rev() {
                    max = max.min(n as f64 / (rank + 1) as f64 * p_values[at]);
                    adjusted[at] = max;
                }
            }
        }
        adjusted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(got: &[f64], expected: &[f64]) {
        assert_eq!(got.len(), expected.len());
        assert!(got.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{got:?} {expected:?}");
    }

    /// Computed by hand from the definitions; R's `p.adjust` agrees.
    #[test]
    fn adjusted_by_hand() {
        let p = [0.01, 0.04, 0.03, 0.005];
        close(&PValueCorrection::Holm.adjust(&p), &[0.03, 0.06, 0.06, 0.02]);
        close(&PValueCorrection::BenjaminiHochberg.adjust(&p), &[0.02, 0.04, 0.04, 0.02]);
        close(&PValueCorrection::None.adjust(&p), &p);
        close(&PValueCorrection::Holm.adjust(&[0.6, 0.7]), &[1.0, 1.0]);
        close(&PValueCorrection::Holm.adjust(&[]), &[]);
    }
}
