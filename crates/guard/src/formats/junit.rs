//! JUnit XML of a check, for CI systems: a suite for each workload, a case for each row or figure (pure).

use crate::suite::{CheckCase, CheckFinding, CheckSuite};
use std::fmt::Write;

/// Renders a check as a JUnit document.
pub fn render(suites: &[CheckSuite]) -> String {
    let mut out =
        String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"kerntune guard\">\n");
    for of in suites {
        suite(&mut out, of);
    }
    out.push_str("</testsuites>\n");
    out
}

fn suite(out: &mut String, suite: &CheckSuite) {
    let name = escaped(&suite.name);
    let tests = suite.cases.len();
    let failures = suite.cases.iter().filter(|case| case.finding.is_some()).count();
    let _ = writeln!(
        out,
        "  <testsuite name=\"{name}\" tests=\"{tests}\" failures=\"{failures}\" errors=\"0\" skipped=\"0\">"
    );
    for of in &suite.cases {
        case(out, &name, of);
    }
    if let Some(note) = &suite.note {
        let _ = writeln!(out, "    <system-out>{}</system-out>", escaped(note));
    }
    out.push_str("  </testsuite>\n");
}

fn case(out: &mut String, class: &str, of: &CheckCase) {
    let _ = write!(out, "    <testcase classname=\"{class}\" name=\"{}\"", escaped(&of.name));
    match &of.finding {
        None => out.push_str("/>\n"),
        Some(CheckFinding { message, details, .. }) => {
            let (short, long) = (escaped(message), escaped(details));
            let _ = writeln!(out, ">\n      <failure message=\"{short}\">{long}</failure>\n    </testcase>");
        }
    }
}

/// Escapes text for XML; characters that XML cannot contain become question marks.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() || ('\u{fffe}'..='\u{ffff}').contains(&c) => out.push('?'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::baseline::MeasuredSubject;
    use crate::cell::KernelName;
    use crate::check::{CheckReport, CheckedCell, CheckedRow};
    use crate::file::Tolerance;
    use crate::judge::{DeferredWork, RowVerdict};

    #[test]
    fn every_row_is_a_case_and_findings_are_failures() {
        let row = |name: &str, verdict| CheckedRow {
            row: name.into(),
            path: [1000.0, 1010.0],
            change_percent: Some(1.0),
            compensated: 0.0,
            tolerance: Tolerance::default(),
            verdict,
            explained: None,
        };
        let kernel =
            KernelName { id: "k".into(), label: "l".into(), version: "6".into(), compiler: "c".into() };
        let cell = CheckedCell {
            configuration: "a<b".into(),
            compiler: "gcc".into(),
            workload: "rr".into(),
            kernels: [kernel.clone(), kernel],
            profiles: ["p".into(), "q".into()],
            rows: vec![row("tcp_rr", RowVerdict::Longer), row("udp_rr", RowVerdict::Same)],
            missing: vec!["gone\u{1}".into()],
            deferred: DeferredWork { longer: true, sum: [1, 2], ..DeferredWork::default() },
            unexplained: None,
            remeasured: Some("b.json was made with another guest".into()),
        };
        let subject = MeasuredSubject { what: "kernel".into(), commit: None };
        let check = CheckReport {
            schema: crate::check::SCHEMA,
            subjects: [subject.clone(), subject],
            cells: vec![cell],
            findings: 3,
        };
        let text = render(&check.suites());
        assert!(text.contains("<testsuite name=\"rr.a&lt;b.gcc\" tests=\"4\" failures=\"3\""), "{text}");
        assert!(text.contains("message=\"1000.0 to 1010.0 instructions/op (+1.000 %)\""), "{text}");
        assert!(text.contains("name=\"udp_rr\"/>") && text.contains("name=\"gone?\""), "{text}");
        assert!(text.contains("<system-out>b.json was made with another guest</system-out>"), "{text}");
        assert_eq!(text.matches("<testcase").count(), 4);
        assert_eq!(text.matches("</testcase>").count(), 3);
    }
}
