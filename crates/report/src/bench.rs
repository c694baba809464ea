//! Timed results of two kernels as text: ratios with intervals and verdicts, and the papers' form of a table.

use crate::columns::{Cell, Columns, Side};
use crate::style::{printable, Role};
use crate::Style;
use kerntune_compare::number;
use kerntune_stats::{Because, Better, Comparison, Correction, Kernel, Level, Method, Row, SetOf, Verdict};

/// Counts of verdicts, both kernels, one line per row, what else is to be known, legend.
pub fn table(comparison: &Comparison, style: Style) -> String {
    let mut out = head(comparison, style);
    let interval = format!("{} interval ", percent(comparison.options.confidence));
    let p = match comparison.options.correction {
        Correction::None => "p".into(),
        correction => format!("p\n{}", correction.word()),
    };
    let mut table = Columns::new([
        ("suite", Side::Left),
        ("row", Side::Left),
        ("base", Side::Right),
        ("tuned", Side::Right),
        ("unit", Side::Left),
        ("change %", Side::Right),
        (interval.as_str(), Side::Right),
        (p.as_str(), Side::Right),
        ("A/A % ", Side::Right),
        ("verdict", Side::Left),
        ("of", Side::Left),
    ]);
    grouped(comparison, &mut table, |row, suite| {
        let [base, tuned] = match row.method {
            Method::HodgesLehmann => row.medians,
            Method::Student | Method::Bootstrap => [row.base, row.tuned],
        };
        [
            suite,
            printable(&row.row).into(),
            number::figure(base).into(),
            number::figure(tuned).into(),
            Cell(printable(&row.unit), Role::Faint),
            Cell(number::change(row.change_percent, 2), role(row)),
            range(row.low_percent, row.high_percent).into(),
            probability(row.p_adjusted).into(),
            aa(row),
            Cell(verdict(row), role(row)),
            Cell(units(row), Role::Faint),
        ]
    });
    out.push_str(&table.render(style));
    out.push_str(&together(comparison));
    out.push_str(&remarks(comparison));
    out.push('\n');
    out.push_str(&legend(comparison, style));
    out
}

/// The table of Speer, Kumar and Partridge (1994): base, optimised, standard deviation, improvement.
pub fn paper(comparison: &Comparison, style: Style) -> String {
    let mut table = Columns::new([
        ("suite", Side::Left),
        ("row", Side::Left),
        ("base", Side::Right),
        ("optimised", Side::Right),
        ("std dev", Side::Right),
        ("improvement", Side::Right),
        ("unit", Side::Left),
    ]);
    grouped(comparison, &mut table, |row, suite| {
        let paper = &row.paper;
        let improvement =
            if paper.noise_larger { "*".into() } else { format!("{} %", number::fixed(paper.percent, 1)) };
        [
            suite,
            printable(&row.row).into(),
            number::figure(paper.base).into(),
            number::figure(paper.optimised).into(),
            number::figure(paper.std_dev).into(),
            improvement.into(),
            Cell(printable(&row.unit), Role::Faint),
        ]
    });
    let star = "*  the standard deviation (of the optimised kernel's values) is larger than the difference\n";
    table.render(style) + "\n" + &style.paint(Role::Faint, star.trim_end()) + "\n"
}

/// One line for each row; a suite's name stands on its first line, with an empty line before it.
fn grouped<const N: usize>(
    comparison: &Comparison,
    table: &mut Columns,
    line: impl Fn(&Row, Cell) -> [Cell; N],
) {
    let mut last = None;
    for row in &comparison.rows {
        let first = last != Some(&row.suite);
        if first && last.is_some() {
            table.gap();
        }
        last = Some(&row.suite);
        table.row(line(row, if first { Cell(printable(&row.suite), Role::Head) } else { "".into() }));
    }
}

fn head(comparison: &Comparison, style: Style) -> String {
    let counts: Vec<String> = [Verdict::Faster, Verdict::Slower, Verdict::Equivalent, Verdict::Inconclusive]
        .into_iter()
        .map(|verdict| format!("{} {}", comparison.count(verdict), verdict.word()))
        .collect();
    let rows = comparison.rows.len();
    let sentence = format!("{rows} row{}: {}.", if rows == 1 { "" } else { "s" }, counts.join(", "));
    let mut out = style.paint(Role::Head, &sentence) + "\n\n";
    let again = comparison.again.as_ref().map(|again| ("again", again));
    for (word, set) in [("base ", &comparison.base), ("tuned", &comparison.tuned)].into_iter().chain(again) {
        out.push_str(&format!("{word}  {}\n", describe(set)));
    }
    out.push_str(&format!("timed on machine {}\n\n", printable(&comparison.machine)));
    out
}

/// `Linux 6.12.117 #1 SMP … (3f9a01): a.json, b.json`.
fn describe(set: &SetOf) -> String {
    let kernels: Vec<String> = set.kernels.iter().map(Kernel::to_string).collect();
    printable(&format!("{}: {}", kernels.join(" and "), set.files.join(", ")))
}

/// A part of 1 as `95 %`.
fn percent(part: f64) -> String {
    let text = format!("{:.4}", 100.0 * part);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

fn range(low: f64, high: Option<f64>) -> String {
    let high = high.map_or("∞".into(), |high| number::change(high, 2));
    format!("{} … {high}", number::change(low, 2))
}

/// `<0.001`, `0.013`.
fn probability(p: f64) -> String {
    if p < 0.001 {
        "<0.001".into()
    } else {
        format!("{p:.3}")
    }
}

/// With a `!` where the kernel differs from itself, or room for one.
fn aa(row: &Row) -> Cell {
    match &row.aa {
        None => Cell("- ".into(), Role::Faint),
        Some(aa) if aa.differs => Cell(number::change(aa.change_percent, 2) + "!", Role::Bad),
        Some(aa) => (number::change(aa.change_percent, 2) + " ").into(),
    }
}

fn verdict(row: &Row) -> String {
    let why = match row.because {
        Because::Interval => "",
        Because::Correction => " (among so many)",
        Because::AaDiffers => " (A/A differs)",
    };
    format!("{}{why}", row.verdict.word())
}

fn role(row: &Row) -> Role {
    match row.verdict {
        Verdict::Faster => Role::Good,
        Verdict::Slower => Role::Bad,
        Verdict::Equivalent => Role::Plain,
        Verdict::Inconclusive => Role::Faint,
    }
}

/// `6 boots`, `6 + 5 boots`.
fn units(row: &Row) -> String {
    match row.units {
        [base, tuned] if base == tuned => row.level.count(base),
        [base, tuned] => format!("{base} + {}", row.level.count(tuned)),
    }
}

/// How much faster all rows are together.
fn together(comparison: &Comparison) -> String {
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

/// What is to be known of some rows, each remark once with the rows that it is of.
fn remarks(comparison: &Comparison) -> String {
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

/// The first few of them.
fn listed(rows: &[String]) -> String {
    const MOST: usize = 6;
    let mut text = rows[..rows.len().min(MOST)].join(", ");
    if rows.len() > MOST {
        text.push_str(&format!(" and {} more", rows.len() - MOST));
    }
    text
}

fn legend(comparison: &Comparison, style: Style) -> String {
    let options = &comparison.options;
    let mut lines = vec![
        format!(
            "faster, slower  there is a difference, with a risk of {} that it is chance{}",
            percent(1.0 - options.confidence),
            match options.correction {
                Correction::Holm => " for all rows together",
                Correction::BenjaminiHochberg => " on average over the rows that are said to differ",
                Correction::None => " for each row",
            }
        ),
        format!(
            "equivalent      the whole interval is within the minimum effect, {}",
            percent(options.min_effect)
        ),
        "inconclusive    neither was shown; more of the units in the last column narrow the interval".into(),
    ];
    if comparison.rows.iter().any(|row| row.method == Method::HodgesLehmann) {
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
    if comparison.rows.iter().any(|row| row.better == Better::Higher) {
        lines.push("For rates, such as MB/s, higher is better.".into());
    }
    if let Some(level) =
        comparison.rows.iter().map(|row| row.level).max().filter(|level| *level > Level::Boot)
    {
        lines.push(format!(
            "Intervals over {} do not include differences between boots: measure several boots of each \
             kernel.",
            level.plural()
        ));
    }
    let paint = |line: String| style.paint(Role::Faint, &line) + "\n";
    lines.into_iter().map(paint).collect()
}
