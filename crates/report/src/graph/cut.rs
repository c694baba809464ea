//! Which arcs are left out of cycles, as they are named on the command line.

use crate::pattern::matches;
use crate::view::scope;
use crate::{Error, Result};
use kerntune_analyze::graph::AutoCut;
use kerntune_profile::Profile;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// What to cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cut {
    /// The calls of functions by others.
    Named {
        /// A name, or a pattern of `*` and `?`.
        caller: String,
        /// The same.
        callee: String,
    },
    /// What binds cycles by few calls.
    Auto(AutoCut),
}

impl FromStr for Cut {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Self::Auto(AutoCut::default()));
        }
        if let Some(percent) = text.strip_prefix("auto:") {
            let number = percent.parse().ok().filter(|number| (1..=100).contains(number));
            let most_percent = number.ok_or("auto:PERCENT takes a whole number from 1 to 100")?;
            return Ok(Self::Auto(AutoCut { most_percent }));
        }
        match text.split_once('/') {
            Some((caller, callee)) if !caller.is_empty() && !callee.is_empty() && !callee.contains('/') => {
                Ok(Self::Named { caller: caller.into(), callee: callee.into() })
            }
            _ => Err("give CALLER/CALLEE, both names or patterns, or auto".into()),
        }
    }
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named { caller, callee } => write!(f, "{caller}/{callee}"),
            Self::Auto(AutoCut { most_percent }) => write!(f, "auto:{most_percent}"),
        }
    }
}

/// The heuristic's limit, if it is asked for; of several the last.
pub(super) fn automatic(cuts: &[Cut]) -> Option<AutoCut> {
    cuts.iter().rev().find_map(|cut| match cut {
        Cut::Auto(limit) => Some(*limit),
        Cut::Named { .. } => None,
    })
}

/// Callers and callees that the patterns name, in the regions that are looked at.
pub(super) fn named(
    profile: &Profile,
    cuts: &[Cut],
    region: Option<&str>,
) -> Result<BTreeSet<(usize, usize)>> {
    let scope = scope(profile, region)?;
    let symbols = &profile.tables.symbols;
    let mut pairs = BTreeSet::new();
    for row in profile.tables.arcs.iter().filter(|row| scope.contains(row.region)) {
        if let Some(caller) = row.caller.known().filter(|caller| *caller != row.callee) {
            pairs.insert((caller.get() as usize, row.callee.get() as usize));
        }
    }
    let mut found = BTreeSet::new();
    for cut in cuts {
        let Cut::Named { caller, callee } = cut else { continue };
        let is =
            |pattern: &str, at: usize| symbols.get(at).is_some_and(|symbol| matches(pattern, &symbol.name));
        let these: Vec<_> = pairs.iter().filter(|(from, to)| is(caller, *from) && is(callee, *to)).collect();
        if these.is_empty() {
            return Err(Error::NoArc { cut: cut.to_string(), region: region.map(Into::into) });
        }
        found.extend(these);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_cut() {
        let cut = |text: &str| text.parse::<Cut>();
        assert_eq!(cut("a*/b").unwrap().to_string(), "a*/b");
        assert_eq!(cut("auto").unwrap(), Cut::Auto(AutoCut::default()));
        assert_eq!(cut("auto:20").unwrap(), Cut::Auto(AutoCut { most_percent: 20 }));
        for text in ["", "a", "/b", "a/", "a/b/c", "auto:0", "auto:101", "auto:x"] {
            assert!(cut(text).is_err(), "{text}");
        }
    }
}
