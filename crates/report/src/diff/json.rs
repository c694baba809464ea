//! A difference as JSON (`docs/json.md`).

use super::{find, Options, Row, SCHEMA};
use crate::inlining::{Both, Move, Why};
use crate::unit::Measure;
use crate::{sampled, Result};
use kerntune_profile::{KernelId, Profile, ScopeTotals};
use serde::Serialize;

#[derive(Serialize)]
struct Json<'a> {
    schema: &'static str,
    by: &'static str,
    /// Of both, and so of their difference.
    unit: &'static str,
    region: Option<&'a str>,
    base: JsonSide<'a>,
    other: JsonSide<'a>,
    #[serde(rename = "change")]
    change_ns: i128,
    as_compiled: bool,
    rows: &'a [Row],
    moved: Vec<JsonMove<'a>>,
    more_rows: usize,
    #[serde(rename = "more_change")]
    more_change_ns: i128,
}

#[derive(Serialize)]
struct JsonMove<'a> {
    function: &'a str,
    file: Option<&'a str>,
    into: &'a str,
    inlined_in: &'static str,
    known_by: Why,
    calls: Both,
    #[serde(rename = "self")]
    net_ns: Both,
}

#[derive(Serialize)]
struct JsonSide<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    sampled: Option<sampled::JsonSampled<'a>>,
    profile: &'a str,
    unit: &'static str,
    kernel: &'a KernelId,
    workload: &'a str,
    operations: u64,
    elapsed_ns: u64,
    #[serde(rename = "busy")]
    busy_ns: u64,
    idle_ns: u64,
    #[serde(rename = "user")]
    user_ns: u64,
    #[serde(rename = "unattributed")]
    unattributed_ns: u64,
    kernel_instructions: u64,
}

impl<'a> JsonSide<'a> {
    fn new(profile: &'a Profile, whole: &ScopeTotals) -> Self {
        let manifest = &profile.manifest;
        Self {
            sampled: sampled::json(profile),
            profile: &manifest.id,
            unit: Measure::of(profile).word(),
            kernel: &manifest.kernel,
            workload: &manifest.workload,
            operations: whole.operations,
            elapsed_ns: whole.elapsed_ns.get(),
            busy_ns: whole.busy_ns.get(),
            idle_ns: whole.idle_ns.get(),
            user_ns: whole.user_ns.get(),
            unattributed_ns: whole.unattributed_ns.get(),
            kernel_instructions: whole.kernel_instructions,
        }
    }
}

/// The same as JSON (`docs/json.md`), with a newline at its end. Figures are whole, never per
/// operation, so that they are exact.
pub fn json(base: &Profile, other: &Profile, options: &Options) -> Result<String> {
    let found = find([base, other], options)?;
    let shown = options.top.unwrap_or(found.rows.len()).min(found.rows.len());
    let (rows, rest) = found.rows.split_at(shown);
    let functions = &found.difference.functions;
    let moved = |moved: &Move| JsonMove {
        function: &functions[moved.function].name,
        file: functions[moved.function].file.as_deref(),
        into: &functions[moved.into].name,
        inlined_in: ["A", "B"][moved.side],
        known_by: moved.why,
        calls: moved.calls,
        net_ns: moved.net_ns,
    };
    crate::to_json(&Json {
        schema: SCHEMA,
        by: if options.paths { "path" } else { "function" },
        unit: Measure::of_both([base, other]).word(),
        region: options.region.as_deref(),
        base: JsonSide::new(base, &found.difference.totals[0]),
        other: JsonSide::new(other, &found.difference.totals[1]),
        change_ns: found.difference.change(),
        as_compiled: options.as_compiled,
        rows,
        moved: found.moves.list.iter().map(moved).collect(),
        more_rows: rest.len(),
        more_change_ns: rest.iter().map(|row| row.net_change_ns).sum(),
    })
}
