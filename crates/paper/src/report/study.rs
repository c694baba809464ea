//! Tables of a study, the paper's figures beside ours: as text, Markdown and a page.

use super::findings::{counted, findings, findings_markdown};
use super::study_page::{study_page, StudyText};
use crate::{StudyKernel, StudyOutcome, StudyRowResult, StudyTableResult};
use kerntune_report::comparison::describe;
use kerntune_table::columns::{Alignment, TableBuilder, TextCell};
use kerntune_table::number;
use kerntune_table::Style;
use kerntune_table::{printable, TextRole};

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
    let of = |row: &StudyRowResult| Some((*row.paper_change_percent.last()?, *row.change_percent.last()?));
    let rows = outcome.tables.iter().flat_map(|table| &table.rows);
    let total = rows.filter(|row| row.name == "total").find_map(of);
    match total {
        Some((Some(paper), Some(ours))) => format!(
            "{} costs {} from the first kernel to the last; in the paper {}.",
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

/// Formats a signed percentage: `-35.5 %`.
fn percent(change: f64) -> String {
    format!("{} %", number::change(change, 1))
}

/// Formats a figure with its change in parentheses.
fn figure(figure: Option<f64>, change: Option<f64>) -> String {
    let Some(figure) = figure else { return String::new() };
    match change {
        Some(change) => format!("{} ({})", number::figure(figure), percent(change)),
        None => number::figure(figure),
    }
}

/// Returns the column heads of a table.
fn heads(outcome: &StudyOutcome) -> Vec<String> {
    let numbers =
        |who: &str| (1..=outcome.kernels.len()).map(move |n| format!("{who} {n}")).collect::<Vec<_>>();
    let unit = || vec!["unit".to_string()];
    [vec![String::new()], numbers("paper"), unit(), numbers("ours"), unit()].concat()
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

/// Renders the summary, the kernels, each table, and a legend.
pub fn table(outcome: &StudyOutcome, style: Style) -> String {
    let mut out = style.paint(TextRole::Head, &printable(&headline(outcome))) + "\n\n";
    let mut line = |text: &str| {
        out.push_str(&printable(text));
        out.push('\n');
    };
    line(&format!("paper  {}: {}, {}", outcome.authors, outcome.title, outcome.published));
    line(&format!("       measured on {}", outcome.paper_machine));
    line(&format!("ours   workload {} on machine {}", outcome.workload, outcome.machine));
    (1..).zip(&outcome.kernels).for_each(|(number, kernel)| line(&about(number, kernel)));
    if !outcome.findings.is_empty() {
        let head = format!("Findings: {}", counted(&outcome.findings));
        out.push_str(&format!("\n{}\n", style.paint(TextRole::Head, &head)));
        out.push_str(&findings(&outcome.findings, style));
    }
    for table in &outcome.tables {
        out.push_str(&table_text(outcome, table, style));
    }
    out.push('\n');
    for (word, says) in LEGEND {
        out.push_str(&style.paint(TextRole::Faint, &format!("{word:<11}{says}")));
        out.push('\n');
    }
    out
}

fn table_text(outcome: &StudyOutcome, of: &StudyTableResult, style: Style) -> String {
    let mut out = format!("\n{}\n", style.paint(TextRole::Head, &printable(&of.title)));
    let side =
        |head: &String| if head.is_empty() || head == "unit" { Alignment::Left } else { Alignment::Right };
    let heads = heads(outcome);
    let mut table = TableBuilder::with(heads.iter().map(|head| (head.as_str(), side(head))));
    for row in &of.rows {
        let cells = cells(row, outcome.kernels.len()).into_iter().enumerate();
        table.row_of(
            cells
                .map(|(at, text)| {
                    TextCell(printable(&text), if at == 0 { TextRole::Head } else { TextRole::Plain })
                })
                .collect(),
        );
    }
    out.push_str(&table.render(style));
    if !of.about.is_empty() {
        out.push_str(&style.paint(TextRole::Faint, &printable(&of.about)));
        out.push('\n');
    }
    out
}

/// Renders the study as Markdown, for a repository's documentation. `commands` reproduce it;
/// `written` names the writer and the date.
pub fn markdown(outcome: &StudyOutcome, commands: &[String], written: &str) -> String {
    use super::plain::plain;
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
    for (number, kernel) in (1..).zip(&outcome.kernels) {
        page += &format!("{}\n", plain(&about(number, kernel)).replacen("  ", ". ", 1));
    }
    if !outcome.findings.is_empty() {
        let (sentence, table) = (counted(&outcome.findings), findings_markdown(&outcome.findings));
        page += &format!("\n## Findings\n\n{}\n\n{table}", plain(&sentence));
    }
    for table in &outcome.tables {
        page += &format!("\n## {}\n\n", plain(&table.title));
        if !table.about.is_empty() {
            page += &format!("{}\n\n", plain(&table.about));
        }
        let heads = heads(outcome);
        let rule = heads.iter().map(|head| if head.is_empty() || head == "unit" { "---" } else { "---:" });
        page += &format!("| {} |\n|{}|\n", heads.join(" | "), rule.collect::<Vec<_>>().join("|"));
        for row in &table.rows {
            let cells: Vec<String> =
                cells(row, outcome.kernels.len()).iter().map(|cell| plain(cell)).collect();
            page += &format!("| {} |\n", cells.join(" | "));
        }
    }
    page += "\n## How\n\n";
    for (word, says) in LEGEND {
        page += &format!("- **{}**: {}\n", plain(word), plain(says));
    }
    page += &format!("- **{}**: {}\n\n", plain(&outcome.abstraction), plain(&outcome.functions.join(", ")));
    for command in commands {
        page += &format!("    {command}\n");
    }
    page + &format!("\nWritten by {}.\n", plain(written))
}

/// Renders the study as a self-contained page.
pub fn page(outcome: &StudyOutcome, commands: &[String], written: &str) -> String {
    study_page(
        outcome,
        &StudyText {
            headline: headline(outcome),
            kernels: (1..).zip(&outcome.kernels).map(|(number, kernel)| about(number, kernel)).collect(),
            heads: heads(outcome),
            tables: outcome
                .tables
                .iter()
                .map(|table| table.rows.iter().map(|row| cells(row, outcome.kernels.len())).collect())
                .collect(),
            legend: LEGEND.to_vec(),
        },
        commands,
        written,
    )
}
