//! Ranges of a change over several front-end models, as text.

use kerntune_compare::{number, Metric, ModelChangeRow, ModelChanges, TOTAL};
use kerntune_table::{Columns, Document, Table, TextRole};

/// Adds one line per operation and metric with the lowest and highest change and their models, then
/// the total under each model.
pub(crate) fn add<'a>(document: &mut Document<'a>, of: &'a ModelChanges) {
    document.text("\n");
    document.painted(
        TextRole::Head,
        format!(
            "Change under {} front-end models, percent: from the largest gain to the smallest.\n\n",
            of.models.len()
        ),
    );
    let rows = of.rows.iter().filter_map(|row| Some((row, row.range()?)));
    let mut columns = Columns::<(&ModelChangeRow, [(usize, f64); 2])>::new();
    columns.text_only("operation", |row| row.0.operation.clone()).once().role(|_| TextRole::Head);
    columns.text_only("metric", |row| row.0.metric.title());
    for (at, head) in ["from", "to"].into_iter().enumerate() {
        columns.text_only(head, move |row| number::change(row.1[at].1, 1)).right().role(|row| match row.1 {
            [_, (_, to)] if to < 0.0 => TextRole::Good,
            [(_, from), _] if from > 0.0 => TextRole::Bad,
            _ => TextRole::Faint,
        });
    }
    for (at, head) in ["under", "and"].into_iter().enumerate() {
        columns.text_only(head, move |row| of.models[row.1[at].0].clone());
    }
    document.table(Table::text_only(rows, columns).spaced());
    document.text("\n");
    let mut columns = Columns::<usize>::new();
    columns.text_only("total under", |at| of.models[*at].clone());
    for row in of.rows.iter().filter(|row| row.operation == TOTAL) {
        let change = |at: &usize| Some(number::change(row.changes_percent.get(*at).copied()??, 1));
        columns.text_only(row.metric.title(), change).right().null("-");
    }
    document.table(Table::text_only(0..of.models.len(), columns));
}

/// Returns the total's range for each metric, for a page: `L1I misses from -40.1 % to -12.0 %`.
pub(crate) fn ranges(models: &ModelChanges) -> Vec<(Metric, [(String, f64); 2])> {
    let of = |(at, change): (usize, f64)| (models.models[at].clone(), change);
    models
        .rows
        .iter()
        .filter(|row| row.operation == TOTAL)
        .filter_map(|row| Some((row.metric, row.range()?.map(of))))
        .collect()
}
