//! Density (weight per byte), compared without rounding.

use std::cmp::Ordering;

/// Weight and size of a function or chain; `bytes` is above 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Density {
    pub weight: u64,
    pub bytes: u64,
}

impl Density {
    /// Compares the weights per byte. Sums are below three times
    /// [`MAX_WEIGHT_SUM`](super::MAX_WEIGHT_SUM), so the products do not overflow.
    pub fn compare(self, other: Self) -> Ordering {
        let product = |weight: u64, bytes: u64| u128::from(weight) * u128::from(bytes);
        product(self.weight, other.bytes).cmp(&product(other.weight, self.bytes))
    }

    /// Returns the density of both together.
    pub fn with(self, other: Self) -> Self {
        Self { weight: self.weight + other.weight, bytes: self.bytes + other.bytes }
    }

    /// Returns the weight per byte.
    pub fn ratio(self) -> f64 {
        self.weight as f64 / self.bytes as f64
    }
}

/// Sorts chains by decreasing density; among equals by the index of the first function.
pub(super) fn densest_first(mut chains: Vec<(Density, Vec<u32>)>) -> Vec<Vec<u32>> {
    chains.sort_by(|(a, one), (b, other)| b.compare(*a).then_with(|| one.first().cmp(&other.first())));
    chains.into_iter().map(|(_, members)| members).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn densities_that_floats_cannot_tell_apart_are_told_apart() {
        let a = Density { weight: 1 << 60, bytes: (1 << 60) - 1 };
        let b = Density { weight: (1 << 60) - 1, bytes: (1 << 60) - 2 };
        assert_eq!(a.ratio(), b.ratio());
        assert_eq!(a.compare(b), Ordering::Less);
        assert_eq!(
            densest_first(vec![(a, vec![0]), (b, vec![2, 1]), (b, vec![1, 3])]),
            [vec![1, 3], vec![2, 1], vec![0]]
        );
    }
}
