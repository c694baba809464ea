//! JSON members of the call graph (`docs/json.md`).

use super::{cut_by, GraphReportOptions, StaticCalls, UnknownCallees};
use crate::call_graph::{GraphEntry, GraphListing, Propagation};
use kerntune_analyze::graph::{ArcShare, CodeArc, GraphFunction};
use kerntune_table::{Columns, Document, Table};
use std::rc::Rc;

/// Entry, arc or cut with the listing that names its functions.
struct GraphItem<'a, T> {
    listing: Rc<GraphListing<'a>>,
    code: Option<&'a StaticCalls>,
    of: T,
}

impl<'a, T> GraphItem<'a, T> {
    fn with<S>(&self, of: S) -> GraphItem<'a, S> {
        GraphItem { listing: self.listing.clone(), code: self.code, of }
    }

    fn function(&self, entry: Option<GraphEntry>) -> Option<(usize, &GraphFunction)> {
        let GraphEntry::Function(at) = entry? else { return None };
        Some((at, self.listing.graph.functions.get(at)?))
    }

    fn arcs(&self, arcs: Vec<&ArcShare>) -> Vec<GraphItem<'a, ArcShare>> {
        arcs.into_iter().map(|arc| self.with(*arc)).collect()
    }
}

fn caller(arc: &ArcShare) -> Option<GraphEntry> {
    arc.caller.map(GraphEntry::Function)
}

fn callee(arc: &ArcShare) -> Option<GraphEntry> {
    Some(GraphEntry::Function(arc.callee))
}

/// Returns the columns that identify a function or a cycle.
fn names<'a, T: 'a>(entry: fn(&T) -> Option<GraphEntry>) -> Columns<'a, GraphItem<'a, T>> {
    let mut columns = Columns::new();
    columns.add("index", "Number in the call graph; null for a cycle.", move |item: &GraphItem<T>| {
        item.function(entry(&item.of)).and_then(|(at, _)| item.listing.number(at))
    });
    let help =
        "Name in the symbol table; null for a cycle, and for what calls and is no function: interrupts, \
                system calls, threads that begin.";
    columns.add("name", help, move |item| item.function(entry(&item.of)).map(|(_, of)| of.name.clone()));
    let help = "Source file, where known.";
    columns.add("file", help, move |item| item.function(entry(&item.of))?.1.file.clone());
    columns.add("cycle", "Number of the cycle, or of the one that the function is in.", move |item| {
        match entry(&item.of)? {
            GraphEntry::Function(at) => item.listing.graph.functions.get(at)?.cycle.map(|cycle| cycle + 1),
            GraphEntry::Cycle(at) => Some(at + 1),
        }
    });
    columns
}

/// Returns the columns of an entry and of a member of a cycle.
fn figures<'a>() -> Columns<'a, GraphItem<'a, GraphEntry>> {
    let mut columns = names(|entry| Some(*entry));
    let figures = [
        ("self", "Time in the function itself; of a cycle, the sum over its members."),
        ("descendants", "Time that callees outside of the cycle hand up."),
        ("calls", "Calls by others; of a cycle, from outside."),
        ("self_calls", "Calls by itself; of a cycle, between different members."),
    ];
    for (at, (key, help)) in figures.into_iter().enumerate() {
        columns.add(key, help, move |item| item.listing.figures(item.of)[at]);
    }
    columns
}

/// Returns the columns of an arc from or to the function that `end` returns.
fn arcs<'a>(end: fn(&ArcShare) -> Option<GraphEntry>) -> Columns<'a, GraphItem<'a, ArcShare>> {
    let mut columns = names(end);
    columns.add(
        "self",
        "Part of the callee's own time that it hands up by this arc; 0 within a cycle.",
        |item| item.of.self_ns,
    );
    let help = "The same of its descendants' time, which is its cycle's if it is in one.";
    columns.add("descendants", help, |item| item.of.descendants_ns);
    columns.add("calls", "Calls by this arc; 0 if it was only open.", |item| item.of.calls);
    let help =
        "Calls of the callee (its cycle) from outside, among which its time is divided; null within a cycle.";
    columns.add("total_calls", help, |GraphItem { listing, of, .. }| {
        let uncounted = of.tie.is_cut() && listing.graph.propagation == Propagation::Counts;
        let inner = listing.graph.is_inner(of) || uncounted;
        (!inner).then(|| listing.graph.calls_from_outside(of.callee))
    });
    let help = "The arc is left out of cycles; a child that is cut hands nothing to its caller.";
    columns.add("cut", help, |item| item.of.tie.is_cut());
    let mut places = Columns::<CodeArc>::new();
    places.add("calls", "Calls; 0 with 0 calls of the arc if it was never taken.", |places| places.calls);
    places.add("jumps", "Jumps.", |places| places.jumps);
    let help = "With `--static`: number of places of the caller's code in which it stands.";
    columns.record("places", help, places, |item| item.code?.places(&item.of));
    columns
}

fn unknown<'a>() -> Columns<'a, UnknownCallees> {
    let mut columns = Columns::<UnknownCallees>::new();
    columns.add("calls", "Calls through a pointer.", |places| places.calls);
    columns.add("jumps", "Jumps through a pointer.", |places| places.jumps);
    columns.add("patched", "Calls and jumps that are set while the kernel runs.", |places| places.patched);
    columns
}

/// Adds the members of the call graph.
pub(super) fn add<'a>(
    document: &mut Document<'a>,
    listing: &Rc<GraphListing<'a>>,
    options: &'a GraphReportOptions,
    entries: Vec<GraphEntry>,
) {
    let graph = GraphItem { listing: listing.clone(), code: options.code.as_ref(), of: () };
    let mut code = Columns::<GraphItem<&StaticCalls>>::new();
    code.add("arcs", "Arcs of the kernel's code.", |item| item.of.arcs.len());
    code.add("never_taken", "Those of them that were never taken.", |item| {
        item.of.never_taken(&item.listing)
    });
    code.add("bind_cycles", "These can form cycles.", |item| item.of.binds);
    let help = "Numbers of places whose callee the code does not reveal.";
    code.record("unknown", help, unknown(), |item| Some(item.of.all_unknown()));
    let mut members = Columns::<GraphItem<()>>::new();
    members.record("code", "With `--static`, else null: the static call graph.", code, |item| {
        item.code.map(|code| item.with(code))
    });
    document.fields(&members, &graph);

    let mut columns = Columns::<GraphItem<ArcShare>>::new();
    columns.object("caller", "Function that calls.", names(caller), |item| item);
    columns.object("callee", "Function that is called.", names(callee), |item| item);
    columns.add("calls", "Calls by this arc.", |item| item.of.calls);
    let help = "What was measured of these calls; 0 if time is divided by `counts`.";
    columns.add("self", help, |item| item.of.self_ns);
    columns.add("descendants", "The same of the callee's descendants.", |item| item.of.descendants_ns);
    columns.add("by", "Origin of the cut: `name` or `auto`.", |item| cut_by(&item.of));
    let cuts = graph.arcs(listing.graph.cuts().collect());
    document.table(Table::new("cuts", cuts, columns).help("Arcs that `--cut` left out of cycles."));

    let mut columns = figures();
    columns.add("kind", "`function`, or `cycle` for a cycle as a whole.", |item| match item.of {
        GraphEntry::Function(_) => "function",
        GraphEntry::Cycle(_) => "cycle",
    });
    columns.add("percent", "`self` + `descendants` in per cent of `total`.", |item| {
        item.listing.percent(item.listing.total(item.of))
    });
    let help = "Callers, smallest share first; never itself, and none of a cycle.";
    columns.records("parents", help, arcs(caller), |item| match item.of {
        GraphEntry::Function(at) => item.arcs(item.listing.parents(at)),
        GraphEntry::Cycle(_) => Vec::new(),
    });
    let help = "Callees, greatest share first; never itself, and none of a cycle.";
    columns.records("children", help, arcs(callee), |item| match item.of {
        GraphEntry::Function(at) => item.arcs(item.listing.children(at)),
        GraphEntry::Cycle(_) => Vec::new(),
    });
    columns.records("members", "Functions of a cycle.", figures(), |item| match item.of {
        GraphEntry::Function(_) => Vec::new(),
        GraphEntry::Cycle(at) => {
            let members = item.listing.graph.cycles[at].members.iter();
            members.map(|member| item.with(GraphEntry::Function(*member))).collect()
        }
    });
    let help = "With `--static`, of a function: numbers of places whose callee the code does not reveal.";
    columns.record("unknown", help, unknown(), |item| match item.of {
        GraphEntry::Function(at) => Some(item.code?.unknown.get(&at).copied().unwrap_or_default()),
        GraphEntry::Cycle(_) => None,
    });
    document.table(
        Table::new("entries", entries.into_iter().map(|entry| graph.with(entry)), columns)
            .help("Functions that ran and were asked for, and cycles, greatest total first.")
            .top(options.graph.select.top),
    );
}
