//! A paper's tables beside our measurements, as text.

use super::findings::{counted, findings_text};
use super::parts::{head, legend_text, line, percent};
use super::recipes::recipes_section;
use crate::{
    BetterDirection, ExperimentOutcome, ExperimentResult, ExperimentState, ImprovementFigure, MeasuredRow,
    PaperOutcome, RowResult,
};
use kerntune_report::comparison::describe;
use kerntune_stats::RowVerdict;
use kerntune_table::columns::{Alignment, TableBuilder, TextCell};
use kerntune_table::{number, printable, Style, TextRole};

/// Renders a summary in sentences, each table in the paper's layout, and a legend.
pub fn table(outcome: &PaperOutcome, style: Style) -> String {
    let mut out = line(style, TextRole::Head, &headline(outcome));
    if let Some(sentence) = extremes(outcome) {
        out += &line(style, TextRole::Head, &sentence);
    }
    out.push('\n');
    for text in [
        format!("paper  {}: {}, {}", outcome.authors, outcome.title, outcome.published),
        format!("       measured on {}", outcome.paper_machine),
        format!("ours   recipe {} on machine {}, model {}", outcome.recipe, outcome.machine, outcome.model),
    ] {
        out += &line(style, TextRole::Plain, &text);
    }
    if !outcome.findings.is_empty() {
        let title = format!("Findings: {}", counted(&outcome.findings));
        out += &findings_text(&title, &outcome.findings, style);
    }
    if let Some(section) = recipes_section(outcome) {
        out += &section.text(style);
    }
    for part in &outcome.experiments {
        out += &part_text(part, style);
    }
    out + &legend_text(&LEGEND, style)
}

pub(crate) const LEGEND: [(&str, &str); 5] = [
    ("improvement", "100 · (base / optimized - 1) of times and counts, the other way round of rates: as in the paper"),
    ("ours", "kernel code only, between marks, per operation; instructions are exact, cycles are a model's"),
    ("whole path", "the same of kernel and user code together: what a user waits for"),
    ("clock", "the improvement with its 95 % interval, and the standard deviation of the tuned kernel's boots; ? where none is shown"),
    ("*", "not larger than the noise: the paper says so, the A/A difference (a second run of the base kernel), or an interval with 0 in it"),
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
    Some(format!("The most: {}. The least: {}.", say(sum.max?), say(sum.min?)))
}

fn part_text(part: &ExperimentOutcome, style: Style) -> String {
    let content = match &part.state {
        ExperimentState::Measured(measured) => measured_table(part, measured, style),
        ExperimentState::NotMade { because } => {
            let text = format!("not made, workload {}: {because}", part.workload);
            line(style, TextRole::Plain, &text)
        }
    };
    head(style, &part.title) + &content
}

/// Columns of a table: heads in text and in Markdown, and alignment. The last two are those of times.
const COLUMNS: [(&str, &str, Alignment); 15] = [
    ("\nbenchmark", "", Alignment::Left),
    ("paper\nbase", "paper, base", Alignment::Right),
    ("\noptimized", "optimized", Alignment::Right),
    ("\nstd dev", "std dev", Alignment::Right),
    ("\nimprovement", "improvement", Alignment::Right),
    ("\nunit", "unit", Alignment::Left),
    ("ours, exact\nbase", "ours, exact, base", Alignment::Right),
    ("\ntuned", "tuned", Alignment::Right),
    ("\nA/A %", "A/A %", Alignment::Right),
    ("\nimprovement", "improvement", Alignment::Right),
    ("cycles (model)\nimprovement", "cycles (model), improvement", Alignment::Right),
    ("whole path\ninstructions", "whole path, instructions", Alignment::Right),
    ("\ncycles (model)", "whole path, cycles (model)", Alignment::Right),
    ("by the clock\nimprovement", "by the clock", Alignment::Right),
    ("\nstd dev", "std dev", Alignment::Right),
];

/// Returns the columns of a table that was or was not timed with a clock.
pub(crate) fn columns(measured: &ExperimentResult) -> &'static [(&'static str, &'static str, Alignment)] {
    if is_timed(measured) {
        &COLUMNS
    } else {
        &COLUMNS[..13]
    }
}

/// Returns the cells of a row, of all columns.
pub(crate) fn cells(line: &RowResult) -> [TextCell; 15] {
    let ours = line.ours.as_ref();
    let exact =
        |of: &dyn Fn(&ImprovementFigure) -> String| ours.map_or("".into(), |ours| of(&ours.exact).into());
    let figure =
        |of: &dyn Fn(&MeasuredRow) -> Option<&ImprovementFigure>| ours.and_then(of).map_or("".into(), gain);
    [
        TextCell(line.name.clone(), TextRole::Head),
        number::figure(line.paper_base).into(),
        number::figure(line.paper_optimized).into(),
        line.paper_std_dev.map_or(String::new(), number::figure).into(),
        line.paper_improvement.as_str().into(),
        TextCell(format!("{}{}", line.unit, direction(line)), TextRole::Faint),
        exact(&|figure| number::figure(figure.base)),
        exact(&|figure| number::figure(figure.tuned)),
        exact(&aa),
        figure(&|ours| Some(&ours.exact)),
        figure(&|ours| ours.model_cycles.as_ref()),
        figure(&|ours| ours.whole_instructions.as_ref()),
        figure(&|ours| ours.whole_cycles.as_ref()),
        ours.map_or(String::new(), timed_text).into(),
        ours.map_or(String::new(), std_dev).into(),
    ]
}

fn measured_table(part: &ExperimentOutcome, measured: &ExperimentResult, style: Style) -> String {
    let columns = columns(measured);
    let mut table = TableBuilder::new(columns.iter().map(|(head, _, side)| (*head, *side)));
    for row in &measured.rows {
        let cells = cells(row).into_iter().take(columns.len());
        table.row(cells.map(|TextCell(text, role)| TextCell(printable(&text), role)).collect());
    }
    let mut out = table.render(style);
    let mut remark = |text: &str| out += &line(style, TextRole::Faint, text);
    if !part.about.is_empty() {
        remark(&part.about);
    }
    for (name, because) in measured.rows.iter().filter_map(|row| Some((&row.name, row.because.as_ref()?))) {
        remark(&format!("{name}: {because}"));
    }
    remark(&format!("base   {}", describe(&measured.base)));
    remark(&format!("tuned  {}", describe(&measured.tuned)));
    for text in clock_remarks(measured) {
        remark(&text);
    }
    out
}

/// Returns the remarks on the timed results: their kernels, and the rows of other workloads.
pub(crate) fn clock_remarks(measured: &ExperimentResult) -> Vec<String> {
    let mut remarks: Vec<String> =
        measured.clocks.iter().map(|source| format!("by the clock: {source}")).collect();
    for line in &measured.rows {
        let timed = line.ours.as_ref().and_then(|ours| ours.timed.as_ref());
        if let (Some(of), Some(timed)) = (&line.clock, timed) {
            let [base, tuned] = timed.units;
            remarks.push(format!("{}: by the clock row {of}, {base} and {tuned} boots", line.name));
        }
    }
    remarks
}

/// Returns the remark on rows where more is better.
fn direction(line: &RowResult) -> &'static str {
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

/// Formats the A/A difference in per cent.
pub(crate) fn aa(figure: &ImprovementFigure) -> String {
    match figure.base {
        0.0 => String::new(),
        base => number::difference(100.0 * (figure.base_again - base) / base),
    }
}
