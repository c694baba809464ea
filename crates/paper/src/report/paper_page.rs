//! A paper's tables beside ours, with bars of the improvements.

use super::findings::findings_section;
use super::paper::{aa, clock_remarks, extremes, gain_text, headline, is_timed, std_dev, timed_text};
use super::parts::{percent, section_page};
use super::recipes::recipes_section;
use crate::{ExperimentResult, ExperimentState, ImprovementFigure, MeasuredRow, PaperOutcome, RowResult};
use kerntune_report::comparison::describe;
use kerntune_report::html::{document, minus, model_tag, px, scroll};
use kerntune_table::number;
use maud::{html, Markup};

/// Size of a chart in SVG units.
const WIDTH: f64 = 760.0;
const NAMES_WIDTH: f64 = 250.0;
const VALUES_WIDTH: f64 = 74.0;
const ROW: f64 = 36.0;
const BAR_HEIGHT: f64 = 10.0;
const TOP: f64 = 6.0;

/// Renders one page: summary, and for each table of the paper a chart and the figures. `commands`
/// reproduce it; `written` names the writer and the date.
pub fn page(outcome: &PaperOutcome, commands: &[String], written: &str) -> String {
    let head = html! {
        h1 { (outcome.title) }
        p.quiet {
            (outcome.authors) ", " (outcome.published) ". The paper measured on " (outcome.paper_machine)
            "; here kernels made by " b { (outcome.recipe) } " are measured on machine " b { (outcome.machine) }
            ", model " b { (outcome.model) } "."
        }
        div.lead {
            p { (headline(outcome)) }
            @if let Some(sentence) = extremes(outcome) { p { (sentence) } }
        }
    };
    let content = html! {
        @if !outcome.findings.is_empty() { (findings_section(&outcome.findings, String::new()).page()) }
        @if let Some(section) = recipes_section(outcome) { (section.page()) }
        @for part in &outcome.experiments {
            (section_page(&part.title, &part.about, &html! {
                @match &part.state {
                    ExperimentState::Measured(measured) => { (chart(measured)) (table(measured)) }
                    ExperimentState::NotMade { because } => {
                        p.note { "Not made (workload " (part.workload) "): " (because) }
                    }
                }
            }))
        }
        (method(outcome))
    };
    document(&outcome.title, &head, &content, commands, written)
}

fn method(outcome: &PaperOutcome) -> Markup {
    html! {
        dl.legend {
            dt { "gain" }
            dd { "100 · (base / optimized − 1) of times and counts, the other way round of rates: as the paper counts." }
            dt { "exact" }
            dd {
                "Instructions in the kernel between marks, per operation (of functions: time per call, a nanosecond for \
                 each instruction). They repeat; A/A is a second run of the base kernel."
            }
            dt { "model" }
            dd { "Cycles are those of the front-end model " code { (outcome.model) } ", not a real CPU's." }
            dt { "*" }
            dd { "Not larger than the noise: the paper says so, the A/A difference, or an interval with 0 in it." }
        }
    }
}

/// Draws the paper's bars, and ours below: model cycles, or the exact figure without cycles.
fn chart(measured: &ExperimentResult) -> Markup {
    let lines: Vec<&RowResult> = measured.rows.iter().filter(|line| line.ours.is_some()).collect();
    // Figures that the paper itself calls noise do not widen the scale: their bars end at the edge.
    let gains = lines.iter().flat_map(|line| {
        let paper = (!line.is_noise()).then_some(line.paper_improvement_percent);
        paper.into_iter().chain(line.ranked().map(|figure| figure.improvement_percent))
    });
    let (low, high) = gains.fold((0.0_f64, 1.0_f64), |(low, high), gain| (low.min(gain), high.max(gain)));
    let left = NAMES_WIDTH + if low < 0.0 { VALUES_WIDTH } else { 0.0 };
    let x = |gain: f64| left + (gain.clamp(low, high) - low) / (high - low) * (WIDTH - VALUES_WIDTH - left);
    let height = 2.0 * TOP + ROW * lines.len() as f64;
    let zero = px(x(0.0));
    let bar = |gain: f64, kind: &str, star: bool, y: f64| {
        let (zero, end) = (x(0.0), x(gain));
        let (at, anchor) = if gain < 0.0 { (end - 5.0, "end") } else { (end + 5.0, "start") };
        html! {
            rect class={ "bar " (kind) } x=(px(zero.min(end))) y=(px(y)) width=(px((end - zero).abs().max(1.0)))
                height=(BAR_HEIGHT) rx="1.5" {}
            text.value x=(px(at)) y=(px(y + BAR_HEIGHT / 2.0)) text-anchor=(anchor) {
                (minus(&percent(gain))) @if star { "*" }
            }
        }
    };
    html! {
        figure {
            figcaption { "Improvement: the paper's above, ours below (model cycles where there are any)" }
            svg style=(format!("max-width:{WIDTH}px")) viewBox=(format!("0 0 {WIDTH} {height}")) role="img"
                aria-label="Improvement by row; the figures are in the table below." {
                @for (at, line) in lines.iter().enumerate() {
                    @let top = TOP + ROW * at as f64;
                    text.name x=(px(NAMES_WIDTH - 8.0)) y=(px(top + ROW / 2.0)) { (shortened(&line.name)) }
                    @let theirs = if line.is_noise() { "same" } else { "higher" };
                    (bar(line.paper_improvement_percent, theirs, line.is_noise(), top + 5.0))
                    @if let Some(figure) = line.ranked() {
                        @let ours = if figure.within_noise { "same" } else { "lower" };
                        (bar(figure.improvement_percent, ours, figure.within_noise, top + 7.0 + BAR_HEIGHT))
                    }
                }
                line.zero x1=(zero) x2=(zero) y1=(px(TOP / 2.0)) y2=(px(height - TOP / 2.0)) {}
            }
        }
    }
}

fn table(measured: &ExperimentResult) -> Markup {
    let is_timed = is_timed(measured);
    let mut heads = vec![
        ["base", "optimized", "std dev", "gain", "unit"].as_slice(),
        &["base", "tuned", "A/A %", "gain"],
        &["base", "tuned", "gain"],
        &["instructions, gain", "cycles, gain"],
    ];
    if is_timed {
        heads.push(&["gain", "std dev"]);
    }
    let table = html! {
        table {
            thead {
                tr.groups {
                    td.first {}
                    th.edge colspan="5" scope="colgroup" { "The paper" }
                    th.edge colspan="4" scope="colgroup" { "Ours, exact" }
                    th.edge colspan="3" scope="colgroup" { "Ours, cycles" (model_tag(true)) }
                    th.edge colspan="2" scope="colgroup" { "Ours, whole path" }
                    @if is_timed { th.edge colspan="2" scope="colgroup" { "Ours, by the clock" } }
                }
                tr {
                    th.first scope="col" { "Row" }
                    @for group in heads {
                        @for (at, name) in group.iter().enumerate() {
                            th class=[(at == 0).then_some("edge")] scope="col" { (name) }
                        }
                    }
                }
            }
            tbody { @for line in &measured.rows { (row(line, is_timed)) } }
        }
    };
    html! {
        (scroll("Figures", &table))
        p.quiet {
            "Base: " (describe(&measured.base)) "." br; "Tuned: " (describe(&measured.tuned)) "."
            @for text in clock_remarks(measured) { br; (text) "." }
        }
    }
}

fn row(line: &RowResult, is_timed: bool) -> Markup {
    html! {
        tr {
            th.first scope="row" { (line.name) }
            td.edge { (number::figure(line.paper_base)) }
            td { (number::figure(line.paper_optimized)) }
            td { (line.paper_std_dev.map_or(String::new(), number::figure)) }
            td { (minus(&line.paper_improvement)) }
            td.text.quiet { (line.unit) }
            @match &line.ours {
                Some(ours) => {
                    (ours_cells(ours))
                    @if is_timed {
                        td.edge { (minus(&timed_text(ours))) }
                        td.quiet { (std_dev(ours)) }
                    }
                }
                None => { td.edge.text.quiet colspan=(if is_timed { "11" } else { "9" }) { (line.because.as_deref().unwrap_or_default()) } }
            }
        }
    }
}

fn ours_cells(ours: &MeasuredRow) -> Markup {
    let exact = &ours.exact;
    html! {
        td.edge { (number::figure(exact.base)) }
        td { (number::figure(exact.tuned)) }
        td.quiet { (aa(exact)) }
        (gain(exact))
        @match &ours.model_cycles {
            Some(cycles) => {
                td.edge { (number::figure(cycles.base)) }
                td { (number::figure(cycles.tuned)) }
                (gain(cycles))
            }
            None => { td.edge {} td {} td {} }
        }
        @for (at, whole) in [&ours.whole_instructions, &ours.whole_cycles].into_iter().enumerate() {
            @match whole {
                Some(figure) => { (gain(figure)) }
                None => { td class=[(at == 0).then_some("edge")] {} }
            }
        }
    }
}

fn gain(figure: &ImprovementFigure) -> Markup {
    let kind = match figure {
        _ if figure.within_noise => "same",
        _ if figure.improvement_percent > 0.0 => "lower",
        _ => "higher",
    };
    html! { td class=(kind) { b { (minus(&gain_text(figure))) } } }
}

fn shortened(name: &str) -> String {
    match name.char_indices().nth(38) {
        Some(_) => name.chars().take(37).chain(['…']).collect(),
        None => name.into(),
    }
}
