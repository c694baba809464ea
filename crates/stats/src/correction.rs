//! What many tests at once do to p-values.

use serde::{Deserialize, Serialize};

/// How p-values of many rows are corrected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Correction {
    /// Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6(2),
    /// 1979. Controls the probability of *one or more* false findings, however the rows depend on each other.
    Holm,
    /// Benjamini and Hochberg, "Controlling the false discovery rate", JRSS B 57(1), 1995. Controls the expected
    /// *share* of false ones among the findings, if rows are independent or depend positively.
    BenjaminiHochberg,
    /// Each row for itself: one in twenty rows without a difference is found to have one.
    None,
}

impl Correction {
    /// Its name.
    pub fn word(self) -> &'static str {
        match self {
            Correction::Holm => "Holm",
            Correction::BenjaminiHochberg => "Benjamini-Hochberg",
            Correction::None => "none",
        }
    }

    /// The corrected p-values, in the order given: what is at most α is a finding at α. There must be no NaN.
    pub fn adjust(self, p_values: &[f64]) -> Vec<f64> {
        let n = p_values.len();
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
        let mut adjusted = p_values.to_vec();
        match self {
            Correction::None => {}
            Correction::Holm => {
                let mut least = 0.0f64;
                for (rank, &at) in order.iter().enumerate() {
                    least = least.max((n - rank) as f64 * p_values[at]);
                    adjusted[at] = least.min(1.0);
                }
            }
            Correction::BenjaminiHochberg => {
                let mut most = 1.0f64;
                for (rank, &at) in order.iter().enumerate().rev() {
                    most = most.min(n as f64 / (rank + 1) as f64 * p_values[at]);
                    adjusted[at] = most;
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

    /// By hand from the definitions; `p.adjust` of R gives the same.
    #[test]
    fn adjusted_by_hand() {
        let p = [0.01, 0.04, 0.03, 0.005];
        close(&Correction::Holm.adjust(&p), &[0.03, 0.06, 0.06, 0.02]);
        close(&Correction::BenjaminiHochberg.adjust(&p), &[0.02, 0.04, 0.04, 0.02]);
        close(&Correction::None.adjust(&p), &p);
        close(&Correction::Holm.adjust(&[0.6, 0.7]), &[1.0, 1.0]);
        close(&Correction::Holm.adjust(&[]), &[]);
    }
}
