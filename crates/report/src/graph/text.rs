//! Lines of an entry, and the tables after the entries.

use super::{cut_by, GraphReportOptions, StaticCalls};
use crate::call_graph::{GraphEntry, GraphListing, Propagation};
use crate::head::threads_line;
use crate::reports::flat::called;
use crate::sampled;
use crate::unit::TickUnit;
use kerntune_analyze::graph::{ArcBinding, ArcShare};
use kerntune_profile::Profile;
use kerntune_table::number::grouped;
use kerntune_table::{Columns, DisplayUnit, Document, Table, TextRole};
use std::cmp::Reverse;
use std::rc::Rc;

/// Separator between entries.
const RULE: &str = "-----------------------------------------------";

/// Line of an entry before its columns are aligned.
#[derive(Default)]
struct GraphLine {
    index: String,
    /// Only of the line of the entry itself.
    percent: Option<f64>,
    times: Option<(u64, u64)>,
    /// Columns of calls: `4` and `/10`, `10` and `+4`.
    called: (String, String),
    name: String,
    ends_entry: bool,
}

impl GraphLine {
    /// Creates the line of a parent or a child. `4/10` means four of the ten calls from outside of
    /// its cycle. Within a cycle no time is propagated, and calls have no total. A cut child
    /// propagates nothing to its caller; a cut parent shows time only if it was measured.
    fn of_arc(listing: &GraphListing, arc: &ArcShare, is_parent: bool, name: String) -> Self {
        let counted = is_parent && listing.graph.propagation == Propagation::Exact;
        let inner = listing.graph.is_inner(arc) || arc.tie.is_cut() && !counted;
        let cut = if arc.tie.is_cut() { " (cut)" } else { "" };
        let all = format!("/{}", grouped(listing.graph.calls_from_outside(arc.callee)));
        Self {
            times: (!inner).then_some((arc.self_ns, arc.descendants_ns)),
            called: (grouped(arc.calls), if inner { String::new() } else { all }),
            name: format!("    {name}{cut}"),
            ..Self::default()
        }
    }

    /// Creates a line without times.
    fn of_words(called: (String, String), words: &str) -> Self {
        Self { called, name: format!("    <{words}>"), ..Self::default() }
    }

    fn calls(calls: u64, self_calls: u64) -> (String, String) {
        let text = called(calls, self_calls);
        let at = text.find('+').unwrap_or(text.len());
        let (calls, own) = text.split_at(at);
        (calls.into(), own.into())
    }
}

/// Creates the lines of an entry.
fn lines(listing: &GraphListing, entry: GraphEntry, code: Option<&StaticCalls>) -> Vec<GraphLine> {
    let graph = &listing.graph;
    let line = |of: GraphEntry, name: String| {
        let [own, descendants, calls, self_calls] = listing.figures(of);
        let called = GraphLine::calls(calls, self_calls);
        GraphLine { times: Some((own, descendants)), called, name, ..GraphLine::default() }
    };
    let main = |index: String, name: String| GraphLine {
        index,
        percent: Some(listing.percent(listing.total(entry))),
        ..line(entry, name)
    };
    let parent = |arc: &ArcShare| GraphLine::of_arc(listing, arc, true, listing.caller(arc));
    let child = |arc: &ArcShare| {
        let by_jump = || code.and_then(|code| code.places(arc)).is_some_and(|places| places.calls == 0);
        let how = if arc.tie == ArcBinding::Loose && by_jump() { " (jump)" } else { "" };
        GraphLine::of_arc(listing, arc, false, listing.label(arc.callee) + how)
    };
    let is_loose = |arc: &&ArcShare| arc.tie == ArcBinding::Loose;
    let mut lines = match entry {
        GraphEntry::Function(at) => {
            let (loose, parents): (Vec<&ArcShare>, Vec<&ArcShare>) =
                listing.parents(at).into_iter().partition(is_loose);
            let mut lines = Vec::new();
            if let [one, ..] = &loose[..] {
                let calls = format!("/{}", grouped(graph.calls_from_outside(one.callee)));
                let words = counted(
                    loose.len() as u64,
                    "caller in the code that did not",
                    "callers in the code that did not",
                );
                lines.push(GraphLine::of_words(("0".into(), calls), &words));
            }
            lines.extend(parents.iter().map(|arc| parent(arc)));
            if parents.is_empty() {
                lines.push(GraphLine::of_words(Default::default(), "spontaneous"));
            }
            lines.push(main(
                listing.number(at).map(|number| format!("[{number}]")).unwrap_or_default(),
                listing.label(at),
            ));
            lines.extend(listing.children(at).into_iter().map(child));
            if let Some(places) = code.and_then(|code| code.unknown.get(&at)) {
                let kinds = [
                    (places.calls, "indirect call", "indirect calls"),
                    (places.jumps, "indirect jump", "indirect jumps"),
                    (places.patched, "call set while it runs", "calls set while it runs"),
                ];
                let some = kinds.into_iter().filter(|(count, ..)| *count > 0);
                let words: Vec<String> =
                    some.map(|(count, one, many)| counted(count.into(), one, many)).collect();
                lines.push(GraphLine::of_words(("?".into(), String::new()), &words.join(", ")));
            }
            lines
        }
        GraphEntry::Cycle(at) => {
            let cycle = &graph.cycles[at];
            let mut entering: Vec<&ArcShare> = cycle
                .members
                .iter()
                .flat_map(|member| listing.parents(*member))
                .filter(|arc| !graph.is_inner(arc) && !is_loose(arc))
                .collect();
            entering.sort_by_key(|arc| (arc.total_ns(), arc.calls, arc.caller, arc.callee));
            let mut lines: Vec<GraphLine> = entering.into_iter().map(parent).collect();
            lines.push(main(format!("[c{}]", at + 1), format!("<cycle {} as a whole>", at + 1)));
            lines.extend(cycle.members.iter().map(|member| {
                line(GraphEntry::Function(*member), format!("    {}", listing.label(*member)))
            }));
            lines
        }
    };
    lines.iter_mut().rev().take(1).for_each(|line| line.ends_entry = true);
    lines
}

fn table<'a>(profile: &'a Profile, lines: Vec<GraphLine>, unit: DisplayUnit) -> Table<'a, GraphLine> {
    let width =
        |part: fn(&GraphLine) -> &String| lines.iter().map(|line| part(line).len()).max().unwrap_or(0);
    let (left, right) = (width(|line| &line.called.0), width(|line| &line.called.1));
    let has_calls = sampled::has_calls(profile);
    let mut columns = Columns::<GraphLine>::new();
    columns.text_only("\nindex\n", |line| line.index.clone());
    columns.text_only("\n% time\n", |line| line.percent).decimals(1);
    columns.text_only("\nself", |line| line.times.map(|(own, _)| own)).unit(unit);
    columns.text_only("\ndescendants", |line| line.times.map(|(_, descendants)| descendants)).unit(unit);
    columns
        .text_only("called/total\ncalled+self\ncalled/total", move |line| {
            let (calls, rest) = &line.called;
            format!("{calls:>left$}{rest:<right$}")
        })
        .right()
        .only_if(has_calls);
    columns
        .text_only(format!("\n{} both", sampled::ERROR), move |line| {
            let (own, descendants) = line.times?;
            sampled::error_ns(profile, own.saturating_add(descendants))
        })
        .unit(unit)
        .only_if(!has_calls);
    columns.text_only("    parents\nname [index]\n    children", |line| line.name.clone()).role(|line| {
        if line.percent.is_some() {
            TextRole::Head
        } else {
            TextRole::Plain
        }
    });
    Table::text_only(lines, columns).rule(RULE, |line| line.ends_entry)
}

/// Renders the index by name of the shown entries.
fn index(listing: &GraphListing, entries: &[GraphEntry]) -> String {
    let mut names: Vec<(String, String)> = entries
        .iter()
        .map(|entry| match *entry {
            GraphEntry::Function(at) => {
                (listing.name(at), listing.number(at).map(|n| format!("[{n}]")).unwrap_or_default())
            }
            GraphEntry::Cycle(at) => (format!("<cycle {}>", at + 1), format!("[c{}]", at + 1)),
        })
        .collect();
    names.sort();
    let width = names.iter().map(|(_, number)| number.len()).max().unwrap_or(0);
    let lines = names.iter().map(|(name, number)| format!("{number:>width$}  {name}\n"));
    format!("\nIndex by function name\n\n{}", lines.collect::<String>())
}

/// Formats a count with its noun: `1 arc`, `2 arcs`.
fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(count), if count == 1 { one } else { many })
}

/// Summarizes the static call graph.
fn code_line(listing: &GraphListing, code: &StaticCalls) -> String {
    let unknown = code.all_unknown();
    let [calls, jumps, patched] =
        [unknown.calls, unknown.jumps, unknown.patched].map(|count| grouped(count.into()));
    format!(
        "{}, {} of them never taken{}; {calls} indirect calls, {jumps} indirect jumps, {patched} set while it runs",
        grouped(code.arcs.len() as u64),
        grouped(code.never_taken(listing) as u64),
        if code.binds { " and yet part of cycles" } else { "" },
    )
}

/// Adds the cut arcs with their calls and measured times.
fn add_cuts<'a>(document: &mut Document<'a>, listing: &Rc<GraphListing<'a>>, options: &GraphReportOptions) {
    let mut arcs: Vec<ArcShare> = listing.graph.cuts().copied().collect();
    // These are small beside the entries' times.
    let unit = listing.unit(&options.graph, arcs.iter().map(|arc| arc.total_ns()).max().unwrap_or(0));
    arcs.sort_by_key(|arc| (Reverse(arc.calls), arc.caller, arc.callee));
    let calls = arcs.iter().fold(0, |sum: u64, arc| sum.saturating_add(arc.calls));
    document.text(format!(
        "Cut: {}, {}; {} left\n",
        counted(arcs.len() as u64, "arc", "arcs"),
        counted(calls, "call", "calls"),
        counted(listing.graph.cycles.len() as u64, "cycle is", "cycles are"),
    ));
    let measured = listing.graph.propagation == Propagation::Exact;
    if !arcs.is_empty() {
        document.text(match measured {
            true => "     (their time stays with the callee and counts for no caller above)\n",
            false => "     (these calls are ignored: the callee's time goes to its other callers)\n",
        });
    }
    let mut columns = Columns::<ArcShare>::new();
    columns.text_only("calls", |arc| arc.calls);
    columns.text_only("self", |arc| arc.self_ns).unit(unit).only_if(measured);
    columns.text_only("descendants", |arc| arc.descendants_ns).unit(unit).only_if(measured);
    let names = listing.clone();
    columns
        .text_only("caller / callee", move |arc| {
            format!("{} / {}", names.caller(arc), names.label(arc.callee))
        })
        .role(|_| TextRole::Head);
    columns.text_only("cut by", cut_by);
    document.table(Table::text_only(arcs, columns).hidden_if_empty());
    document.text("\n");
}

/// Adds the lines of the entries.
pub(super) fn add<'a>(
    document: &mut Document<'a>,
    listing: &Rc<GraphListing<'a>>,
    options: &GraphReportOptions,
    entries: &[GraphEntry],
    profile: &'a Profile,
) {
    let (graph, code) = (&options.graph, options.code.as_ref());
    let entries = &entries[..graph.max_in_text().min(entries.len())];
    let how = match listing.graph.propagation {
        Propagation::Exact if sampled::is(profile) => "as sampled",
        Propagation::Exact => "as measured",
        Propagation::Counts => "in proportion to calls",
    };
    let total = TickUnit::of(profile).whole(listing.graph.total_ns);
    document.text(threads_line(&graph.threads));
    document.line("Time in functions", format!("{total}  (handed to callers {how})"));
    if let Some(code) = code {
        document.line("Arcs in the code", code_line(listing, code));
    }
    document.text("\n");
    if !options.cut.is_empty() {
        add_cuts(document, listing, options);
    }
    let unit = listing.unit(graph, entries.iter().map(|entry| listing.total(*entry)).max().unwrap_or(0));
    let lines = entries.iter().flat_map(|entry| lines(listing, *entry, code)).collect();
    document.table(table(profile, lines, unit));
    let rest = listing.entries.len() - entries.len();
    if rest > 0 && graph.function.is_empty() {
        document.note(&format!("{} more entries (--top, --min-percent)", grouped(rest as u64)));
    }
    document.text(index(listing, entries));
}
