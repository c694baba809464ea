//! Arcs to leave out of cycles, as given on the command line.

use crate::pattern::matches;
use crate::view::scope;
use crate::{Error, Result};
use kerntune_analyze::graph::AutoCut;
use kerntune_profile::Profile;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// Arcs to cut: by name, or automatically.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArcCut {
    /// Calls of matching callees by matching callers.
    Named {
        /// Name or pattern (`*`, `?`) of callers.
        caller: String,
        /// Name or pattern (`*`, `?`) of callees.
        callee: String,
    },
    /// Rare calls that form cycles.
    Auto(AutoCut),
}

impl FromStr for ArcCut {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Self::Auto(AutoCut::default()));
        }
        if let Some(percent) = text.strip_prefix("auto:") {
            let number = percent.parse().ok().filter(|number| (1..=100).contains(number));
            let max_percent = number.ok_or("auto:PERCENT takes a whole number from 1 to 100")?;
            return Ok(Self::Auto(AutoCut { max_percent }));
        }
        match text.split_once('/') {
            Some((caller, callee)) if !caller.is_empty() && !callee.is_empty() && !callee.contains('/') => {
                Ok(Self::Named { caller: caller.into(), callee: callee.into() })
            }
            _ => Err("give CALLER/CALLEE, both names or patterns, or auto".into()),
        }
    }
}

impl fmt::Display for ArcCut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named { caller, callee } => write!(f, "{caller}/{callee}"),
            Self::Auto(AutoCut { max_percent }) => write!(f, "auto:{max_percent}"),
        }
    }
}

/// Returns the limit of automatic cutting, if requested; the last one wins.
pub(super) fn automatic(cuts: &[ArcCut]) -> Option<AutoCut> {
    cuts.iter().rev().find_map(|cut| match cut {
        ArcCut::Auto(limit) => Some(*limit),
        ArcCut::Named { .. } => None,
    })
}

/// Resolves the patterns to arcs in the selected regions.
pub(super) fn named(
    profile: &Profile,
    cuts: &[ArcCut],
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
        let ArcCut::Named { caller, callee } = cut else { continue };
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
        let cut = |text: &str| text.parse::<ArcCut>();
        assert_eq!(cut("a*/b").unwrap().to_string(), "a*/b");
        assert_eq!(cut("auto").unwrap(), ArcCut::Auto(AutoCut::default()));
        assert_eq!(cut("auto:20").unwrap(), ArcCut::Auto(AutoCut { max_percent: 20 }));
        for text in ["", "a", "/b", "a/", "a/b/c", "auto:0", "auto:101", "auto:x"] {
            assert!(cut(text).is_err(), "{text}");
        }
    }
}
