//! History of guarded rows over versions and commits: a chart each, with their steps.

use super::chart::px;
use super::{footer, minus, page, scroll, CSS};
use kerntune_table::number::{figure, fixed};
use maud::{html, Markup};

/// Size of a chart in SVG units (pixels at full size).
const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 90.0;
const MARGIN: f64 = 8.0;
/// CSS of the charts, in addition to that of all pages.
const STYLE: &str = ".history svg{width:100%;max-width:760px;height:auto}\
    .history polyline{fill:none;stroke:currentColor;stroke-width:1.5}\
    .history circle{fill:currentColor}.history circle.longer{fill:var(--higher)}.history circle.shorter{fill:var(--lower)}\
    .history line.none{stroke:currentColor;stroke-dasharray:2 3;opacity:.35}";

/// Point of the history: a kernel or a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryPoint {
    /// Short name, shown on the axis.
    pub label: String,
    /// Description in one line.
    pub about: String,
    /// Reason why the point has no figures; `None` if it has.
    pub failure: Option<String>,
}

/// Step of a row: a change by more than the tolerance.
#[derive(Debug, Clone, PartialEq)]
pub struct HistoryStep {
    /// Index of the point at which the value changed.
    pub at: usize,
    /// Values before and after.
    pub values: [f64; 2],
}

/// Guarded row over all points.
#[derive(Debug, Clone, PartialEq)]
pub struct HistoryRow {
    /// Name with its workload: `rr: tcp_rr`.
    pub name: String,
    /// Value at each point; `None` where it was not measured.
    pub values: Vec<Option<f64>>,
    /// Steps in order of points.
    pub steps: Vec<HistoryStep>,
    /// Spread of the values between steps, in per cent.
    pub spread_percent: f64,
}

/// Input of the history page.
#[derive(Debug, Clone, Copy)]
pub struct HistoryPage<'a> {
    /// Points in order.
    pub points: &'a [HistoryPoint],
    /// Rows, one chart each.
    pub rows: &'a [HistoryRow],
    /// Unit of the values.
    pub unit: &'a str,
    /// Writer of the page, and date.
    pub written: &'a str,
}

/// Renders a self-contained page without scripts.
pub fn history(of: &HistoryPage) -> String {
    let stepped: Vec<&HistoryRow> = of.rows.iter().filter(|row| !row.steps.is_empty()).collect();
    let missing: Vec<&HistoryPoint> = of.points.iter().filter(|point| point.failure.is_some()).collect();
    let headline = format!(
        "{} rows at {} places; {} of them stepped.",
        of.rows.len(),
        of.points.len(),
        if stepped.is_empty() { "none".to_owned() } else { stepped.len().to_string() }
    );
    let body = html! {
        body {
            header {
                h1 { "Paths over versions and commits" }
                div.lead { p { (headline) } }
                nav aria-label="Contents" { a href="#steps" { "Steps" } a href="#rows" { "Rows" } a href="#places" { "Places" } }
            }
            main.history {
                section id="steps" {
                    h2 { "Where rows stepped" }
                    @if stepped.is_empty() { p { "No row changed by more than its tolerance." } }
                    @else { (scroll("Steps", &steps(of, &stepped))) }
                }
                section id="rows" {
                    h2 { "Rows" }
                    @for row in of.rows { (picture(of, row)) }
                }
                section id="places" {
                    h2 { "Places" }
                    @if !missing.is_empty() { p.quiet { (missing.len()) " have no figures." } }
                    (scroll("Places", &places(of.points)))
                }
            }
            (footer(of.written))
        }
    };
    page("kerntune guard: history", None, &[CSS, STYLE], &body)
}

fn change([before, after]: [f64; 2]) -> String {
    if before == 0.0 {
        return "new".into();
    }
    let percent = 100.0 * (after / before - 1.0);
    let sign = if percent > 0.0 { "+" } else { "" };
    minus(&format!("{sign}{} %", fixed(percent, 3)))
}

fn steps(of: &HistoryPage, rows: &[&HistoryRow]) -> Markup {
    html! {
        table {
            thead { tr {
                th.text scope="col" { "row" } th.text scope="col" { "at" } th.number scope="col" { "before" }
                th.number scope="col" { "after" } th.number scope="col" { "change" } th.text scope="col" { "what" }
            } }
            tbody {
                @for row in rows { @for step in &row.steps {
                    @let point = of.points.get(step.at);
                    tr {
                        td.text { (row.name) }
                        td.text { (point.map_or("", |point| &point.label)) }
                        td.number { (figure(step.values[0])) }
                        td.number { (figure(step.values[1])) }
                        td.number { (change(step.values)) }
                        td.text { (point.map_or("", |point| &point.about)) }
                    }
                } }
            }
        }
    }
}

fn picture(of: &HistoryPage, row: &HistoryRow) -> Markup {
    let known = || row.values.iter().flatten().copied();
    let (min, max) = (known().fold(f64::INFINITY, f64::min), known().fold(f64::NEG_INFINITY, f64::max));
    if min > max {
        return html! { figure { figcaption { (row.name) ": no figures" } } };
    }
    // A flat line is centered, and noise stays small: 0.1 % fills at least a tenth of the chart.
    let room = (max - min).max(max.abs() * 0.01).max(f64::MIN_POSITIVE);
    let middle = (max + min) / 2.0;
    let x = |at: usize| {
        let places = row.values.len().saturating_sub(1).max(1) as f64;
        MARGIN + (WIDTH - 2.0 * MARGIN) * at as f64 / places
    };
    let y = |value: f64| HEIGHT / 2.0 - (value - middle) / room * (HEIGHT - 2.0 * MARGIN);
    let points: Vec<(usize, f64)> =
        row.values.iter().enumerate().filter_map(|(at, value)| Some((at, (*value)?))).collect();
    let line: Vec<String> =
        points.iter().map(|(at, value)| format!("{},{}", px(x(*at)), px(y(*value)))).collect();
    let class = |at: usize| match row.steps.iter().find(|step| step.at == at) {
        Some(step) if step.values[1] > step.values[0] => "longer",
        Some(_) => "shorter",
        None => "",
    };
    let label =
        format!("{} over {} places; the figures are in the table of steps.", row.name, row.values.len());
    html! {
        figure {
            figcaption {
                b { (row.name) } " " (figure(min)) @if max > min { "\u{2013}" (figure(max)) } " " (of.unit)
                span.quiet { ", " (row.steps.len()) @if row.steps.len() == 1 { " step" } @else { " steps" } ", "
                    (fixed(row.spread_percent, 4)) " % between steps" }
            }
            svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(label) {
                @for (at, _) in row.values.iter().enumerate().filter(|(_, value)| value.is_none()) {
                    line.none x1=(px(x(at))) x2=(px(x(at))) y1="0" y2=(HEIGHT) {}
                }
                polyline points=(line.join(" ")) {}
                @for (at, value) in &points {
                    circle class=(class(*at)) cx=(px(x(*at))) cy=(px(y(*value))) r=(if class(*at).is_empty() { "1.8" } else { "4" }) {
                        title { (of.points.get(*at).map_or("", |point| &point.label)) ": " (fixed(*value, 2)) }
                    }
                }
            }
        }
    }
}

fn places(points: &[HistoryPoint]) -> Markup {
    html! {
        table {
            thead { tr { th.text scope="col" { "place" } th.text scope="col" { "what" } th.text scope="col" { "figures" } } }
            tbody { @for point in points {
                tr {
                    td.text { (point.label) } td.text { (point.about) }
                    td.text { (point.failure.as_deref().map_or("yes", |why| why.lines().next().unwrap_or_default())) }
                }
            } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_stands_by_itself_and_shows_steps() {
        let point = |label: &str, failure: Option<&str>| HistoryPoint {
            label: label.into(),
            about: "fix <b>".into(),
            failure: failure.map(String::from),
        };
        let points = [point("a1", None), point("b2", Some("does not build\nlog")), point("c3", None)];
        let row = |name: &str, values: &[Option<f64>], steps| HistoryRow {
            name: name.into(),
            values: values.to_vec(),
            steps,
            spread_percent: 0.001,
        };
        let step = HistoryStep { at: 2, values: [1000.0, 1010.0] };
        let rows = [
            row("rr: tcp_rr", &[Some(1000.0), None, Some(1010.0)], vec![step]),
            row("rr: stat", &[Some(5.0), None, Some(5.0)], Vec::new()),
            row("rr: none", &[None, None, None], Vec::new()),
        ];
        let page = history(&HistoryPage {
            points: &points,
            rows: &rows,
            unit: "instructions/op",
            written: "kerntune",
        });
        assert!(
            page.contains("3 rows at 3 places; 1 of them stepped.") && page.contains("+1.000 %"),
            "{page}"
        );
        assert!(
            page.contains("fix &lt;b&gt;")
                && page.contains("does not build")
                && page.contains("class=\"longer\"")
        );
        assert_eq!(page.matches("<polyline").count(), 2);
        assert!(!page.contains("<script") && !page.contains("http") && !page.contains("NaN"), "{page}");
    }
}
