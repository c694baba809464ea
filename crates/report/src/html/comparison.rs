//! Comparison on the page: key figures, charts, tables.

use super::chart::{capitalized, charts, kind};
use super::{minus, model_tag, scroll};
use crate::comparison::{aa, change_unit, interval, mark, means, model_name};
use crate::models::ranges;
use kerntune_compare::{number, CodeScope, Comparison, Metric, MetricRow, Verdict, TOTAL};
use maud::{html, Markup};

/// Renders the totals' changes as tiles, the whole path first.
pub(super) fn tiles(verdict: &Verdict) -> Markup {
    let of = |whose| verdict.totals.iter().filter(move |row| row.metric.code_scope() == whose);
    let brief = |row: &&MetricRow| matches!(row.metric, Metric::WholeInstructions | Metric::WholeCycles);
    let what = |row: &MetricRow| match row.metric {
        Metric::PathLength => "Kernel instructions".into(),
        metric => capitalized(metric.title()),
    };
    html! {
        ul.tiles aria-label="Change in total" {
            @for row in of(CodeScope::Whole).filter(brief).chain(of(CodeScope::Kernel)) {
                li {
                    span.what { (what(row)) ", total" (model_tag(row.model)) } " "
                    span class={ "change " (kind(row)) } { (minus(&change_unit(row))) (mark(row)) } " "
                    span.from { (large(row.base)) " → " (large(row.tuned)) }
                }
            }
        }
    }
}

/// Renders a bar chart per metric, all on one scale.
pub(super) fn pictures(comparison: &Comparison) -> Markup {
    let repeats = comparison.rows.iter().all(|row| row.aa_percent == Some(0.0));
    html! {
        p {
            "Tuned against base, in per cent; left is lower, and better. All pictures have the same scale."
            @if !repeats { " The thin band at zero is the A/A difference." }
        }
        (charts(comparison))
    }
}

/// Renders the tables: of the kernel, and of user code and the whole path.
pub(super) fn tables(comparison: &Comparison) -> Markup {
    let (kernel, others): (Vec<Metric>, Vec<Metric>) =
        comparison.metrics().partition(|metric| metric.code_scope() == CodeScope::Kernel);
    html! {
        (table(comparison, "Figures by operation", &kernel))
        @if !others.is_empty() {
            h3 { "User code, and the whole path (kernel and user)" }
            (table(comparison, "User code and the whole path by operation", &others))
        }
        @if let Some(models) = &comparison.models {
            h3 { "Under " (models.models.len()) " front-end models, in total" }
            ul {
                @for (metric, [(low, from), (high, to)]) in ranges(models) {
                    li {
                        (capitalized(metric.title())) ": from " (minus(&number::change(from, 1))) " % (" code { (low) } ") to "
                        (minus(&number::change(to, 1))) " % (" code { (high) } ")"
                    }
                }
            }
        }
        (legend(comparison))
    }
}

/// Renders one line per operation, with base, tuned, change and A/A of each metric.
fn table(comparison: &Comparison, label: &str, metrics: &[Metric]) -> Markup {
    let largest = |metric: Metric| {
        let rows = comparison.rows.iter().filter(|row| row.metric == metric);
        rows.filter_map(|row| row.change_percent).map(f64::abs).fold(0.0, f64::max)
    };
    let columns: Vec<_> = metrics.iter().map(|metric| (*metric, largest(*metric))).collect();
    let line = |operation: &str| {
        html! {
            tr {
                th.first scope="row" { (operation) }
                @for (metric, largest) in &columns {
                    @if let Some(row) = comparison.row(operation, *metric) { (cells(row, *largest)) }
                }
            }
        }
    };
    let table = html! {
        table.sortable {
            thead {
                tr.groups {
                    td.first {}
                    @for (metric, _) in &columns {
                        th.edge colspan="4" scope="colgroup" {
                            (capitalized(metric.title())) ", " (metric.unit_per_operation()) (model_tag(metric.is_model()))
                        }
                    }
                }
                tr {
                    th.first scope="col" data-at="0" { "Operation" }
                    @for at in (0..columns.len()).map(|metric| 4 * metric) {
                        th.edge scope="col" data-at=(at + 1) { "base" }
                        th scope="col" data-at=(at + 2) { "tuned" }
                        th scope="col" data-at=(at + 3) { "change" }
                        th scope="col" data-at=(at + 4) { "A/A %" }
                    }
                }
            }
            tbody { @for operation in comparison.operations() { (line(operation)) } }
            tfoot { (line(TOTAL)) }
        }
    };
    scroll(label, &table)
}

fn cells(row: &MetricRow, largest: f64) -> Markup {
    let figure = |value: f64| if row.operation == TOTAL { large(value) } else { number::figure(value) };
    let size = row.change_percent.map_or(largest, f64::abs);
    let width = if largest > 0.0 { 90.0 * size / largest } else { 0.0 };
    let kind = kind(row);
    let text = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    html! {
        td.edge data-v=(row.base) { (figure(row.base)) }
        td data-v=(row.tuned) { (figure(row.tuned)) }
        td class={ "delta " (kind) } data-v=(text(row.change_percent)) {
            i class=(kind) style=(format!("width:{width:.0}%")) {}
            b { (minus(&change_unit(row))) span.star { (mark(row)) } }
            @if row.interval_percent.is_some() { " " small { (minus(&interval(row))) } }
        }
        td.quiet data-v=(text(row.aa_percent.map(f64::abs))) { (aa(row)) }
    }
}

fn legend(comparison: &Comparison) -> Markup {
    html! {
        dl.legend {
            @if comparison.rows.iter().any(MetricRow::within_noise) {
                dt { "*" }
                @if comparison.runs * comparison.seeds > 1 { dd { "The interval contains 0: the change may be chance." } }
                @else { dd { "The change is not larger than the A/A difference: it means nothing." } }
            }
            @if comparison.rows.iter().any(MetricRow::has_unequal_user_code) {
                dt { "~" }
                dd { "User code ran differently on the two kernels: the change is not the kernel's alone." }
            }
            @if let Some(means) = means(comparison) {
                dt { "runs" }
                dd { (means) " The change lies in the interval below it with a confidence of 99 %." }
            }
            dt { "A/A" }
            dd { "A second run of the base kernel against its first: what does not repeat." }
            dt { "exact" }
            dd {
                "Path length, instructions and taken branches are counted, instruction by instruction. \
                 Kernel code, except figures named user or whole (kernel and user code), between marks."
            }
            @if comparison.rows.iter().any(|row| row.model) {
                dt { "model" }
                dd {
                    "Misses are those of a front-end model (" code { (model_name(comparison)) }
                    ") fed with the exact instruction stream, not those of a real CPU."
                    @if comparison.metrics().any(|metric| metric == Metric::ModelCycles) {
                        " Model cycles are all four counts, each times the cost that the file states."
                    }
                }
            }
            dt { "total" }
            dd { "The sum of all measured regions: instructions, branches, misses." }
        }
    }
}

/// Formats a sum in at most four digits: `1.187 G`, `179.2 M`, `56.0 k`.
fn large(value: f64) -> String {
    for (size, letter) in [(1e9, "G"), (1e6, "M"), (1e4, "k")] {
        if value.abs() >= size {
            let scaled = value / if letter == "k" { 1e3 } else { size };
            let decimals = if scaled < 9.9995 { 3 } else { 1 };
            return format!("{} {letter}", number::fixed(scaled, decimals));
        }
    }
    number::figure(value)
}

#[cfg(test)]
mod tests {
    use super::large;

    #[test]
    fn sums_are_short() {
        let values = [1_187_000_123.0, 179_200_000.0, 56_040.0, 9_999.0, 3.5];
        assert_eq!(values.map(large), ["1.187 G", "179.2 M", "56.0 k", "9,999", "3.50"]);
    }
}
