//! Bars of change: one small picture per metric, all on one scale.

use super::{minus, model_tag};
use crate::comparison::{brief, change_unit, mark};
use kerntune_compare::{Comparison, Metric, Row, TOTAL};
use maud::{html, Markup};

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
    fn of<'a>(rows: impl Iterator<Item = &'a Row> + Clone) -> Self {
        let changes =
            || rows.clone().filter_map(|row| row.change_percent).filter(|change| change.is_finite());
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
pub(super) fn charts(comparison: &Comparison) -> Markup {
    let metrics = brief(comparison);
    let scale = Scale::of(comparison.rows.iter().filter(|row| metrics.contains(&row.metric)));
    html! {
        div.charts {
            @for metric in metrics {
                @let rows: Vec<&Row> = comparison.rows.iter().filter(|row| row.metric == metric).collect();
                @if !rows.is_empty() { (chart(metric, &rows, &scale)) }
            }
        }
    }
}

fn chart(metric: Metric, rows: &[&Row], scale: &Scale) -> Markup {
    let height = 2.0 * TOP + LINE * rows.len() as f64;
    let zero = px(scale.x(0.0));
    let label = format!("Change of {} by operation; the figures are in the table below.", metric.title());
    html! {
        figure {
            figcaption { (capitalised(metric.title())) (model_tag(metric.is_model())) }
            svg viewBox=(format!("0 0 {WIDTH} {height}")) role="img" aria-label=(label) {
                @for (at, row) in rows.iter().enumerate() { (bar(row, TOP + LINE * at as f64, scale)) }
                line.zero x1=(zero) x2=(zero) y1=(px(TOP / 2.0)) y2=(px(height - TOP / 2.0)) {}
            }
        }
    }
}

fn bar(row: &Row, top: f64, scale: &Scale) -> Markup {
    let (zero, middle) = (scale.x(0.0), top + LINE / 2.0);
    let total = if row.operation == TOTAL { " total" } else { "" };
    // From nothing to something is off every scale.
    let end = scale.x(row.change_percent.unwrap_or(f64::MAX));
    // What stands beside the bar has to clear the band of the A/A difference, too.
    let (mut left, mut right) = (zero.min(end), zero.max(end));
    let aa = row.aa_percent.map_or(0.0, f64::abs);
    let (from, to) = (scale.x(-aa), scale.x(aa));
    // Thinner than half a pixel it is only dirt.
    let has_band = to - from > 0.5;
    if has_band {
        (left, right) = (left.min(from), right.max(to));
    }
    let (x, side) = if end < zero { (left - 5.0, "end") } else { (right + 5.0, "start") };
    let kind = kind(row);
    html! {
        text class={ "name" (total) } x=(px(NAMES - 8.0)) y=(px(middle)) { (shortened(&row.operation)) }
        rect class={ "bar " (kind) } x=(px(zero.min(end))) y=(px(middle - BAR / 2.0)) width=(px((end - zero).abs()))
            height=(BAR) rx="1.5" {}
        @if has_band { rect.aa x=(px(from)) y=(px(middle - 1.5)) width=(px(to - from)) height="3" {} }
        text class={ "value " (kind) (total) } x=(px(x)) y=(px(middle)) text-anchor=(side) {
            (minus(&change_unit(row))) (mark(row))
        }
    }
}

/// A coordinate.
pub(super) fn px(at: f64) -> String {
    format!("{at:.1}")
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
