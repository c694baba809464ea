//! The comparison: key figures, pictures, table.

use super::chart::{self, capitalised, kind};
use super::escape::{minus, Escaped};
use crate::comparison::{aa, change_unit, model_name};
use kerntune_compare::{number, Comparison, Metric, Row, Verdict, TOTAL};
use std::fmt::Write;

/// The totals' changes, large.
pub(super) fn tiles(verdict: &Verdict) -> String {
    let mut out = String::from("<ul class=\"tiles\" aria-label=\"Change in total\">\n");
    for row in &verdict.totals {
        let what = match row.metric {
            Metric::PathLength => "Kernel instructions".into(),
            metric => capitalised(metric.title()),
        };
        let model = if row.model { " <span class=\"tag model\">model</span>" } else { "" };
        let star = if row.within_noise() { "*" } else { "" };
        let _ = writeln!(
            out,
            "<li><span class=\"what\">{what}, total{model}</span> <span class=\"change {}\">{}{star}</span> \
             <span class=\"from\">{} → {}</span></li>",
            kind(row),
            minus(&change_unit(row)),
            large(row.base),
            large(row.tuned),
        );
    }
    out.push_str("</ul>\n");
    out
}

/// Bars per metric, all on one scale.
pub(super) fn pictures(comparison: &Comparison) -> String {
    let mut out = String::from(
        "<p>Tuned against base, in per cent; to the left is lower, which is better. All pictures have the same scale.",
    );
    if comparison.rows.iter().any(|row| row.aa_percent.is_none_or(|aa| aa != 0.0)) {
        out.push_str(" The thin band at zero is the A/A difference.");
    }
    out.push_str("</p>\n");
    chart::charts(&mut out, comparison);
    out
}

/// One line per operation, with base, tuned, change and A/A of each metric.
pub(super) fn table(comparison: &Comparison) -> String {
    let mut out = String::from(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Figures by operation\">\n\
         <table class=\"sortable\">\n<thead>\n<tr class=\"groups\"><td class=\"first\"></td>",
    );
    let metrics: Vec<Metric> = comparison.metrics().collect();
    for metric in &metrics {
        let model = if metric.is_model() { " <span class=\"tag model\">model</span>" } else { "" };
        let _ = write!(
            out,
            "<th class=\"edge\" colspan=\"4\" scope=\"colgroup\">{}, {}{model}</th>",
            capitalised(metric.title()),
            metric.unit_per_operation(),
        );
    }
    out.push_str("</tr>\n<tr><th class=\"first\" scope=\"col\" data-at=\"0\">Operation</th>");
    for at in (0..metrics.len()).map(|metric| 4 * metric) {
        let _ = write!(
            out,
            "<th class=\"edge\" scope=\"col\" data-at=\"{}\">base</th><th scope=\"col\" data-at=\"{}\">tuned</th>\
             <th scope=\"col\" data-at=\"{}\">change</th><th scope=\"col\" data-at=\"{}\">A/A %</th>",
            at + 1,
            at + 2,
            at + 3,
            at + 4,
        );
    }
    out.push_str("</tr>\n</thead>\n<tbody>\n");
    let largest = |metric: Metric| {
        let rows = comparison.rows.iter().filter(|row| row.metric == metric);
        rows.filter_map(|row| row.change_percent).map(f64::abs).fold(0.0, f64::max)
    };
    let columns: Vec<_> = metrics.into_iter().map(|metric| (metric, largest(metric))).collect();
    let line = |out: &mut String, operation: &str| {
        let _ = write!(out, "<tr><th class=\"first\" scope=\"row\">{}</th>", Escaped(operation));
        for (metric, largest) in &columns {
            if let Some(row) = comparison.row(operation, *metric) {
                cells(out, row, *largest);
            }
        }
        out.push_str("</tr>\n");
    };
    comparison.operations().for_each(|operation| line(&mut out, operation));
    out.push_str("</tbody>\n<tfoot>\n");
    line(&mut out, TOTAL);
    out.push_str("</tfoot>\n</table>\n</div>\n");
    legend(&mut out, comparison);
    out
}

fn cells(out: &mut String, row: &Row, largest: f64) {
    let figure = |value: f64| if row.operation == TOTAL { large(value) } else { number::figure(value) };
    let size = row.change_percent.map_or(largest, f64::abs);
    let width = if largest > 0.0 { 90.0 * size / largest } else { 0.0 };
    let kind = kind(row);
    let data = row.change_percent.map_or(String::new(), |change| change.to_string());
    let _ = write!(
        out,
        "<td class=\"edge\" data-v=\"{}\">{}</td><td data-v=\"{}\">{}</td>\
         <td class=\"delta {kind}\" data-v=\"{data}\"><i class=\"{kind}\" style=\"width:{width:.0}%\"></i>\
         <b>{}<span class=\"star\">{}</span></b></td><td class=\"quiet\" data-v=\"{}\">{}</td>",
        row.base,
        figure(row.base),
        row.tuned,
        figure(row.tuned),
        minus(&change_unit(row)),
        if row.within_noise() { "*" } else { "" },
        row.aa_percent.map_or(String::new(), |aa| aa.abs().to_string()),
        Escaped(aa(row)),
    );
}

fn legend(out: &mut String, comparison: &Comparison) {
    out.push_str("<dl class=\"legend\">\n");
    if comparison.rows.iter().any(Row::within_noise) {
        out.push_str(
            "<dt>*</dt><dd>The change is not larger than the A/A difference: it says nothing.</dd>\n",
        );
    }
    out.push_str(
        "<dt>A/A</dt><dd>A second run of the base kernel against its first: what does not repeat.</dd>\n\
         <dt>exact</dt><dd>Path length and taken branches are counted, instruction by instruction. Kernel code only, \
         between marks.</dd>\n",
    );
    if comparison.rows.iter().any(|row| row.model) {
        let _ = writeln!(
            out,
            "<dt>model</dt><dd>Misses are those of a front-end model (<code>{}</code>) fed with the exact \
             instruction stream, not those of a real CPU.{}</dd>",
            Escaped(model_name(comparison)),
            match comparison.metrics().any(|metric| metric == Metric::ModelCycles) {
                true => " Model cycles are all four counts, each times the cost that the file states.",
                false => "",
            },
        );
    }
    out.push_str(
        "<dt>total</dt><dd>The sum of all measured regions: instructions, branches, misses.</dd>\n</dl>\n",
    );
}

/// A sum in at most four digits: `1.187 G`, `179.2 M`, `56.0 k`.
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
