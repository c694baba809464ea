//! Search for the parts of a whole that make it fail. Pure: the caller tries the sets.
//!
//! A set of parts is taken from the bad side and all others from the good one. Andreas Zeller and
//! Ralf Hildebrandt, *Simplifying and Isolating Failure-Inducing Input*, IEEE TSE 2002, gives such
//! a set three outcomes (it passes, it fails as the whole does, it does something else) and asks
//! for a set of which no part can be left out. Each part is found by halving, as in QuickXplain
//! (Ulrich Junker, AAAI 2004): a part that fails alone takes log2 n + 1 sets, where ddmin needs up
//! to twice that; each of k parts that fail only together takes as many. In the end no culprit can
//! be left out, as with ddmin.

/// Failure of a set.
pub trait Symptom {
    /// Returns whether this set failed like `whole`. Other failures say nothing about its parts.
    fn is_like(&self, whole: &Self) -> bool;
}

/// Parts that fail together and not without each other, with their failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CulpritGroup<S> {
    /// Indices of the parts, ascending.
    pub parts: Vec<usize>,
    /// Failure of the parts together.
    pub symptom: S,
}

/// Tries a set, given in ascending order, with everything else from the good side. Returns the
/// failure; `None` if the set works.
pub type TryParts<'a, S, E> = dyn FnMut(&[usize]) -> Result<Option<S>, E> + 'a;

/// Finds the parts out of `0..count` that fail, until the rest works. The empty set must work.
///
/// Several faults are found one after the other; each is one group.
pub fn find_culprits<S: Symptom + Clone, E>(
    count: usize,
    attempt: &mut TryParts<S, E>,
) -> Result<Vec<CulpritGroup<S>>, E> {
    let mut left: Vec<usize> = (0..count).collect();
    let mut groups = Vec::new();
    while let Some(symptom) = attempt(&left)? {
        if left.is_empty() {
            break;
        }
        let parts = minimal(&left, &symptom, attempt)?;
        left.retain(|part| !parts.contains(part));
        groups.push(CulpritGroup { parts, symptom });
    }
    Ok(groups)
}

/// Returns parts of `all` that fail like `whole` and of which none can be left out. `all` must
/// fail, the empty set must not.
pub fn minimal<S: Symptom, E>(
    all: &[usize],
    whole: &S,
    attempt: &mut TryParts<S, E>,
) -> Result<Vec<usize>, E> {
    let mut fails = |parts: &[&[usize]]| -> Result<bool, E> {
        let mut set = parts.concat();
        set.sort_unstable();
        Ok(attempt(&set)?.is_some_and(|symptom| symptom.is_like(whole)))
    };
    let mut found: Vec<usize> = Vec::new();
    let mut rest = all.to_vec();
    while !rest.is_empty() && (found.is_empty() || !fails(&[&found])?) {
        // `found` fails with the first `with` of the rest, and not with the first `without`.
        let (mut without, mut with) = (0, rest.len());
        while with - without > 1 {
            let middle = without + (with - without) / 2;
            match fails(&[&found, &rest[..middle]])? {
                true => with = middle,
                false => without = middle,
            }
        }
        found.push(rest[without]);
        rest.truncate(without);
    }
    // Parts found early may have become unnecessary.
    let mut at = 0;
    while found.len() > 1 && at < found.len() {
        let others = [&found[..at], &found[at + 1..]].concat();
        match fails(&[&others])? {
            true => (found, at) = (others, 0),
            false => at += 1,
        }
    }
    found.sort_unstable();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use std::convert::Infallible;

    impl Symptom for u8 {
        fn is_like(&self, whole: &Self) -> bool {
            self == whole
        }
    }

    /// Faults, each a set of parts with a symptom. The first fault within a set decides its
    /// symptom.
    struct SimulatedFaults {
        faults: Vec<(BTreeSet<usize>, u8)>,
        tried: usize,
    }

    impl SimulatedFaults {
        fn of(&mut self, set: &[usize]) -> Result<Option<u8>, Infallible> {
            self.tried += 1;
            assert!(set.windows(2).all(|pair| pair[0] < pair[1]), "{set:?}");
            let has = |parts: &BTreeSet<usize>| parts.iter().all(|part| set.contains(part));
            Ok(self.faults.iter().find(|(parts, _)| has(parts)).map(|(_, symptom)| *symptom))
        }
    }

    fn culprits_of(count: usize, faults: &[(&[usize], u8)]) -> (Vec<Vec<usize>>, usize) {
        let faults = faults.iter().map(|(parts, symptom)| (parts.iter().copied().collect(), *symptom));
        let mut simulated = SimulatedFaults { faults: faults.collect(), tried: 0 };
        let groups = find_culprits(count, &mut |set| simulated.of(set)).unwrap();
        (groups.into_iter().map(|group| group.parts).collect(), simulated.tried)
    }

    #[test]
    fn nothing_is_blamed_where_nothing_fails() {
        assert_eq!(culprits_of(1000, &[]), (vec![], 1));
        assert_eq!(culprits_of(0, &[]), (vec![], 1));
    }

    #[test]
    fn one_of_1400_objects_takes_12_to_14_mixes() {
        for culprit in [0, 1, 699, 700, 1398, 1399] {
            let (groups, tried) = culprits_of(1400, &[(&[culprit], 1)]);
            assert_eq!(groups, [[culprit]]);
            // The whole, ten or eleven halvings, the culprit alone, and all but the culprit.
            assert!((12..=14).contains(&tried), "{culprit}: {tried}");
        }
    }

    #[test]
    fn faults_that_hide_each_other_are_found_one_after_the_other() {
        // The first hides the second wherever both are, and a set with the second alone fails
        // differently.
        let (mut groups, _) = culprits_of(100, &[(&[80], 1), (&[20], 2), (&[50, 60, 70], 1)]);
        groups.sort();
        assert_eq!(groups, [vec![20], vec![50, 60, 70], vec![80]]);
    }

    #[test]
    fn a_set_that_cannot_be_told_hides_nothing() {
        // A set with part 3 and without part 4 fails in its own way; the culprit is 90.
        let mut attempt = |set: &[usize]| -> Result<Option<u8>, Infallible> {
            let has = |part: usize| set.contains(&part);
            Ok(if has(3) != has(4) { Some(9) } else { has(90).then_some(1) })
        };
        assert_eq!(minimal(&(0..100).collect::<Vec<_>>(), &1, &mut attempt).unwrap(), [90]);
    }

    proptest! {
        /// Any faults, single or together, of one symptom or several: the rest works, and every
        /// group is a fault of which no part can be left out. The number of sets is limited for
        /// each part and each halving.
        #[test]
        fn what_is_blamed_is_to_blame(
            count in 1usize..400,
            faults in prop::collection::vec((prop::collection::btree_set(0usize..400, 1..4), 1u8..4), 0..5),
        ) {
            let within = faults.into_iter().filter(|(parts, _)| parts.iter().all(|part| *part < count));
            let mut simulated = SimulatedFaults { faults: within.collect(), tried: 0 };
            let groups = find_culprits(count, &mut |set| simulated.of(set)).unwrap();
            let tried = simulated.tried;
            let culprits_of: BTreeSet<usize> = groups.iter().flat_map(|group| group.parts.clone()).collect();
            let rest: Vec<usize> = (0..count).filter(|part| !culprits_of.contains(part)).collect();
            prop_assert_eq!(simulated.of(&rest).unwrap(), None);
            for group in &groups {
                prop_assert_eq!(simulated.of(&group.parts).unwrap(), Some(group.symptom));
                for out in &group.parts {
                    let less: Vec<usize> = group.parts.iter().copied().filter(|part| part != out).collect();
                    prop_assert_ne!(simulated.of(&less).unwrap(), Some(group.symptom));
                }
            }
            let halvings = usize::BITS as usize - count.leading_zeros() as usize;
            // A part may turn out to be unnecessary after it was found.
            let parts = 2 * culprits_of.len() + groups.len();
            prop_assert!(tried <= 2 + groups.len() + parts * (halvings + 3 + parts), "{} for {:?}", tried, groups);
        }

        /// Random outcomes, as of a flaky kernel: the search ends, and every culprit did fail.
        #[test]
        fn outcomes_without_a_rule_end_too(count in 1usize..40, seed: u64) {
            let outcome = |set: &[usize]| {
                if set.is_empty() { return None; }
                let sum = set.iter().fold(seed, |sum, part| (sum ^ *part as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29));
                Some((sum % 4) as u8).filter(|symptom| *symptom != 0)
            };
            let mut tried = 0;
            let groups = find_culprits(count, &mut |set| { tried += 1; Ok::<_, Infallible>(outcome(set)) }).unwrap();
            for group in &groups {
                prop_assert_eq!(outcome(&group.parts), Some(group.symptom));
            }
            let culprits_of: usize = groups.iter().map(|group| group.parts.len()).sum();
            prop_assert!(culprits_of <= count && tried <= 2 * (culprits_of + 1) * (count + 12), "{} {}", tried, culprits_of);
        }
    }
}
