//! Requests to block devices: sizes, seeks, queue depth, and times.

use super::{entry, Entry, Report, Selection};
use crate::traffic::{all_requests, requests, BlockRequests, ValueCounts, NOT_SEEN};
use crate::unit::header;
use crate::view::scope;
use crate::{head, health, Result};
use clap::Args;
use kerntune_profile::Profile;
use kerntune_table::number::grouped;
use kerntune_table::{Columns, Document, Table};
use serde::{Serialize, Serializer};

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-io/2";

/// Registry entry of `kerntune report PROFILE io`.
pub const ENTRY: Entry = entry::<IoOptions>("io", 16);

/// Description of the JSON form.
const ABOUT: &str = "Requests to block devices ([disk.md](disk.md#requests)).";

/// Requests to block devices: sizes, seeks, queue depth, time from issue to completion (docs/disk.md)
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct IoOptions {
    /// Region and number of rows.
    #[command(flatten)]
    pub select: Selection,
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

/// Declares the columns of the request table; `has_values` includes all values of each distribution.
pub(crate) fn columns<'a>(has_values: bool) -> Columns<'a, BlockRequests> {
    let figures = || ValueCounts::columns(has_values);
    let mut columns = Columns::<BlockRequests>::new();
    columns.add("requests", "Requests that were issued.", |row| row.requests).head("requests");
    columns.add("again", "Times that a driver returned a request and got it again.", |row| row.again);
    columns.add("completed", "Requests that completed.", |row| row.completed);
    columns.add(
        "completed_later",
        "Of these, requests that completed in another region or in none.",
        |row| row.completed_later,
    );
    columns.add("unfinished", "Requests without a completion.", |row| row.unfinished);
    columns.add(
        "issued_before",
        "Requests that completed here and were issued before or in another region; in no other figure.",
        |row| row.issued_before,
    );
    columns.object("bytes", "Sizes.", figures(), |row| &row.bytes);
    columns.text_only("mean\nbytes", |row| row.bytes.mean()).decimals(0).null("-");
    columns.text_only("median\nbytes", |row| row.bytes.quantile(50)).null("-");
    columns.add("sequential", "Reads and writes that begin where the device's last one ended.", |row| {
        row.sequential
    });
    columns.add(
        "placed",
        "Reads and writes for which the end of the device's last one is known.",
        BlockRequests::placed,
    );
    columns
        .add(
            "sequential_percent",
            "Share of `sequential` in `placed`; null if that is 0.",
            BlockRequests::percent_sequential,
        )
        .head("% sequen-\ntial")
        .decimals(1)
        .null("-");
    columns.object("seek_bytes", "Distances of the others from there.", figures(), |row| &row.seeks);
    columns.text_only("median seek\nbytes", |row| row.seeks.quantile(50)).null("-");
    columns.object(
        "depth",
        "Requests of the device under way when one is issued, itself included.",
        figures(),
        |row| &row.depths,
    );
    columns.text_only("mean\ndepth", |row| row.depths.mean()).null("-");
    columns.text_only("max\ndepth", |row| row.depths.max()).null("-");
    columns.object("time_ns", "Times from issue to completion.", figures(), |row| &row.times);
    columns.text_only("mean\nns", |row| row.times.mean()).decimals(0).null("-");
    columns.text_only("median\nns", |row| row.times.quantile(50)).null("-");
    columns.text_only("p99\nns", |row| row.times.quantile(99)).null("-");
    columns.add("device", "Device; null for all.", |row| row.device.clone()).head("device").null("all");
    columns
        .add("operation", "Operation: `read`, `write` and others; null for all.", |row| row.operation.clone())
        .head("operation")
        .null("all");
    columns
}

impl Serialize for BlockRequests {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        columns(false).to_record(self).serialize(serializer)
    }
}

impl Report for IoOptions {
    fn document<'a>(&'a self, profile: &'a Profile) -> Result<Document<'a>> {
        let region = self.select.region.as_deref();
        let scope = scope(profile, region)?;
        let totals = scope.totals(profile);
        let rows = requests(profile, &scope);
        let all = all_requests(&rows);
        let is_seen = profile.manifest.capture.requests;
        let mut document = head::document(SCHEMA, ABOUT, profile, region, None);
        document.field("elapsed_ns", "Time inside regions.", totals.elapsed_ticks.get());
        document.field("busy", "What code took.", totals.busy_ticks.get());
        document.field("seen", "Requests were recorded; if not, `rows` is empty.", is_seen);
        let help = "Sum over all devices and operations; null if requests were not recorded.";
        document.nullable("all", help, columns(true), is_seen.then_some(&all));
        document.text(header(profile, &totals, region));
        if !is_seen {
            document.text(format!("\nRequests to block devices: {NOT_SEEN}.\n"));
            document.end_text();
        } else if rows.is_empty() {
            document.text("\nNo request was made to a block device.\n");
            document.end_text();
        }
        let several = (rows.len() > 1).then(|| all.clone());
        let table = Table::new("rows", rows, columns(true)).top(self.select.top).foot(several);
        document.table(table.help("Requests by device and operation.").hidden_if_empty());
        notes(&all).iter().for_each(|note| document.note(note));
        for (values, unit, title) in [
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
        ] {
            document.table(values.table(title.into(), unit));
        }
        health::add(&mut document, profile);
        Ok(document)
    }
}
