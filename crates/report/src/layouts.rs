//! Layout sensitivity as text: rank of two kernels among random layouts of one of them.

use kerntune_compare::{number, Metric, RandomLayoutRow, RandomLayouts, TOTAL};
use kerntune_table::{printable, Columns, Document, Table, TextRole};

/// Adds a summary in sentences, one line per operation and metric, and a legend.
pub(crate) fn add<'a>(document: &mut Document<'a>, layouts: &'a RandomLayouts) {
    document.text("\n");
    for sentence in sentences(layouts) {
        document.painted(TextRole::Head, printable(&sentence) + "\n");
    }
    document.text("\n");
    let mut columns = Columns::<&RandomLayoutRow>::new();
    columns.text_only("\noperation", |row| row.operation.clone()).once().role(|_| TextRole::Head);
    columns.text_only("\nmetric", |row| format!("{}{}", row.metric.title(), tag(row)));
    columns.text_only("\nbase", |row| row.base);
    columns.text_only("\ntuned", |row| row.tuned);
    for (at, head) in
        ["random orders\nleast", "\nquarter", "\nmedian", "\nquarter", "\nmost"].into_iter().enumerate()
    {
        columns.text_only(head, move |row| row.quartiles[at]);
    }
    columns.text_only("rank\nbase", |row| rank(row, row.below_base)).right();
    columns.text_only("\ntuned", |row| rank(row, row.below_tuned)).right().role(|row| role(row));
    columns
        .text_only("tuned, %\nof median", |row| {
            row.change_from_median().map(|change| number::change(change, 2))
        })
        .right()
        .role(|row| role(row));
    document.table(Table::text_only(&layouts.rows, columns).spaced());
    document.text("\n");
    legend(layouts).iter().for_each(|line| document.note(line));
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
    let [min, .., max] = row.quartiles;
    match row.tuned {
        tuned if tuned < min => TextRole::Good,
        tuned if tuned > max => TextRole::Bad,
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
