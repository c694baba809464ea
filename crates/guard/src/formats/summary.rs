//! A summary in Markdown (pure).

use super::findings;
use crate::suite::CheckSuite;
use std::fmt::Write;

/// Renders a check: the number of findings, a table of them, and their details.
pub fn render(suites: &[CheckSuite]) -> String {
    let cases: usize = suites.iter().map(|suite| suite.cases.len()).sum();
    let count = findings(suites).count();
    let mut out = match count {
        0 => format!("### kerntune guard: none of {cases} figures grew\n"),
        _ => format!("### kerntune guard: {count} of {cases} figures grew\n"),
    };
    let notes: Vec<&String> = suites.iter().filter_map(|suite| suite.note.as_ref()).collect();
    for note in notes {
        let _ = write!(out, "\n{}\n", cell(note));
    }
    if count == 0 {
        return out;
    }
    out.push_str("\n| where | what | source |\n|---|---|---|\n");
    for of in findings(suites) {
        let place = of.finding.place.as_ref().map(|place| format!("{}:{}", place.file, place.line));
        let _ = writeln!(
            out,
            "| {} | {} | {} |",
            cell(&of.title()),
            cell(&of.finding.message),
            cell(&place.unwrap_or_default())
        );
    }
    for of in findings(suites).filter(|of| !of.finding.details.is_empty()) {
        let fence = fence(&of.finding.details);
        let _ = write!(out, "\n<details><summary>{}</summary>\n\n", cell(&of.title()));
        let _ = write!(out, "{fence}\n{}\n{fence}\n\n</details>\n", of.finding.details.trim_end());
    }
    out
}

/// Escapes text for a cell of a table.
fn cell(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for sign in text.chars() {
        match sign {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' => {
                out.push('\\');
                out.push(sign);
            }
            sign if sign.is_control() => out.push(' '),
            sign => out.push(sign),
        }
    }
    out
}

/// Returns a code fence that the text does not contain.
fn fence(text: &str) -> String {
    let mut fence = "```".to_owned();
    while text.contains(&fence) {
        fence.push('`');
    }
    fence
}

#[cfg(test)]
mod tests {
    use super::super::tests::suites;
    use super::*;

    #[test]
    fn findings_are_a_table_and_their_details_are_code() {
        let text = render(&suites());
        assert!(text.starts_with("### kerntune guard: 2 of 3 figures grew\n"), "{text}");
        let row = "| parse (user code) of my.toml | user code: 10 to 11, &lt;50 %&gt;: parse | src/a,b.c:7 |";
        assert!(text.contains(row), "{text}");
        assert!(text.contains("```\nparse +1\nscan | +0\n```"), "{text}");
        assert_eq!(render(&[]), "### kerntune guard: none of 0 figures grew\n");
        assert_eq!(cell("a|b\n`<c>`"), "a\\|b \\`&lt;c&gt;\\`");
        assert_eq!(fence("````"), "`````");
    }
}
