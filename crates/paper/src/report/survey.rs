//! Tables and findings of a survey, the paper's beside ours: as text, Markdown and a page.

use super::findings::{counted, findings, findings_markdown, findings_rows, heads, place, rows, SurveyRows};
use super::plain::plain;
use super::survey_page::survey_page;
use crate::{RunLocation, SurveyOutcome, SurveyRowResult, SurveyRun};
use kerntune_report::comparison::describe;
use kerntune_table::columns::{Alignment, TableBuilder, TextCell};
use kerntune_table::number::figure;
use kerntune_table::Style;
use kerntune_table::{printable, TextRole};

/// Explanations of how figures are measured.
const LEGEND: [(&str, &str); 3] = [
    (
        "ours",
        "of the exact machine, where an instruction takes a nanosecond: counts, and no time of a real CPU",
    ),
    (
        "per call",
        "from entry to exit, callees and interrupts included; the paper's times are those of its own machine",
    ),
    (
        "finding",
        "reproduced or contradicted by a figure that is named; one that cannot be seen here says why",
    ),
];

/// Summarizes the outcome in a sentence.
fn headline(outcome: &SurveyOutcome) -> String {
    counted(&outcome.findings)
}

fn row(of: &SurveyRowResult) -> [String; 5] {
    let value = of.value.map_or(String::new(), figure);
    let unit = if of.value.is_some() { of.unit.to_string() } else { of.none.clone() };
    [of.name.clone(), of.paper.clone(), value, unit, place(of.at.as_ref())]
}

fn run(of: &SurveyRun) -> String {
    let what = match (&of.kernel, &of.profile, &of.because) {
        (Some(kernel), Some(profile), _) => format!("{}; profile {profile}", describe(kernel)),
        (.., Some(because)) => format!("not recorded: {because}"),
        _ => String::new(),
    };
    let whole = RunLocation { region: None, ..of.place.clone() };
    format!("{}: {what}", place(Some(&whole)))
}

/// Lists the recordings, each once.
fn runs(outcome: &SurveyOutcome) -> Vec<String> {
    let mut lines: Vec<String> = outcome.runs.iter().map(run).collect();
    lines.dedup();
    lines
}

const TABLE: [(&str, Alignment); 5] = [
    ("", Alignment::Left),
    ("paper", Alignment::Right),
    ("ours", Alignment::Right),
    ("unit of ours", Alignment::Left),
    ("where", Alignment::Left),
];
/// Renders summary, findings, tables, figures, and a legend.
pub fn table(outcome: &SurveyOutcome, style: Style) -> String {
    let mut out = style.paint(TextRole::Head, &printable(&headline(outcome))) + "\n\n";
    let mut line = |text: &str| {
        out.push_str(&printable(text));
        out.push('\n');
    };
    line(&format!("paper  {}: {}, {}", outcome.authors, outcome.title, outcome.published));
    line(&format!("       measured on {}", outcome.paper_machine));
    for run in runs(outcome) {
        line(&format!("ours   {run}"));
    }
    let head = |text: &str| format!("\n{}\n", style.paint(TextRole::Head, &printable(text)));
    out.push_str(&head("Findings"));
    out.push_str(&findings(&outcome.findings, style));
    for of in &outcome.tables {
        out.push_str(&head(&of.title));
        let mut table = TableBuilder::with(TABLE);
        for line in &of.rows {
            let cells = row(line).into_iter().enumerate();
            let role = |at| if at == 0 { TextRole::Head } else { TextRole::Plain };
            table.row_of(cells.map(|(at, text)| TextCell(printable(&text), role(at))).collect());
        }
        out.push_str(&table.render(style));
        if !of.about.is_empty() {
            out.push_str(&style.paint(TextRole::Faint, &printable(&of.about)));
            out.push('\n');
        }
    }
    for of in &outcome.figures {
        out.push_str(&head(&of.title));
        out.push_str(&of.text);
        if !of.about.is_empty() {
            out.push_str(&style.paint(TextRole::Faint, &printable(&of.about)));
            out.push('\n');
        }
    }
    out.push('\n');
    for (word, says) in LEGEND {
        out.push_str(&style.paint(TextRole::Faint, &format!("{word:<10}{says}")));
        out.push('\n');
    }
    out
}

/// Renders the survey as Markdown, for a repository's documentation. `commands` reproduce it;
/// `written` names the writer and the date.
pub fn markdown(outcome: &SurveyOutcome, commands: &[String], written: &str) -> String {
    let mut page = format!(
        "# {}\n\n{}\n\n{}, {}, measured on {}. {}\n\n",
        plain(&outcome.title),
        plain(&headline(outcome)),
        plain(&outcome.authors),
        plain(&outcome.published),
        plain(&outcome.paper_machine),
        plain(&outcome.about),
    );
    for run in runs(outcome) {
        page += &format!("- {}\n", plain(&run));
    }
    page += "\n## Findings\n\n";
    page += &findings_markdown(&outcome.findings);
    for of in &outcome.tables {
        page += &format!("\n## {}\n\n", plain(&of.title));
        if !of.about.is_empty() {
            page += &format!("{}\n\n", plain(&of.about));
        }
        page += &rows(&TABLE, of.rows.iter().map(row));
    }
    for of in &outcome.figures {
        page += &format!("\n## {}\n\n", plain(&of.title));
        if !of.about.is_empty() {
            page += &format!("{}\n\n", plain(&of.about));
        }
        for line in of.text.lines() {
            page += format!("    {line}").trim_end();
            page.push('\n');
        }
    }
    page += "\n## How\n\n";
    for (word, says) in LEGEND {
        page += &format!("- **{}**: {}\n", plain(word), plain(says));
    }
    page.push('\n');
    for command in commands {
        page += &format!("    {command}\n");
    }
    page + &format!("\nWritten by {}.\n", plain(written))
}

/// Renders the survey as a self-contained page.
pub fn page(outcome: &SurveyOutcome, commands: &[String], written: &str) -> String {
    let findings = findings_rows(&outcome.findings);
    let tables = outcome.tables.iter().map(|of| SurveyRows {
        title: of.title.clone(),
        about: of.about.clone(),
        heads: heads(&TABLE),
        rows: of.rows.iter().map(row).collect(),
    });
    survey_page(
        outcome,
        &headline(outcome),
        &runs(outcome),
        &std::iter::once(findings).chain(tables).collect::<Vec<_>>(),
        &LEGEND,
        commands,
        written,
    )
}
