//! What a paper says, held against what is seen here: as text, as Markdown and for a page.

use crate::columns::Side;
use crate::plain::plain;
use crate::style::{printable, Role};
use crate::Style;
use kerntune_compare::number::figure;
use kerntune_paper::{Place, Seen, SurveyFinding};

/// A table of a page.
pub(crate) struct SurveyRows {
    pub title: String,
    pub about: String,
    /// Heads, and whether the column is of numbers.
    pub heads: Vec<(&'static str, bool)>,
    pub rows: Vec<[String; 5]>,
}

/// How many findings became of it so.
pub(crate) fn counted(findings: &[SurveyFinding]) -> String {
    let count = |seen| findings.iter().filter(|finding| finding.seen == seen).count();
    let not_shown = match count(Seen::NotShown) {
        0 => String::new(),
        some => format!(", {some} not shown"),
    };
    let not_made = match count(Seen::NotMade) {
        0 => String::new(),
        some => format!(", {some} not made"),
    };
    format!(
        "Of {} findings {} are reproduced, {} contradicted, {} cannot be seen here{not_shown}{not_made}.",
        findings.len(),
        count(Seen::Reproduced),
        count(Seen::Contradicted),
        count(Seen::CannotBeSeen)
    )
}

fn word(seen: Seen) -> &'static str {
    match seen {
        Seen::Reproduced => "reproduced",
        Seen::Contradicted => "contradicted",
        Seen::NotShown => "not shown",
        Seen::CannotBeSeen => "cannot be seen here",
        Seen::NotMade => "not made",
    }
}

/// `rr, region fork_exec, 4 CPUs`.
pub(crate) fn place(place: Option<&Place>) -> String {
    let Some(Place { workload, region, cpus, patches, data: _ }) = place else { return String::new() };
    let region = region.as_ref().map_or(String::new(), |name| format!(" {name}"));
    let cpus = cpus.map_or(String::new(), |cpus| format!(", {cpus} CPUs"));
    let patches = patches.as_ref().map_or(String::new(), |set| format!(", {set}"));
    format!("{workload}{region}{cpus}{patches}")
}

/// `12.3 % of busy, at least 30`.
fn evidence(finding: &SurveyFinding) -> String {
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

fn finding(of: &SurveyFinding) -> [String; 5] {
    [of.says.clone(), word(of.seen).into(), evidence(of), place(of.at.as_ref()), of.here.clone()]
}

const FINDINGS: [(&str, Side); 5] = [
    ("the paper says", Side::Left),
    ("here", Side::Left),
    ("figure", Side::Left),
    ("where", Side::Left),
    ("what is looked at", Side::Left),
];

/// Each finding with its evidence below it.
pub(crate) fn findings(findings: &[SurveyFinding], style: Style) -> String {
    let mut out = String::new();
    for of in findings {
        let [says, here, evidence, place, about] = finding(of);
        out.push_str(&format!("{here:<20}{}\n", printable(&says)));
        let mut detail = |text: &str| {
            if !text.is_empty() {
                out.push_str(&style.paint(Role::Faint, &printable(&format!("{:20}{text}", ""))));
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

/// Findings as a table.
pub(crate) fn findings_markdown(findings: &[SurveyFinding]) -> String {
    rows(&FINDINGS, findings.iter().map(finding))
}

/// The same for a page.
pub(crate) fn findings_rows(findings: &[SurveyFinding]) -> SurveyRows {
    SurveyRows {
        title: "Findings".into(),
        about: String::new(),
        heads: heads(&FINDINGS),
        rows: findings.iter().map(finding).collect(),
    }
}

pub(crate) fn heads(heads: &[(&'static str, Side); 5]) -> Vec<(&'static str, bool)> {
    heads.iter().map(|(name, side)| (*name, matches!(side, Side::Right))).collect()
}

pub(crate) fn rows(heads: &[(&str, Side); 5], rows: impl Iterator<Item = [String; 5]>) -> String {
    let names: Vec<&str> = heads.iter().map(|(name, _)| *name).collect();
    let rule = heads.iter().map(|(_, side)| if matches!(side, Side::Right) { "---:" } else { "---" });
    let mut text = format!("| {} |\n|{}|\n", names.join(" | "), rule.collect::<Vec<_>>().join("|"));
    for row in rows {
        text += &format!("| {} |\n", row.map(|cell| plain(&cell).to_string()).join(" | "));
    }
    text
}
