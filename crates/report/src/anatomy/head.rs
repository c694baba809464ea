//! Head of the report: operation, number of calls, distribution of their figures.

use super::{per, AnatomyView};
use kerntune_table::columns::{Alignment, TableBuilder, TextCell};
use kerntune_table::{printable, Style, TextRole};
use kerntune_analyze::anatomy::{Anatomy, ExampleCall, FigureSpread, FigureSpreads};
use kerntune_table::number::grouped;

/// Renders title, numbers of calls, and distribution of their figures.
pub(super) fn text(shown: &AnatomyView, style: Style) -> String {
    let anatomy = shown.anatomy;
    let place = shown.file(shown.function).map_or(String::new(), |file| format!(" ({})", printable(file)));
    let mut out =
        style.paint(TextRole::Head, &format!("Anatomy of {}{place}", shown.name(shown.function))) + "\n\n";
    let mut line = |head: &str, value: String| out += &format!("{head:<20} = {value}\n");
    if let Some(region) = shown.region {
        line("Region", printable(region));
    }
    line("Calls", format!("{}, each from entry to exit", grouped(shown.calls())));
    for (head, value) in left_out(anatomy) {
        line(head, value);
    }
    for (head, call) in [("Typical call", &anatomy.typical), ("Worst call", &anatomy.worst)] {
        if let Some(call) = call {
            line(head, call_line(shown, call));
        }
    }
    let rounding = anatomy.all.ns.rounding;
    if rounding > 0 {
        line("Median", format!("within {} {}", grouped(rounding), shown.unit()));
    }
    out.push('\n');
    out += &spreads(shown, &anatomy.all, None).render(style);
    if let Some(call) = &anatomy.worst {
        let hint = format!(
            "kerntune report {} path --function {} --at {} shows the worst call\n",
            shown.profile.manifest.id,
            shown.asked(),
            call.begin_ns
        );
        out += &style.paint(TextRole::Faint, &hint);
    }
    out
}

/// Counts the calls that are excluded from the figures.
pub(super) fn left_out(anatomy: &Anatomy) -> Vec<(&'static str, String)> {
    let missing: u64 = anatomy.missing.iter().map(|missing| missing.events).sum();
    [
        ("Not seen whole", anatomy.cut, "calls whose beginning or end was not recorded"),
        ("Not followed", anatomy.crowded, "calls while more than a thousand others were open"),
        (
            "Folded",
            anatomy.folded,
            "calls below that found no room in the tree: their time is their caller's",
        ),
        ("Missing", missing, "events in damaged parts of the trace"),
    ]
    .into_iter()
    .filter(|(_, count, _)| *count > 0)
    .map(|(head, count, what)| (head, format!("{} {what}", grouped(count))))
    .collect()
}

/// Describes a call: `1,448 instructions, begins at 605,093,250 ns in rr [31]`
pub(super) fn call_line(shown: &AnatomyView, call: &ExampleCall) -> String {
    let thread = shown.recording.threads.get(call.thread as usize);
    let thread =
        thread.map_or("[unknown]".into(), |thread| format!("{} [{}]", printable(&thread.comm), thread.pid));
    format!(
        "{} {}, begins at {} ns in {thread}",
        grouped(call.figures.ns),
        shown.unit(),
        grouped(call.begin_ns)
    )
}

/// Renders a row for each figure; `after` is time after the boundary.
pub(super) fn spreads(
    shown: &AnatomyView,
    spreads: &FigureSpreads,
    after: Option<&FigureSpread>,
) -> TableBuilder {
    let mut table = TableBuilder::new([
        ("", Alignment::Left),
        ("least", Alignment::Right),
        ("median", Alignment::Right),
        ("mean", Alignment::Right),
        ("greatest", Alignment::Right),
    ]);
    let after_head = format!("{} after", shown.unit());
    let rows = [
        (shown.unit(), Some(&spreads.ns)),
        ("calls", Some(&spreads.calls)),
        ("functions", Some(&spreads.functions)),
        ("depth", Some(&spreads.depth)),
        (after_head.as_str(), after),
    ];
    for (head, spread) in rows {
        let Some(spread) = spread else { continue };
        table.row([
            TextCell(head.into(), TextRole::Head),
            grouped(spread.least).into(),
            grouped(spread.median).into(),
            per(spread.sum, spread.count).into(),
            grouped(spread.greatest).into(),
        ]);
    }
    table
}
