//! GitHub's workflow commands: `::error file=…,line=…,title=…::message`, one line each (pure).
//!
//! Source: GitHub Docs, "Workflow commands for GitHub Actions".

use super::findings;
use crate::suite::CheckSuite;
use std::fmt::Write;
use std::path::Path;

/// Renders the findings of a check.
pub fn render(suites: &[CheckSuite], guard_file: &Path) -> String {
    let mut out = String::new();
    for of in findings(suites) {
        let place = of.place(guard_file);
        let _ = writeln!(
            out,
            "::error file={},line={},title={}::{}",
            property(&place.file),
            place.line,
            property(&of.title()),
            message(&format!("{}\n{}", of.finding.message, of.finding.details))
        );
    }
    out
}

fn message(text: &str) -> String {
    text.trim_end().replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    message(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::super::tests::suites;
    use super::*;

    #[test]
    fn every_finding_is_one_line_and_its_signs_are_escaped() {
        let text = render(&suites(), Path::new("guard.toml"));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert_eq!(
            lines[0],
            "::error file=src/a%2Cb.c,line=7,title=parse (user code) of my.toml::user code: 10 to 11, <50 %25>: \
             parse%0Aparse +1%0Ascan | +0"
        );
        assert!(lines[1].starts_with("::error file=guard.toml,line=1,"), "{text}");
    }
}
