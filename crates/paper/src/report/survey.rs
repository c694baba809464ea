//! Tables and findings of a survey, the paper's beside ours: as text, Markdown and a page.

use super::findings::{counted, findings_section, findings_text, place};
use super::parts::{
    how_markdown, legend_page, legend_text, line, plain, section_page, PaperSection, SectionContent,
};
use crate::{RunLocation, SurveyOutcome, SurveyRowResult, SurveyRun};
use kerntune_report::comparison::describe;
use kerntune_report::html::document;
use kerntune_table::columns::{Alignment, TextTable};
use kerntune_table::number::figure;
use kerntune_table::{Style, TextRole};
use maud::html;

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
    let data = if of.place.data { ", accesses to data followed" } else { "" };
    format!("{}{data}: {what}", place(Some(&whole)))
}

/// Lists the recordings, each once.
fn runs(outcome: &SurveyOutcome) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in outcome.runs.iter().map(run) {
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

/// Returns the tables, then the figures.
fn sections(outcome: &SurveyOutcome) -> Vec<PaperSection> {
    let tables = outcome.tables.iter().map(|of| {
        let mut table = TextTable::new([
            ("", Alignment::Left),
            ("paper", Alignment::Right),
            ("ours", Alignment::Right),
            ("unit of ours", Alignment::Left),
            ("where", Alignment::Left),
        ]);
        table.rows.extend(of.rows.iter().map(|of| row(of).into()));
        PaperSection {
            title: of.title.clone(),
            about: of.about.clone(),
            content: SectionContent::Table(table),
        }
    });
    let figures = outcome.figures.iter().map(|of| PaperSection {
        title: of.title.clone(),
        about: of.about.clone(),
        content: SectionContent::Figure(of.text.clone()),
    });
    tables.chain(figures).collect()
}

/// Renders summary, findings, tables, figures, and a legend.
pub fn table(outcome: &SurveyOutcome, style: Style) -> String {
    let mut out = line(style, TextRole::Head, &headline(outcome)) + "\n";
    let mut add = |text: &str| out += &line(style, TextRole::Plain, text);
    add(&format!("paper  {}: {}, {}", outcome.authors, outcome.title, outcome.published));
    add(&format!("       measured on {}", outcome.paper_machine));
    runs(outcome).iter().for_each(|run| add(&format!("ours   {run}")));
    out += &findings_text("Findings", &outcome.findings, style);
    for section in sections(outcome) {
        out += &section.text(style);
    }
    out + &legend_text(&LEGEND, style)
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
    page += &findings_section(&outcome.findings, String::new()).markdown();
    for section in sections(outcome) {
        page += &section.markdown();
    }
    page + &how_markdown(&LEGEND, commands, written)
}

/// Renders the survey as a self-contained page.
pub fn page(outcome: &SurveyOutcome, commands: &[String], written: &str) -> String {
    let head = html! {
        h1 { (outcome.title) }
        p.quiet {
            (outcome.authors) ", " (outcome.published) ". The paper measured on " (outcome.paper_machine) "."
        }
        div.lead {
            p { (headline(outcome)) }
            p { (outcome.about) }
        }
    };
    let content = html! {
        (findings_section(&outcome.findings, String::new()).page())
        @for section in sections(outcome) { (section.page()) }
        (section_page("Recordings", "", &html! { @for run in runs(outcome) { p.quiet { (run) } } }))
        (legend_page(&LEGEND))
    };
    document(&outcome.title, &head, &content, commands, written)
}
