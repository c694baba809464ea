//! Network packets: how many, how large, in which direction.

use super::{entry, Entry, Report};
use crate::columns::{Columns, Side};
use crate::head::Head;
use crate::style::{printable, Role};
use crate::traffic::{all_packets, packets, Figures, Packets, Spread, NOT_SEEN};
use crate::unit::header;
use crate::view::scope;
use crate::{health, Result, Style};
use clap::Args;
use kerntune_compare::number::{fixed, grouped};
use kerntune_profile::{Profile, ScopeTotals};
use serde::Serialize;

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-packets/2";

/// `kerntune report PROFILE packets`.
pub const ENTRY: Entry = entry::<Options>("packets", 17);

/// Network packets: how many and how large, by direction and device (docs/characterise.md)
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct Options {
    /// Only what happened in the regions of this name
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
}

/// What bytes of a packet are.
pub(crate) const BYTES: &str =
    "Bytes as the kernel holds a packet: with the link's header where it is sent (Ethernet, loopback: 14), without where it is received.";

struct Found {
    totals: ScopeTotals,
    is_seen: bool,
    rows: Vec<Packets>,
}

fn find(profile: &Profile, options: &Options) -> Result<Found> {
    let scope = scope(profile, options.region.as_deref())?;
    let rows = packets(profile, &scope);
    Ok(Found { totals: scope.totals(profile), is_seen: profile.manifest.capture.packets, rows })
}

/// The heads and cells of one line, which the page of a workload has as well.
pub(crate) const HEADS: [(&str, Side); 7] = [
    ("packets", Side::Right),
    ("bytes", Side::Right),
    ("mean\nbytes", Side::Right),
    ("median\nbytes", Side::Right),
    ("max\nbytes", Side::Right),
    ("direction", Side::Left),
    ("device", Side::Left),
];

pub(crate) fn cells(row: &Row) -> [String; HEADS.len()] {
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

/// One line of figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Row {
    pub direction: String,
    /// None for all devices.
    pub device: Option<String>,
    pub bytes: Figures,
}

impl Row {
    /// With the figures of the sizes as told.
    pub fn of(row: &Packets, figures: fn(&Spread) -> Figures) -> Self {
        Self { direction: row.direction.clone(), device: row.device.clone(), bytes: figures(&row.bytes) }
    }
}

#[derive(Serialize)]
struct Json<'a> {
    #[serde(flatten)]
    head: Head<'a>,
    elapsed_ns: u64,
    #[serde(rename = "busy")]
    busy_ns: u64,
    /// Whether packets were seen at all.
    seen: bool,
    rows: Vec<Row>,
}

impl Report for Options {
    fn text(&self, profile: &Profile, style: Style) -> Result<String> {
        let found = find(profile, self)?;
        let mut out = header(profile, &found.totals, self.region.as_deref());
        if !found.is_seen {
            return Ok(format!("{out}\nNetwork packets: {NOT_SEEN}.\n"));
        }
        if found.rows.is_empty() {
            return Ok(out + "\nNo packet was sent or received.\n");
        }
        let mut table = Columns::new(HEADS);
        for row in &found.rows {
            table.row(cells(&Row::of(row, Spread::summary)).map(Into::into));
        }
        out += &format!("\n{}", table.render(style));
        out += &style.paint(Role::Faint, &format!("{BYTES}\n"));
        for row in all_packets(&found.rows) {
            let what = format!("Sizes of packets {}", printable(&row.direction));
            out += &row.bytes.table(&what, "bytes", style);
        }
        out += &health::text(profile, style);
        Ok(out)
    }

    fn json(&self, profile: &Profile) -> Result<String> {
        let found = find(profile, self)?;
        crate::to_json(&Json {
            head: Head::new(SCHEMA, profile, &self.region),
            elapsed_ns: found.totals.elapsed_ns.get(),
            busy_ns: found.totals.busy_ns.get(),
            seen: found.is_seen,
            rows: found.rows.iter().map(|row| Row::of(row, Spread::figures)).collect(),
        })
    }
}
