//! Whose calls, how many, and how their figures are spread.

use super::{per, Shown};
use crate::columns::{Cell, Columns, Side};
use crate::style::{printable, Role, Style};
use kerntune_analyze::anatomy::{Anatomy, Call, Spread, Spreads};
use kerntune_compare::number::grouped;

/// Title, calls, and the spread of their figures.
pub(super) fn text(shown: &Shown, style: Style) -> String {
    let anatomy = shown.anatomy;
    let place = shown.file(shown.function).map_or(String::new(), |file| format!(" ({})", printable(file)));
    let mut out =
        style.paint(Role::Head, &format!("Anatomy of {}{place}", shown.name(shown.function))) + "\n\n";
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
            line(head, one(shown, call));
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
        out += &style.paint(Role::Faint, &hint);
    }
    out
}

/// What is in none of the figures.
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

/// `1,448 instructions, begins at 605,093,250 ns in rr [31]`
pub(super) fn one(shown: &Shown, call: &Call) -> String {
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

/// A row for each figure; `after` is time after the boundary.
pub(super) fn spreads(shown: &Shown, spreads: &Spreads, after: Option<&Spread>) -> Columns {
    let mut table = Columns::new([
        ("", Side::Left),
        ("least", Side::Right),
        ("median", Side::Right),
        ("mean", Side::Right),
        ("greatest", Side::Right),
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
            Cell(head.into(), Role::Head),
            grouped(spread.least).into(),
            grouped(spread.median).into(),
            per(spread.sum, spread.count).into(),
            grouped(spread.greatest).into(),
        ]);
    }
    table
}
