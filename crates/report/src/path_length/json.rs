//! JSON document of the path length comparison (`docs/json.md`).

use super::align::FoldReason;
use super::{find, PathLengthOptions};
use crate::Result;
use kerntune_profile::{KernelId, Profile};
use serde::Serialize;

/// Name and version of the JSON form.
pub const SCHEMA: &str = "kerntune-path-length/1";

/// JSON document of this report; [`SCHEMA`] names its version.
#[derive(Serialize)]
struct PathLengthReport<'a> {
    schema: &'static str,
    region: Option<&'a str>,
    base: JsonPathSide<'a>,
    other: JsonPathSide<'a>,
    rest: [i128; 2],
    paths: Vec<JsonPathRow>,
}

#[derive(Serialize)]
struct JsonPathSide<'a> {
    profile: &'a str,
    kernel: &'a KernelId,
    workload: &'a str,
    operations: u64,
    kernel_instructions: u64,
}

#[derive(Serialize)]
struct JsonPathRow {
    path: Vec<String>,
    depth: usize,
    file: Option<String>,
    only: Option<&'static str>,
    instructions: [i128; 2],
    within: [i128; 2],
    calls: [i128; 2],
    parts: Vec<JsonFoldedPart>,
}

#[derive(Serialize)]
struct JsonFoldedPart {
    function: String,
    only: &'static str,
    why: &'static str,
    calls: i128,
    instructions: i128,
}

fn side(number: usize) -> &'static str {
    ["A", "B"][number]
}

/// Renders all paths with whole figures, with a newline at the end.
///
/// # Errors
/// Same as [`super::text`].
pub fn json(base: &Profile, other: &Profile, options: &PathLengthOptions) -> Result<String> {
    let found = find([base, other], options)?;
    let of = |number: usize, profile| {
        let Profile { manifest, .. }: &Profile = profile;
        let totals = &found.difference.totals[number];
        JsonPathSide {
            profile: &manifest.id,
            kernel: &manifest.kernel,
            workload: &manifest.workload,
            operations: totals.operations,
            kernel_instructions: totals.kernel_instructions,
        }
    };
    let row = |(at, depth): (usize, usize)| {
        let place = &found.aligned.places[at];
        let function = found.difference.function(&place.frame);
        let part = |part: &super::align::FoldedFunction| JsonFoldedPart {
            function: found.function(part.row),
            only: side(part.side),
            why: match part.why {
                FoldReason::Alone => "alone",
                FoldReason::Between => "between",
            },
            calls: part.calls,
            instructions: part.instructions,
        };
        JsonPathRow {
            path: found.path(at),
            depth,
            file: function.and_then(|function| function.file.clone()),
            only: place.only().map(side),
            instructions: place.instructions(),
            within: place.total,
            calls: place.self_figures.map(|own| own.calls),
            parts: place.parts.iter().map(part).collect(),
        }
    };
    let parts = |number: usize| -> i128 {
        found.aligned.places.iter().map(|place| place.instructions()[number]).sum()
    };
    crate::to_json(&PathLengthReport {
        schema: SCHEMA,
        region: options.region.as_deref(),
        base: of(0, base),
        other: of(1, other),
        rest: [0, 1].map(|number| found.whole[number] - parts(number)),
        paths: found.in_order().into_iter().map(row).collect(),
    })
}
