//! JUnit XML of a check, for CI systems: a suite for each workload, a case for each row (pure).

use crate::check::{CheckReport, CheckedCell, CheckedRow};
use crate::judge::RowVerdict;
use std::fmt::Write;

/// Renders a check as a JUnit document.
pub fn junit(check: &CheckReport) -> String {
    let mut out =
        String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"kerntune guard\">\n");
    for cell in &check.cells {
        suite(&mut out, cell);
    }
    out.push_str("</testsuites>\n");
    out
}

fn suite(out: &mut String, cell: &CheckedCell) {
    let names = [&cell.workload, &cell.configuration, &cell.compiler];
    let name: Vec<&str> = names.into_iter().filter(|name| !name.is_empty()).map(String::as_str).collect();
    let name = escaped(&name.join("."));
    let rows = cell.rows.iter().filter(|row| row.verdict.is_finding()).count();
    let failures = rows + cell.missing.len() + usize::from(cell.deferred.longer);
    let tests = cell.rows.len() + cell.missing.len() + 1;
    let _ = writeln!(
        out,
        "  <testsuite name=\"{name}\" tests=\"{tests}\" failures=\"{failures}\" errors=\"0\" skipped=\"0\">"
    );
    for row in &cell.rows {
        case(out, &name, &row.row, row.verdict.is_finding().then(|| failure_texts(row)));
    }
    for row in &cell.missing {
        case(out, &name, row, Some(("missing".into(), "only one of the two has this row".into())));
    }
    let deferred = cell.deferred.longer.then(|| {
        let [before, after] = cell.deferred.sum;
        let short = format!("{before} to {after} instructions are put off");
        (
            short,
            cell.deferred.classes.iter().map(|(class, [a, b])| format!("{class}: {a} to {b}\n")).collect(),
        )
    });
    case(out, &name, "[put off]", deferred);
    if let Some(why) = &cell.remeasured {
        let _ = writeln!(out, "    <system-out>{}</system-out>", escaped(why));
    }
    out.push_str("  </testsuite>\n");
}

fn case(out: &mut String, class: &str, name: &str, failure: Option<(String, String)>) {
    let _ = write!(out, "    <testcase classname=\"{class}\" name=\"{}\"", escaped(name));
    match failure {
        None => out.push_str("/>\n"),
        Some((short, long)) => {
            let (short, long) = (escaped(&short), escaped(&long));
            let _ = writeln!(out, ">\n      <failure message=\"{short}\">{long}</failure>\n    </testcase>");
        }
    }
}

/// Returns a failure's message and details.
fn failure_texts(row: &CheckedRow) -> (String, String) {
    let [before, after] = row.path;
    let short = match row.verdict {
        RowVerdict::Compensated => {
            format!("{:.1} instructions/op are made up for elsewhere in {before:.1}", row.compensated)
        }
        _ => format!(
            "{before:.1} to {after:.1} instructions/op ({:+.3} %)",
            row.change_percent.unwrap_or(f64::INFINITY)
        ),
    };
    let mut long = String::new();
    for function in row.explained.iter().flat_map(|explained| &explained.functions) {
        let place = function
            .source
            .as_ref()
            .map(|place| format!(" {}:{}", place.file, place.line))
            .unwrap_or_default();
        let _ = writeln!(
            long,
            "{:+} {}{place}: {}",
            function.change(),
            function.function,
            function.path.join(" > ")
        );
    }
    (short, long)
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
    use crate::file::Tolerance;
    use crate::judge::DeferredWork;

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
        let text = junit(&CheckReport {
            schema: crate::check::SCHEMA,
            subjects: [subject.clone(), subject],
            cells: vec![cell],
            findings: 3,
        });
        assert!(text.contains("<testsuite name=\"rr.a&lt;b.gcc\" tests=\"4\" failures=\"3\""), "{text}");
        assert!(text.contains("message=\"1000.0 to 1010.0 instructions/op (+1.000 %)\""), "{text}");
        assert!(text.contains("name=\"udp_rr\"/>") && text.contains("name=\"gone?\""), "{text}");
        assert!(text.contains("<system-out>b.json was made with another guest</system-out>"), "{text}");
        assert_eq!(text.matches("<testcase").count(), 4);
        assert_eq!(text.matches("</testcase>").count(), 3);
    }
}
