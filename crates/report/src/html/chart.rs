//! Bar charts of changes: one per metric, all on one scale.

use super::{minus, model_tag};
use crate::comparison::{brief, change_unit, mark};
use kerntune_compare::{Comparison, Metric, MetricRow, TOTAL};
use maud::{html, Markup};

/// Size of a chart in SVG units (pixels at full size).
const WIDTH: f64 = 470.0;
const NAMES_WIDTH: f64 = 116.0;
const VALUES_WIDTH: f64 = 66.0;
const LINE: f64 = 21.0;
const BAR_HEIGHT: f64 = 12.0;
const TOP: f64 = 6.0;

/// Scale shared by all charts: lowest to highest change in per cent, including 0.
struct PercentScale {
    low: f64,
    high: f64,
}

impl PercentScale {
    fn of<'a>(rows: impl Iterator<Item = &'a MetricRow> + Clone) -> Self {
        let changes =
            || rows.clone().filter_map(|row| row.change_percent).filter(|change| change.is_finite());
        let (low, high) = (changes().fold(0.0, f64::min), changes().fold(0.0, f64::max));
        // Without any change, any valid scale will do.
        let (low, high) = if low == high { (-1.0, 1.0) } else { (low, high) };
        // An outlier must not make other bars invisible: its bar is cut, its figure is not.
        Self { low: low.max(-100.0), high: high.min(150.0) }
    }

    fn x(&self, change: f64) -> f64 {
        // Figures stand beyond the ends of bars. Those without a change stand at the right, which
        // therefore always has room for them.
        let left = NAMES_WIDTH + if self.low < 0.0 { VALUES_WIDTH } else { 4.0 };
        let right = WIDTH - VALUES_WIDTH;
        let change = change.clamp(self.low, self.high);
        left + (change - self.low) / (self.high - self.low) * (right - left)
    }
}

/// Renders one `<figure>` per metric, in a grid.
pub(super) fn charts(comparison: &Comparison) -> Markup {
    let metrics = brief(comparison);
    let scale = PercentScale::of(comparison.rows.iter().filter(|row| metrics.contains(&row.metric)));
    html! {
        div.charts {
            @for metric in metrics {
                @let rows: Vec<&MetricRow> = comparison.rows.iter().filter(|row| row.metric == metric).collect();
                @if !rows.is_empty() { (chart(metric, &rows, &scale)) }
            }
        }
    }
}

fn chart(metric: Metric, rows: &[&MetricRow], scale: &PercentScale) -> Markup {
    let height = 2.0 * TOP + LINE * rows.len() as f64;
    let zero = px(scale.x(0.0));
    let label = format!("Change of {} by operation; the figures are in the table below.", metric.title());
    html! {
        figure {
            figcaption { (capitalized(metric.title())) (model_tag(metric.is_model())) }
            svg viewBox=(format!("0 0 {WIDTH} {height}")) role="img" aria-label=(label) {
                @for (at, row) in rows.iter().enumerate() { (bar(row, TOP + LINE * at as f64, scale)) }
                line.zero x1=(zero) x2=(zero) y1=(px(TOP / 2.0)) y2=(px(height - TOP / 2.0)) {}
            }
        }
    }
}

fn bar(row: &MetricRow, top: f64, scale: &PercentScale) -> Markup {
    let (zero, middle) = (scale.x(0.0), top + LINE / 2.0);
    let total = if row.operation == TOTAL { " total" } else { "" };
    // A change from 0 is off every scale.
    let end = scale.x(row.change_percent.unwrap_or(f64::MAX));
    // The figure must also clear the band of the A/A difference.
    let (mut left, mut right) = (zero.min(end), zero.max(end));
    let aa = row.aa_percent.map_or(0.0, f64::abs);
    let (from, to) = (scale.x(-aa), scale.x(aa));
    // A band thinner than half a pixel looks like a smudge.
    let has_band = to - from > 0.5;
    if has_band {
        (left, right) = (left.min(from), right.max(to));
    }
    let (x, side) = if end < zero { (left - 5.0, "end") } else { (right + 5.0, "start") };
    let kind = kind(row);
    html! {
        text class={ "name" (total) } x=(px(NAMES_WIDTH - 8.0)) y=(px(middle)) { (shortened(&row.operation)) }
        rect class={ "bar " (kind) } x=(px(zero.min(end))) y=(px(middle - BAR_HEIGHT / 2.0)) width=(px((end - zero).abs()))
            height=(BAR_HEIGHT) rx="1.5" {}
        @if has_band { rect.aa x=(px(from)) y=(px(middle - 1.5)) width=(px(to - from)) height="3" {} }
        text class={ "value " (kind) (total) } x=(px(x)) y=(px(middle)) text-anchor=(side) {
            (minus(&change_unit(row))) (mark(row))
        }
    }
}

/// Formats a coordinate.
pub fn px(at: f64) -> String {
    format!("{at:.1}")
}

/// Returns the CSS class that colors a change.
pub(super) fn kind(row: &MetricRow) -> &'static str {
    match row {
        _ if row.is_better() => "lower",
        _ if row.is_worse() => "higher",
        _ => "same",
    }
}

pub(super) fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        // iTLB keeps its lower-case first letter.
        Some(first) if !text.starts_with("iTLB") => first.to_uppercase().chain(chars).collect(),
        _ => text.into(),
    }
}

/// Shortens an operation's name to the space available.
fn shortened(name: &str) -> String {
    match name.char_indices().nth(17) {
        Some(_) => name.chars().take(16).chain(['…']).collect(),
        None => name.into(),
    }
}
