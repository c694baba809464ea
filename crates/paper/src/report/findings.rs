//! Findings of a paper compared with measurements: as text, as Markdown and for a page.

use super::plain::plain;
use crate::{FindingResult, FindingVerdict, RunLocation};
use kerntune_table::columns::Alignment;
use kerntune_table::number::figure;
use kerntune_table::Style;
use kerntune_table::{printable, TextRole};

/// Table of findings on an HTML page.
pub(crate) struct SurveyRows {
    pub title: String,
    pub about: String,
    /// Column heads, and whether the column holds numbers.
    pub heads: Vec<(&'static str, bool)>,
    pub rows: Vec<[String; 5]>,
}

/// Counts the findings by outcome, in a sentence.
pub(crate) fn counted(findings: &[FindingResult]) -> String {
    let count = |seen| findings.iter().filter(|finding| finding.seen == seen).count();
    let not_shown = match count(FindingVerdict::NotShown) {
        0 => String::new(),
        some => format!(", {some} not shown"),
    };
    let not_made = match count(FindingVerdict::NotMade) {
        0 => String::new(),
        some => format!(", {some} not made"),
    };
    format!(
        "Of {} findings {} are reproduced, {} contradicted, {} cannot be seen here{not_shown}{not_made}.",
        findings.len(),
        count(FindingVerdict::Reproduced),
        count(FindingVerdict::Contradicted),
        count(FindingVerdict::CannotBeSeen)
    )
}

fn word(seen: FindingVerdict) -> &'static str {
    match seen {
        FindingVerdict::Reproduced => "reproduced",
        FindingVerdict::Contradicted => "contradicted",
        FindingVerdict::NotShown => "not shown",
        FindingVerdict::CannotBeSeen => "cannot be seen here",
        FindingVerdict::NotMade => "not made",
    }
}

/// Formats the place of a measurement: `rr, region fork_exec, 4 CPUs`.
pub(crate) fn place(place: Option<&RunLocation>) -> String {
    let Some(RunLocation { workload, region, cpus, patches, data: _ }) = place else { return String::new() };
    let region = region.as_ref().map_or(String::new(), |name| format!(" {name}"));
    let cpus = cpus.map_or(String::new(), |cpus| format!(", {cpus} CPUs"));
    let patches = patches.as_ref().map_or(String::new(), |set| format!(", {set}"));
    format!("{workload}{region}{cpus}{patches}")
}

/// Formats a figure and its condition: `12.3 % of busy, at least 30`.
fn evidence(finding: &FindingResult) -> String {
    let Some(value) = finding.value else { return String::new() };
    let [least, most] = finding.bounds.map(|bound| bound.map(figure));
    let least = least.map_or(String::new(), |bound| format!(", at least {bound}"));
    let most = most.map_or(String::new(), |bound| format!(", at most {bound}"));
    let interval = finding.interval.map_or(String::new(), |[low, high]| {
        let high = if high.is_finite() { figure(high) } else { "∞".into() };
        format!(" ({} … {high})", figure(low))
    });
    format!("{} {}{interval}{least}{most}", figure(value), finding.unit)
}

fn finding(of: &FindingResult) -> [String; 5] {
    [of.says.clone(), word(of.seen).into(), evidence(of), place(of.at.as_ref()), of.here.clone()]
}

const FINDINGS: [(&str, Alignment); 5] = [
    ("the paper says", Alignment::Left),
    ("here", Alignment::Left),
    ("figure", Alignment::Left),
    ("where", Alignment::Left),
    ("what is looked at", Alignment::Left),
];

/// Renders each finding with its evidence below.
pub(crate) fn findings(findings: &[FindingResult], style: Style) -> String {
    let mut out = String::new();
    for of in findings {
        let [says, here, evidence, place, about] = finding(of);
        out.push_str(&format!("{here:<20}{}\n", printable(&says)));
        let mut detail = |text: &str| {
            if !text.is_empty() {
                out.push_str(&style.paint(TextRole::Faint, &printable(&format!("{:20}{text}", ""))));
                out.push('\n');
            }
        };
        detail(&match (evidence.is_empty(), place.is_empty()) {
            (true, _) => String::new(),
            (false, true) => evidence,
            (false, false) => format!("{evidence} ({place})"),
        });
        detail(&about);
    }
    out
}

/// Renders findings as a Markdown table.
pub(crate) fn findings_markdown(findings: &[FindingResult]) -> String {
    rows(&FINDINGS, findings.iter().map(finding))
}

/// Returns findings as table rows for a page.
pub(crate) fn findings_rows(findings: &[FindingResult]) -> SurveyRows {
    SurveyRows {
        title: "Findings".into(),
        about: String::new(),
        heads: heads(&FINDINGS),
        rows: findings.iter().map(finding).collect(),
    }
}

pub(crate) fn heads(heads: &[(&'static str, Alignment); 5]) -> Vec<(&'static str, bool)> {
    heads.iter().map(|(name, side)| (*name, matches!(side, Alignment::Right))).collect()
}

pub(crate) fn rows(heads: &[(&str, Alignment); 5], rows: impl Iterator<Item = [String; 5]>) -> String {
    let names: Vec<&str> = heads.iter().map(|(name, _)| *name).collect();
    let rule = heads.iter().map(|(_, side)| if matches!(side, Alignment::Right) { "---:" } else { "---" });
    let mut text = format!("| {} |\n|{}|\n", names.join(" | "), rule.collect::<Vec<_>>().join("|"));
    for row in rows {
        text += &format!("| {} |\n", row.map(|cell| plain(&cell).to_string()).join(" | "));
    }
    text
}
