//! Requests to block devices: sizes, seeks, queue depth, and times.

use super::{entry, Entry, Report};
use kerntune_table::columns::{Alignment, TableBuilder};
use crate::head::JsonHead;
use kerntune_table::{printable, TextRole};
use crate::traffic::{all_requests, requests, BlockRequests, ValueCounts, ValueStats, NOT_SEEN};
use crate::unit::header;
use crate::view::scope;
use crate::{health, Result, Style};
use clap::Args;
use kerntune_table::number::{figure, fixed, grouped};
use kerntune_profile::{Profile, ScopeTotals};
use serde::Serialize;

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-io/2";

/// Registry entry of `kerntune report PROFILE io`.
pub const ENTRY: Entry = entry::<IoOptions>("io", 16);

/// Requests to block devices: sizes, seeks, queue depth, time from issue to completion (docs/disk.md)
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct IoOptions {
    /// Show only what happened in the regions of this name
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
}

struct RequestTable {
    totals: ScopeTotals,
    is_seen: bool,
    rows: Vec<BlockRequests>,
}

fn find(profile: &Profile, options: &IoOptions) -> Result<RequestTable> {
    let scope = scope(profile, options.region.as_deref())?;
    let rows = requests(profile, &scope);
    Ok(RequestTable { totals: scope.totals(profile), is_seen: profile.manifest.capture.requests, rows })
}

/// Returns remarks on requests that cross region boundaries or are missing in the figures, a line
/// each.
pub(crate) fn notes(all: &BlockRequests) -> Vec<String> {
    let mut notes = Vec::new();
    let mut say = |count: u64, what: &str| {
        if count > 0 {
            notes.push(format!("{} {what}.", grouped(count)));
        }
    };
    say(
        all.issued_before,
        "more completed in a region in which they were not issued: before it, or in another; no figure here \
         includes them",
    );
    say(
        all.completed_later,
        "completed after their region, or in one within it; their time is in the figures",
    );
    say(all.unfinished, "were not seen to complete, and have no time: under way at the end, or merged");
    say(all.again, "times a driver returned a request and got it again; its time counts from the last time");
    notes
}

fn value(value: Option<u64>) -> String {
    value.map_or("-".into(), grouped)
}

/// Column heads of the request table, also used by `characterize`.
pub(crate) const HEADS: [(&str, Alignment); 12] = [
    ("requests", Alignment::Right),
    ("mean\nbytes", Alignment::Right),
    ("median\nbytes", Alignment::Right),
    ("% sequen-\ntial", Alignment::Right),
    ("median seek\nbytes", Alignment::Right),
    ("mean\ndepth", Alignment::Right),
    ("max\ndepth", Alignment::Right),
    ("mean\nns", Alignment::Right),
    ("median\nns", Alignment::Right),
    ("p99\nns", Alignment::Right),
    ("device", Alignment::Left),
    ("operation", Alignment::Left),
];

pub(crate) fn cells(row: &RequestRow) -> [String; HEADS.len()] {
    let mean = |figures: &ValueStats, of: fn(f64) -> String| figures.mean.map_or("-".into(), of);
    [
        grouped(row.requests),
        mean(&row.bytes, |mean| fixed(mean, 0)),
        value(row.bytes.median),
        row.sequential_percent.map_or("-".into(), |percent| fixed(percent, 1)),
        value(row.seek_bytes.median),
        mean(&row.depth, figure),
        value(row.depth.max),
        mean(&row.time_ns, |mean| fixed(mean, 0)),
        value(row.time_ns.median),
        value(row.time_ns.p99),
        printable(row.device.as_deref().unwrap_or("all")),
        printable(row.operation.as_deref().unwrap_or("all")),
    ]
}

/// Row of requests, with statistics of their sizes and times.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct RequestRow {
    /// `None` for all devices; likewise below for all operations.
    pub device: Option<String>,
    pub operation: Option<String>,
    pub requests: u64,
    again: u64,
    completed: u64,
    completed_later: u64,
    unfinished: u64,
    issued_before: u64,
    sequential: u64,
    /// Reads and writes for which the end of the device's previous request is known.
    placed: u64,
    /// Share of sequential requests among `placed`.
    pub sequential_percent: Option<f64>,
    pub bytes: ValueStats,
    pub seek_bytes: ValueStats,
    pub depth: ValueStats,
    pub time_ns: ValueStats,
}

impl RequestRow {
    /// Creates the row; `figures` computes the statistics of each distribution.
    pub fn of(row: &BlockRequests, figures: fn(&ValueCounts) -> ValueStats) -> Self {
        Self {
            device: row.device.clone(),
            operation: row.operation.clone(),
            requests: row.requests,
            again: row.again,
            completed: row.completed,
            completed_later: row.completed_later,
            unfinished: row.unfinished,
            issued_before: row.issued_before,
            sequential: row.sequential,
            placed: row.placed(),
            sequential_percent: row.percent_sequential(),
            bytes: figures(&row.bytes),
            seek_bytes: figures(&row.seeks),
            depth: figures(&row.depths),
            time_ns: figures(&row.times),
        }
    }
}

/// JSON document of this report; [`SCHEMA`] names its version.
#[derive(Serialize)]
struct IoReport<'a> {
    #[serde(flatten)]
    head: JsonHead<'a>,
    elapsed_ns: u64,
    #[serde(rename = "busy")]
    busy_ticks: u64,
    /// Requests were recorded.
    seen: bool,
    /// Sum over all devices and operations; `None` if requests were not recorded.
    all: Option<RequestRow>,
    rows: Vec<RequestRow>,
}

impl Report for IoOptions {
    fn text(&self, profile: &Profile, style: Style) -> Result<String> {
        let found = find(profile, self)?;
        let mut out = header(profile, &found.totals, self.region.as_deref());
        if !found.is_seen {
            return Ok(format!("{out}\nRequests to block devices: {NOT_SEEN}.\n"));
        }
        let all = all_requests(&found.rows);
        if found.rows.is_empty() {
            return Ok(out + "\nNo request was made to a block device.\n");
        }
        let mut table = TableBuilder::new(HEADS);
        let several = (found.rows.len() > 1).then_some(&all);
        for row in found.rows.iter().chain(several) {
            table.row(cells(&RequestRow::of(row, ValueCounts::summary)).map(Into::into));
        }
        out += &format!("\n{}", table.render(style));
        for note in notes(&all) {
            out += &style.paint(TextRole::Faint, &format!("{note}\n"));
        }
        let spreads = [
            (&all.bytes, "bytes", "Sizes"),
            (
                &all.seeks,
                "bytes",
                "Seeks: from the end of the device's last read or write, of those that do not begin there",
            ),
            (
                &all.depths,
                "requests",
                "Queue depth: requests of the device under way when one is issued, itself included",
            ),
            (&all.times, "ns", "Time from issue to completion"),
        ];
        for (spread, unit, what) in spreads {
            out += &spread.table(what, unit, style);
        }
        out += &health::text(profile, style);
        Ok(out)
    }

    fn json(&self, profile: &Profile) -> Result<String> {
        let found = find(profile, self)?;
        let all = all_requests(&found.rows);
        crate::to_json(&IoReport {
            head: JsonHead::new(SCHEMA, profile, &self.region),
            elapsed_ns: found.totals.elapsed_ticks.get(),
            busy_ticks: found.totals.busy_ticks.get(),
            seen: found.is_seen,
            all: found.is_seen.then(|| RequestRow::of(&all, ValueCounts::figures)),
            rows: found.rows.iter().map(|row| RequestRow::of(row, ValueCounts::figures)).collect(),
        })
    }
}
