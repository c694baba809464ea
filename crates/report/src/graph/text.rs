//! Lines of an entry, and the tables after the entries.

use super::StaticCalls;
use crate::call_graph::{GraphEntry, GraphListing, Propagation};
use kerntune_table::columns::{Alignment, TableBuilder, TextCell};
use crate::reports::flat::called;
use kerntune_table::TextRole;
use crate::unit::DisplayUnit;
use crate::{sampled, Style};
use kerntune_analyze::graph::{ArcBinding, ArcShare, CutReason};
use kerntune_table::number::{fixed, grouped};
use kerntune_profile::Profile;

/// Separator between entries.
const RULE: &str = "-----------------------------------------------";

/// Line of an entry before its columns are aligned.
struct GraphLine {
    index: String,
    percent: String,
    times: Option<(u64, u64)>,
    /// Columns of calls: `4` and `/10`, `10` and `+4`.
    called: (String, String),
    name: TextCell,
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
            index: String::new(),
            percent: String::new(),
            times: (!inner).then_some((arc.self_ns, arc.descendants_ns)),
            called: (grouped(arc.calls), if inner { String::new() } else { all }),
            name: format!("    {name}{cut}").into(),
        }
    }

    /// Creates a line without times.
    fn of_words(calls: (String, String), words: &str) -> Self {
        let nothing = String::new;
        let name = format!("    <{words}>").into();
        Self { index: nothing(), percent: nothing(), times: None, called: calls, name }
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
    let main = |index: String, (own, descendants): (u64, u64), called, name: String| GraphLine {
        index,
        percent: fixed(listing.percent(own.saturating_add(descendants)), 1),
        times: Some((own, descendants)),
        called,
        name: TextCell(name, TextRole::Head),
    };
    let parent = |arc: &ArcShare| GraphLine::of_arc(listing, arc, true, listing.caller(arc));
    let child = |arc: &ArcShare| {
        let by_jump = || code.and_then(|code| code.places(arc)).is_some_and(|places| places.calls == 0);
        let how = if arc.tie == ArcBinding::Loose && by_jump() { " (jump)" } else { "" };
        GraphLine::of_arc(listing, arc, false, listing.label(arc.callee) + how)
    };
    let is_loose = |arc: &&ArcShare| arc.tie == ArcBinding::Loose;
    match entry {
        GraphEntry::Function(at) => {
            let function = &graph.functions[at];
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
                (function.self_ns, function.descendants_ns),
                GraphLine::calls(function.calls, function.self_calls),
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
            lines.push(main(
                format!("[c{}]", at + 1),
                (cycle.self_ns, cycle.descendants_ns),
                GraphLine::calls(cycle.calls, cycle.inner_calls),
                format!("<cycle {} as a whole>", at + 1),
            ));
            lines.extend(cycle.members.iter().map(|member| {
                let function = &graph.functions[*member];
                GraphLine {
                    index: String::new(),
                    percent: String::new(),
                    times: Some((function.self_ns, function.descendants_ns)),
                    called: GraphLine::calls(function.calls, function.self_calls),
                    name: format!("    {}", listing.label(*member)).into(),
                }
            }));
            lines
        }
    }
}

pub(super) fn columns(
    profile: &Profile,
    listing: &GraphListing,
    entries: &[GraphEntry],
    code: Option<&StaticCalls>,
    unit: DisplayUnit,
    style: Style,
) -> String {
    let blocks: Vec<Vec<GraphLine>> = entries.iter().map(|entry| lines(listing, *entry, code)).collect();
    let width = |part: fn(&GraphLine) -> &String| {
        blocks.iter().flatten().map(|line| part(line).len()).max().unwrap_or(0)
    };
    let (left, right) = (width(|line| &line.called.0), width(|line| &line.called.1));
    let has_calls = sampled::has_calls(profile);
    let error = format!("\n{} both\n{}", sampled::ERROR, unit.name());
    let mut table = TableBuilder::new([
        ("\nindex\n", Alignment::Left),
        ("\n% time\n", Alignment::Right),
        (format!("\nself\n{}", unit.name()).as_str(), Alignment::Right),
        (format!("\ndescendants\n{}", unit.name()).as_str(), Alignment::Right),
        (if has_calls { "called/total\ncalled+self\ncalled/total" } else { &error }, Alignment::Right),
        ("    parents\nname [index]\n    children", Alignment::Left),
    ]);
    for block in blocks {
        for line in block {
            let time = |time: Option<u64>| TextCell::from(time.map_or(String::new(), |ns| unit.format(ns)));
            let (calls, rest) = &line.called;
            let both = line.times.map(|(own, descendants)| own.saturating_add(descendants));
            let called = match has_calls {
                true => format!("{calls:>left$}{rest:<right$}"),
                false => both.map_or(String::new(), |both| sampled::error(profile, both, unit)),
            };
            table.row([
                line.index.into(),
                line.percent.into(),
                time(line.times.map(|times| times.0)),
                time(line.times.map(|times| times.1)),
                called.into(),
                line.name,
            ]);
        }
        table.gap();
    }
    let text = table.render(style);
    text.lines().map(|line| if line.is_empty() { RULE } else { line }.to_string() + "\n").collect()
}

/// Renders the index by name of the shown entries.
pub(super) fn index(listing: &GraphListing, entries: &[GraphEntry]) -> String {
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

/// Summarizes the static call graph; empty if it was not requested.
pub(super) fn code_line(listing: &GraphListing, code: Option<&StaticCalls>) -> String {
    let Some(code) = code else { return String::new() };
    let never = listing.graph.arcs.iter().filter(|arc| arc.calls == 0 && code.places(arc).is_some()).count();
    let sum = |part: fn(&super::UnknownCallees) -> u32| {
        grouped(code.unknown.values().map(|places| u64::from(part(places))).sum::<u64>())
    };
    format!(
        "Arcs in the code     = {}, {} of them never taken{}; {} indirect calls, {} indirect jumps, {} set while it runs\n",
        grouped(code.arcs.len() as u64),
        grouped(never as u64),
        if code.binds { " and yet part of cycles" } else { "" },
        sum(|places| places.calls),
        sum(|places| places.jumps),
        sum(|places| places.patched),
    )
}

/// Renders the cut arcs with their calls and measured times; empty without cuts.
pub(super) fn cuts(listing: &GraphListing, of: &super::GraphReportOptions, style: Style) -> String {
    if of.cut.is_empty() {
        return String::new();
    }
    let mut arcs: Vec<&ArcShare> = listing.graph.cuts().collect();
    // These are small beside the entries' times.
    let unit = listing.unit(&of.graph, arcs.iter().map(|arc| arc.total_ns()).max().unwrap_or(0));
    arcs.sort_by_key(|arc| (std::cmp::Reverse(arc.calls), arc.caller, arc.callee));
    let calls = arcs.iter().fold(0, |sum: u64, arc| sum.saturating_add(arc.calls));
    let cycles = counted(listing.graph.cycles.len() as u64, "cycle is", "cycles are");
    let mut out = format!(
        "Cut: {}, {}; {cycles} left\n",
        counted(arcs.len() as u64, "arc", "arcs"),
        counted(calls, "call", "calls")
    );
    if arcs.is_empty() {
        return out + "\n";
    }
    let measured = listing.graph.propagation == Propagation::Exact;
    out += match measured {
        true => "     (their time stays with the callee and counts for no caller above)\n\n",
        false => "     (these calls are ignored: the callee's time goes to its other callers)\n\n",
    };
    let head = |word: &str| format!("{word}\n{}", unit.name());
    let (own, descendants) = (head("self"), head("descendants"));
    let times = [(own.as_str(), Alignment::Right), (descendants.as_str(), Alignment::Right)];
    let times = times.into_iter().filter(|_| measured);
    let rest = [("caller / callee", Alignment::Left), ("cut by", Alignment::Left)];
    let mut table = TableBuilder::with([("calls", Alignment::Right)].into_iter().chain(times).chain(rest));
    for arc in arcs {
        let mut cells: Vec<TextCell> = vec![grouped(arc.calls).into()];
        if measured {
            cells.extend([unit.format(arc.self_ns).into(), unit.format(arc.descendants_ns).into()]);
        }
        let by = match arc.tie {
            ArcBinding::Cut(CutReason::Heuristic) => "auto",
            _ => "name",
        };
        let arc = format!("{} / {}", listing.caller(arc), listing.label(arc.callee));
        cells.extend([TextCell(arc, TextRole::Head), by.into()]);
        table.row_of(cells);
    }
    out + &table.render(style) + "\n"
}
