//! Chart of modeled against timed changes: a point per row, its confidence interval across, the
//! models' range up and down.

use super::chart::px;
use crate::prediction::sentences;
use kerntune_stats::{ModelRange, PredictedRow, Prediction};
use kerntune_table::number;
use maud::{html, Markup};

/// Size of the chart in SVG units (pixels at full size).
const SIDE: f64 = 640.0;
const LEFT: f64 = 60.0;
const TOP: f64 = 80.0;
const BELOW: f64 = 44.0;
const KEY: f64 = 20.0;
/// Colors of recipes, distinguishable with color vision deficiency.
const COLORS: [&str; 6] = ["#0b6e8f", "#b3470a", "#6a3d9a", "#3f7d20", "#8b6d00", "#8b3a62"];

/// Range of both axes in per cent, and the step of the grid.
struct AxisScale {
    low: f64,
    high: f64,
    step: f64,
}

impl AxisScale {
    fn of<'a>(points: impl Iterator<Item = &'a (PredictedRow, ModelRange)>) -> Self {
        let (mut low, mut high) = (0.0_f64, 0.0_f64);
        for (row, range) in points {
            low = low.min(row.measured_percent).min(range.low_percent).min(row.low_percent);
            high = high.max(row.measured_percent).max(range.high_percent);
            high = high.max(row.high_percent.unwrap_or(row.measured_percent));
        }
        // Intervals of few boots may be very wide: they are cut.
        let (low, high) = (low.max(-100.0), high.min(100.0));
        let step = [1.0, 2.0, 5.0, 10.0, 20.0].into_iter().find(|step| (high - low) / step <= 12.0);
        let step = step.unwrap_or(50.0);
        let (low, high) = ((low / step).floor() * step, (high / step).ceil() * step);
        Self { low, high: if high > low { high } else { low + step }, step }
    }

    /// Maps a change to a position on an axis, from 0 to [`SIDE`].
    fn along(&self, change: f64) -> f64 {
        (change.clamp(self.low, self.high) - self.low) / (self.high - self.low) * SIDE
    }

    fn x(&self, change: f64) -> String {
        px(LEFT + self.along(change))
    }

    fn y(&self, change: f64) -> String {
        px(TOP + SIDE - self.along(change))
    }

    fn lines(&self) -> Vec<f64> {
        let count = ((self.high - self.low) / self.step).round() as usize;
        (0..=count).map(|at| self.low + at as f64 * self.step).collect()
    }
}

/// Renders a standalone SVG document; `None` without several models.
pub fn picture(prediction: &Prediction) -> Option<String> {
    let models = prediction.under_models.as_ref()?;
    let points: Vec<(PredictedRow, ModelRange)> =
        prediction.rows.iter().filter_map(|row| Some((row.clone(), row.range?))).collect();
    if points.is_empty() {
        return None;
    }
    let mut recipes: Vec<&str> = Vec::new();
    for (row, _) in &points {
        if !recipes.contains(&row.recipe.as_str()) {
            recipes.push(&row.recipe);
        }
    }
    let color = |row: &PredictedRow| {
        let at = recipes.iter().position(|recipe| *recipe == row.recipe).unwrap_or_default();
        COLORS[at % COLORS.len()]
    };
    let scale = AxisScale::of(points.iter());
    let width = LEFT + SIDE + 20.0;
    let height = TOP + SIDE + BELOW + KEY * recipes.len() as f64;
    let drawing = html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 {} {}", px(width), px(height))) role="img" aria-label="The models against the clock" {
            style {
                "text{font:12px system-ui,sans-serif;fill:#1a1d21}.end{text-anchor:end}.mid{text-anchor:middle}\
                 .grid{stroke:#e4e7eb}.zero{stroke:#8b929c}.same{stroke:#8b929c;stroke-dasharray:4 4}"
            }
            rect width="100%" height="100%" fill="#fff" {}
            @for (at, sentence) in sentences(models).iter().enumerate() {
                text x="8" y=(px(18.0 + 18.0 * at as f64)) { (sentence) }
            }
            @for change in scale.lines() {
                @let class = if change == 0.0 { "zero" } else { "grid" };
                line class=(class) x1=(scale.x(change)) x2=(scale.x(change)) y1=(px(TOP)) y2=(px(TOP + SIDE)) {}
                line class=(class) x1=(px(LEFT)) x2=(px(LEFT + SIDE)) y1=(scale.y(change)) y2=(scale.y(change)) {}
                text.mid x=(scale.x(change)) y=(px(TOP + SIDE + 16.0)) { (number::change(change, 0)) }
                text.end x=(px(LEFT - 6.0)) y=(scale.y(change)) { (number::change(change, 0)) }
            }
            line.same x1=(scale.x(scale.low)) y1=(scale.y(scale.low)) x2=(scale.x(scale.high)) y2=(scale.y(scale.high)) {}
            text.end x=(px(LEFT + SIDE)) y=(px(TOP + SIDE + 34.0)) { "change of the time by the clock, %, with its interval" }
            text x="8" y=(px(TOP - 10.0)) { "change of model cycles, %: the range of " (models.models.len()) " models" }
            @for (row, range) in &points { (point(row, *range, &scale, color(row))) }
            @for (at, recipe) in recipes.iter().enumerate() {
                @let y = TOP + SIDE + BELOW + KEY * at as f64;
                rect x="8" y=(px(y - 9.0)) width="10" height="10" fill=(COLORS[at % COLORS.len()]) {}
                text x="24" y=(px(y)) { (recipe) }
            }
        }
    };
    Some(drawing.0 + "\n")
}

fn point(row: &PredictedRow, range: ModelRange, scale: &AxisScale, color: &str) -> Markup {
    let middle = (range.low_percent + range.high_percent) / 2.0;
    let high = row.high_percent.unwrap_or(scale.high);
    let title = format!(
        "{}: clock {} %, models {} to {} %",
        row.name(),
        number::change(row.measured_percent, 1),
        number::change(range.low_percent, 1),
        number::change(range.high_percent, 1)
    );
    html! {
        g stroke=(color) fill=(color) {
            title { (title) }
            line x1=(scale.x(row.low_percent)) x2=(scale.x(high)) y1=(scale.y(middle)) y2=(scale.y(middle)) opacity="0.35" {}
            line x1=(scale.x(row.measured_percent)) x2=(scale.x(row.measured_percent)) y1=(scale.y(range.low_percent)) y2=(scale.y(range.high_percent)) stroke-width="2" {}
            circle cx=(scale.x(row.measured_percent)) cy=(scale.y(middle)) r="3.5" fill=(if range.inside { color } else { "#fff" }) {}
        }
    }
}
