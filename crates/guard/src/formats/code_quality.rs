//! GitLab's Code Quality report: a list of issues (pure).
//!
//! Source: GitLab Docs, "Code Quality report format".

use super::findings;
use crate::suite::CheckSuite;
use serde_json::{json, Value};
use std::path::Path;

/// Renders the findings of a check as JSON.
pub fn render(suites: &[CheckSuite], guard_file: &Path) -> String {
    let issue = |of: super::NamedFinding| {
        let place = of.place(guard_file);
        json!({
            "description": format!("{}: {}", of.title(), of.finding.message),
            "check_name": of.finding.rule.name(),
            "fingerprint": of.fingerprint(),
            "severity": "major",
            "location": { "path": place.file, "lines": { "begin": place.line } },
        })
    };
    let issues: Vec<Value> = findings(suites).map(issue).collect();
    format!("{:#}\n", Value::from(issues))
}

#[cfg(test)]
mod tests {
    use super::super::tests::suites;
    use super::*;

    #[test]
    fn every_finding_is_an_issue_with_a_place() {
        let found: Vec<Value> = serde_json::from_str(&render(&suites(), Path::new("guard.toml"))).unwrap();
        let [first, second] = &found[..] else { panic!("{found:?}") };
        assert_eq!(
            (&first["check_name"], &first["location"]["path"]),
            (&"user-code".into(), &"src/a,b.c".into())
        );
        assert_eq!(second["location"]["lines"]["begin"], 1);
        assert_eq!(render(&[], Path::new("guard.toml")), "[]\n");
    }
}
