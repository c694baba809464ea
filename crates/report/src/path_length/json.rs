//! As JSON: `docs/json.md`.

use super::align::Why;
use super::{find, Options};
use crate::Result;
use kerntune_profile::{KernelId, PathLabel, Profile};
use serde::Serialize;

/// Name and version of the JSON form.
pub const SCHEMA: &str = "kerntune-path-length/1";

#[derive(Serialize)]
struct Json<'a> {
    schema: &'static str,
    region: Option<&'a str>,
    base: Side<'a>,
    other: Side<'a>,
    rest: [i128; 2],
    paths: Vec<Row>,
}

#[derive(Serialize)]
struct Side<'a> {
    profile: &'a str,
    kernel: &'a KernelId,
    workload: &'a str,
    operations: u64,
    kernel_instructions: u64,
}

#[derive(Serialize)]
struct Row {
    path: Vec<String>,
    depth: usize,
    file: Option<String>,
    only: Option<&'static str>,
    instructions: [i128; 2],
    within: [i128; 2],
    calls: [i128; 2],
    parts: Vec<JsonPart>,
}

#[derive(Serialize)]
struct JsonPart {
    function: String,
    only: &'static str,
    why: &'static str,
    calls: i128,
    instructions: i128,
}

fn side(number: usize) -> &'static str {
    ["A", "B"][number]
}

/// All paths, whole figures, with a newline at its end.
///
/// # Errors
/// As of [`super::text`].
pub fn json(base: &Profile, other: &Profile, options: &Options) -> Result<String> {
    let found = find([base, other], options)?;
    let of = |number: usize, profile| {
        let Profile { manifest, .. }: &Profile = profile;
        let totals = &found.difference.totals[number];
        Side {
            profile: &manifest.id,
            kernel: &manifest.kernel,
            workload: &manifest.workload,
            operations: totals.operations,
            kernel_instructions: totals.kernel_instructions,
        }
    };
    let row = |(at, depth): (usize, usize)| {
        let place = &found.aligned.places[at];
        let function = match place.label {
            PathLabel::Function(row) => found.difference.functions.get(row),
            _ => None,
        };
        let part = |part: &super::align::Part| JsonPart {
            function: found.function(part.row),
            only: side(part.side),
            why: match part.why {
                Why::Alone => "alone",
                Why::Between => "between",
            },
            calls: part.calls,
            instructions: part.instructions,
        };
        Row {
            path: found.path(at),
            depth,
            file: function.and_then(|function| function.file.clone()),
            only: place.only().map(side),
            instructions: place.instructions(),
            within: place.elapsed,
            calls: place.own.map(|own| own.calls),
            parts: place.parts.iter().map(part).collect(),
        }
    };
    let parts = |number: usize| -> i128 {
        found.aligned.places.iter().map(|place| place.instructions()[number]).sum()
    };
    crate::to_json(&Json {
        schema: SCHEMA,
        region: options.region.as_deref(),
        base: of(0, base),
        other: of(1, other),
        rest: [0, 1].map(|number| found.whole[number] - parts(number)),
        paths: found.in_order().into_iter().map(row).collect(),
    })
}
