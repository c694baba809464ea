//! A paper's tables beside our measurements as Markdown, for a repository's documentation.

use super::findings::{counted, findings_markdown};
use super::paper::{aa, direction, extremes, gain_text, headline, is_timed, std_dev, timed_text, LEGEND};
use super::plain::plain;
use crate::{ExperimentOutcome, ExperimentResult, ExperimentState, PaperOutcome, RowResult};
use kerntune_report::comparison::describe;
use kerntune_table::number;
use std::fmt::Write;

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
        let (sentence, table) = (counted(&outcome.findings), findings_markdown(&outcome.findings));
        let _ = write!(page, "\n## Findings\n\n{}\n\n{table}", plain(&sentence));
    }
    for part in &outcome.experiments {
        part_markdown(&mut page, part);
    }
    page.push_str("\n## How\n\n");
    for line in LEGEND.iter().filter_map(|line| line.split_once("  ")) {
        let _ = writeln!(page, "- **{}**: {}", plain(line.0), plain(line.1.trim()));
    }
    page.push('\n');
    for command in commands {
        let _ = writeln!(page, "    {command}");
    }
    let _ = writeln!(page, "\nWritten by {}.", plain(written));
    page
}

fn part_markdown(page: &mut String, part: &ExperimentOutcome) {
    let _ = write!(page, "\n## {}\n\n", plain(&part.title));
    if !part.about.is_empty() {
        let _ = write!(page, "{}\n\n", plain(&part.about));
    }
    match &part.state {
        ExperimentState::Measured(measured) => table(page, measured),
        ExperimentState::NotMade { because } => {
            let _ = writeln!(page, "Not made, workload `{}`: {}", part.workload, plain(because));
        }
    }
}

fn table(page: &mut String, measured: &ExperimentResult) {
    let more = if is_timed(measured) { 2 } else { 0 };
    let [heads, rule] = [
        "| | paper, base | optimized | std dev | improvement | unit | ours, exact, base | tuned | A/A % | improvement | \
         cycles (model), improvement | whole path, instructions | whole path, cycles (model) |",
        "|---|---:|---:|---:|---:|---|---:|---:|---:|---:|---:|---:|---:|",
    ];
    let [more_heads, more_rule] =
        if more > 0 { [" by the clock | std dev |", "---:|---:|"] } else { [""; 2] };
    let _ = writeln!(page, "{heads}{more_heads}\n{rule}{more_rule}");
    let mut remarks = String::new();
    for line in &measured.rows {
        let cells = cells(line).map(|cell| plain(&cell));
        let _ = writeln!(page, "| {} |", cells[..13 + more].join(" | "));
        if let Some(because) = &line.because {
            let _ = writeln!(remarks, "- {}: {}", plain(&line.name), plain(because));
        }
    }
    if !remarks.is_empty() {
        let _ = write!(page, "\n{remarks}");
    }
    let (base, tuned) = (describe(&measured.base), describe(&measured.tuned));
    let _ = writeln!(page, "\nBase: {}. Tuned: {}.", plain(&base), plain(&tuned));
}

fn cells(line: &RowResult) -> [String; 15] {
    let ours = line.ours.as_ref();
    let exact = ours.map(|ours| &ours.exact);
    let cycles = ours.and_then(|ours| ours.model_cycles.as_ref());
    [
        line.name.clone(),
        number::figure(line.paper_base),
        number::figure(line.paper_optimized),
        line.paper_std_dev.map_or(String::new(), number::figure),
        line.paper_improvement.clone(),
        format!("{}{}", line.unit, direction(line)),
        exact.map_or(String::new(), |figure| number::figure(figure.base)),
        exact.map_or(String::new(), |figure| number::figure(figure.tuned)),
        exact.map_or(String::new(), aa),
        exact.map_or(String::new(), gain_text),
        cycles.map_or(String::new(), gain_text),
        ours.and_then(|ours| ours.whole_instructions.as_ref()).map_or(String::new(), gain_text),
        ours.and_then(|ours| ours.whole_cycles.as_ref()).map_or(String::new(), gain_text),
        ours.map_or(String::new(), timed_text),
        ours.map_or(String::new(), std_dev),
    ]
}
