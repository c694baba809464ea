//! JSON document of the anatomy (`docs/json.md`).

use super::before::{stages, StageLine};
use super::repeated::RepeatedFunction;
use super::{against, data, repeated, tree, AnatomyView, NodeFold};
use crate::head::JsonHead;
use crate::{to_json, Result};
use kerntune_analyze::anatomy::{
    AnatomyNode, BoundaryEntry, CallFigures, ExampleCall, FigureSpread, FigureSpreads, NodeFigures, NodeSums,
};
use kerntune_profile::{FunctionDifference, FunctionIndex, KernelId};
use serde::Serialize;

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-anatomy/2";

/// JSON document of this report; [`SCHEMA`] names its version.
#[derive(Serialize)]
struct AnatomyReport<'a> {
    #[serde(flatten)]
    head: JsonHead<'a>,
    kernel: &'a KernelId,
    workload: &'a str,
    exact: bool,
    #[serde(flatten)]
    operation: JsonFunctionName<'a>,
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
struct JsonFunctionName<'a> {
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
    function: JsonFunctionName<'a>,
    operations: u64,
}

#[derive(Serialize)]
struct JsonGate<'a> {
    #[serde(flatten)]
    call: JsonCall<'a>,
    reaches: JsonFunctionName<'a>,
    before: JsonFigure,
    stages: Vec<JsonStage<'a>>,
}

#[derive(Serialize)]
struct JsonStage<'a> {
    kind: &'static str,
    depth: u32,
    #[serde(flatten)]
    function: Option<JsonFunctionName<'a>>,
    how: Option<&'static str>,
    #[serde(flatten)]
    part: JsonPathFigures,
    #[serde(rename = "all_elapsed")]
    all_elapsed_ns: u64,
}

#[derive(Serialize)]
struct JsonPathFigures {
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
    function: Option<JsonFunctionName<'a>>,
    how: Option<&'static str>,
    operations: Option<u64>,
    all: JsonPathFigures,
    typical: JsonPathFigures,
    worst: JsonPathFigures,
    before: Option<JsonPathFigures>,
}

#[derive(Serialize)]
struct JsonRepeated<'a> {
    #[serde(flatten)]
    function: JsonFunctionName<'a>,
    times: u64,
    #[serde(rename = "elapsed")]
    elapsed_ns: u64,
    callers: Vec<JsonCaller<'a>>,
}

#[derive(Serialize)]
struct JsonCaller<'a> {
    #[serde(flatten)]
    function: JsonFunctionName<'a>,
    times: u64,
}

#[derive(Serialize)]
struct JsonData {
    total: data::CacheMisses,
    paths: Vec<JsonDataPath>,
}

#[derive(Serialize)]
struct JsonDataPath {
    path: Vec<String>,
    #[serde(flatten)]
    misses: data::CacheMisses,
}

#[derive(Serialize)]
struct JsonAgainst<'a> {
    profile: &'a str,
    kernel: &'a KernelId,
    workload: &'a str,
    #[serde(flatten)]
    operation: JsonFunctionName<'a>,
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

/// Renders one document with a newline at its end; `other` is compared with it. Figures are sums
/// over all calls, so that they are exact.
///
/// # Errors
/// No complete call was recorded.
pub fn json(shown: &AnatomyView, other: Option<&AnatomyView>) -> Result<String> {
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
    to_json(&AnatomyReport {
        head: JsonHead::new(SCHEMA, shown.profile, &region),
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

fn against<'a>(shown: &AnatomyView, other: &AnatomyView<'a>) -> Result<JsonAgainst<'a>> {
    other.check()?;
    let against::ExplainedFunctions { rows, rest } = against::explain([shown, other])?;
    let row = |row: FunctionDifference| JsonDifference {
        only: against::only(&row),
        self_ns: [row.self_ticks(0), row.self_ticks(1)],
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

fn function<'a>(shown: &AnatomyView<'a>, function: FunctionIndex) -> JsonFunctionName<'a> {
    let tables = &shown.profile.tables;
    let symbol = tables.symbols.get(function.get() as usize);
    JsonFunctionName {
        function: tables.name(function),
        file: symbol.and_then(|symbol| symbol.file.as_deref()),
        module: symbol.and_then(|symbol| symbol.module.as_deref()),
    }
}

fn figures(shown: &AnatomyView) -> JsonFigures {
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

fn spreads(of: &FigureSpreads) -> JsonSpreads {
    let FigureSpreads { ns, calls, functions, depth } = of;
    JsonSpreads { ns: spread(ns), calls: spread(calls), functions: spread(functions), depth: spread(depth) }
}

fn spread(of: &FigureSpread) -> JsonSpread {
    let FigureSpread { count, sum, least, median, greatest, rounding } = *of;
    JsonSpread { count, sum, least, median, greatest, rounding }
}

fn figure(of: &CallFigures) -> JsonFigure {
    let CallFigures { ns, calls, functions, depth } = *of;
    JsonFigure { ns, calls, functions, depth }
}

fn call<'a>(shown: &AnatomyView<'a>, of: &ExampleCall) -> JsonCall<'a> {
    let thread = shown.recording.threads.get(of.thread as usize);
    JsonCall {
        begin_ns: of.begin_ns,
        pid: thread.map(|thread| thread.pid),
        comm: thread.map(|thread| thread.comm.as_str()),
        figures: figure(&of.figures),
    }
}

fn before<'a>(shown: &AnatomyView<'a>) -> Option<JsonBefore<'a>> {
    shown.until?;
    let before = &shown.anatomy.before;
    let reach = before.spreads.ns.count;
    let first = before.functions.iter();
    let first =
        first.map(|(of, operations)| JsonFirst { function: function(shown, *of), operations: *operations });
    let boundary = |of: &ExampleCall| {
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
        typical: before.typical.as_ref().and_then(boundary),
    })
}

fn part(of: NodeFigures) -> JsonPathFigures {
    let NodeFigures { calls, self_ticks, elapsed_ns, functions } = of;
    JsonPathFigures { calls, self_ns: self_ticks, elapsed_ns, functions }
}

fn stage<'a>(shown: &AnatomyView<'a>, reached: &BoundaryEntry, of: StageLine) -> JsonStage<'a> {
    let nodes = &shown.anatomy.nodes;
    let below = |roots: &[usize]| {
        let fold = NodeFold { nodes, roots };
        (fold.part(|node| node.boundary.before), fold.part(|node| node.all.before).elapsed_ns)
    };
    let (kind, depth, node, (figures, all_elapsed_ns)) = match &of {
        StageLine::Open(at) => {
            let AnatomyNode { depth, boundary, all, .. } = nodes[*at];
            ("open", depth, Some(*at), (boundary.before, all.before.elapsed_ns))
        }
        StageLine::Built(at) => ("built", nodes[*at].depth, Some(*at), below(&[*at])),
        StageLine::Small(depth, roots) => ("more", *depth, None, below(roots)),
        StageLine::Boundary(depth) => ("boundary", *depth, None, Default::default()),
    };
    let function = match of {
        StageLine::Boundary(_) => Some(function(shown, reached.function)),
        _ => node.map(|at| function(shown, nodes[at].function)),
    };
    JsonStage {
        kind,
        depth,
        function,
        how: node.map(|at| nodes[at].how.as_str()),
        part: part(figures),
        all_elapsed_ns,
    }
}

fn node<'a>(shown: &AnatomyView<'a>, line: tree::TreeLine) -> JsonNode<'a> {
    let nodes = &shown.anatomy.nodes;
    let reached = shown.until.is_some();
    let of = |sums: NodeSums| part(sums.whole);
    match line {
        tree::TreeLine::Node(at) => {
            let node = &nodes[at];
            JsonNode {
                kind: "call",
                depth: node.depth,
                function: Some(function(shown, node.function)),
                how: Some(node.how.as_str()),
                operations: Some(node.all.operations),
                all: of(node.all),
                typical: of(node.typical),
                worst: of(node.worst),
                before: reached.then(|| part(node.all.before)),
            }
        }
        tree::TreeLine::Fold(depth, roots) => {
            let fold = NodeFold { nodes, roots: &roots };
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

fn repeats<'a>(shown: &AnatomyView<'a>, row: &RepeatedFunction) -> JsonRepeated<'a> {
    let caller =
        |(of, times): &(FunctionIndex, u64)| JsonCaller { function: function(shown, *of), times: *times };
    JsonRepeated {
        function: function(shown, row.function),
        times: row.times,
        elapsed_ns: row.elapsed_ns,
        callers: row.callers.iter().map(caller).collect(),
    }
}
