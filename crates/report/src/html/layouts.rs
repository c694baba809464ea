//! Chart of layout sensitivity: a dot per random order, and markers for both kernels.

use super::chart::{capitalized, px};
use super::{model_tag, scroll, signs};
use crate::layouts::{legend, sentences};
use kerntune_compare::{number, Comparison, Metric, RandomLayoutRow, RandomLayouts, TOTAL};
use maud::{html, Markup};

/// Size of the chart in SVG units (pixels at full size).
const WIDTH: f64 = 960.0;
const NAMES_WIDTH: f64 = 230.0;
/// Width of a digit of a total, which is bold.
const DIGIT_WIDTH: f64 = 7.7;
const LINE: f64 = 26.0;
const HEAD: f64 = 24.0;
/// Number of levels over which dots of a line are spread, so that equal figures stay distinct.
const LEVELS: usize = 5;

/// Returns the rows to draw: instructions do not depend on the order.
fn rows(layouts: &RandomLayouts) -> impl Iterator<Item = &RandomLayoutRow> {
    let has_some = |row: &&RandomLayoutRow| row.quartiles[4].max(row.base).max(row.tuned) > 0.0;
    layouts.rows.iter().filter(|row| row.metric != Metric::PathLength).filter(has_some)
}

pub(super) fn section(comparison: &Comparison) -> Option<Markup> {
    let layouts = comparison.layouts.as_ref()?;
    let [first, rest @ ..] = &sentences(layouts)[..] else { return None };
    Some(html! {
        p { (first) }
        ul { @for sentence in rest { li { (signs(sentence)) } } }
        (drawing(layouts))
        (table(layouts))
        @for line in legend(layouts) { p.quiet { (line) } }
    })
}

/// Renders a standalone SVG document; `None` without random layouts.
pub fn picture(comparison: &Comparison) -> Option<String> {
    let drawing = drawing(comparison.layouts.as_ref()?).0;
    // A standalone document has no page that defines its colors.
    let style = "<style>text{font:12px system-ui,sans-serif;fill:#1a1d21;dominant-baseline:central}.name{text-anchor:end}\
                 .total{font-weight:600}.order{fill:#8b929c;opacity:.75}.base{stroke:#b3470a;stroke-width:2.5}\
                 .tuned{stroke:#0b6e8f;stroke-width:2.5}.axis{stroke:#d9dde3}.box{fill:#e4e7eb}</style>\
                 <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>";
    let end = drawing.find('>')? + 1;
    let head = drawing[..end].replacen("<svg", "<svg xmlns=\"http://www.w3.org/2000/svg\"", 1);
    Some(format!("{head}{style}{}\n", &drawing[end..]))
}

/// Draws a group of lines for each metric; each line's scale spans its own values.
fn drawing(layouts: &RandomLayouts) -> Markup {
    let mut metrics: Vec<Metric> = Vec::new();
    for row in rows(layouts) {
        if !metrics.contains(&row.metric) {
            metrics.push(row.metric);
        }
    }
    let mut height = HEAD;
    let groups: Vec<(Metric, Vec<&RandomLayoutRow>, f64)> = metrics
        .into_iter()
        .map(|metric| {
            let (rows, top): (Vec<_>, f64) =
                (rows(layouts).filter(|row| row.metric == metric).collect(), height);
            height += HEAD + LINE * rows.len() as f64;
            (metric, rows, top)
        })
        .collect();
    let digits = rows(layouts).map(|row| range(row).chars().count()).max().unwrap_or(0);
    let right = WIDTH - 20.0 - DIGIT_WIDTH * digits as f64;
    let label =
        "Random layouts of the base kernel, and where the base kernel and the tuned one are among them";
    html! {
        svg viewBox=(format!("0 0 {WIDTH} {}", px(height))) role="img" aria-label=(label) style="max-width:60rem" {
            (key(layouts))
            @for (metric, rows, top) in &groups {
                @let y = top + HEAD / 2.0;
                text.total x="8" y=(px(y)) {
                    (capitalized(metric.title())) @if metric.is_model() && !metric.title().contains("model") { " (model)" }
                    ", " (metric.unit_per_operation())
                }
                @for (at, row) in rows.iter().enumerate() { (line(row, top + HEAD + LINE * at as f64, right)) }
            }
        }
    }
}

fn key(layouts: &RandomLayouts) -> Markup {
    let y = HEAD / 2.0;
    html! {
        circle.order cx="14" cy=(px(y)) r="3" {}
        text x="24" y=(px(y)) { (layouts.kernels.len()) " random orders; box: the middle half" }
        line.base x1="300" x2="300" y1=(px(y - 7.0)) y2=(px(y + 7.0)) {}
        text x="308" y=(px(y)) { "base" }
        line.tuned x1="360" x2="360" y1=(px(y - 7.0)) y2=(px(y + 7.0)) {}
        text x="368" y=(px(y)) { "tuned" }
    }
}

/// Returns the smallest and the largest value on a line.
fn ends(row: &RandomLayoutRow) -> [f64; 2] {
    let [min, .., max] = row.quartiles;
    [min.min(row.base).min(row.tuned), max.max(row.base).max(row.tuned)]
}

/// Formats the line's range, to stand at its right.
fn range(row: &RandomLayoutRow) -> String {
    ends(row).map(number::figure).join(" … ")
}

fn line(row: &RandomLayoutRow, top: f64, right: f64) -> Markup {
    let ([_, low, _, high, _], ends) = (row.quartiles, ends(row));
    let left = NAMES_WIDTH;
    let x = |value: f64| match ends[1] - ends[0] {
        width if width > 0.0 => left + (value - ends[0]) / width * (right - left),
        _ => (left + right) / 2.0,
    };
    let middle = top + LINE / 2.0;
    let y = |at: usize| middle + 3.0 * ((at % LEVELS) as f64 - (LEVELS - 1) as f64 / 2.0);
    let total = if row.operation == TOTAL { " total" } else { "" };
    let mark = |class: &str, value: f64| {
        html! { line class=(class) x1=(px(x(value))) x2=(px(x(value))) y1=(px(top + 3.0)) y2=(px(top + LINE - 3.0)) {} }
    };
    html! {
        text class={ "name" (total) } x=(px(left - 12.0)) y=(px(middle)) { (row.operation) }
        line.axis x1=(px(left)) x2=(px(right)) y1=(px(middle)) y2=(px(middle)) {}
        rect.box x=(px(x(low))) y=(px(middle - 8.0)) width=(px((x(high) - x(low)).max(1.0))) height="16" {}
        @for (at, value) in row.values.iter().enumerate() {
            circle.order cx=(px(x(*value))) cy=(px(y(at))) r="2.5" {}
        }
        (mark("base", row.base)) (mark("tuned", row.tuned))
        text class={ "ends" (total) } x=(px(right + 12.0)) y=(px(middle)) {
            (range(row))
        }
    }
}

fn table(layouts: &RandomLayouts) -> Markup {
    let heads = [
        "base",
        "tuned",
        "least",
        "quarter",
        "median",
        "quarter",
        "most",
        "rank, base",
        "rank, tuned",
        "tuned, % of median",
    ];
    let table = html! {
        table {
            thead { tr { th.first scope="col" { "Operation" } th.text scope="col" { "Metric" } @for head in heads { th scope="col" { (head) } } } }
            tbody {
                @for row in &layouts.rows {
                    tr {
                        th.first scope="row" { (row.operation) }
                        td.text { (capitalized(row.metric.title())) (model_tag(row.model)) }
                        @for figure in [row.base, row.tuned].into_iter().chain(row.quartiles) { td { (number::figure(figure)) } }
                        @for below in [row.below_base, row.below_tuned] { td { (below + 1) "/" (row.values.len() + 1) } }
                        td { (row.change_from_median().map_or(String::new(), |change| super::minus(&number::change(change, 2)))) }
                    }
                }
            }
        }
    };
    scroll("Random layouts", &table)
}
