//! What was found as JSON (`docs/json.md`).

use super::before::{stages, Stage};
use super::repeated::Repeated;
use super::{against, data, repeated, tree, Fold, Shown};
use crate::head::Head;
use crate::{to_json, Result};
use kerntune_analyze::anatomy::{Call, Figures, Node, Part, Reached, Spread, Spreads, Sums};
use kerntune_profile::{FunctionDifference, FunctionIndex, KernelId};
use serde::Serialize;

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-anatomy/2";

#[derive(Serialize)]
struct Json<'a> {
    #[serde(flatten)]
    head: Head<'a>,
    kernel: &'a KernelId,
    workload: &'a str,
    exact: bool,
    #[serde(flatten)]
    operation: JsonFunction<'a>,
    until: Option<&'a str>,
    #[serde(flatten)]
    figures: JsonFigures,
    typical: Option<JsonCall<'a>>,
    worst: Option<JsonCall<'a>>,
    before: Option<JsonBefore<'a>>,
    tree: Vec<JsonNode<'a>>,
    repeated: Vec<JsonRepeated<'a>>,
    data: Option<JsonData>,
    against: Option<JsonAgainst<'a>>,
}

#[derive(Serialize)]
struct JsonFunction<'a> {
    function: &'a str,
    file: Option<&'a str>,
    module: Option<&'a str>,
}

#[derive(Serialize)]
struct JsonFigures {
    calls_whole: u64,
    calls_cut: u64,
    calls_elsewhere: u64,
    calls_crowded: u64,
    folded: u64,
    missing_events: u64,
    all: JsonSpreads,
}

#[derive(Serialize)]
struct JsonSpreads {
    #[serde(rename = "elapsed")]
    ns: JsonSpread,
    calls: JsonSpread,
    functions: JsonSpread,
    depth: JsonSpread,
}

#[derive(Serialize)]
struct JsonSpread {
    count: u64,
    sum: u64,
    least: u64,
    median: u64,
    greatest: u64,
    rounding: u64,
}

#[derive(Serialize)]
struct JsonFigure {
    #[serde(rename = "elapsed")]
    ns: u64,
    calls: u64,
    functions: u64,
    depth: u64,
}

#[derive(Serialize)]
struct JsonCall<'a> {
    begin_ns: u64,
    pid: Option<u32>,
    comm: Option<&'a str>,
    #[serde(flatten)]
    figures: JsonFigure,
}

#[derive(Serialize)]
struct JsonBefore<'a> {
    reach: u64,
    do_not: u64,
    first: Vec<JsonFirst<'a>>,
    spreads: JsonSpreads,
    #[serde(rename = "after")]
    after_ns: JsonSpread,
    typical: Option<JsonGate<'a>>,
}

#[derive(Serialize)]
struct JsonFirst<'a> {
    #[serde(flatten)]
    function: JsonFunction<'a>,
    operations: u64,
}

#[derive(Serialize)]
struct JsonGate<'a> {
    #[serde(flatten)]
    call: JsonCall<'a>,
    reaches: JsonFunction<'a>,
    before: JsonFigure,
    stages: Vec<JsonStage<'a>>,
}

#[derive(Serialize)]
struct JsonStage<'a> {
    kind: &'static str,
    depth: u32,
    #[serde(flatten)]
    function: Option<JsonFunction<'a>>,
    how: Option<&'static str>,
    #[serde(flatten)]
    part: JsonPart,
    #[serde(rename = "all_elapsed")]
    all_elapsed_ns: u64,
}

#[derive(Serialize)]
struct JsonPart {
    calls: u64,
    #[serde(rename = "self")]
    self_ns: u64,
    #[serde(rename = "elapsed")]
    elapsed_ns: u64,
    functions: u64,
}

#[derive(Serialize)]
struct JsonNode<'a> {
    kind: &'static str,
    depth: u32,
    #[serde(flatten)]
    function: Option<JsonFunction<'a>>,
    how: Option<&'static str>,
    operations: Option<u64>,
    all: JsonPart,
    typical: JsonPart,
    worst: JsonPart,
    before: Option<JsonPart>,
}

#[derive(Serialize)]
struct JsonRepeated<'a> {
    #[serde(flatten)]
    function: JsonFunction<'a>,
    times: u64,
    #[serde(rename = "elapsed")]
    elapsed_ns: u64,
    callers: Vec<JsonCaller<'a>>,
}

#[derive(Serialize)]
struct JsonCaller<'a> {
    #[serde(flatten)]
    function: JsonFunction<'a>,
    times: u64,
}

#[derive(Serialize)]
struct JsonData {
    total: data::Misses,
    paths: Vec<JsonDataPath>,
}

#[derive(Serialize)]
struct JsonDataPath {
    path: Vec<String>,
    #[serde(flatten)]
    misses: data::Misses,
}

#[derive(Serialize)]
struct JsonAgainst<'a> {
    profile: &'a str,
    kernel: &'a KernelId,
    workload: &'a str,
    #[serde(flatten)]
    operation: JsonFunction<'a>,
    #[serde(flatten)]
    figures: JsonFigures,
    before: Option<JsonBefore<'a>>,
    functions: Vec<JsonDifference>,
    #[serde(rename = "rest")]
    rest_ns: [i128; 2],
}

#[derive(Serialize)]
struct JsonDifference {
    function: String,
    file: Option<String>,
    symbols: [Vec<String>; 2],
    only: Option<&'static str>,
    #[serde(rename = "self")]
    self_ns: [i128; 2],
    calls: [i128; 2],
}

/// One document with a newline at its end; `other` is what is held against it. Figures are sums over all calls, so that they are
/// exact.
///
/// # Errors
/// No call was seen whole.
pub fn json(shown: &Shown, other: Option<&Shown>) -> Result<String> {
    shown.check()?;
    let manifest = &shown.profile.manifest;
    let region = shown.region.map(String::from);
    let against = other.map(|other| against(shown, other)).transpose()?;
    let most = shown.top.unwrap_or(usize::MAX);
    let data = data::find(shown).map(|found| JsonData {
        total: found.total,
        paths: found
            .paths
            .into_iter()
            .take(most)
            .map(|(path, misses)| JsonDataPath { path, misses })
            .collect(),
    });
    to_json(&Json {
        head: Head::new(SCHEMA, shown.profile, &region),
        kernel: &manifest.kernel,
        workload: &manifest.workload,
        exact: manifest.exact,
        operation: function(shown, shown.function),
        until: shown.until,
        figures: figures(shown),
        typical: shown.anatomy.typical.as_ref().map(|one| call(shown, one)),
        worst: shown.anatomy.worst.as_ref().map(|one| call(shown, one)),
        before: before(shown),
        tree: tree::lines(shown).into_iter().map(|line| node(shown, line)).collect(),
        repeated: repeated::find(&shown.anatomy.nodes)
            .iter()
            .take(most)
            .map(|row| repeats(shown, row))
            .collect(),
        data,
        against,
    })
}

fn against<'a>(shown: &Shown, other: &Shown<'a>) -> Result<JsonAgainst<'a>> {
    other.check()?;
    let against::Explained { rows, rest } = against::explain([shown, other])?;
    let row = |row: FunctionDifference| JsonDifference {
        only: against::only(&row),
        self_ns: [row.net(0), row.net(1)],
        calls: [row.calls(0), row.calls(1)],
        function: row.name,
        file: row.file,
        symbols: row.symbols,
    };
    Ok(JsonAgainst {
        profile: &other.profile.manifest.id,
        kernel: &other.profile.manifest.kernel,
        workload: &other.profile.manifest.workload,
        operation: function(other, other.function),
        figures: figures(other),
        before: before(other),
        functions: rows.into_iter().map(row).collect(),
        rest_ns: rest,
    })
}

fn function<'a>(shown: &Shown<'a>, function: FunctionIndex) -> JsonFunction<'a> {
    let tables = &shown.profile.tables;
    let symbol = tables.symbols.get(function.get() as usize);
    JsonFunction {
        function: tables.name(function),
        file: symbol.and_then(|symbol| symbol.file.as_deref()),
        module: symbol.and_then(|symbol| symbol.module.as_deref()),
    }
}

fn figures(shown: &Shown) -> JsonFigures {
    let anatomy = shown.anatomy;
    JsonFigures {
        calls_whole: shown.calls(),
        calls_cut: anatomy.cut,
        calls_elsewhere: anatomy.elsewhere,
        calls_crowded: anatomy.crowded,
        folded: anatomy.folded,
        missing_events: anatomy.missing.iter().map(|missing| missing.events).sum(),
        all: spreads(&anatomy.all),
    }
}

fn spreads(of: &Spreads) -> JsonSpreads {
    let Spreads { ns, calls, functions, depth } = of;
    JsonSpreads { ns: spread(ns), calls: spread(calls), functions: spread(functions), depth: spread(depth) }
}

fn spread(of: &Spread) -> JsonSpread {
    let Spread { count, sum, least, median, greatest, rounding } = *of;
    JsonSpread { count, sum, least, median, greatest, rounding }
}

fn figure(of: &Figures) -> JsonFigure {
    let Figures { ns, calls, functions, depth } = *of;
    JsonFigure { ns, calls, functions, depth }
}

fn call<'a>(shown: &Shown<'a>, of: &Call) -> JsonCall<'a> {
    let thread = shown.recording.threads.get(of.thread as usize);
    JsonCall {
        begin_ns: of.begin_ns,
        pid: thread.map(|thread| thread.pid),
        comm: thread.map(|thread| thread.comm.as_str()),
        figures: figure(&of.figures),
    }
}

fn before<'a>(shown: &Shown<'a>) -> Option<JsonBefore<'a>> {
    shown.until?;
    let before = &shown.anatomy.before;
    let reach = before.spreads.ns.count;
    let first = before.functions.iter();
    let first =
        first.map(|(of, operations)| JsonFirst { function: function(shown, *of), operations: *operations });
    let gate = |of: &Call| {
        let reached = of.before?;
        Some(JsonGate {
            call: call(shown, of),
            reaches: function(shown, reached.function),
            before: figure(&reached.figures),
            stages: stages(shown, &reached).into_iter().map(|of| stage(shown, &reached, of)).collect(),
        })
    };
    Some(JsonBefore {
        reach,
        do_not: shown.calls() - reach,
        first: first.collect(),
        spreads: spreads(&before.spreads),
        after_ns: spread(&before.after_ns),
        typical: before.typical.as_ref().and_then(gate),
    })
}

fn part(of: Part) -> JsonPart {
    let Part { calls, net_ns, elapsed_ns, functions } = of;
    JsonPart { calls, self_ns: net_ns, elapsed_ns, functions }
}

fn stage<'a>(shown: &Shown<'a>, reached: &Reached, of: Stage) -> JsonStage<'a> {
    let nodes = &shown.anatomy.nodes;
    let below = |roots: &[usize]| {
        let fold = Fold { nodes, roots };
        (fold.part(|node| node.gate.before), fold.part(|node| node.all.before).elapsed_ns)
    };
    let (kind, depth, node, (figures, all_elapsed_ns)) = match &of {
        Stage::Open(at) => {
            let Node { depth, gate, all, .. } = nodes[*at];
            ("open", depth, Some(*at), (gate.before, all.before.elapsed_ns))
        }
        Stage::Built(at) => ("built", nodes[*at].depth, Some(*at), below(&[*at])),
        Stage::Small(depth, roots) => ("more", *depth, None, below(roots)),
        Stage::Boundary(depth) => ("boundary", *depth, None, Default::default()),
    };
    let function = match of {
        Stage::Boundary(_) => Some(function(shown, reached.function)),
        _ => node.map(|at| function(shown, nodes[at].function)),
    };
    JsonStage {
        kind,
        depth,
        function,
        how: node.map(|at| nodes[at].how.word()),
        part: part(figures),
        all_elapsed_ns,
    }
}

fn node<'a>(shown: &Shown<'a>, line: tree::Line) -> JsonNode<'a> {
    let nodes = &shown.anatomy.nodes;
    let reached = shown.until.is_some();
    let of = |sums: Sums| part(sums.whole);
    match line {
        tree::Line::Node(at) => {
            let node = &nodes[at];
            JsonNode {
                kind: "call",
                depth: node.depth,
                function: Some(function(shown, node.function)),
                how: Some(node.how.word()),
                operations: Some(node.all.operations),
                all: of(node.all),
                typical: of(node.typical),
                worst: of(node.worst),
                before: reached.then(|| part(node.all.before)),
            }
        }
        tree::Line::Fold(depth, roots) => {
            let fold = Fold { nodes, roots: &roots };
            JsonNode {
                kind: "more",
                depth,
                function: None,
                how: None,
                operations: None,
                all: part(fold.part(|node| node.all.whole)),
                typical: part(fold.part(|node| node.typical.whole)),
                worst: part(fold.part(|node| node.worst.whole)),
                before: reached.then(|| part(fold.part(|node| node.all.before))),
            }
        }
    }
}

fn repeats<'a>(shown: &Shown<'a>, row: &Repeated) -> JsonRepeated<'a> {
    let caller =
        |(of, times): &(FunctionIndex, u64)| JsonCaller { function: function(shown, *of), times: *times };
    JsonRepeated {
        function: function(shown, row.function),
        times: row.times,
        elapsed_ns: row.elapsed_ns,
        callers: row.callers.iter().map(caller).collect(),
    }
}
