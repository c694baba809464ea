//! Which of several changes to keep: figures in, sets out. Pure.
//!
//! A figure is what a set of changes comes to, less is better: instructions of an operation, or model cycles. Two figures that
//! differ by no more than the noise are the same.

use serde::Serialize;
use std::fmt;

/// A set of changes: bit `n` stands for the change in place `n`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Set(pub u64);

impl Set {
    /// The one in this place.
    pub fn one(place: usize) -> Self {
        Self(1 << place)
    }

    /// The first so many, at most 64.
    pub fn first(count: usize) -> Self {
        Self(u64::MAX.checked_shr(64 - count as u32).unwrap_or(0))
    }

    /// Whether the one in this place is in it.
    pub fn has(self, place: usize) -> bool {
        self.0 >> place & 1 == 1
    }

    /// Without the one in this place.
    pub fn without(self, place: usize) -> Self {
        Self(self.0 & !(1 << place))
    }

    /// Their places, least first.
    pub fn places(self) -> impl Iterator<Item = usize> {
        (0..64).filter(move |&place| self.has(place))
    }

    /// How many there are.
    pub fn count(self) -> usize {
        self.0.count_ones() as usize
    }
}

/// What becomes of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It brings something, alone and beside the others that are kept.
    Kept,
    /// It brings something alone, and nothing beside others that bring more.
    Covered,
    /// Alone it changes nothing that could be told from noise.
    NoGain,
    /// Alone it makes things worse.
    Worse,
    /// It was not measured, or does not do all that the base kernel does.
    NotUsable,
}

impl fmt::Display for Verdict {
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

/// Chooses what to keep of `count` changes. `figure` measures a set; `None` of one that cannot be had. Sets are asked for again
/// and again: who measures them remembers.
///
/// All that bring something alone are taken together. As long as one can be left out without a loss beyond the noise, the one
/// is left out without which the figure is least.
///
/// # Errors
/// Those of `figure`.
pub fn choose<E>(
    count: usize,
    base: f64,
    noise: f64,
    mut figure: impl FnMut(Set) -> Result<Option<f64>, E>,
) -> Result<(Set, Vec<Verdict>), E> {
    let mut verdicts = Vec::new();
    let mut kept = Set(0);
    for place in 0..count {
        verdicts.push(match figure(Set::one(place))? {
            None => Verdict::NotUsable,
            Some(alone) if alone < base - noise => {
                kept.0 |= Set::one(place).0;
                Verdict::Kept
            }
            Some(alone) if alone > base + noise => Verdict::Worse,
            Some(_) => Verdict::NoGain,
        });
    }
    while kept.count() > 1 {
        let together = figure(kept)?;
        let mut least: Option<(f64, usize)> = None;
        for place in kept.places() {
            let Some(rest) = figure(kept.without(place))? else { continue };
            if least.is_none_or(|(known, _)| rest < known) {
                least = Some((rest, place));
            }
        }
        match (together, least) {
            (Some(together), Some((rest, place))) if rest <= together + noise => {
                kept = drop(kept, place, &mut verdicts)
            }
            // Together they are no kernel: with one less they may be.
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

fn drop(kept: Set, place: usize, verdicts: &mut [Verdict]) -> Set {
    verdicts[place] = Verdict::Covered;
    kept.without(place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    /// What is kept where a set comes to `100 - gain(set)`; how many sets were measured.
    fn kept(count: usize, gain: impl Fn(Set) -> Option<f64>) -> (Set, Vec<Verdict>) {
        choose(count, 100.0, 0.01, |set| Ok::<_, Infallible>(gain(set).map(|gain| 100.0 - gain))).unwrap()
    }

    #[test]
    fn what_adds_up_is_kept_and_what_does_not_help_is_not() {
        let gains = [5.0, 0.005, -2.0, 1.0];
        let (set, verdicts) = kept(4, |set| Some(set.places().map(|place| gains[place]).sum()));
        assert_eq!(set, Set(0b1001));
        assert_eq!(verdicts, [Verdict::Kept, Verdict::NoGain, Verdict::Worse, Verdict::Kept]);
    }

    #[test]
    fn of_two_that_do_the_same_one_is_kept() {
        let (set, verdicts) =
            kept(3, |set| Some(f64::from(set.has(0) || set.has(1)) * 3.0 + f64::from(set.has(2))));
        assert_eq!(set.count(), 2);
        assert!(set.has(2) && verdicts.contains(&Verdict::Covered), "{verdicts:?}");
    }

    #[test]
    fn changes_that_cannot_go_together_are_taken_apart() {
        let (set, verdicts) = kept(2, |set| (set.count() < 2).then(|| if set.has(0) { 1.0 } else { 2.0 }));
        assert_eq!((set, verdicts[0], verdicts[1]), (Set(0b10), Verdict::Covered, Verdict::Kept));
        let (set, verdicts) = kept(2, |set| (!set.has(0)).then_some(2.0));
        assert_eq!((set, verdicts[0]), (Set(0b10), Verdict::NotUsable));
    }

    #[test]
    fn sets_are_sets() {
        assert_eq!([0, 1, 3, 64].map(|count| Set::first(count).count()), [0, 1, 3, 64]);
        assert_eq!(Set::first(3).without(1).places().collect::<Vec<_>>(), [0, 2]);
    }
}
