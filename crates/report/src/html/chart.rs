//! Bars of change: one small picture per metric, all on one scale.

use super::escape::{minus, Escaped};
use crate::comparison::change_unit;
use kerntune_compare::{Comparison, Metric, Row, TOTAL};
use std::fmt::Write;

/// Coordinates of a picture, in its own units (pixels when shown at full size).
const WIDTH: f64 = 470.0;
const NAMES: f64 = 116.0;
const VALUES: f64 = 66.0;
const LINE: f64 = 21.0;
const BAR: f64 = 12.0;
const TOP: f64 = 6.0;

/// The scale that all pictures share: from the lowest to the highest change in per cent, with 0.
struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    fn of(rows: &[Row]) -> Self {
        let changes = || rows.iter().filter_map(|row| row.change_percent).filter(|change| change.is_finite());
        let (low, high) = (changes().fold(0.0, f64::min), changes().fold(0.0, f64::max));
        // Nothing changed: any scale will do, as long as it is one.
        let (low, high) = if low == high { (-1.0, 1.0) } else { (low, high) };
        // One outlier must not make all other bars invisible; its bar is then cut, its figure is not.
        Self { low: low.max(-100.0), high: high.min(150.0) }
    }

    fn x(&self, change: f64) -> f64 {
        // Figures stand at the ends of bars: always to the right, where equal ones are too.
        let left = NAMES + if self.low < 0.0 { VALUES } else { 4.0 };
        let right = WIDTH - VALUES;
        let change = change.clamp(self.low, self.high);
        left + (change - self.low) / (self.high - self.low) * (right - left)
    }
}

/// One `<figure>` per metric, in a grid.
pub(super) fn charts(out: &mut String, comparison: &Comparison) {
    let scale = Scale::of(&comparison.rows);
    out.push_str("<div class=\"charts\">\n");
    for metric in comparison.metrics() {
        let rows: Vec<&Row> = comparison.rows.iter().filter(|row| row.metric == metric).collect();
        chart(out, metric, &rows, &scale);
    }
    out.push_str("</div>\n");
}

fn chart(out: &mut String, metric: Metric, rows: &[&Row], scale: &Scale) {
    let height = 2.0 * TOP + LINE * rows.len() as f64;
    let zero = scale.x(0.0);
    let tag = if metric.is_model() { " <span class=\"tag model\">model</span>" } else { "" };
    let _ = write!(
        out,
        "<figure>\n<figcaption>{}{tag}</figcaption>\n<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         aria-label=\"Change of {} by operation; the figures are in the table below.\">\n",
        capitalised(metric.title()),
        metric.title(),
    );
    for (at, row) in rows.iter().enumerate() {
        bar(out, row, TOP + LINE * at as f64, scale);
    }
    let _ = write!(
        out,
        "<line class=\"zero\" x1=\"{zero:.1}\" x2=\"{zero:.1}\" y1=\"{:.1}\" y2=\"{:.1}\"/>\n</svg>\n</figure>\n",
        TOP / 2.0,
        height - TOP / 2.0,
    );
}

fn bar(out: &mut String, row: &Row, top: f64, scale: &Scale) {
    let (zero, middle) = (scale.x(0.0), top + LINE / 2.0);
    let total = if row.operation == TOTAL { " total" } else { "" };
    let _ = writeln!(
        out,
        "<text class=\"name{total}\" x=\"{:.1}\" y=\"{middle:.1}\">{}</text>",
        NAMES - 8.0,
        Escaped(shortened(&row.operation)),
    );
    // From nothing to something is off every scale.
    let end = scale.x(row.change_percent.unwrap_or(f64::MAX));
    let kind = kind(row);
    let _ = writeln!(
        out,
        "<rect class=\"bar {kind}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{BAR}\" rx=\"1.5\"/>",
        zero.min(end),
        middle - BAR / 2.0,
        (end - zero).abs(),
    );
    // What stands beside the bar has to clear the band of the A/A difference, too.
    let (mut left, mut right) = (zero.min(end), zero.max(end));
    let aa = row.aa_percent.map_or(0.0, f64::abs);
    let (from, to) = (scale.x(-aa), scale.x(aa));
    // Thinner than half a pixel it is only dirt.
    if to - from > 0.5 {
        (left, right) = (left.min(from), right.max(to));
        let _ = writeln!(
            out,
            "<rect class=\"aa\" x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"3\"/>",
            middle - 1.5,
            to - from,
        );
    }
    let (x, side) = if end < zero { (left - 5.0, "end") } else { (right + 5.0, "start") };
    let star = if row.within_noise() { "*" } else { "" };
    let _ = writeln!(
        out,
        "<text class=\"value {kind}{total}\" x=\"{x:.1}\" y=\"{middle:.1}\" text-anchor=\"{side}\">{}{star}</text>",
        minus(&change_unit(row)),
    );
}

/// The class that colours a change.
pub(super) fn kind(row: &Row) -> &'static str {
    match row {
        _ if row.is_better() => "lower",
        _ if row.is_worse() => "higher",
        _ => "same",
    }
}

pub(super) fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        // The first letter of iTLB stays small.
        Some(first) if !text.starts_with("iTLB") => first.to_uppercase().chain(chars).collect(),
        _ => text.into(),
    }
}

/// An operation's name in the room that there is.
fn shortened(name: &str) -> String {
    match name.char_indices().nth(17) {
        Some(_) => name.chars().take(16).chain(['…']).collect(),
        None => name.into(),
    }
}
