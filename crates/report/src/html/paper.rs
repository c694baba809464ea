//! A paper's tables and ours, with bars of the improvements.

use super::escape::{minus, Escaped};
use super::{head, CSS, SCRIPT};
use crate::comparison::describe;
use crate::paper::{aa, extremes, gain_text, headline, percent};
use kerntune_compare::number;
use kerntune_paper::{Figure, Line, Measured, Ours, Outcome, State};
use std::fmt::Write;

/// Coordinates of a picture, in its own units.
const WIDTH: f64 = 760.0;
const NAMES: f64 = 250.0;
const VALUES: f64 = 74.0;
const ROW: f64 = 36.0;
const BAR: f64 = 10.0;
const TOP: f64 = 6.0;

/// One page: what came of it, and for each table of the paper a picture and the figures. `commands` repeat it;
/// `written` says who wrote the page and when.
pub fn page(outcome: &Outcome, commands: &[String], written: &str) -> String {
    let mut page = String::new();
    head(&mut page, &outcome.title, "", &[CSS]);
    let _ = write!(
        page,
        "<body>\n<header>\n<h1>{}</h1>\n<p class=\"quiet\">{}, {}. The paper measured on {}; here kernels made by \
         <b>{}</b> are measured on machine <b>{}</b>, model <b>{}</b>.</p>\n<div class=\"lead\"><p>{}</p>",
        Escaped(&outcome.title),
        Escaped(&outcome.authors),
        Escaped(&outcome.published),
        Escaped(&outcome.paper_machine),
        Escaped(&outcome.recipe),
        Escaped(&outcome.machine),
        Escaped(&outcome.model),
        Escaped(headline(outcome)),
    );
    if let Some(sentence) = extremes(outcome) {
        let _ = write!(page, "<p>{}</p>", Escaped(sentence));
    }
    page.push_str("</div>\n</header>\n<main>\n");
    for part in &outcome.experiments {
        let _ = writeln!(page, "<section>\n<h2>{}</h2>", Escaped(&part.title));
        if !part.about.is_empty() {
            let _ = writeln!(page, "<p class=\"quiet\">{}</p>", Escaped(&part.about));
        }
        match &part.state {
            State::Measured(measured) => {
                chart(&mut page, measured);
                table(&mut page, measured);
            }
            State::NotMade { because } => {
                let (workload, because) = (Escaped(&part.workload), Escaped(because));
                let _ = writeln!(page, "<p class=\"note\">Not made (workload {workload}): {because}</p>");
            }
        }
        page.push_str("</section>\n");
    }
    page.push_str(&method(outcome));
    page.push_str(&super::runs::commands(commands));
    let _ = write!(
        page,
        "</main>\n<footer>Written by {}.</footer>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        Escaped(written)
    );
    page
}

fn method(outcome: &Outcome) -> String {
    format!(
        "<dl class=\"legend\">\n<dt>gain</dt><dd>100 · (base / optimised − 1) of times and counts, the other way round of \
         rates: as the paper counts.</dd>\n<dt>exact</dt><dd>Instructions in the kernel between marks, per operation (of \
         functions: time per call, a nanosecond for each instruction). They repeat; A/A is a second run of the base \
         kernel.</dd>\n<dt>model</dt><dd>Cycles are those of the front-end model <code>{}</code>, not a real \
         CPU's.</dd>\n<dt>*</dt><dd>Not larger than the noise: the paper says so, or the A/A difference.</dd>\n</dl>\n",
        Escaped(&outcome.model)
    )
}

/// The paper's bar, and below it ours: model cycles, or the exact figure where there are none.
fn chart(out: &mut String, measured: &Measured) {
    let lines: Vec<&Line> = measured.rows.iter().filter(|line| line.ours.is_some()).collect();
    // What the paper itself calls noise has no say in the scale: its bar ends at the edge.
    let gains = lines.iter().flat_map(|line| {
        let paper = (!line.is_noise()).then_some(line.paper_improvement_percent);
        paper.into_iter().chain(line.ranked().map(|figure| figure.improvement_percent))
    });
    let (low, high) = gains.fold((0.0_f64, 1.0_f64), |(low, high), gain| (low.min(gain), high.max(gain)));
    let left = NAMES + if low < 0.0 { VALUES } else { 0.0 };
    let x = |gain: f64| left + (gain.clamp(low, high) - low) / (high - low) * (WIDTH - VALUES - left);
    let height = 2.0 * TOP + ROW * lines.len() as f64;
    let _ = writeln!(
        out,
        "<figure>\n<figcaption>Improvement: the paper's above, ours below (model cycles where there are any)</figcaption>\n\
         <svg style=\"max-width:{WIDTH}px\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"Improvement by \
         row; the figures are in the table below.\">"
    );
    for (at, line) in lines.iter().enumerate() {
        let top = TOP + ROW * at as f64;
        let _ = writeln!(
            out,
            "<text class=\"name\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            NAMES - 8.0,
            top + ROW / 2.0,
            Escaped(shortened(&line.name))
        );
        let ours = line.ranked();
        let theirs = if line.is_noise() { "same" } else { "higher" };
        let mut bar = |gain: f64, kind: &str, star: bool, y: f64| {
            let (zero, end) = (x(0.0), x(gain));
            let (at, anchor) = if gain < 0.0 { (end - 5.0, "end") } else { (end + 5.0, "start") };
            let _ = writeln!(
                out,
                "<rect class=\"bar {kind}\" x=\"{:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{BAR}\" rx=\"1.5\"/>\n\
                 <text class=\"value\" x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}{}</text>",
                zero.min(end),
                (end - zero).abs().max(1.0),
                y + BAR / 2.0,
                minus(&percent(gain)),
                if star { "*" } else { "" },
            );
        };
        bar(line.paper_improvement_percent, theirs, line.is_noise(), top + 5.0);
        if let Some(figure) = ours {
            let kind = if figure.within_noise { "same" } else { "lower" };
            bar(figure.improvement_percent, kind, figure.within_noise, top + 7.0 + BAR);
        }
    }
    let zero = x(0.0);
    let _ = writeln!(
        out,
        "<line class=\"zero\" x1=\"{zero:.1}\" x2=\"{zero:.1}\" y1=\"{:.1}\" y2=\"{:.1}\"/>\n</svg>\n</figure>",
        TOP / 2.0,
        height - TOP / 2.0
    );
}

fn table(out: &mut String, measured: &Measured) {
    out.push_str(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Figures\">\n<table>\n<thead>\n\
         <tr class=\"groups\"><td class=\"first\"></td><th class=\"edge\" colspan=\"5\" scope=\"colgroup\">The paper</th>\
         <th class=\"edge\" colspan=\"4\" scope=\"colgroup\">Ours, exact</th><th class=\"edge\" colspan=\"3\" \
         scope=\"colgroup\">Ours, cycles <span class=\"tag model\">model</span></th></tr>\n\
         <tr><th class=\"first\" scope=\"col\">Row</th>",
    );
    let heads = [
        ["base", "optimised", "std dev", "gain", "unit"].as_slice(),
        &["base", "tuned", "A/A %", "gain"],
        &["base", "tuned", "gain"],
    ];
    for group in heads {
        for (at, name) in group.iter().enumerate() {
            let edge = if at == 0 { " class=\"edge\"" } else { "" };
            let _ = write!(out, "<th{edge} scope=\"col\">{name}</th>");
        }
    }
    out.push_str("</tr>\n</thead>\n<tbody>\n");
    for line in &measured.rows {
        let _ = write!(
            out,
            "<tr><th class=\"first\" scope=\"row\">{}</th><td class=\"edge\">{}</td><td>{}</td><td>{}</td><td>{}</td>\
             <td class=\"text quiet\">{}</td>",
            Escaped(&line.name),
            number::figure(line.paper_base),
            number::figure(line.paper_optimised),
            line.paper_std_dev.map_or(String::new(), number::figure),
            Escaped(minus(&line.paper_improvement)),
            Escaped(&line.unit),
        );
        match &line.ours {
            Some(ours) => ours_cells(out, ours),
            None => {
                let because = line.because.as_deref().unwrap_or_default();
                let _ = write!(out, "<td class=\"edge text quiet\" colspan=\"7\">{}</td>", Escaped(because));
            }
        }
        out.push_str("</tr>\n");
    }
    let _ = writeln!(
        out,
        "</tbody>\n</table>\n</div>\n<p class=\"quiet\">Base: {}.<br>Tuned: {}.</p>",
        Escaped(describe(&measured.base)),
        Escaped(describe(&measured.tuned))
    );
}

fn ours_cells(out: &mut String, ours: &Ours) {
    let exact = &ours.exact;
    let _ = write!(
        out,
        "<td class=\"edge\">{}</td><td>{}</td><td class=\"quiet\">{}</td>{}",
        number::figure(exact.base),
        number::figure(exact.tuned),
        Escaped(aa(exact)),
        gain(exact),
    );
    match &ours.model_cycles {
        Some(cycles) => {
            let (base, tuned) = (number::figure(cycles.base), number::figure(cycles.tuned));
            let _ = write!(out, "<td class=\"edge\">{base}</td><td>{tuned}</td>{}", gain(cycles));
        }
        None => out.push_str("<td class=\"edge\"></td><td></td><td></td>"),
    }
}

fn gain(figure: &Figure) -> String {
    let kind = match figure {
        _ if figure.within_noise => "same",
        _ if figure.improvement_percent > 0.0 => "lower",
        _ => "higher",
    };
    format!("<td class=\"{kind}\"><b>{}</b></td>", minus(&gain_text(figure)))
}

fn shortened(name: &str) -> String {
    match name.char_indices().nth(38) {
        Some(_) => name.chars().take(37).chain(['…']).collect(),
        None => name.into(),
    }
}
