//! Timed results of two kernels as text: ratios with intervals and verdicts, also in the layout of
//! a paper.

use crate::Style;
use kerntune_stats::{
    KernelFiles, MeasuredKernel, PValueCorrection, RatioMethod, RowDirection, RowVerdict, TimedComparison,
    TimedRow, VariationLevel, VerdictReason,
};
use kerntune_table::{number, printable, render, Columns, Document, Table, TextRole};

/// Renders verdict counts, both kernels, one line per row, remarks, and a legend.
pub fn table(comparison: &TimedComparison, style: Style) -> String {
    let mut document = head(comparison);
    let p = match comparison.options.correction {
        PValueCorrection::None => "p".into(),
        correction => format!("p\n{}", correction.name()),
    };
    let middle = |row: &TimedRow| match row.method {
        RatioMethod::HodgesLehmann => row.medians,
        RatioMethod::Student | RatioMethod::Bootstrap => [row.base, row.tuned],
    };
    let mut columns = names();
    columns.text_only("base", move |row| middle(row)[0]);
    columns.text_only("tuned", move |row| middle(row)[1]);
    columns.text_only("unit", |row| row.unit.clone()).role(|_| TextRole::Faint);
    columns.text_only("change %", |row| number::change(row.change_percent, 2)).right().role(|row| role(row));
    let interval = format!("{} interval ", percent(comparison.options.confidence));
    columns.text_only(interval, |row| range(row.low_percent, row.high_percent)).right();
    columns.text_only(p, |row| probability(row.p_adjusted)).right();
    columns.text_only("A/A % ", |row| aa(row).0).right().role(|row| aa(row).1);
    columns.text_only("verdict", |row| verdict(row)).role(|row| role(row));
    columns.text_only("of", |row| units(row)).role(|_| TextRole::Faint);
    document.table(Table::text_only(&comparison.rows, columns).spaced());
    document.text(overall_line(comparison));
    document.text(remarks(comparison));
    document.text("\n");
    legend(comparison).iter().for_each(|line| document.note(line));
    render::text(&document, style)
}

/// Renders the table in the layout of Speer, Kumar and Partridge (1994): base, optimized, standard
/// deviation, improvement.
pub fn paper(comparison: &TimedComparison, style: Style) -> String {
    let mut document = Document::new("", "");
    let mut columns = names();
    columns.text_only("base", |row| row.paper.base);
    columns.text_only("optimized", |row| row.paper.optimized);
    columns.text_only("std dev", |row| row.paper.std_dev);
    columns
        .text_only("improvement", |row| match row.paper.noise_larger {
            true => "*".into(),
            false => format!("{} %", number::fixed(row.paper.percent, 1)),
        })
        .right();
    columns.text_only("unit", |row| row.unit.clone()).role(|_| TextRole::Faint);
    document.table(Table::text_only(&comparison.rows, columns).spaced());
    document.text("\n");
    document
        .note("*  the standard deviation (of the optimized kernel's values) is larger than the difference");
    render::text(&document, style)
}

/// Declares the columns of suites, each named once, and rows.
fn names<'a>() -> Columns<'a, &'a TimedRow> {
    let mut columns = Columns::<&TimedRow>::new();
    columns.text_only("suite", |row| row.suite.clone()).once().role(|_| TextRole::Head);
    columns.text_only("row", |row| row.row.clone());
    columns
}

fn head(comparison: &TimedComparison) -> Document<'_> {
    let mut document = Document::new("", "");
    let counts: Vec<String> =
        [RowVerdict::Faster, RowVerdict::Slower, RowVerdict::Equivalent, RowVerdict::Inconclusive]
            .into_iter()
            .map(|verdict| format!("{} {}", comparison.count(verdict), verdict.name()))
            .collect();
    let rows = comparison.rows.len();
    let plural = if rows == 1 { "" } else { "s" };
    document.painted(TextRole::Head, format!("{rows} row{plural}: {}.\n", counts.join(", ")));
    document.text("\n");
    let again = comparison.again.as_ref().map(|again| ("again", again));
    for (word, set) in [("base ", &comparison.base), ("tuned", &comparison.tuned)].into_iter().chain(again) {
        document.text(format!("{word}  {}\n", describe(set)));
    }
    document.text(format!("timed on machine {}\n\n", printable(&comparison.machine)));
    document
}

/// Describes a kernel in one line: `Linux 6.12.117 #1 SMP … (3f9a01): a.json, b.json`.
fn describe(set: &KernelFiles) -> String {
    let kernels: Vec<String> = set.kernels.iter().map(MeasuredKernel::to_string).collect();
    printable(&format!("{}: {}", kernels.join(" and "), set.files.join(", ")))
}

/// Formats a fraction of 1 as `95 %`.
fn percent(part: f64) -> String {
    let text = format!("{:.4}", 100.0 * part);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

fn range(low: f64, high: Option<f64>) -> String {
    let high = high.map_or("∞".into(), |high| number::change(high, 2));
    format!("{} … {high}", number::change(low, 2))
}

/// Formats a p-value: `<0.001`, `0.013`.
fn probability(p: f64) -> String {
    if p < 0.001 {
        "<0.001".into()
    } else {
        format!("{p:.3}")
    }
}

/// Formats the A/A difference, with a `!` where the kernel differs from itself, else room for one.
fn aa(row: &TimedRow) -> (String, TextRole) {
    match &row.aa {
        None => ("- ".into(), TextRole::Faint),
        Some(aa) if aa.differs => (number::change(aa.change_percent, 2) + "!", TextRole::Bad),
        Some(aa) => (number::change(aa.change_percent, 2) + " ", TextRole::Plain),
    }
}

fn verdict(row: &TimedRow) -> String {
    let why = match row.because {
        VerdictReason::Interval => "",
        VerdictReason::Correction => " (among so many)",
        VerdictReason::AaDiffers => " (A/A differs)",
    };
    format!("{}{why}", row.verdict.name())
}

fn role(row: &TimedRow) -> TextRole {
    match row.verdict {
        RowVerdict::Faster => TextRole::Good,
        RowVerdict::Slower => TextRole::Bad,
        RowVerdict::Equivalent => TextRole::Plain,
        RowVerdict::Inconclusive => TextRole::Faint,
    }
}

/// Formats the number of units: `6 boots`, `6 + 5 boots`.
fn units(row: &TimedRow) -> String {
    match row.units {
        [base, tuned] if base == tuned => row.level.count(base),
        [base, tuned] => format!("{base} + {}", row.level.count(tuned)),
    }
}

/// Returns the line with the overall speedup of all rows.
fn overall_line(comparison: &TimedComparison) -> String {
    let Some(all) = &comparison.together else { return String::new() };
    let change = |percent| number::change(percent, 2);
    let aa = all.aa_percent.map_or(String::new(), |aa| format!(", A/A {} %", change(aa)));
    format!(
        "\nspeed of all {} rows, geometric mean: {} %, {} interval {}, p {}{aa}\n",
        all.rows,
        change(all.gain_percent),
        percent(comparison.options.confidence),
        range(all.low_percent, Some(all.high_percent)),
        probability(all.p)
    )
}

/// Lists remarks on single rows, each once with the rows that it concerns.
fn remarks(comparison: &TimedComparison) -> String {
    let mut remarks: Vec<(String, Vec<String>)> = Vec::new();
    let notes =
        comparison.rows.iter().flat_map(|row| row.notes.iter().map(|note| (note.clone(), row.name())));
    let left_out = comparison.left_out.iter().map(|row| (format!("not compared: {}", row.why), row.name()));
    for (remark, row) in notes.chain(left_out) {
        match remarks.iter_mut().find(|(known, _)| *known == remark) {
            Some((_, rows)) => rows.push(row),
            None => remarks.push((remark, vec![row])),
        }
    }
    let line = |(remark, rows): &(String, Vec<String>)| {
        let all = rows.len() == comparison.rows.len() && !remark.starts_with("not compared");
        let of = if all && rows.len() > 1 { "all rows".into() } else { listed(rows) };
        printable(&format!("{of}: {remark}")) + "\n"
    };
    let lines: String = remarks.iter().map(line).collect();
    if lines.is_empty() {
        lines
    } else {
        format!("\n{lines}")
    }
}

/// Joins the first few names and counts the rest.
fn listed(rows: &[String]) -> String {
    const MAX_ROWS: usize = 6;
    let mut text = rows[..rows.len().min(MAX_ROWS)].join(", ");
    if rows.len() > MAX_ROWS {
        text.push_str(&format!(" and {} more", rows.len() - MAX_ROWS));
    }
    text
}

fn legend(comparison: &TimedComparison) -> Vec<String> {
    let options = &comparison.options;
    let mut lines = vec![
        format!(
            "faster, slower  there is a difference, with a risk of {} that it is chance{}",
            percent(1.0 - options.confidence),
            match options.correction {
                PValueCorrection::Holm => " for all rows together",
                PValueCorrection::BenjaminiHochberg => " on average over the rows reported as different",
                PValueCorrection::None => " for each row",
            }
        ),
        format!(
            "equivalent      the whole interval is within the minimum effect, {}",
            percent(options.min_effect)
        ),
        "inconclusive    neither was shown; more of the units in the last column narrow the interval".into(),
    ];
    if comparison.rows.iter().any(|row| row.method == RatioMethod::HodgesLehmann) {
        lines.push(
            "base, tuned     medians; the change is the median of the ratios of all pairs (Hodges and Lehmann)".into(),
        );
    }
    if comparison.rows.iter().any(|row| row.aa.is_some()) {
        let what = match &comparison.again {
            Some(_) => "the base kernel measured again",
            None => "one half of the base kernel's values against the other",
        };
        lines.push(format!("A/A             {what}; ! differs: the row is inconclusive"));
    }
    if comparison.rows.iter().any(|row| row.better == RowDirection::Higher) {
        lines.push("For rates, such as MB/s, higher is better.".into());
    }
    if let Some(level) =
        comparison.rows.iter().map(|row| row.level).max().filter(|level| *level > VariationLevel::Boot)
    {
        lines.push(format!(
            "Intervals over {} do not include differences between boots: measure several boots of each \
             kernel.",
            level.plural()
        ));
    }
    lines
}
