//! A paper's tables beside our measurements as Markdown, for a repository's documentation.

use super::findings::{counted, findings_section};
use super::paper::{cells, clock_remarks, columns, extremes, headline, LEGEND};
use super::parts::{how_markdown, markdown_table, plain, section_markdown};
use super::recipes::recipes_section;
use crate::{ExperimentOutcome, ExperimentResult, ExperimentState, PaperOutcome, RowResult};
use kerntune_report::comparison::describe;

/// Renders one page: summary, and each table of the paper. `commands` reproduce it; `written` names
/// the writer and the date.
pub fn paper(outcome: &PaperOutcome, commands: &[String], written: &str) -> String {
    let mut page = format!(
        "# {}\n\n{}{}\n\n{}, {}, measured on {}. Ours: recipe `{}`, machine `{}`, model `{}`.\n",
        plain(&outcome.title),
        plain(&headline(outcome)),
        extremes(outcome).map_or(String::new(), |sentence| format!(" {}", plain(&sentence))),
        plain(&outcome.authors),
        plain(&outcome.published),
        plain(&outcome.paper_machine),
        outcome.recipe,
        outcome.machine,
        outcome.model,
    );
    if !outcome.findings.is_empty() {
        page += &findings_section(&outcome.findings, counted(&outcome.findings)).markdown();
    }
    if let Some(section) = recipes_section(outcome) {
        page += &section.markdown();
    }
    for part in &outcome.experiments {
        page += &part_markdown(part);
    }
    page + &how_markdown(&LEGEND, commands, written)
}

fn part_markdown(part: &ExperimentOutcome) -> String {
    let content = match &part.state {
        ExperimentState::Measured(measured) => table(measured),
        ExperimentState::NotMade { because } => {
            format!("Not made, workload `{}`: {}\n", part.workload, plain(because))
        }
    };
    section_markdown(&part.title, &part.about, &content)
}

fn table(measured: &ExperimentResult) -> String {
    let columns = columns(measured);
    let heads: Vec<&str> = columns.iter().map(|(_, head, _)| *head).collect();
    let row = |row| cells(row).into_iter().take(columns.len()).map(|cell| cell.0).collect();
    let rows: Vec<Vec<String>> = measured.rows.iter().map(row).collect();
    let sides = columns.iter().map(|(.., side)| *side);
    // The first head is empty: no space stands for it.
    let mut out = markdown_table(heads.join(" | ").trim_start(), sides, &rows);
    let reason =
        |row: &RowResult| Some(format!("- {}: {}\n", plain(&row.name), plain(row.because.as_ref()?)));
    let mut remarks: String = measured.rows.iter().filter_map(reason).collect();
    remarks.extend(clock_remarks(measured).iter().map(|text| format!("- {}\n", plain(text))));
    if !remarks.is_empty() {
        out += &format!("\n{remarks}");
    }
    let (base, tuned) = (describe(&measured.base), describe(&measured.tuned));
    out + &format!("\nBase: {}. Tuned: {}.\n", plain(&base), plain(&tuned))
}
