//! Weights of profiles in a merge.

use crate::location::PartitionKey;
use crate::{Error, ProfileLocation, Result};
use std::str::FromStr;

/// Maximum weight, as for `profile merge`.
const MAX_WEIGHT: u64 = 1_000_000;

/// Weights by location: the first rule that matches counts; the default is 1.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Weights {
    rules: Vec<WeightRule>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct WeightRule {
    key: PartitionKey,
    value: String,
    weight: u64,
}

impl Weights {
    /// Parses rules `KEY=VALUE:WEIGHT`, such as `workload=redis:3`.
    ///
    /// # Errors
    /// A rule of another form; a weight that is not a whole number from 0 to 1,000,000. Weight 0
    /// leaves a profile out.
    pub fn parse<'a>(rules: impl IntoIterator<Item = &'a str>) -> Result<Self> {
        Ok(Self { rules: rules.into_iter().map(str::parse).collect::<Result<_>>()? })
    }

    /// Returns the weight of a profile at this location.
    pub fn of(&self, location: &ProfileLocation) -> u64 {
        let fits = |rule: &&WeightRule| location.get(rule.key) == rule.value;
        self.rules.iter().find(fits).map_or(1, |rule| rule.weight)
    }
}

impl FromStr for WeightRule {
    type Err = Error;

    fn from_str(given: &str) -> Result<Self> {
        let bad = |what: String| Error::Words { given: given.to_owned(), what };
        let keys = PartitionKey::ALL.map(PartitionKey::name).join(", ");
        let (named, weight) = given
            .rsplit_once(':')
            .ok_or_else(|| bad("write a weight as KEY=VALUE:WEIGHT, such as workload=redis:3".into()))?;
        let (key, value) = named.split_once('=').ok_or_else(|| bad(format!("`{named}` is not KEY=VALUE")))?;
        let key = PartitionKey::named(key).ok_or_else(|| bad(format!("`{key}` is not one of {keys}")))?;
        let weight = weight.parse().ok().filter(|weight| *weight <= MAX_WEIGHT).ok_or_else(|| {
            bad(format!("the weight `{weight}` is not a whole number from 0 to {MAX_WEIGHT}"))
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
        let of = |host, workload| weights.of(&ProfileLocation::new("k", "2026-11-25", host, workload));
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
