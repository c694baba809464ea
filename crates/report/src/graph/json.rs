//! The JSON form (`docs/json.md`).

use super::{Code, Options, SCHEMA};
use crate::call_graph::{Entry, Listing, Propagation};
use crate::head::Head;
use crate::reports::flat::{never, Never};
use crate::{sampled, Result};
use kerntune_analyze::graph::{CutBy, Share, Tie};
use kerntune_profile::Profile;
use serde::Serialize;

#[derive(Serialize)]
struct Json<'a> {
    #[serde(flatten)]
    head: Head<'a>,
    propagation: &'static str,
    #[serde(rename = "total")]
    total_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    sampled: Option<sampled::JsonSampled<'a>>,
    cuts: Vec<JsonCut<'a>>,
    code: Option<JsonCode>,
    entries: Vec<JsonEntry<'a>>,
    never_called: Option<Vec<Never<'a>>>,
}

/// An arc that was cut.
#[derive(Serialize)]
struct JsonCut<'a> {
    caller: Named<'a>,
    callee: Named<'a>,
    calls: u64,
    #[serde(rename = "self")]
    self_ns: u64,
    #[serde(rename = "descendants")]
    descendants_ns: u64,
    by: &'static str,
}

/// What the code has, summed.
#[derive(Serialize)]
struct JsonCode {
    arcs: usize,
    never_taken: usize,
    bind_cycles: bool,
    unknown: super::Unknown,
}

/// Places in the code of one arc.
#[derive(Serialize)]
struct Places {
    calls: u32,
    jumps: u32,
}

#[derive(Serialize)]
struct JsonEntry<'a> {
    kind: &'static str,
    #[serde(flatten)]
    function: Named<'a>,
    percent: f64,
    #[serde(rename = "self")]
    self_ns: u64,
    #[serde(rename = "descendants")]
    descendants_ns: u64,
    calls: u64,
    self_calls: u64,
    parents: Vec<JsonArc<'a>>,
    children: Vec<JsonArc<'a>>,
    members: Vec<Member<'a>>,
    unknown: Option<super::Unknown>,
}

/// Which function; all null for what has none.
#[derive(Default, Serialize)]
struct Named<'a> {
    index: Option<usize>,
    name: Option<&'a str>,
    file: Option<&'a str>,
    cycle: Option<usize>,
}

#[derive(Serialize)]
struct JsonArc<'a> {
    #[serde(flatten)]
    function: Named<'a>,
    #[serde(rename = "self")]
    self_ns: u64,
    #[serde(rename = "descendants")]
    descendants_ns: u64,
    calls: u64,
    total_calls: Option<u64>,
    cut: bool,
    places: Option<Places>,
}

#[derive(Serialize)]
struct Member<'a> {
    #[serde(flatten)]
    function: Named<'a>,
    #[serde(rename = "self")]
    self_ns: u64,
    #[serde(rename = "descendants")]
    descendants_ns: u64,
    calls: u64,
    self_calls: u64,
}

impl Listing<'_> {
    fn named(&self, function: Option<usize>) -> Named<'_> {
        let Some((at, function)) = function.and_then(|at| Some((at, self.graph.functions.get(at)?))) else {
            return Named::default();
        };
        Named {
            index: self.number(at),
            name: Some(&function.name),
            file: function.file.as_deref(),
            cycle: function.cycle.map(|cycle| cycle + 1),
        }
    }

    fn json_arc(&self, arc: &Share, function: Option<usize>, code: Option<&Code>) -> JsonArc<'_> {
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
            places: places.map(|places| Places { calls: places.calls, jumps: places.jumps }),
        }
    }

    fn json_entry(&self, entry: Entry, code: Option<&Code>) -> JsonEntry<'_> {
        let percent = self.percent(self.total(entry));
        match entry {
            Entry::Function(at) => {
                let function = &self.graph.functions[at];
                JsonEntry {
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
            Entry::Cycle(at) => {
                let cycle = &self.graph.cycles[at];
                let member = |&member: &usize| {
                    let function = &self.graph.functions[member];
                    Member {
                        function: self.named(Some(member)),
                        self_ns: function.self_ns,
                        descendants_ns: function.descendants_ns,
                        calls: function.calls,
                        self_calls: function.self_calls,
                    }
                };
                JsonEntry {
                    kind: "cycle",
                    function: Named { cycle: Some(at + 1), ..Named::default() },
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

/// The document.
pub(super) fn json(of: &Options, profile: &Profile, code: Option<&Code>) -> Result<String> {
    let options = &of.graph;
    let listing = of.listing(profile, code)?;
    let cut = |arc: &Share| JsonCut {
        caller: listing.named(arc.caller),
        callee: listing.named(Some(arc.callee)),
        calls: arc.calls,
        self_ns: arc.self_ns,
        descendants_ns: arc.descendants_ns,
        by: if arc.tie == Tie::Cut(CutBy::Heuristic) { "auto" } else { "name" },
    };
    let summed = |code: &Code| JsonCode {
        arcs: code.arcs.len(),
        never_taken: listing
            .graph
            .arcs
            .iter()
            .filter(|arc| arc.calls == 0 && code.places(arc).is_some())
            .count(),
        bind_cycles: code.binds,
        unknown: code.unknown.values().fold(super::Unknown::default(), |sum, places| super::Unknown {
            calls: sum.calls.saturating_add(places.calls),
            jumps: sum.jumps.saturating_add(places.jumps),
            patched: sum.patched.saturating_add(places.patched),
        }),
    };
    crate::to_json(&Json {
        head: Head::new(SCHEMA, profile, &options.region).of(&options.who),
        propagation: listing.graph.propagation.word(),
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
