//! Network packets: numbers and sizes, by direction and device.

use super::{entry, Entry, Report, Selection};
use crate::traffic::{all_packets, packets, PacketSizes, ValueCounts, NOT_SEEN};
use crate::unit::header;
use crate::view::scope;
use crate::{head, health, Result};
use clap::Args;
use kerntune_profile::Profile;
use kerntune_table::{printable, Columns, Document, Table};
use serde::{Serialize, Serializer};

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-packets/2";

/// Registry entry of `kerntune report PROFILE packets`.
pub const ENTRY: Entry = entry::<PacketsOptions>("packets", 17);

/// Description of the JSON form.
const ABOUT: &str = "Network packets by direction and device ([characterize.md](characterize.md#packets)).";

/// Network packets: numbers and sizes by direction and device (docs/characterize.md)
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct PacketsOptions {
    /// Region and number of rows.
    #[command(flatten)]
    pub select: Selection,
}

/// Definition of a packet's bytes.
pub(crate) const BYTES: &str =
    "Bytes as the kernel holds a packet: with the link's header where it is sent (Ethernet, loopback: 14), without where it is received.";

/// Declares the columns of the packet table; `has_values` includes all sizes.
pub(crate) fn columns<'a>(has_values: bool) -> Columns<'a, PacketSizes> {
    let mut columns = Columns::<PacketSizes>::new();
    columns.text_only("packets", |row| row.bytes.count());
    columns.object("bytes", "Sizes.", ValueCounts::columns(has_values), |row| &row.bytes);
    columns.text_only("bytes", |row| row.bytes.sum());
    columns.text_only("mean\nbytes", |row| row.bytes.mean()).decimals(1).null("-");
    columns.text_only("median\nbytes", |row| row.bytes.quantile(50)).null("-");
    columns.text_only("max\nbytes", |row| row.bytes.max()).null("-");
    columns.add("direction", "`sent` or `received`.", |row| row.direction.clone()).head("direction");
    columns.add("device", "Device; null for all.", |row| row.device.clone()).head("device").null("all");
    columns
}

impl Serialize for PacketSizes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        columns(false).to_record(self).serialize(serializer)
    }
}

impl Report for PacketsOptions {
    fn document<'a>(&'a self, profile: &'a Profile) -> Result<Document<'a>> {
        let region = self.select.region.as_deref();
        let scope = scope(profile, region)?;
        let totals = scope.totals(profile);
        let rows = packets(profile, &scope);
        let is_seen = profile.manifest.capture.packets;
        let mut document = head::document(SCHEMA, ABOUT, profile, region, None);
        document.field("elapsed_ns", "Time inside regions.", totals.elapsed_ticks.get());
        document.field("busy", "What code took.", totals.busy_ticks.get());
        document.field("seen", "Packets were recorded; if not, `rows` is empty.", is_seen);
        document.text(header(profile, &totals, region));
        if !is_seen {
            document.text(format!("\nNetwork packets: {NOT_SEEN}.\n"));
            document.end_text();
        } else if rows.is_empty() {
            document.text("\nNo packet was sent or received.\n");
            document.end_text();
        }
        let all = all_packets(&rows);
        let table = Table::new("rows", rows, columns(true)).top(self.select.top);
        document.table(table.help("Packets by direction and device.").hidden_if_empty());
        document.note(BYTES);
        for row in all {
            let title = format!("Sizes of packets {}", printable(&row.direction));
            document.table(row.bytes.table(title, "bytes"));
        }
        health::add(&mut document, profile);
        Ok(document)
    }
}
