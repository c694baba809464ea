//! Head of the report: operation, number of calls, distribution of their figures.

use super::figures::{call, function};
use super::{figures, per, AnatomyView};
use kerntune_analyze::anatomy::{Anatomy, ExampleCall, FigureSpread, FigureSpreads};
use kerntune_table::number::grouped;
use kerntune_table::{printable, Columns, Document, Table, TextRole};

/// Adds the operation, numbers of calls, and distribution of their figures.
pub(super) fn add<'a>(document: &mut Document<'a>, shown: &AnatomyView<'a>) {
    let (anatomy, manifest) = (shown.anatomy, &shown.profile.manifest);
    document.fields(&crate::head::of_kernel(), &shown.profile);
    document.field("exact", "Counted by instruction.", manifest.exact);
    document.field("until", "Boundary, as it was asked for.", shown.until);
    document.fields(&counts(*shown), shown);
    document.nullable("typical", "First call with the median time.", call(*shown), anatomy.typical.as_ref());
    document.nullable("worst", "First call with the greatest time.", call(*shown), anatomy.worst.as_ref());
    let file = shown.symbol(shown.function).and_then(|symbol| symbol.file.as_deref());
    let place = file.map_or(String::new(), |file| format!(" ({})", printable(file)));
    document.painted(TextRole::Head, format!("Anatomy of {}{place}\n", shown.name(shown.function)));
    document.text("\n");
    if let Some(region) = shown.region {
        document.line("Region", printable(region));
    }
    document.line("Calls", format!("{}, each from entry to exit", grouped(shown.calls())));
    for (head, value) in left_out(anatomy) {
        document.line(head, value);
    }
    for (head, call) in [("Typical call", &anatomy.typical), ("Worst call", &anatomy.worst)] {
        if let Some(call) = call {
            document.line(head, call_line(shown, call));
        }
    }
    let rounding = anatomy.all.ns.rounding;
    if rounding > 0 {
        document.line("Median", format!("within {} {}", grouped(rounding), shown.unit()));
    }
    document.table(spreads(shown, &anatomy.all, None).hidden_if_empty());
    if let Some(call) = &anatomy.worst {
        document.note(&format!(
            "kerntune report {} path --function {} --at {} shows the worst call",
            manifest.id,
            shown.asked(),
            call.begin_ns
        ));
    }
}

/// Declares the members on the operation and its calls.
pub(super) fn counts<'a>(shown: AnatomyView<'a>) -> Columns<'a, AnatomyView<'a>> {
    let mut columns = function(shown, |of: &AnatomyView| Some(of.function));
    columns.add("calls_whole", "Calls from entry to exit that ended in the regions.", |of| of.calls());
    columns.add("calls_cut", "Calls of which some was not recorded.", |of| of.anatomy.cut);
    columns.add("calls_elsewhere", "Calls that ended in other regions.", |of| of.anatomy.elsewhere);
    columns.add("calls_crowded", "Calls left out since 1,024 others were open.", |of| of.anatomy.crowded);
    columns.add(
        "folded",
        "Calls below without room in a tree of 65,535 nodes: counted, and their time is their caller's.",
        |of| of.anatomy.folded,
    );
    columns.add("missing_events", "Events in damaged parts of the trace.", |of| {
        of.anatomy.missing.iter().map(|missing| missing.events).sum::<u64>()
    });
    columns.object("all", "Figures of the whole calls.", figures::spreads(), |of| &of.anatomy.all);
    columns
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

/// Returns a row for each figure, for texts; `after` is time after the boundary.
pub(super) fn spreads<'a>(
    shown: &AnatomyView,
    spreads: &FigureSpreads,
    after: Option<&FigureSpread>,
) -> Table<'a, (String, FigureSpread)> {
    let unit = shown.unit();
    let rows = [
        (unit.to_owned(), Some(&spreads.ns)),
        ("calls".into(), Some(&spreads.calls)),
        ("functions".into(), Some(&spreads.functions)),
        ("depth".into(), Some(&spreads.depth)),
        (format!("{unit} after"), after),
    ];
    let mut columns = Columns::<(String, FigureSpread)>::new();
    columns.text_only("", |row| row.0.clone()).role(|_| TextRole::Head);
    columns.text_only("least", |row| row.1.min);
    columns.text_only("median", |row| row.1.median);
    columns.text_only("mean", |row| per(row.1.sum, row.1.count)).right();
    columns.text_only("greatest", |row| row.1.greatest);
    Table::new("", rows.into_iter().filter_map(|(head, spread)| Some((head, *spread?))), columns)
}
