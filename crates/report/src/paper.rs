//! A paper's tables, with ours beside them, as text.

use crate::columns::{Cell, Columns, Side};
use crate::comparison::describe;
use crate::findings::{counted, findings};
use crate::style::{printable, Role};
use crate::Style;
use kerntune_compare::number;
use kerntune_paper::{Better, Figure, Line, Measured, Ours, Outcome, Part, State};
use kerntune_stats::Verdict;

/// What came of it in sentences, each table of the paper in its layout, legend.
pub fn table(outcome: &Outcome, style: Style) -> String {
    let mut out = style.paint(Role::Head, &printable(&headline(outcome))) + "\n";
    if let Some(sentence) = extremes(outcome) {
        out.push_str(&style.paint(Role::Head, &printable(&sentence)));
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
        out.push_str(&format!("\n{}\n", style.paint(Role::Head, &head)));
        out.push_str(&findings(&outcome.findings, style));
    }
    for part in &outcome.experiments {
        out.push_str(&one(part, style));
    }
    for line in LEGEND {
        out.push_str(&style.paint(Role::Faint, line));
        out.push('\n');
    }
    out
}

pub(crate) const LEGEND: [&str; 6] = [
    "",
    "improvement  100 · (base / optimised - 1) of times and counts, the other way round of rates: as in the paper",
    "ours         kernel code only, between marks, per operation; instructions are exact, cycles are a model's",
    "whole path   the same of kernel and user code together: what a user waits for",
    "clock        the improvement with its 95 % interval, and the standard deviation of the tuned kernel's boots; ? where none is shown",
    "*            not larger than the noise: the paper says so, the A/A difference (a second run of the base kernel), or an interval with 0 in it",
];

/// `14 of 20 rows improve, …`.
pub(crate) fn headline(outcome: &Outcome) -> String {
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
    let not_made =
        outcome.experiments.iter().filter(|part| matches!(part.state, State::NotMade { .. })).count();
    if not_made > 0 {
        text.push_str(&format!(" {not_made} of {} tables were not made.", outcome.experiments.len()));
    }
    text
}

/// Which row gains the most, and which the least.
pub(crate) fn extremes(outcome: &Outcome) -> Option<String> {
    let sum = outcome.summary();
    let say = |(table, row, gain): (String, String, f64)| format!("{row} ({table}) {}", percent(gain));
    Some(format!("The most: {}. The least: {}.", say(sum.most?), say(sum.least?)))
}

fn one(part: &Part, style: Style) -> String {
    let mut out = format!("\n{}\n", style.paint(Role::Head, &printable(&part.title)));
    let because = match &part.state {
        State::Measured(measured) => {
            out.push_str(&measured_table(part, measured, style));
            return out;
        }
        State::NotMade { because } => because,
    };
    out.push_str(&printable(&format!("not made, workload {}: {because}", part.workload)));
    out.push('\n');
    out
}

fn measured_table(part: &Part, measured: &Measured, style: Style) -> String {
    let mut out = String::new();
    let is_timed = is_timed(measured);
    let mut heads = vec![
        ("\nbenchmark", Side::Left),
        ("paper\nbase", Side::Right),
        ("\noptimised", Side::Right),
        ("\nstd dev", Side::Right),
        ("\nimprovement", Side::Right),
        ("\nunit", Side::Left),
        ("ours, exact\nbase", Side::Right),
        ("\ntuned", Side::Right),
        ("\nA/A %", Side::Right),
        ("\nimprovement", Side::Right),
        ("cycles (model)\nimprovement", Side::Right),
        ("whole path\ninstructions", Side::Right),
        ("\ncycles (model)", Side::Right),
    ];
    if is_timed {
        heads.extend([("by the clock\nimprovement", Side::Right), ("\nstd dev", Side::Right)]);
    }
    let mut table = Columns::with(heads);
    let mut remarks = Vec::new();
    for line in &measured.rows {
        let ours = line.ours.as_ref();
        let exact = |of: &dyn Fn(&Figure) -> String| ours.map_or(String::new(), |ours| of(&ours.exact));
        let cycles = ours.and_then(|ours| ours.model_cycles.as_ref());
        let whole = |of: &dyn Fn(&Ours) -> Option<&Figure>| ours.and_then(of).map_or("".into(), gain);
        let mut cells: Vec<Cell> = vec![
            Cell(printable(&line.name), Role::Head),
            number::figure(line.paper_base).into(),
            number::figure(line.paper_optimised).into(),
            line.paper_std_dev.map_or(String::new(), number::figure).into(),
            printable(&line.paper_improvement).into(),
            Cell(format!("{}{}", line.unit, direction(line)), Role::Faint),
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
        out.push_str(&style.paint(Role::Faint, &printable(&remark)));
        out.push('\n');
    }
    out
}

/// Of which more is better.
pub(crate) fn direction(line: &Line) -> &'static str {
    match line.better {
        Better::Higher => " (more is better)",
        Better::Lower => "",
    }
}

fn gain(figure: &Figure) -> Cell {
    let role = match figure {
        _ if figure.within_noise => Role::Faint,
        _ if figure.improvement_percent > 0.0 => Role::Good,
        _ => Role::Bad,
    };
    Cell(gain_text(figure), role)
}

/// `+11.8 %`, with a star where it says nothing.
pub(crate) fn gain_text(figure: &Figure) -> String {
    let star = if figure.within_noise { "*" } else { "" };
    let interval = figure.interval_percent.map_or(String::new(), |[low, high]| {
        format!(" ({} … {})", number::change(low, 1), number::change(high, 1))
    });
    format!("{}{star}{interval}", percent(figure.improvement_percent))
}

/// Whether a clock was asked about any row.
pub(crate) fn is_timed(measured: &Measured) -> bool {
    measured.rows.iter().any(|line| line.ours.as_ref().is_some_and(|ours| ours.timed.is_some()))
}

/// `+19.1 % (17.3 … 20.9)`, with a question mark where no difference is shown.
pub(crate) fn timed_text(ours: &Ours) -> String {
    let Some(timed) = &ours.timed else { return String::new() };
    let high = timed.high_percent.map_or("…".into(), |high| format!("… {}", number::change(high, 1)));
    let shown = if matches!(timed.verdict, Verdict::Faster | Verdict::Slower) { "" } else { "?" };
    format!("{}{shown} ({} {high})", percent(timed.improvement_percent), number::change(timed.low_percent, 1))
}

/// The standard deviation of the tuned kernel's boots, in the row's unit.
pub(crate) fn std_dev(ours: &Ours) -> String {
    ours.timed
        .as_ref()
        .map_or(String::new(), |timed| format!("{} {}", number::figure(timed.std_dev), timed.unit))
}

/// `+11.8 %`.
pub(crate) fn percent(value: f64) -> String {
    format!("{} %", number::change(value, 1))
}

/// The A/A difference in percent.
pub(crate) fn aa(figure: &Figure) -> String {
    match figure.base {
        0.0 => String::new(),
        base => number::difference(100.0 * (figure.base_again - base) / base),
    }
}
