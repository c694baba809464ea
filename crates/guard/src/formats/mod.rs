//! Results of checks in the formats of CI systems: a file for each format.

mod annotations;
mod code_quality;
mod junit;
mod sarif;
mod summary;

use crate::program::SourcePlace;
use crate::suite::{CheckCase, CheckFinding, CheckSuite};
use std::path::Path;

/// Format of a CI system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckFormat {
    /// GitHub's workflow commands, which annotate source lines.
    Annotations,
    /// GitLab's Code Quality report.
    CodeQuality,
    /// JUnit XML.
    Junit,
    /// SARIF 2.1.0.
    Sarif,
    /// Markdown, for GitHub's step summary and comments of merge requests.
    Summary,
}

impl CheckFormat {
    /// Renders a check. Findings without a source line are of the first line of `guard_file`.
    pub fn render(self, suites: &[CheckSuite], guard_file: &Path) -> String {
        match self {
            Self::Annotations => annotations::render(suites, guard_file),
            Self::CodeQuality => code_quality::render(suites, guard_file),
            Self::Junit => junit::render(suites),
            Self::Sarif => sarif::render(suites, guard_file),
            Self::Summary => summary::render(suites),
        }
    }
}

/// A finding with its suite and case.
struct NamedFinding<'s> {
    suite: &'s CheckSuite,
    case: &'s CheckCase,
    finding: &'s CheckFinding,
}

impl NamedFinding<'_> {
    /// Returns `tcp_rr of rr`.
    fn title(&self) -> String {
        format!("{} of {}", self.case.name, self.suite.name)
    }

    fn place(&self, guard_file: &Path) -> SourcePlace {
        let of_file = || SourcePlace { file: guard_file.display().to_string(), line: 1 };
        self.finding.place.clone().unwrap_or_else(of_file)
    }

    /// Returns a name for the finding that stays while its figures change.
    fn fingerprint(&self) -> String {
        let names = [&self.suite.name, &self.case.name, self.finding.rule.name()];
        kerntune_work::ContentHash::new("guard-finding/1").list("names", names).finish()
    }
}

fn findings(suites: &[CheckSuite]) -> impl Iterator<Item = NamedFinding<'_>> {
    suites.iter().flat_map(|suite| {
        let cases = suite.cases.iter();
        cases.filter_map(move |case| Some(NamedFinding { suite, case, finding: case.finding.as_ref()? }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::FindingRule;

    /// One finding with a source line, one without, and a case without a finding.
    pub(super) fn suites() -> Vec<CheckSuite> {
        let finding = |rule, place| CheckFinding {
            rule,
            message: "user code: 10 to 11, <50 %>: parse".into(),
            details: "parse +1\nscan | +0\n".into(),
            place,
        };
        let place = Some(SourcePlace { file: "src/a,b.c".into(), line: 7 });
        let case = |name: &str, finding| CheckCase { name: name.into(), finding };
        vec![CheckSuite {
            name: "my.toml".into(),
            cases: vec![
                case("parse (user code)", Some(finding(FindingRule::UserCode, place))),
                case("parse (kernel)", None),
                case("send (system calls)", Some(finding(FindingRule::SystemCalls, None))),
            ],
            note: None,
        }]
    }

    #[test]
    fn each_finding_has_a_place_and_a_name_of_its_own() {
        let suites = suites();
        let all: Vec<NamedFinding> = findings(&suites).collect();
        let [first, second] = &all[..] else { panic!("{}", all.len()) };
        let guard = Path::new("guard.toml");
        assert_eq!((first.place(guard).line, first.title().as_str()), (7, "parse (user code) of my.toml"));
        assert_eq!((second.place(guard).file.as_str(), second.place(guard).line), ("guard.toml", 1));
        assert_ne!(first.fingerprint(), second.fingerprint());
    }
}
