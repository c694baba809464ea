//! Ranges of a change over several front-end models, as text.

use crate::Style;
use kerntune_compare::{number, Metric, ModelChanges, TOTAL};
use kerntune_table::columns::{Alignment, TableBuilder, TextCell};
use kerntune_table::{printable, TextRole};

/// Renders one line per operation and metric with the lowest and highest change and their models,
/// then the total under each model.
pub(crate) fn table(models: &ModelChanges, style: Style) -> String {
    let head = format!(
        "Change under {} front-end models, percent: from the largest gain to the smallest.",
        models.models.len()
    );
    let mut out = style.paint(TextRole::Head, &head) + "\n\n";
    let mut table = TableBuilder::new([
        ("operation", Alignment::Left),
        ("metric", Alignment::Left),
        ("from", Alignment::Right),
        ("to", Alignment::Right),
        ("under", Alignment::Left),
        ("and", Alignment::Left),
    ]);
    let mut last = "";
    for row in &models.rows {
        let Some([(low, from), (high, to)]) = row.range() else { continue };
        let first = row.operation != last;
        if first && !last.is_empty() {
            table.gap();
        }
        last = &row.operation;
        let role = match (from, to) {
            (_, to) if to < 0.0 => TextRole::Good,
            (from, _) if from > 0.0 => TextRole::Bad,
            _ => TextRole::Faint,
        };
        table.row([
            if first { TextCell(printable(&row.operation), TextRole::Head) } else { "".into() },
            row.metric.title().into(),
            TextCell(number::change(from, 1), role),
            TextCell(number::change(to, 1), role),
            printable(&models.models[low]).into(),
            printable(&models.models[high]).into(),
        ]);
    }
    out.push_str(&table.render(style));
    out.push('\n');
    let of_total: Vec<_> = models.rows.iter().filter(|row| row.operation == TOTAL).collect();
    let heads = of_total.iter().map(|row| (row.metric.title(), Alignment::Right));
    let mut table = TableBuilder::with([("total under", Alignment::Left)].into_iter().chain(heads));
    for (at, model) in models.models.iter().enumerate() {
        let change = |change: Option<f64>| {
            TextCell::from(change.map_or("-".into(), |change| number::change(change, 1)))
        };
        let cells = of_total.iter().map(|row| change(row.changes_percent.get(at).copied().flatten()));
        table.row_of([printable(model).into()].into_iter().chain(cells).collect());
    }
    out.push_str(&table.render(style));
    out
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
