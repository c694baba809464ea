//! Findings of a paper compared with measurements: as text, as Markdown and for a page.

use super::parts::{head, line, PaperSection, SectionContent};
use crate::{FindingResult, FindingVerdict, RunLocation};
use kerntune_table::columns::{Alignment, TextTable};
use kerntune_table::number::figure;
use kerntune_table::{printable, Style, TextRole};

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
    let Some(RunLocation { workload, region, cpus, patches, source, changes, data: _ }) = place else {
        return String::new();
    };
    let region = region.as_ref().map_or(String::new(), |name| format!(" {name}"));
    let cpus = cpus.map_or(String::new(), |cpus| format!(", {cpus} CPUs"));
    let patches = patches.as_ref().map_or(String::new(), |set| format!(", {set}"));
    let source = source.as_ref().map_or(String::new(), |source| format!(", {source}"));
    let changes = match changes.is_empty() {
        true => String::new(),
        false => format!(", with {}", changes.join(" + ")),
    };
    format!("{workload}{region}{cpus}{patches}{source}{changes}")
}

/// Formats a figure and its condition: `12.3 % of busy, at least 30`.
fn evidence(finding: &FindingResult) -> String {
    let Some(value) = finding.value else { return String::new() };
    let [min, max] = finding.bounds.map(|bound| bound.map(figure));
    let min = min.map_or(String::new(), |bound| format!(", at least {bound}"));
    let max = max.map_or(String::new(), |bound| format!(", at most {bound}"));
    let interval = finding.interval.map_or(String::new(), |[low, high]| {
        let high = if high.is_finite() { figure(high) } else { "∞".into() };
        format!(" ({} … {high})", figure(low))
    });
    format!("{} {}{interval}{min}{max}", figure(value), finding.unit)
}

fn finding(of: &FindingResult) -> [String; 5] {
    [of.says.clone(), word(of.seen).into(), evidence(of), place(of.at.as_ref()), of.here.clone()]
}

/// Renders each finding with its evidence below `title`.
pub(crate) fn findings_text(title: &str, findings: &[FindingResult], style: Style) -> String {
    let mut out = head(style, title);
    for of in findings {
        let [says, here, evidence, place, about] = finding(of);
        out.push_str(&format!("{here:<20}{}\n", printable(&says)));
        let evidence = match (evidence.is_empty(), place.is_empty()) {
            (true, _) => String::new(),
            (false, true) => evidence,
            (false, false) => format!("{evidence} ({place})"),
        };
        for detail in [evidence, about].iter().filter(|detail| !detail.is_empty()) {
            out += &line(style, TextRole::Faint, &format!("{:20}{detail}", ""));
        }
    }
    out
}

/// Returns findings as a table with the remark `about`.
pub(crate) fn findings_section(findings: &[FindingResult], about: String) -> PaperSection {
    let heads = ["the paper says", "here", "figure", "where", "what is looked at"];
    let mut table = TextTable::new(heads.map(|head| (head, Alignment::Left)));
    table.rows.extend(findings.iter().map(|of| finding(of).into()));
    PaperSection { title: "Findings".into(), about, content: SectionContent::Table(table) }
}
