//! Choice of the changes to keep: figures in, sets out. Pure.
//!
//! A figure belongs to a set of changes, less is better: instructions of an operation, or model
//! cycles. Figures that differ by no more than the noise are equal.

use serde::Serialize;
use std::fmt;

/// A set of changes: bit `n` stands for change `n`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChangeSet(pub u64);

impl ChangeSet {
    /// Returns the set with only the change `place`.
    pub fn one(place: usize) -> Self {
        Self(1 << place)
    }

    /// Returns the set of the first `count` changes, at most 64.
    pub fn first(count: usize) -> Self {
        Self(u64::MAX.checked_shr(64 - count as u32).unwrap_or(0))
    }

    /// Returns whether the change `place` is in the set.
    pub fn has(self, place: usize) -> bool {
        self.0 >> place & 1 == 1
    }

    /// Returns the set without the change `place`.
    pub fn without(self, place: usize) -> Self {
        Self(self.0 & !(1 << place))
    }

    /// Iterates over the indices of the changes, ascending.
    pub fn places(self) -> impl Iterator<Item = usize> {
        (0..64).filter(move |&place| self.has(place))
    }

    /// Returns the number of changes in the set.
    pub fn count(self) -> usize {
        self.0.count_ones() as usize
    }
}

/// Verdict on a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeVerdict {
    /// Improves the figure, alone and together with the other kept changes.
    Kept,
    /// Improves the figure alone, but not beside others that gain more.
    Covered,
    /// Alone it changes nothing beyond the noise.
    NoGain,
    /// Alone it makes the figure worse.
    Worse,
    /// Could not be measured, or fails a check that the base kernel passes.
    NotUsable,
}

impl fmt::Display for ChangeVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kept => "kept",
            Self::Covered => "covered by others",
            Self::NoGain => "no gain",
            Self::Worse => "worse",
            Self::NotUsable => "not usable",
        })
    }
}

/// Chooses which of `count` changes to keep. `figure` measures a set and returns `None` for a set
/// that cannot be used. Sets are requested repeatedly, so `figure` should cache.
///
/// Starts with all changes that gain alone. While one can be left out without a loss beyond the
/// noise, the change is dropped without which the figure is lowest.
///
/// # Errors
/// Those of `figure`.
pub fn choose<E>(
    count: usize,
    base: f64,
    noise: f64,
    mut figure: impl FnMut(ChangeSet) -> Result<Option<f64>, E>,
) -> Result<(ChangeSet, Vec<ChangeVerdict>), E> {
    let mut verdicts = Vec::new();
    let mut kept = ChangeSet(0);
    for place in 0..count {
        verdicts.push(match figure(ChangeSet::one(place))? {
            None => ChangeVerdict::NotUsable,
            Some(alone) if alone < base - noise => {
                kept.0 |= ChangeSet::one(place).0;
                ChangeVerdict::Kept
            }
            Some(alone) if alone > base + noise => ChangeVerdict::Worse,
            Some(_) => ChangeVerdict::NoGain,
        });
    }
    while kept.count() > 1 {
        let together = figure(kept)?;
        let mut min: Option<(f64, usize)> = None;
        for place in kept.places() {
            let Some(rest) = figure(kept.without(place))? else { continue };
            if min.is_none_or(|(known, _)| rest < known) {
                min = Some((rest, place));
            }
        }
        match (together, min) {
            (Some(together), Some((rest, place))) if rest <= together + noise => {
                kept = drop(kept, place, &mut verdicts)
            }
            // Together they cannot be used; with one less they may work.
            (None, Some((_, place))) => kept = drop(kept, place, &mut verdicts),
            (Some(_), _) => break,
            (None, None) => match kept.places().last() {
                Some(place) => kept = drop(kept, place, &mut verdicts),
                None => break,
            },
        }
    }
    Ok((kept, verdicts))
}

fn drop(kept: ChangeSet, place: usize, verdicts: &mut [ChangeVerdict]) -> ChangeSet {
    verdicts[place] = ChangeVerdict::Covered;
    kept.without(place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    /// Runs the choice with figures `100 - gain(set)`.
    fn kept(count: usize, gain: impl Fn(ChangeSet) -> Option<f64>) -> (ChangeSet, Vec<ChangeVerdict>) {
        choose(count, 100.0, 0.01, |set| Ok::<_, Infallible>(gain(set).map(|gain| 100.0 - gain))).unwrap()
    }

    #[test]
    fn what_adds_up_is_kept_and_what_does_not_help_is_not() {
        let gains = [5.0, 0.005, -2.0, 1.0];
        let (set, verdicts) = kept(4, |set| Some(set.places().map(|place| gains[place]).sum()));
        assert_eq!(set, ChangeSet(0b1001));
        assert_eq!(
            verdicts,
            [ChangeVerdict::Kept, ChangeVerdict::NoGain, ChangeVerdict::Worse, ChangeVerdict::Kept]
        );
    }

    #[test]
    fn of_two_that_do_the_same_one_is_kept() {
        let (set, verdicts) =
            kept(3, |set| Some(f64::from(set.has(0) || set.has(1)) * 3.0 + f64::from(set.has(2))));
        assert_eq!(set.count(), 2);
        assert!(set.has(2) && verdicts.contains(&ChangeVerdict::Covered), "{verdicts:?}");
    }

    #[test]
    fn changes_that_cannot_go_together_are_taken_apart() {
        let (set, verdicts) = kept(2, |set| (set.count() < 2).then(|| if set.has(0) { 1.0 } else { 2.0 }));
        assert_eq!(
            (set, verdicts[0], verdicts[1]),
            (ChangeSet(0b10), ChangeVerdict::Covered, ChangeVerdict::Kept)
        );
        let (set, verdicts) = kept(2, |set| (!set.has(0)).then_some(2.0));
        assert_eq!((set, verdicts[0]), (ChangeSet(0b10), ChangeVerdict::NotUsable));
    }

    #[test]
    fn sets_are_sets() {
        assert_eq!([0, 1, 3, 64].map(|count| ChangeSet::first(count).count()), [0, 1, 3, 64]);
        assert_eq!(ChangeSet::first(3).without(1).places().collect::<Vec<_>>(), [0, 2]);
    }
}
