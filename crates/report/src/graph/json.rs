//! JSON document of the call graph (`docs/json.md`).

use super::{GraphReportOptions, StaticCalls, SCHEMA};
use crate::call_graph::{GraphEntry, GraphListing, Propagation};
use crate::head::JsonHead;
use crate::reports::flat::{never, NeverCalled};
use crate::{sampled, Result};
use kerntune_analyze::graph::{ArcBinding, ArcShare, CutReason};
use kerntune_profile::Profile;
use serde::Serialize;

/// JSON document of this report; [`SCHEMA`] names its version.
#[derive(Serialize)]
struct GraphReport<'a> {
    #[serde(flatten)]
    head: JsonHead<'a>,
    propagation: &'static str,
    #[serde(rename = "total")]
    total_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    sampled: Option<sampled::JsonSampled<'a>>,
    cuts: Vec<JsonCut<'a>>,
    code: Option<JsonCode>,
    entries: Vec<JsonGraphEntry<'a>>,
    never_called: Option<Vec<NeverCalled<'a>>>,
}

/// Arc that was cut.
#[derive(Serialize)]
struct JsonCut<'a> {
    caller: FunctionRef<'a>,
    callee: FunctionRef<'a>,
    calls: u64,
    #[serde(rename = "self")]
    self_ns: u64,
    #[serde(rename = "descendants")]
    descendants_ns: u64,
    by: &'static str,
}

/// Summary of the static call graph.
#[derive(Serialize)]
struct JsonCode {
    arcs: usize,
    never_taken: usize,
    bind_cycles: bool,
    unknown: super::UnknownCallees,
}

/// Numbers of call sites of an arc in the code.
#[derive(Serialize)]
struct ArcPlaces {
    calls: u32,
    jumps: u32,
}

#[derive(Serialize)]
struct JsonGraphEntry<'a> {
    kind: &'static str,
    #[serde(flatten)]
    function: FunctionRef<'a>,
    percent: f64,
    #[serde(rename = "self")]
    self_ns: u64,
    #[serde(rename = "descendants")]
    descendants_ns: u64,
    calls: u64,
    self_calls: u64,
    parents: Vec<JsonArc<'a>>,
    children: Vec<JsonArc<'a>>,
    members: Vec<CycleMember<'a>>,
    unknown: Option<super::UnknownCallees>,
}

/// Reference to a function; all fields are null for callers outside of functions.
#[derive(Default, Serialize)]
struct FunctionRef<'a> {
    index: Option<usize>,
    name: Option<&'a str>,
    file: Option<&'a str>,
    cycle: Option<usize>,
}

#[derive(Serialize)]
struct JsonArc<'a> {
    #[serde(flatten)]
    function: FunctionRef<'a>,
    #[serde(rename = "self")]
    self_ns: u64,
    #[serde(rename = "descendants")]
    descendants_ns: u64,
    calls: u64,
    total_calls: Option<u64>,
    cut: bool,
    places: Option<ArcPlaces>,
}

#[derive(Serialize)]
struct CycleMember<'a> {
    #[serde(flatten)]
    function: FunctionRef<'a>,
    #[serde(rename = "self")]
    self_ns: u64,
    #[serde(rename = "descendants")]
    descendants_ns: u64,
    calls: u64,
    self_calls: u64,
}

impl GraphListing<'_> {
    fn named(&self, function: Option<usize>) -> FunctionRef<'_> {
        let Some((at, function)) = function.and_then(|at| Some((at, self.graph.functions.get(at)?))) else {
            return FunctionRef::default();
        };
        FunctionRef {
            index: self.number(at),
            name: Some(&function.name),
            file: function.file.as_deref(),
            cycle: function.cycle.map(|cycle| cycle + 1),
        }
    }

    fn json_arc(&self, arc: &ArcShare, function: Option<usize>, code: Option<&StaticCalls>) -> JsonArc<'_> {
        let cut = arc.tie.is_cut();
        let uncounted = cut && self.graph.propagation == Propagation::Counts;
        let inner = self.graph.is_inner(arc) || uncounted;
        let places = code.and_then(|code| code.places(arc));
        JsonArc {
            function: self.named(function),
            self_ns: arc.self_ns,
            descendants_ns: arc.descendants_ns,
            calls: arc.calls,
            total_calls: (!inner).then(|| self.graph.calls_from_outside(arc.callee)),
            cut,
            places: places.map(|places| ArcPlaces { calls: places.calls, jumps: places.jumps }),
        }
    }

    fn json_entry(&self, entry: GraphEntry, code: Option<&StaticCalls>) -> JsonGraphEntry<'_> {
        let percent = self.percent(self.total(entry));
        match entry {
            GraphEntry::Function(at) => {
                let function = &self.graph.functions[at];
                JsonGraphEntry {
                    kind: "function",
                    function: self.named(Some(at)),
                    percent,
                    self_ns: function.self_ns,
                    descendants_ns: function.descendants_ns,
                    calls: function.calls,
                    self_calls: function.self_calls,
                    parents: self
                        .parents(at)
                        .into_iter()
                        .map(|arc| self.json_arc(arc, arc.caller, code))
                        .collect(),
                    children: self
                        .children(at)
                        .into_iter()
                        .map(|arc| self.json_arc(arc, Some(arc.callee), code))
                        .collect(),
                    members: Vec::new(),
                    unknown: code.map(|code| code.unknown.get(&at).copied().unwrap_or_default()),
                }
            }
            GraphEntry::Cycle(at) => {
                let cycle = &self.graph.cycles[at];
                let member = |&member: &usize| {
                    let function = &self.graph.functions[member];
                    CycleMember {
                        function: self.named(Some(member)),
                        self_ns: function.self_ns,
                        descendants_ns: function.descendants_ns,
                        calls: function.calls,
                        self_calls: function.self_calls,
                    }
                };
                JsonGraphEntry {
                    kind: "cycle",
                    function: FunctionRef { cycle: Some(at + 1), ..FunctionRef::default() },
                    percent,
                    self_ns: cycle.self_ns,
                    descendants_ns: cycle.descendants_ns,
                    calls: cycle.calls,
                    self_calls: cycle.inner_calls,
                    parents: Vec::new(),
                    children: Vec::new(),
                    members: cycle.members.iter().map(member).collect(),
                    unknown: None,
                }
            }
        }
    }
}

/// Renders the document.
pub(super) fn json(of: &GraphReportOptions, profile: &Profile, code: Option<&StaticCalls>) -> Result<String> {
    let options = &of.graph;
    let listing = of.listing(profile, code)?;
    let cut = |arc: &ArcShare| JsonCut {
        caller: listing.named(arc.caller),
        callee: listing.named(Some(arc.callee)),
        calls: arc.calls,
        self_ns: arc.self_ns,
        descendants_ns: arc.descendants_ns,
        by: if arc.tie == ArcBinding::Cut(CutReason::Heuristic) { "auto" } else { "name" },
    };
    let summed = |code: &StaticCalls| JsonCode {
        arcs: code.arcs.len(),
        never_taken: listing
            .graph
            .arcs
            .iter()
            .filter(|arc| arc.calls == 0 && code.places(arc).is_some())
            .count(),
        bind_cycles: code.binds,
        unknown: code.unknown.values().fold(super::UnknownCallees::default(), |sum, places| {
            super::UnknownCallees {
                calls: sum.calls.saturating_add(places.calls),
                jumps: sum.jumps.saturating_add(places.jumps),
                patched: sum.patched.saturating_add(places.patched),
            }
        }),
    };
    crate::to_json(&GraphReport {
        head: JsonHead::new(SCHEMA, profile, &options.region).of(&options.threads),
        propagation: listing.graph.propagation.as_str(),
        total_ns: listing.graph.total_ns,
        sampled: sampled::json(profile),
        cuts: listing.graph.cuts().map(cut).collect(),
        code: code.map(summed),
        entries: listing
            .wanted(options, options.most_in_json())
            .into_iter()
            .map(|entry| listing.json_entry(entry, code))
            .collect(),
        never_called: never(&listing, options)?,
    })
}
