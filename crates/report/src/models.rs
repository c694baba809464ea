//! A change under several front-end models as text: a range.

use crate::columns::{Cell, Columns, Side};
use crate::style::{printable, Role};
use crate::Style;
use kerntune_compare::{number, Metric, Models, TOTAL};

/// One line per operation and metric: the lowest and the highest change, and under which models; then the total under each.
pub(crate) fn table(models: &Models, style: Style) -> String {
    let head = format!(
        "Change under {} front-end models, percent: from the largest gain to the smallest.",
        models.models.len()
    );
    let mut out = style.paint(Role::Head, &head) + "\n\n";
    let mut table = Columns::new([
        ("operation", Side::Left),
        ("metric", Side::Left),
        ("from", Side::Right),
        ("to", Side::Right),
        ("under", Side::Left),
        ("and", Side::Left),
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
            (_, to) if to < 0.0 => Role::Good,
            (from, _) if from > 0.0 => Role::Bad,
            _ => Role::Faint,
        };
        table.row([
            if first { Cell(printable(&row.operation), Role::Head) } else { "".into() },
            row.metric.title().into(),
            Cell(number::change(from, 1), role),
            Cell(number::change(to, 1), role),
            printable(&models.models[low]).into(),
            printable(&models.models[high]).into(),
        ]);
    }
    out.push_str(&table.render(style));
    out.push('\n');
    let of_total: Vec<_> = models.rows.iter().filter(|row| row.operation == TOTAL).collect();
    let heads = of_total.iter().map(|row| (row.metric.title(), Side::Right));
    let mut table = Columns::with([("total under", Side::Left)].into_iter().chain(heads));
    for (at, model) in models.models.iter().enumerate() {
        let change =
            |change: Option<f64>| Cell::from(change.map_or("-".into(), |change| number::change(change, 1)));
        let cells = of_total.iter().map(|row| change(row.changes_percent.get(at).copied().flatten()));
        table.row_of([printable(model).into()].into_iter().chain(cells).collect());
    }
    out.push_str(&table.render(style));
    out
}

/// `L1I misses from -40.1 % to -12.0 %`: the total's ranges, for a page.
pub(crate) fn ranges(models: &Models) -> Vec<(Metric, [(String, f64); 2])> {
    let of = |(at, change): (usize, f64)| (models.models[at].clone(), change);
    models
        .rows
        .iter()
        .filter(|row| row.operation == TOTAL)
        .filter_map(|row| Some((row.metric, row.range()?.map(of))))
        .collect()
}
