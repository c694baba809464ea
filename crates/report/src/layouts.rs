//! Luck of layout as text: where two kernels lie among random layouts of one of them.

use crate::columns::{Cell, Columns, Side};
use crate::style::{printable, Role};
use crate::Style;
use kerntune_compare::{number, LayoutRow, Layouts, Metric, TOTAL};

/// What it comes to in sentences, one line per operation and metric, legend.
pub(crate) fn table(layouts: &Layouts, style: Style) -> String {
    let mut out = String::new();
    for sentence in sentences(layouts) {
        out.push_str(&style.paint(Role::Head, &printable(&sentence)));
        out.push('\n');
    }
    out.push('\n');
    let mut table = Columns::new([
        ("\noperation", Side::Left),
        ("\nmetric", Side::Left),
        ("\nbase", Side::Right),
        ("\ntuned", Side::Right),
        ("random orders\nleast", Side::Right),
        ("\nquarter", Side::Right),
        ("\nmedian", Side::Right),
        ("\nquarter", Side::Right),
        ("\nmost", Side::Right),
        ("rank\nbase", Side::Right),
        ("\ntuned", Side::Right),
        ("tuned, %\nof median", Side::Right),
    ]);
    let mut last = "";
    for row in &layouts.rows {
        let first = row.operation != last;
        if first && !last.is_empty() {
            table.gap();
        }
        last = &row.operation;
        let [least, low, median, high, most] = row.quartiles.map(|value| Cell::from(number::figure(value)));
        let change = row.change_from_median();
        table.row([
            if first { Cell(printable(&row.operation), Role::Head) } else { "".into() },
            format!("{}{}", row.metric.title(), tag(row)).into(),
            number::figure(row.base).into(),
            number::figure(row.tuned).into(),
            least,
            low,
            median,
            high,
            most,
            rank(row, row.below_base).into(),
            Cell(rank(row, row.below_tuned), role(row)),
            change.map_or("".into(), |change| Cell(number::change(change, 2), role(row))),
        ]);
    }
    out.push_str(&table.render(style));
    out.push('\n');
    for line in legend(layouts) {
        out.push_str(&style.paint(Role::Faint, &line));
        out.push('\n');
    }
    out
}

/// `, model` where the title does not say it.
fn tag(row: &LayoutRow) -> &'static str {
    match row.model && !row.metric.title().contains("model") {
        true => ", model",
        false => "",
    }
}

/// Where the tuned kernel lies, in total: a sentence for each metric that a layout can change.
pub(crate) fn sentences(layouts: &Layouts) -> Vec<String> {
    let count = layouts.kernels.len();
    let mut all = vec![format!(
        "Luck of layout: {count} random orders of the base kernel's functions (random number {}).",
        layouts.seed
    )];
    let rows = layouts.rows.iter().filter(|row| row.operation == TOTAL && row.metric != Metric::PathLength);
    all.extend(rows.filter_map(|row| {
        let (change, spread) = (row.change_from_median()?, row.spread_percent()?);
        let place = match row.below_tuned {
            0 => "below all of them".into(),
            below if below == count => "not below any of them".into(),
            below => format!("below {} of them", count - below),
        };
        Some(format!(
            "{}{}: tuned is {place}, {} % of their median; from least to most they differ by {} %.",
            row.metric.title(),
            tag(row),
            number::change(change, 1),
            number::fixed(spread, 1),
        ))
    }));
    if let Some(row) = layouts.row(TOTAL, Metric::PathLength) {
        if let Some(spread) = row.spread_percent() {
            all.push(format!("Instructions differ by {} % between the orders.", number::fixed(spread, 3)));
        }
    }
    all
}

/// The place among the random orders and itself: 1 is the best.
fn rank(row: &LayoutRow, below: usize) -> String {
    format!("{}/{}", below + 1, row.values.len() + 1)
}

fn role(row: &LayoutRow) -> Role {
    let [least, .., most] = row.quartiles;
    match row.tuned {
        tuned if tuned < least => Role::Good,
        tuned if tuned > most => Role::Bad,
        _ => Role::Faint,
    }
}

/// What the columns are.
pub(crate) fn legend(layouts: &Layouts) -> [String; 3] {
    [
        format!(
            "random orders  the base kernel's functions in {} random orders, each as likely as any other; all that can be moved",
            layouts.kernels.len()
        ),
        "rank           the kernel's place among them and itself; 1 has the least".into(),
        "of median      what the tuned kernel has against the median order: what is left of its change without luck of layout".into(),
    ]
}
