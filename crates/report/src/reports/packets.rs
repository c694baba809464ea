//! Network packets: numbers and sizes, by direction and device.

use super::{entry, Entry, Report};
use kerntune_table::columns::{Alignment, TableBuilder};
use crate::head::JsonHead;
use kerntune_table::{printable, TextRole};
use crate::traffic::{all_packets, packets, PacketSizes, ValueCounts, ValueStats, NOT_SEEN};
use crate::unit::header;
use crate::view::scope;
use crate::{health, Result, Style};
use clap::Args;
use kerntune_table::number::{fixed, grouped};
use kerntune_profile::{Profile, ScopeTotals};
use serde::Serialize;

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-packets/2";

/// Registry entry of `kerntune report PROFILE packets`.
pub const ENTRY: Entry = entry::<PacketsOptions>("packets", 17);

/// Network packets: numbers and sizes by direction and device (docs/characterize.md)
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct PacketsOptions {
    /// Show only what happened in the regions of this name
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
}

/// Definition of a packet's bytes.
pub(crate) const BYTES: &str =
    "Bytes as the kernel holds a packet: with the link's header where it is sent (Ethernet, loopback: 14), without where it is received.";

struct PacketTable {
    totals: ScopeTotals,
    is_seen: bool,
    rows: Vec<PacketSizes>,
}

fn find(profile: &Profile, options: &PacketsOptions) -> Result<PacketTable> {
    let scope = scope(profile, options.region.as_deref())?;
    let rows = packets(profile, &scope);
    Ok(PacketTable { totals: scope.totals(profile), is_seen: profile.manifest.capture.packets, rows })
}

/// Column heads of the packet table, also used by `characterize`.
pub(crate) const HEADS: [(&str, Alignment); 7] = [
    ("packets", Alignment::Right),
    ("bytes", Alignment::Right),
    ("mean\nbytes", Alignment::Right),
    ("median\nbytes", Alignment::Right),
    ("max\nbytes", Alignment::Right),
    ("direction", Alignment::Left),
    ("device", Alignment::Left),
];

pub(crate) fn cells(row: &PacketRow) -> [String; HEADS.len()] {
    let value = |value: Option<u64>| value.map_or("-".into(), grouped);
    [
        grouped(row.bytes.count),
        grouped(row.bytes.sum),
        row.bytes.mean.map_or("-".into(), |mean| fixed(mean, 1)),
        value(row.bytes.median),
        value(row.bytes.max),
        printable(&row.direction),
        printable(row.device.as_deref().unwrap_or("all")),
    ]
}

/// Row of packets, with statistics of their sizes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct PacketRow {
    pub direction: String,
    /// `None` for all devices.
    pub device: Option<String>,
    pub bytes: ValueStats,
}

impl PacketRow {
    /// Creates the row; `figures` computes the statistics of the sizes.
    pub fn of(row: &PacketSizes, figures: fn(&ValueCounts) -> ValueStats) -> Self {
        Self { direction: row.direction.clone(), device: row.device.clone(), bytes: figures(&row.bytes) }
    }
}

/// JSON document of this report; [`SCHEMA`] names its version.
#[derive(Serialize)]
struct PacketsReport<'a> {
    #[serde(flatten)]
    head: JsonHead<'a>,
    elapsed_ns: u64,
    #[serde(rename = "busy")]
    busy_ticks: u64,
    /// Packets were recorded.
    seen: bool,
    rows: Vec<PacketRow>,
}

impl Report for PacketsOptions {
    fn text(&self, profile: &Profile, style: Style) -> Result<String> {
        let found = find(profile, self)?;
        let mut out = header(profile, &found.totals, self.region.as_deref());
        if !found.is_seen {
            return Ok(format!("{out}\nNetwork packets: {NOT_SEEN}.\n"));
        }
        if found.rows.is_empty() {
            return Ok(out + "\nNo packet was sent or received.\n");
        }
        let mut table = TableBuilder::new(HEADS);
        for row in &found.rows {
            table.row(cells(&PacketRow::of(row, ValueCounts::summary)).map(Into::into));
        }
        out += &format!("\n{}", table.render(style));
        out += &style.paint(TextRole::Faint, &format!("{BYTES}\n"));
        for row in all_packets(&found.rows) {
            let what = format!("Sizes of packets {}", printable(&row.direction));
            out += &row.bytes.table(&what, "bytes", style);
        }
        out += &health::text(profile, style);
        Ok(out)
    }

    fn json(&self, profile: &Profile) -> Result<String> {
        let found = find(profile, self)?;
        crate::to_json(&PacketsReport {
            head: JsonHead::new(SCHEMA, profile, &self.region),
            elapsed_ns: found.totals.elapsed_ticks.get(),
            busy_ticks: found.totals.busy_ticks.get(),
            seen: found.is_seen,
            rows: found.rows.iter().map(|row| PacketRow::of(row, ValueCounts::figures)).collect(),
        })
    }
}
