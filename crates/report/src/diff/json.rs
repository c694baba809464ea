//! JSON document of a difference (`docs/json.md`).

use super::{find, DiffOptions, DiffRow, SCHEMA};
use crate::inlining::{InlineEvidence, InlineMove, KernelPair};
use crate::unit::TickUnit;
use crate::{sampled, Result};
use kerntune_profile::{KernelId, Profile, ScopeTotals};
use serde::Serialize;

/// JSON document of this report; [`SCHEMA`] names its version.
#[derive(Serialize)]
struct DiffReport<'a> {
    schema: &'static str,
    by: &'static str,
    /// Unit of both sides and of their difference.
    unit: &'static str,
    region: Option<&'a str>,
    base: JsonDiffSide<'a>,
    other: JsonDiffSide<'a>,
    #[serde(rename = "change")]
    change_ns: i128,
    as_compiled: bool,
    rows: &'a [DiffRow],
    moved: Vec<JsonInlineMove<'a>>,
    more_rows: usize,
    #[serde(rename = "more_change")]
    more_change_ticks: i128,
}

#[derive(Serialize)]
struct JsonInlineMove<'a> {
    function: &'a str,
    file: Option<&'a str>,
    into: &'a str,
    inlined_in: &'static str,
    known_by: InlineEvidence,
    calls: KernelPair,
    #[serde(rename = "self")]
    self_ticks: KernelPair,
}

#[derive(Serialize)]
struct JsonDiffSide<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    sampled: Option<sampled::JsonSampled<'a>>,
    profile: &'a str,
    unit: &'static str,
    kernel: &'a KernelId,
    workload: &'a str,
    operations: u64,
    elapsed_ns: u64,
    #[serde(rename = "busy")]
    busy_ticks: u64,
    idle_ns: u64,
    #[serde(rename = "user")]
    user_ticks: u64,
    #[serde(rename = "unattributed")]
    unattributed_ticks: u64,
    kernel_instructions: u64,
}

impl<'a> JsonDiffSide<'a> {
    fn new(profile: &'a Profile, whole: &ScopeTotals) -> Self {
        let manifest = &profile.manifest;
        Self {
            sampled: sampled::json(profile),
            profile: &manifest.id,
            unit: TickUnit::of(profile).name(),
            kernel: &manifest.kernel,
            workload: &manifest.workload,
            operations: whole.operations,
            elapsed_ns: whole.elapsed_ticks.get(),
            busy_ticks: whole.busy_ticks.get(),
            idle_ns: whole.idle_ticks.get(),
            user_ticks: whole.user_ticks.get(),
            unattributed_ticks: whole.unattributed_ticks.get(),
            kernel_instructions: whole.kernel_instructions,
        }
    }
}

/// Renders the JSON document (`docs/json.md`), with a newline at its end. Figures are whole, never
/// per operation, so that they are exact.
pub fn json(base: &Profile, other: &Profile, options: &DiffOptions) -> Result<String> {
    let found = find([base, other], options)?;
    let shown = options.top.unwrap_or(found.rows.len()).min(found.rows.len());
    let (rows, rest) = found.rows.split_at(shown);
    let functions = &found.difference.functions;
    let moved = |moved: &InlineMove| JsonInlineMove {
        function: &functions[moved.function].name,
        file: functions[moved.function].file.as_deref(),
        into: &functions[moved.into].name,
        inlined_in: ["A", "B"][moved.side],
        known_by: moved.why,
        calls: moved.calls,
        self_ticks: moved.self_ticks,
    };
    crate::to_json(&DiffReport {
        schema: SCHEMA,
        by: if options.paths { "path" } else { "function" },
        unit: TickUnit::common_to([base, other]).name(),
        region: options.region.as_deref(),
        base: JsonDiffSide::new(base, &found.difference.totals[0]),
        other: JsonDiffSide::new(other, &found.difference.totals[1]),
        change_ns: found.difference.change(),
        as_compiled: options.as_compiled,
        rows,
        moved: found.moves.list.iter().map(moved).collect(),
        more_rows: rest.len(),
        more_change_ticks: rest.iter().map(|row| row.self_change_ticks).sum(),
    })
}
