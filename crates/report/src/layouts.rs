//! Layout sensitivity as text: rank of two kernels among random layouts of one of them.

use crate::Style;
use kerntune_compare::{number, Metric, RandomLayoutRow, RandomLayouts, TOTAL};
use kerntune_table::columns::{Alignment, TableBuilder, TextCell};
use kerntune_table::{printable, TextRole};

/// Renders a summary in sentences, one line per operation and metric, and a legend.
pub(crate) fn table(layouts: &RandomLayouts, style: Style) -> String {
    let mut out = String::new();
    for sentence in sentences(layouts) {
        out.push_str(&style.paint(TextRole::Head, &printable(&sentence)));
        out.push('\n');
    }
    out.push('\n');
    let mut table = TableBuilder::new([
        ("\noperation", Alignment::Left),
        ("\nmetric", Alignment::Left),
        ("\nbase", Alignment::Right),
        ("\ntuned", Alignment::Right),
        ("random orders\nleast", Alignment::Right),
        ("\nquarter", Alignment::Right),
        ("\nmedian", Alignment::Right),
        ("\nquarter", Alignment::Right),
        ("\nmost", Alignment::Right),
        ("rank\nbase", Alignment::Right),
        ("\ntuned", Alignment::Right),
        ("tuned, %\nof median", Alignment::Right),
    ]);
    let mut last = "";
    for row in &layouts.rows {
        let first = row.operation != last;
        if first && !last.is_empty() {
            table.gap();
        }
        last = &row.operation;
        let [least, low, median, high, most] =
            row.quartiles.map(|value| TextCell::from(number::figure(value)));
        let change = row.change_from_median();
        table.row([
            if first { TextCell(printable(&row.operation), TextRole::Head) } else { "".into() },
            format!("{}{}", row.metric.title(), tag(row)).into(),
            number::figure(row.base).into(),
            number::figure(row.tuned).into(),
            least,
            low,
            median,
            high,
            most,
            rank(row, row.below_base).into(),
            TextCell(rank(row, row.below_tuned), role(row)),
            change.map_or("".into(), |change| TextCell(number::change(change, 2), role(row))),
        ]);
    }
    out.push_str(&table.render(style));
    out.push('\n');
    for line in legend(layouts) {
        out.push_str(&style.paint(TextRole::Faint, &line));
        out.push('\n');
    }
    out
}

/// Returns `, model` where the title does not name the model.
fn tag(row: &RandomLayoutRow) -> &'static str {
    match row.model && !row.metric.title().contains("model") {
        true => ", model",
        false => "",
    }
}

/// Returns a sentence for each metric that a layout can change: rank of the tuned kernel's total.
pub(crate) fn sentences(layouts: &RandomLayouts) -> Vec<String> {
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

/// Formats the rank among the random orders and the kernel itself; 1 is best.
fn rank(row: &RandomLayoutRow, below: usize) -> String {
    format!("{}/{}", below + 1, row.values.len() + 1)
}

fn role(row: &RandomLayoutRow) -> TextRole {
    let [least, .., most] = row.quartiles;
    match row.tuned {
        tuned if tuned < least => TextRole::Good,
        tuned if tuned > most => TextRole::Bad,
        _ => TextRole::Faint,
    }
}

/// Returns the explanations of the columns.
pub(crate) fn legend(layouts: &RandomLayouts) -> [String; 3] {
    [
        format!(
            "random orders  the base kernel's functions in {} random orders, each as likely as any other; all that can be moved",
            layouts.kernels.len()
        ),
        "rank           the kernel's place among them and itself; 1 has the least".into(),
        "of median      what the tuned kernel has against the median order: what is left of its change without luck of layout".into(),
    ]
}
