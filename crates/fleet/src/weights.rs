//! What a profile counts for when it is merged.

use crate::place::Key;
use crate::{Error, Place, Result};
use std::str::FromStr;

/// The most that a profile can be weighted with, as for `profile merge`.
const MOST: u64 = 1_000_000;

/// Weights by place: the first rule that fits counts, 1 if none does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Weights {
    rules: Vec<Rule>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    key: Key,
    value: String,
    weight: u64,
}

impl Weights {
    /// Rules `KEY=VALUE:WEIGHT`, such as `workload=redis:3`.
    ///
    /// # Errors
    /// A rule of another form; a weight that is not a whole number from 0 to 1,000,000. With 0 a profile is left out.
    pub fn parse<'a>(rules: impl IntoIterator<Item = &'a str>) -> Result<Self> {
        Ok(Self { rules: rules.into_iter().map(str::parse).collect::<Result<_>>()? })
    }

    /// What a profile at this place counts for.
    pub fn of(&self, place: &Place) -> u64 {
        let fits = |rule: &&Rule| place.get(rule.key) == rule.value;
        self.rules.iter().find(fits).map_or(1, |rule| rule.weight)
    }
}

impl FromStr for Rule {
    type Err = Error;

    fn from_str(given: &str) -> Result<Self> {
        let bad = |what: String| Error::Words { given: given.to_owned(), what };
        let keys = Key::ALL.map(Key::name).join(", ");
        let (named, weight) = given
            .rsplit_once(':')
            .ok_or_else(|| bad("write a weight as KEY=VALUE:WEIGHT, such as workload=redis:3".into()))?;
        let (key, value) = named.split_once('=').ok_or_else(|| bad(format!("`{named}` is not KEY=VALUE")))?;
        let key = Key::named(key).ok_or_else(|| bad(format!("`{key}` is not one of {keys}")))?;
        let weight =
            weight.parse().ok().filter(|weight| *weight <= MOST).ok_or_else(|| {
                bad(format!("the weight `{weight}` is not a whole number from 0 to {MOST}"))
            })?;
        Ok(Self { key, value: value.to_owned(), weight })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rule_that_fits_counts() {
        let weights = Weights::parse(["workload=redis:3", "host=a:0"]).unwrap();
        let of = |host, workload| weights.of(&Place::new("k", "2026-11-25", host, workload));
        assert_eq!((of("a", "redis"), of("a", "rr"), of("b", "rr")), (3, 0, 1));
    }

    #[test]
    fn mistakes_are_said() {
        for (rule, words) in [
            ("redis", "KEY=VALUE:WEIGHT"),
            ("redis:3", "not KEY=VALUE"),
            ("kernel=x:3", "not one of build_id"),
            ("host=a:x", "whole number"),
            ("host=a:1000001", "whole number"),
        ] {
            let error = Weights::parse([rule]).unwrap_err().to_string();
            assert!(error.contains(words), "{rule}: {error}");
        }
    }
}
