//! Tables of a study, the paper's figures beside ours: as text, Markdown and a page.

use super::findings::{counted, findings_section, findings_text};
use super::parts::{
    how_markdown, legend_page, legend_text, line, percent, plain, section_page, PaperSection, SectionContent,
};
use crate::{StudyKernel, StudyOutcome, StudyRowResult, StudyTableResult};
use kerntune_report::comparison::describe;
use kerntune_report::html::{document, scroll};
use kerntune_table::columns::{Alignment, TextTable};
use kerntune_table::{number, Style, TextRole};
use maud::html;

/// Explanations of how figures are measured.
const LEGEND: [(&str, &str); 3] = [
    (
        "(%)",
        "how much more than in kernel 1: 100 · (figure / first - 1), of the paper's figures and of ours by the same formula",
    ),
    (
        "ours",
        "kernel instructions of the exact machine; those of functions from entry to exit, interrupts left out, over all callers",
    ),
    ("hit ratio", "lookups of a component that the kernel's cache answered"),
];

/// Summarizes the outcome in a sentence.
fn headline(outcome: &StudyOutcome) -> String {
    let of = |row: &StudyRowResult| {
        let last = row.paper_change_percent.len().checked_sub(1)?;
        Some((last + 1, row.paper_change_percent[last]?, (*row.change_percent.get(last)?)?))
    };
    let rows = outcome.tables.iter().flat_map(|table| &table.rows);
    let total = rows.filter(|row| row.name == "total").find_map(of);
    match total {
        Some((last, paper, ours)) => format!(
            "{} costs {} from kernel 1 to kernel {last}; in the paper {}.",
            capital(&outcome.abstraction),
            percent(ours),
            percent(paper)
        ),
        _ => format!("{}, in {} kernels.", capital(&outcome.abstraction), outcome.kernels.len()),
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// Formats a figure with its change in parentheses.
fn figure(figure: Option<f64>, change: Option<f64>) -> String {
    let Some(figure) = figure else { return String::new() };
    match change {
        Some(change) => format!("{} ({})", number::figure(figure), percent(change)),
        None => number::figure(figure),
    }
}

/// Returns a table of the study.
fn table_of(outcome: &StudyOutcome, of: &StudyTableResult) -> TextTable {
    let numbers =
        |who| (1..=outcome.kernels.len()).map(move |n| (format!("{who} {n}"), Alignment::Right)).collect();
    let text = |head: &str| vec![(head.to_string(), Alignment::Left)];
    let heads: [Vec<_>; 5] = [text(""), numbers("paper"), text("unit"), numbers("ours"), text("unit")];
    let mut table = TextTable::new(heads.concat());
    table.rows.extend(of.rows.iter().map(|row| cells(row, outcome.kernels.len())));
    table
}

fn section(outcome: &StudyOutcome, of: &StudyTableResult) -> PaperSection {
    let content = SectionContent::Table(table_of(outcome, of));
    PaperSection { title: of.title.clone(), about: of.about.clone(), content }
}

/// Returns the cells of a row.
fn cells(row: &StudyRowResult, kernels: usize) -> Vec<String> {
    let mut cells = vec![row.name.clone()];
    for at in 0..kernels {
        let change = row.paper_change_percent.get(at).copied().flatten();
        cells.push(figure(row.paper.get(at).copied(), change));
    }
    cells.push(row.paper_unit.clone());
    for at in 0..kernels {
        let change = row.change_percent.get(at).copied().flatten();
        cells.push(figure(row.ours.get(at).copied().flatten(), change));
    }
    cells.push(row.unit.into());
    cells
}

fn about(number: usize, kernel: &StudyKernel) -> String {
    let StudyKernel { name, paper, patches, kernel, profile } = kernel;
    let patches = patches.as_ref().map_or(String::new(), |set| format!(", patches {set}"));
    format!("{number}  {name}; in the paper: {paper} ({}{patches}; profile {profile})", describe(kernel))
}

/// Returns the lines on the kernels.
fn kernels(outcome: &StudyOutcome) -> impl Iterator<Item = String> + '_ {
    (1..).zip(&outcome.kernels).map(|(number, kernel)| about(number, kernel))
}

/// Renders the summary, the kernels, each table, and a legend.
pub fn table(outcome: &StudyOutcome, style: Style) -> String {
    let mut out = line(style, TextRole::Head, &headline(outcome)) + "\n";
    let mut add = |text: &str| out += &line(style, TextRole::Plain, text);
    add(&format!("paper  {}: {}, {}", outcome.authors, outcome.title, outcome.published));
    add(&format!("       measured on {}", outcome.paper_machine));
    add(&format!("ours   workload {} on machine {}", outcome.workload, outcome.machine));
    kernels(outcome).for_each(|kernel| add(&kernel));
    if !outcome.findings.is_empty() {
        let title = format!("Findings: {}", counted(&outcome.findings));
        out += &findings_text(&title, &outcome.findings, style);
    }
    for table in &outcome.tables {
        out += &section(outcome, table).text(style);
    }
    out + &legend_text(&LEGEND, style)
}

/// Renders the study as Markdown, for a repository's documentation. `commands` reproduce it;
/// `written` names the writer and the date.
pub fn markdown(outcome: &StudyOutcome, commands: &[String], written: &str) -> String {
    let mut page = format!(
        "# {}\n\n{}\n\n{}, {}, measured on {}. Ours: workload `{}`, machine `{}`. {}\n\n",
        plain(&outcome.title),
        plain(&headline(outcome)),
        plain(&outcome.authors),
        plain(&outcome.published),
        plain(&outcome.paper_machine),
        outcome.workload,
        outcome.machine,
        plain(&outcome.about),
    );
    for kernel in kernels(outcome) {
        page += &format!("{}\n", plain(&kernel).replacen("  ", ". ", 1));
    }
    if !outcome.findings.is_empty() {
        page += &findings_section(&outcome.findings, counted(&outcome.findings)).markdown();
    }
    for table in &outcome.tables {
        page += &section(outcome, table).markdown();
    }
    let functions = outcome.functions.join(", ");
    let legend = [&LEGEND[..], &[(&outcome.abstraction, &functions)]].concat();
    page + &how_markdown(&legend, commands, written)
}

/// Renders the study as a self-contained page.
pub fn page(outcome: &StudyOutcome, commands: &[String], written: &str) -> String {
    let head = html! {
        h1 { (outcome.title) }
        p.quiet {
            (outcome.authors) ", " (outcome.published) ". The paper measured on " (outcome.paper_machine)
            "; here workload " b { (outcome.workload) } " runs on machine " b { (outcome.machine) } "."
        }
        div.lead {
            p { (headline(outcome)) }
            p { (outcome.about) }
            @for kernel in kernels(outcome) { p.quiet { (kernel) } }
        }
    };
    let functions = outcome.functions.join(", ");
    let content = html! {
        @if !outcome.findings.is_empty() { (findings_section(&outcome.findings, String::new()).page()) }
        @for of in &outcome.tables {
            @let TextTable { heads, rows } = table_of(outcome, of);
            (section_page(&of.title, &of.about, &scroll(&of.title, &html! {
                table {
                    thead { tr { @for (head, _) in &heads { th { (head) } } } }
                    tbody { @for row in &rows { tr { @for cell in row { td { (cell) } } } } }
                }
            })))
        }
        (legend_page(&[&LEGEND[..], &[(&outcome.abstraction, &functions)]].concat()))
    };
    document(&outcome.title, &head, &content, commands, written)
}
