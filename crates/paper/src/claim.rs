//! Claims of a paper that measured kernels, checked against our figures of its tables.

use crate::{FindingResult, FindingVerdict};
use serde::Deserialize;

/// Claim of a paper, with the figure and the bounds that it must keep.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperClaim {
    /// Statement in the paper's words, shortened.
    pub says: String,
    /// Description of our figure, for a reader.
    #[serde(default)]
    pub here: String,
    /// Figure that supports the claim; `None` with the reason in `cannot`.
    pub of: Option<FigureRef>,
    /// Figure to compare with: the value is then the difference to it, in points.
    pub than: Option<FigureRef>,
    /// Figures to compare with instead: the value is then the difference to their improvements, one
    /// after the other.
    #[serde(default)]
    pub than_product_of: Vec<FigureRef>,
    /// Smallest figure with which the claim holds.
    pub at_least: Option<f64>,
    /// Largest figure with which the claim holds.
    pub at_most: Option<f64>,
    /// Reason that the claim cannot be checked here.
    #[serde(default)]
    pub cannot: String,
}

/// Reference to a figure of a table, in percent: an improvement for a paper with a recipe, a change
/// for a study.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FigureRef {
    /// Workload of the table, or region in a study; `None` for all tables.
    pub workload: Option<String>,
    /// Title of the table; `None` for all tables of the workload.
    pub table: Option<String>,
    /// Name of the row in the paper; `None` for the row that improved the least.
    pub row: Option<String>,
    /// Kind of figure in the row.
    pub figure: FigureKind,
    /// Recipe of the kernels; `None` for that of the tables.
    pub recipe: Option<String>,
    /// Number of the kernel in a study, from 1; `None` for the last one.
    pub kernel: Option<usize>,
}

/// Kind of figure in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FigureKind {
    /// Kernel instructions: exact.
    Exact,
    /// Kernel cycles of the model.
    Cycles,
    /// Kernel and user instructions: exact.
    Whole,
    /// Kernel and user cycles of the model.
    WholeCycles,
    /// Time from a clock.
    Timed,
    /// Change against the first kernel, in studies.
    Change,
    /// Our figure itself, in studies.
    Figure,
}

impl FigureRef {
    /// Checks whether this refers to a table of a workload (in studies a region) and title.
    pub(crate) fn is_of(&self, workload: &str, title: &str) -> bool {
        self.workload.as_ref().is_none_or(|name| name == workload)
            && self.table.as_ref().is_none_or(|name| name == title)
    }
}

impl FigureKind {
    /// Returns the reason that a row can lack this figure.
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

/// Figure with its interval; of an exact figure both ends are the figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct FigureInterval {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

impl FigureInterval {
    pub(crate) fn exact(value: f64) -> Self {
        Self { value, low: value, high: value }
    }

    /// Subtracts a figure. The interval is as wide as both together, because both figures may come
    /// from the same boots.
    fn less(self, other: Self) -> Self {
        Self { value: self.value - other.value, low: self.low - other.high, high: self.high - other.low }
    }

    /// Combines two improvements in percent, one after the other.
    fn after(self, other: Self) -> Self {
        let both = |a: f64, b: f64| 100.0 * ((1.0 + a / 100.0) * (1.0 + b / 100.0) - 1.0);
        Self {
            value: both(self.value, other.value),
            low: both(self.low, other.low),
            high: both(self.high, other.high),
        }
    }

    /// Returns the verdict for the bounds. An interval across a bound shows nothing.
    fn within(&self, at_least: Option<f64>, at_most: Option<f64>) -> FindingVerdict {
        let holds = at_least.is_none_or(|min| self.low >= min) && at_most.is_none_or(|max| self.high <= max);
        let fails = at_least.is_some_and(|min| self.high < min) || at_most.is_some_and(|max| self.low > max);
        match (holds, fails) {
            (true, _) => FindingVerdict::Reproduced,
            (_, true) => FindingVerdict::Contradicted,
            _ => FindingVerdict::NotShown,
        }
    }
}

/// Function that returns a figure, or the reason that there is none.
pub(crate) type FigureLookup<'a> = dyn Fn(&FigureRef) -> Result<FigureInterval, String> + 'a;

impl PaperClaim {
    /// Returns the error of a claim in a paper's file, if any; `has` tells whether a row exists.
    pub(crate) fn first_error(
        &self,
        is_study: bool,
        has: &dyn Fn(&FigureRef) -> bool,
    ) -> Option<&'static str> {
        let bounds = self.at_least.or(self.at_most).is_some();
        let figures = || self.of.iter().chain(&self.than).chain(&self.than_product_of);
        match (&self.of, self.cannot.is_empty()) {
            (Some(_), true) if !bounds => Some("it needs `at_least` or `at_most`"),
            (Some(_), true) if figures().any(|of| of.figure.is_of_study() != is_study) => {
                Some("`change` and `figure` are of studies, and the others of papers with a recipe")
            }
            (Some(_), true) if figures().any(|of| is_study && of.row.is_none()) => {
                Some("of a study a row is named")
            }
            (Some(_), true) if !figures().all(has) => Some("there is no such row"),
            (Some(_), true) if self.than.is_some() && !self.than_product_of.is_empty() => {
                Some("a finding has one of `than` and `than_product_of`")
            }
            (Some(_), true) if is_study && !self.than_product_of.is_empty() => {
                Some("`than_product_of` is of improvements, and a study has none")
            }
            (None, false) if !bounds && figures().next().is_none() => None,
            (Some(_), true) => None,
            _ => Some("a finding has `of`, or `cannot` with the reason"),
        }
    }

    fn judge(&self, find: &FigureLookup) -> FindingResult {
        let mut found = FindingResult {
            says: self.says.clone(),
            seen: FindingVerdict::CannotBeSeen,
            value: None,
            interval: None,
            unit: String::new(),
            bounds: [self.at_least, self.at_most],
            here: if self.cannot.is_empty() { self.here.clone() } else { self.cannot.clone() },
            at: None,
        };
        let Some(of) = &self.of else { return found };
        let than = match &self.than {
            Some(than) => Some(find(than)),
            None => self.than_product_of.iter().map(find).reduce(|all, next| Ok(all?.after(next?))),
        };
        let is_difference = than.is_some();
        let value = find(of).and_then(|one| match than {
            Some(than) => Ok(one.less(than?)),
            None => Ok(one),
        });
        match value {
            Err(because) => (found.seen, found.here) = (FindingVerdict::NotMade, because),
            Ok(span) => {
                found.seen = span.within(self.at_least, self.at_most);
                found.value = Some(span.value);
                found.interval = (span.low < span.high).then_some([span.low, span.high]);
                found.unit = match (of.figure, is_difference) {
                    (FigureKind::Figure, _) => "",
                    (_, true) => "points",
                    _ => "%",
                }
                .into();
            }
        }
        found
    }
}

/// Checks all claims.
pub(crate) fn judge(claims: &[PaperClaim], find: &FigureLookup) -> Vec<FindingResult> {
    claims.iter().map(|claim| claim.judge(find)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Paper;

    const PAPER: &str = "name='x'\ntitle='t'\nauthors='a'\npublished='p'\nmachine='m'\nrecipe='gcc-pgo'\n\
        [[experiment]]\ntitle='T'\nworkload='rr'\n[[experiment.row]]\nname='tcp'\noperation='tcp_rr'\nunit='s'\n\
        better='lower'\nbase=2\noptimized=1\nimprovement='100%'\n";

    fn parse(finding: &str) -> Result<Paper, String> {
        Paper::parse(&format!("{PAPER}[[finding]]\nsays='a'\n{finding}"), "x.toml")
            .map_err(|error| error.to_string())
    }

    #[test]
    fn claims_are_held_against_figures() {
        let judged =
            |finding: &str, find: &FigureLookup| judge(&parse(finding).unwrap().findings, find).remove(0);
        let timed = |of: &FigureRef| match (of.figure, of.row.as_deref()) {
            (FigureKind::Timed, Some("tcp")) => Ok(FigureInterval { value: 12.0, low: 11.0, high: 12.5 }),
            (FigureKind::Timed, None) => Ok(FigureInterval { value: 2.0, low: -1.0, high: 5.0 }),
            (FigureKind::Cycles, _) => Ok(FigureInterval::exact(40.0)),
            _ => Err("it was not timed".to_string()),
        };
        let found = judged("of={workload='rr',row='tcp',figure='timed'}\nat_least=10\nat_most=13\n", &timed);
        assert_eq!(
            (found.seen, found.value, found.unit.as_str()),
            (FindingVerdict::Reproduced, Some(12.0), "%")
        );
        assert_eq!(found.interval, Some([11.0, 12.5]));
        // A clock that shows no difference contradicts neither a gain nor a loss.
        for (bound, seen) in [
            ("at_least=0", FindingVerdict::NotShown),
            ("at_most=0", FindingVerdict::NotShown),
            ("at_least=6", FindingVerdict::Contradicted),
            ("at_most=-2", FindingVerdict::Contradicted),
            ("at_least=-1", FindingVerdict::Reproduced),
            ("at_least=-2\nat_most=5", FindingVerdict::Reproduced),
            ("at_least=-2\nat_most=4", FindingVerdict::NotShown),
        ] {
            assert_eq!(judged(&format!("of={{figure='timed'}}\n{bound}\n"), &timed).seen, seen, "{bound}");
        }
        // 1.1 · 1.2 = 1.32, and the figure is 1.12.
        let product =
            "of={row='tcp',figure='timed'}\nthan_product_of=[{row='tcp',figure='exact',recipe='bolt'},\
            {row='tcp',figure='exact',recipe='layout'}]\nat_least=-25\nat_most=-15\n";
        let of_each = |of: &FigureRef| match of.recipe.as_deref() {
            Some("bolt") => Ok(FigureInterval::exact(10.0)),
            Some("layout") => Ok(FigureInterval::exact(20.0)),
            _ => Ok(FigureInterval::exact(12.0)),
        };
        let found = judged(product, &of_each);
        assert_eq!((found.seen, found.unit.as_str()), (FindingVerdict::Reproduced, "points"));
        assert!((found.value.unwrap() + 20.0).abs() < 1e-9, "{found:?}");
        let both = "of={row='tcp',figure='cycles'}\nthan={row='tcp',figure='timed'}\nat_most=5\n";
        let found = judged(both, &timed);
        assert_eq!(
            (found.seen, found.value, found.unit.as_str()),
            (FindingVerdict::Contradicted, Some(28.0), "points")
        );
        let found = judged("of={row='tcp',figure='whole'}\nat_least=0\n", &timed);
        assert_eq!((found.seen, found.here.as_str()), (FindingVerdict::NotMade, "it was not timed"));
        let found = judged("cannot='no disk'\n", &timed);
        assert_eq!((found.seen, found.here.as_str()), (FindingVerdict::CannotBeSeen, "no disk"));
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
            (
                "of={row='tcp',figure='timed'}\nthan={row='tcp',figure='exact'}\n\
                 than_product_of=[{row='tcp',figure='exact'}]\nat_least=1\n",
                "one of `than`",
            ),
        ] {
            let error = parse(finding).unwrap_err();
            assert!(error.contains(words), "{words:?} is not in {error}");
        }
    }
}
