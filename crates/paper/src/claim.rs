//! What a paper that measured kernels says, held against our figures of its tables.

use crate::{Seen, SurveyFinding};
use serde::Deserialize;

/// Something that a paper says.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// In its words, shortened.
    pub says: String,
    /// What is looked at here for it, in words.
    #[serde(default)]
    pub here: String,
    /// The figure that says so; none with the reason in `cannot`.
    pub of: Option<Evidence>,
    /// Held against this figure: what is looked at is then how many points more the first one is.
    pub than: Option<Evidence>,
    /// It holds if the figure is this or more.
    pub at_least: Option<f64>,
    /// It holds if the figure is this or less.
    pub at_most: Option<f64>,
    /// Why it cannot be seen here.
    #[serde(default)]
    pub cannot: String,
}

/// A figure of a table: of a paper with a recipe an improvement, of a study a change, per cent.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// The table of this workload, of a study that of this region; all tables if there is none.
    pub workload: Option<String>,
    /// The table of this title; all of the workload's if there is none.
    pub table: Option<String>,
    /// The row of this name in the paper; without it the one that improved the least.
    pub row: Option<String>,
    /// Which of its figures.
    pub figure: Gain,
    /// Of a study: the kernel's number, from 1; the last one if there is none.
    pub kernel: Option<usize>,
}

/// Which figure of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gain {
    /// Kernel instructions: exact.
    Exact,
    /// Kernel cycles of the model.
    Cycles,
    /// Kernel and user instructions: exact.
    Whole,
    /// Kernel and user cycles of the model.
    WholeCycles,
    /// By a clock.
    Timed,
    /// Of a study: how much more than in the first kernel.
    Change,
    /// Of a study: our figure itself.
    Figure,
}

impl Evidence {
    /// Whether a table of this workload, of a study of this region, and title is meant.
    pub(crate) fn is_of(&self, workload: &str, title: &str) -> bool {
        self.workload.as_ref().is_none_or(|name| name == workload)
            && self.table.as_ref().is_none_or(|name| name == title)
    }
}

impl Gain {
    /// Why a row may have no such figure.
    pub(crate) fn missing(self) -> &'static str {
        match self {
            Self::Timed => "it was not timed",
            Self::Cycles | Self::WholeCycles => {
                "the model does not say what events cost, or user code was not counted"
            }
            _ => "it was not counted",
        }
    }

    fn is_of_study(self) -> bool {
        matches!(self, Self::Change | Self::Figure)
    }
}

/// A figure and its interval, which of an exact one is the figure itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Span {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

impl Span {
    pub(crate) fn exact(value: f64) -> Self {
        Self { value, low: value, high: value }
    }

    /// As wide as both together: the two may be of the same boots.
    fn less(self, other: Self) -> Self {
        Self { value: self.value - other.value, low: self.low - other.high, high: self.high - other.low }
    }

    /// The verdict on what is at least and at most so much. An interval that reaches over a bound shows nothing.
    fn within(&self, at_least: Option<f64>, at_most: Option<f64>) -> Seen {
        let holds =
            at_least.is_none_or(|least| self.low >= least) && at_most.is_none_or(|most| self.high <= most);
        let fails =
            at_least.is_some_and(|least| self.high < least) || at_most.is_some_and(|most| self.low > most);
        match (holds, fails) {
            (true, _) => Seen::Reproduced,
            (_, true) => Seen::Contradicted,
            _ => Seen::NotShown,
        }
    }
}

/// What says how large a figure is, or why there is none.
pub(crate) type Find<'a> = dyn Fn(&Evidence) -> Result<Span, String> + 'a;

impl Claim {
    /// What is wrong with it; `has` says whether there is a row of this table and name.
    pub(crate) fn wrong(&self, is_study: bool, has: &dyn Fn(&Evidence) -> bool) -> Option<&'static str> {
        let bounds = self.at_least.or(self.at_most).is_some();
        let figures = || self.of.iter().chain(&self.than);
        match (&self.of, self.cannot.is_empty()) {
            (Some(_), true) if !bounds => Some("it needs `at_least` or `at_most`"),
            (Some(_), true) if figures().any(|of| of.figure.is_of_study() != is_study) => {
                Some("`change` and `figure` are of studies, and the others of papers with a recipe")
            }
            (Some(_), true) if figures().any(|of| is_study && of.row.is_none()) => {
                Some("of a study a row is named")
            }
            (Some(_), true) if !figures().all(has) => Some("there is no such row"),
            (None, false) if !bounds && self.than.is_none() => None,
            (Some(_), true) => None,
            _ => Some("a finding has `of`, or `cannot` with the reason"),
        }
    }

    fn judge(&self, find: &Find) -> SurveyFinding {
        let mut found = SurveyFinding {
            says: self.says.clone(),
            seen: Seen::CannotBeSeen,
            value: None,
            interval: None,
            unit: String::new(),
            bounds: [self.at_least, self.at_most],
            here: if self.cannot.is_empty() { self.here.clone() } else { self.cannot.clone() },
            at: None,
        };
        let Some(of) = &self.of else { return found };
        let value = find(of).and_then(|one| match &self.than {
            Some(than) => Ok(one.less(find(than)?)),
            None => Ok(one),
        });
        match value {
            Err(because) => (found.seen, found.here) = (Seen::NotMade, because),
            Ok(span) => {
                found.seen = span.within(self.at_least, self.at_most);
                found.value = Some(span.value);
                found.interval = (span.low < span.high).then_some([span.low, span.high]);
                found.unit = match (of.figure, &self.than) {
                    (Gain::Figure, _) => "",
                    (_, Some(_)) => "points",
                    _ => "%",
                }
                .into();
            }
        }
        found
    }
}

/// What becomes of all of them.
pub(crate) fn judge(claims: &[Claim], find: &Find) -> Vec<SurveyFinding> {
    claims.iter().map(|claim| claim.judge(find)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Paper;

    const PAPER: &str = "name='x'\ntitle='t'\nauthors='a'\npublished='p'\nmachine='m'\nrecipe='gcc-pgo'\n\
        [[experiment]]\ntitle='T'\nworkload='rr'\n[[experiment.row]]\nname='tcp'\noperation='tcp_rr'\nunit='s'\n\
        better='lower'\nbase=2\noptimised=1\nimprovement='100%'\n";

    fn parse(finding: &str) -> Result<Paper, String> {
        Paper::parse(&format!("{PAPER}[[finding]]\nsays='a'\n{finding}"), "x.toml")
            .map_err(|error| error.to_string())
    }

    #[test]
    fn claims_are_held_against_figures() {
        let judged = |finding: &str, find: &Find| judge(&parse(finding).unwrap().findings, find).remove(0);
        let timed = |of: &Evidence| match (of.figure, of.row.as_deref()) {
            (Gain::Timed, Some("tcp")) => Ok(Span { value: 12.0, low: 11.0, high: 12.5 }),
            (Gain::Timed, None) => Ok(Span { value: 2.0, low: -1.0, high: 5.0 }),
            (Gain::Cycles, _) => Ok(Span::exact(40.0)),
            _ => Err("it was not timed".to_string()),
        };
        let found = judged("of={workload='rr',row='tcp',figure='timed'}\nat_least=10\nat_most=13\n", &timed);
        assert_eq!((found.seen, found.value, found.unit.as_str()), (Seen::Reproduced, Some(12.0), "%"));
        assert_eq!(found.interval, Some([11.0, 12.5]));
        // A clock that shows no difference contradicts neither a gain nor a loss.
        for (bound, seen) in [
            ("at_least=0", Seen::NotShown),
            ("at_most=0", Seen::NotShown),
            ("at_least=6", Seen::Contradicted),
            ("at_most=-2", Seen::Contradicted),
            ("at_least=-1", Seen::Reproduced),
            ("at_least=-2\nat_most=5", Seen::Reproduced),
            ("at_least=-2\nat_most=4", Seen::NotShown),
        ] {
            assert_eq!(judged(&format!("of={{figure='timed'}}\n{bound}\n"), &timed).seen, seen, "{bound}");
        }
        let both = "of={row='tcp',figure='cycles'}\nthan={row='tcp',figure='timed'}\nat_most=5\n";
        let found = judged(both, &timed);
        assert_eq!(
            (found.seen, found.value, found.unit.as_str()),
            (Seen::Contradicted, Some(28.0), "points")
        );
        let found = judged("of={row='tcp',figure='whole'}\nat_least=0\n", &timed);
        assert_eq!((found.seen, found.here.as_str()), (Seen::NotMade, "it was not timed"));
        let found = judged("cannot='no disk'\n", &timed);
        assert_eq!((found.seen, found.here.as_str()), (Seen::CannotBeSeen, "no disk"));
    }

    #[test]
    fn claims_that_say_nothing_are_refused() {
        for (finding, words) in [
            ("", "`cannot` with the reason"),
            ("of={row='tcp',figure='timed'}\n", "at_least"),
            ("of={row='udp',figure='timed'}\nat_least=1\n", "no such row"),
            ("of={workload='kbx',row='tcp',figure='timed'}\nat_least=1\n", "no such row"),
            ("of={row='tcp',figure='change'}\nat_least=1\n", "of studies"),
            ("of={row='tcp',figure='speed'}\nat_least=1\n", "unknown variant"),
            ("of={row='tcp',figure='timed'}\nat_least=1\ncannot='x'\n", "`cannot`"),
        ] {
            let error = parse(finding).unwrap_err();
            assert!(error.contains(words), "{words:?} is not in {error}");
        }
    }
}
