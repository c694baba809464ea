//! A paper's tables beside our measurements, as text.

use super::findings::{counted, findings};
use crate::{
    BetterDirection, ExperimentOutcome, ExperimentResult, ExperimentState, ImprovementFigure, MeasuredRow,
    PaperOutcome, RowResult,
};
use kerntune_report::comparison::describe;
use kerntune_stats::RowVerdict;
use kerntune_table::columns::{Alignment, TableBuilder, TextCell};
use kerntune_table::number;
use kerntune_table::Style;
use kerntune_table::{printable, TextRole};

/// Renders a summary in sentences, each table in the paper's layout, and a legend.
pub fn table(outcome: &PaperOutcome, style: Style) -> String {
    let mut out = style.paint(TextRole::Head, &printable(&headline(outcome))) + "\n";
    if let Some(sentence) = extremes(outcome) {
        out.push_str(&style.paint(TextRole::Head, &printable(&sentence)));
        out.push('\n');
    }
    out.push('\n');
    for line in [
        format!("paper  {}: {}, {}", outcome.authors, outcome.title, outcome.published),
        format!("       measured on {}", outcome.paper_machine),
        format!("ours   recipe {} on machine {}, model {}", outcome.recipe, outcome.machine, outcome.model),
    ] {
        out.push_str(&printable(&line));
        out.push('\n');
    }
    if !outcome.findings.is_empty() {
        let head = format!("Findings: {}", counted(&outcome.findings));
        out.push_str(&format!("\n{}\n", style.paint(TextRole::Head, &head)));
        out.push_str(&findings(&outcome.findings, style));
    }
    for part in &outcome.experiments {
        out.push_str(&part_text(part, style));
    }
    for line in LEGEND {
        out.push_str(&style.paint(TextRole::Faint, line));
        out.push('\n');
    }
    out
}

pub(crate) const LEGEND: [&str; 6] = [
    "",
    "improvement  100 · (base / optimized - 1) of times and counts, the other way round of rates: as in the paper",
    "ours         kernel code only, between marks, per operation; instructions are exact, cycles are a model's",
    "whole path   the same of kernel and user code together: what a user waits for",
    "clock        the improvement with its 95 % interval, and the standard deviation of the tuned kernel's boots; ? where none is shown",
    "*            not larger than the noise: the paper says so, the A/A difference (a second run of the base kernel), or an interval with 0 in it",
];

/// Summarizes the outcome: `14 of 20 rows improve, …`.
pub(crate) fn headline(outcome: &PaperOutcome) -> String {
    let sum = outcome.summary();
    let rows = sum.better + sum.worse + sum.same;
    if rows == 0 {
        return format!("Nothing of the paper \"{}\" was measured.", outcome.title);
    }
    let by = if sum.by_model { "By model cycles " } else { "" };
    let mut text = format!("{by}{} of {rows} rows improve", sum.better);
    for (count, what) in [(sum.worse, "become worse"), (sum.same, "stay within the A/A difference")] {
        if count > 0 {
            text.push_str(&format!(", {count} {what}"));
        }
    }
    text.push('.');
    let not_made = outcome
        .experiments
        .iter()
        .filter(|part| matches!(part.state, ExperimentState::NotMade { .. }))
        .count();
    if not_made > 0 {
        text.push_str(&format!(" {not_made} of {} tables were not made.", outcome.experiments.len()));
    }
    text
}

/// Names the rows with the largest and the smallest gain.
pub(crate) fn extremes(outcome: &PaperOutcome) -> Option<String> {
    let sum = outcome.summary();
    let say = |(table, row, gain): (String, String, f64)| format!("{row} ({table}) {}", percent(gain));
    Some(format!("The most: {}. The least: {}.", say(sum.most?), say(sum.least?)))
}

fn part_text(part: &ExperimentOutcome, style: Style) -> String {
    let mut out = format!("\n{}\n", style.paint(TextRole::Head, &printable(&part.title)));
    let because = match &part.state {
        ExperimentState::Measured(measured) => {
            out.push_str(&measured_table(part, measured, style));
            return out;
        }
        ExperimentState::NotMade { because } => because,
    };
    out.push_str(&printable(&format!("not made, workload {}: {because}", part.workload)));
    out.push('\n');
    out
}

fn measured_table(part: &ExperimentOutcome, measured: &ExperimentResult, style: Style) -> String {
    let mut out = String::new();
    let is_timed = is_timed(measured);
    let mut heads = vec![
        ("\nbenchmark", Alignment::Left),
        ("paper\nbase", Alignment::Right),
        ("\noptimized", Alignment::Right),
        ("\nstd dev", Alignment::Right),
        ("\nimprovement", Alignment::Right),
        ("\nunit", Alignment::Left),
        ("ours, exact\nbase", Alignment::Right),
        ("\ntuned", Alignment::Right),
        ("\nA/A %", Alignment::Right),
        ("\nimprovement", Alignment::Right),
        ("cycles (model)\nimprovement", Alignment::Right),
        ("whole path\ninstructions", Alignment::Right),
        ("\ncycles (model)", Alignment::Right),
    ];
    if is_timed {
        heads.extend([("by the clock\nimprovement", Alignment::Right), ("\nstd dev", Alignment::Right)]);
    }
    let mut table = TableBuilder::with(heads);
    let mut remarks = Vec::new();
    for line in &measured.rows {
        let ours = line.ours.as_ref();
        let exact =
            |of: &dyn Fn(&ImprovementFigure) -> String| ours.map_or(String::new(), |ours| of(&ours.exact));
        let cycles = ours.and_then(|ours| ours.model_cycles.as_ref());
        let whole = |of: &dyn Fn(&MeasuredRow) -> Option<&ImprovementFigure>| {
            ours.and_then(of).map_or("".into(), gain)
        };
        let mut cells: Vec<TextCell> = vec![
            TextCell(printable(&line.name), TextRole::Head),
            number::figure(line.paper_base).into(),
            number::figure(line.paper_optimized).into(),
            line.paper_std_dev.map_or(String::new(), number::figure).into(),
            printable(&line.paper_improvement).into(),
            TextCell(format!("{}{}", line.unit, direction(line)), TextRole::Faint),
            exact(&|figure| number::figure(figure.base)).into(),
            exact(&|figure| number::figure(figure.tuned)).into(),
            exact(&aa).into(),
            ours.map_or("".into(), |ours| gain(&ours.exact)),
            cycles.map_or("".into(), gain),
            whole(&|ours| ours.whole_instructions.as_ref()),
            whole(&|ours| ours.whole_cycles.as_ref()),
        ];
        if is_timed {
            cells.extend([timed_text, std_dev].map(|of| ours.map_or(String::new(), of).into()));
        }
        table.row_of(cells);
        if let Some(because) = &line.because {
            remarks.push(format!("{}: {because}", line.name));
        }
    }
    out.push_str(&table.render(style));
    if !part.about.is_empty() {
        remarks.insert(0, part.about.clone());
    }
    remarks.push(format!("base   {}", describe(&measured.base)));
    remarks.push(format!("tuned  {}", describe(&measured.tuned)));
    for remark in remarks {
        out.push_str(&style.paint(TextRole::Faint, &printable(&remark)));
        out.push('\n');
    }
    out
}

/// Returns the remark on rows where more is better.
pub(crate) fn direction(line: &RowResult) -> &'static str {
    match line.better {
        BetterDirection::Higher => " (more is better)",
        BetterDirection::Lower => "",
    }
}

fn gain(figure: &ImprovementFigure) -> TextCell {
    let role = match figure {
        _ if figure.within_noise => TextRole::Faint,
        _ if figure.improvement_percent > 0.0 => TextRole::Good,
        _ => TextRole::Bad,
    };
    TextCell(gain_text(figure), role)
}

/// Formats the gain: `+11.8 %`, with a star if it is within the A/A difference.
pub(crate) fn gain_text(figure: &ImprovementFigure) -> String {
    let star = if figure.within_noise { "*" } else { "" };
    let interval = figure.interval_percent.map_or(String::new(), |[low, high]| {
        format!(" ({} … {})", number::change(low, 1), number::change(high, 1))
    });
    format!("{}{star}{interval}", percent(figure.improvement_percent))
}

/// Checks whether any row was timed with a clock.
pub(crate) fn is_timed(measured: &ExperimentResult) -> bool {
    measured.rows.iter().any(|line| line.ours.as_ref().is_some_and(|ours| ours.timed.is_some()))
}

/// Formats a timed gain: `+19.1 % (17.3 … 20.9)`, with a question mark if no difference is shown.
pub(crate) fn timed_text(ours: &MeasuredRow) -> String {
    let Some(timed) = &ours.timed else { return String::new() };
    let high = timed.high_percent.map_or("…".into(), |high| format!("… {}", number::change(high, 1)));
    let shown = if matches!(timed.verdict, RowVerdict::Faster | RowVerdict::Slower) { "" } else { "?" };
    format!("{}{shown} ({} {high})", percent(timed.improvement_percent), number::change(timed.low_percent, 1))
}

/// Formats the standard deviation over the tuned kernel's boots, in the row's unit.
pub(crate) fn std_dev(ours: &MeasuredRow) -> String {
    ours.timed
        .as_ref()
        .map_or(String::new(), |timed| format!("{} {}", number::figure(timed.std_dev), timed.unit))
}

/// Formats a signed percentage: `+11.8 %`.
pub(crate) fn percent(value: f64) -> String {
    format!("{} %", number::change(value, 1))
}

/// Formats the A/A difference in per cent.
pub(crate) fn aa(figure: &ImprovementFigure) -> String {
    match figure.base {
        0.0 => String::new(),
        base => number::difference(100.0 * (figure.base_again - base) / base),
    }
}
