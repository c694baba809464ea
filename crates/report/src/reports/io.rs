//! Requests to block devices: sizes, places, how many at a time, and how long they take.

use super::{entry, Entry, Report};
use crate::columns::{Columns, Side};
use crate::head::Head;
use crate::style::{printable, Role};
use crate::traffic::{all_requests, requests, Figures, Requests, Spread, NOT_SEEN};
use crate::unit::header;
use crate::view::scope;
use crate::{health, Result, Style};
use clap::Args;
use kerntune_compare::number::{figure, fixed, grouped};
use kerntune_profile::{Profile, ScopeTotals};
use serde::Serialize;

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-io/2";

/// `kerntune report PROFILE io`.
pub const ENTRY: Entry = entry::<Options>("io", 16);

/// Requests to block devices: sizes, seeks, queue depth, time from issue to completion (docs/disk.md)
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct Options {
    /// Only what happened in the regions of this name
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
}

struct Found {
    totals: ScopeTotals,
    is_seen: bool,
    rows: Vec<Requests>,
}

fn find(profile: &Profile, options: &Options) -> Result<Found> {
    let scope = scope(profile, options.region.as_deref())?;
    let rows = requests(profile, &scope);
    Ok(Found { totals: scope.totals(profile), is_seen: profile.manifest.capture.requests, rows })
}

/// What happened at the ends of regions, and anything else that is not in the figures; a line each.
pub(crate) fn notes(all: &Requests) -> Vec<String> {
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

/// The heads and cells of one line, which the page of a workload has as well.
pub(crate) const HEADS: [(&str, Side); 12] = [
    ("requests", Side::Right),
    ("mean\nbytes", Side::Right),
    ("median\nbytes", Side::Right),
    ("% sequen-\ntial", Side::Right),
    ("median seek\nbytes", Side::Right),
    ("mean\ndepth", Side::Right),
    ("max\ndepth", Side::Right),
    ("mean\nns", Side::Right),
    ("median\nns", Side::Right),
    ("p99\nns", Side::Right),
    ("device", Side::Left),
    ("operation", Side::Left),
];

pub(crate) fn cells(row: &Row) -> [String; HEADS.len()] {
    let mean = |figures: &Figures, of: fn(f64) -> String| figures.mean.map_or("-".into(), of);
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

/// One line of figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Row {
    /// None for all devices, and all operations.
    pub device: Option<String>,
    pub operation: Option<String>,
    pub requests: u64,
    again: u64,
    completed: u64,
    completed_later: u64,
    unfinished: u64,
    issued_before: u64,
    sequential: u64,
    /// Reads and writes of which it is known where the device's last one ended.
    placed: u64,
    /// Of those.
    pub sequential_percent: Option<f64>,
    pub bytes: Figures,
    pub seek_bytes: Figures,
    pub depth: Figures,
    pub time_ns: Figures,
}

impl Row {
    /// With the figures of each spread as told.
    pub fn of(row: &Requests, figures: fn(&Spread) -> Figures) -> Self {
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

#[derive(Serialize)]
struct Json<'a> {
    #[serde(flatten)]
    head: Head<'a>,
    elapsed_ns: u64,
    #[serde(rename = "busy")]
    busy_ns: u64,
    /// Whether requests were seen at all.
    seen: bool,
    /// Of all devices and operations; none where they were not seen.
    all: Option<Row>,
    rows: Vec<Row>,
}

impl Report for Options {
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
        let mut table = Columns::new(HEADS);
        let several = (found.rows.len() > 1).then_some(&all);
        for row in found.rows.iter().chain(several) {
            table.row(cells(&Row::of(row, Spread::summary)).map(Into::into));
        }
        out += &format!("\n{}", table.render(style));
        for note in notes(&all) {
            out += &style.paint(Role::Faint, &format!("{note}\n"));
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
        crate::to_json(&Json {
            head: Head::new(SCHEMA, profile, &self.region),
            elapsed_ns: found.totals.elapsed_ns.get(),
            busy_ns: found.totals.busy_ns.get(),
            seen: found.is_seen,
            all: found.is_seen.then(|| Row::of(&all, Spread::figures)),
            rows: found.rows.iter().map(|row| Row::of(row, Spread::figures)).collect(),
        })
    }
}
