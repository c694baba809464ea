//! Cache and TLB misses of data accesses by type, member, function and path, and cache lines shared
//! between CPUs.

use super::{entry, Entry, Report};
use kerntune_table::columns::{Alignment, TableBuilder};
use crate::head::JsonHead;
use crate::memory::{self, MemoryUse};
use kerntune_table::{printable, TextRole};
use crate::unit::header;
use crate::view::scope;
use crate::{health, Result, Style};
use clap::{Args, ValueEnum};
use kerntune_table::number::{fixed, grouped};
use kerntune_profile::{Profile, ScopeTotals};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-data/1";

/// Registry entry of `kerntune report PROFILE data`.
pub const ENTRY: Entry = entry::<DataOptions>("data", 14);

/// Message for a profile without data accesses.
const NO_DATA: &str = "Data accesses were not recorded: record with --data (docs/data.md).\n";

/// Cache and TLB misses of data accesses by type, member, function and path, and false sharing;
/// from a model (docs/data.md)
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct DataOptions {
    /// Show only this table
    #[arg(long, value_name = "TABLE")]
    pub by: Option<DataTable>,
    /// Sort tables by this event
    #[arg(long, value_name = "EVENT", default_value = "l1d")]
    pub sort: MissEvent,
    /// Show at most N rows of a table [default: 40 in text (12 if there are several tables), all in JSON]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// Show only what happened in the regions of this name
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
}

/// Table of the data report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DataTable {
    /// Structures, variables and slab caches
    Type,
    /// Members of structures
    Field,
    /// Functions whose instructions missed
    Function,
    /// Call paths
    Path,
    /// Cache lines transferred between CPUs
    Line,
}

/// Event by which tables are sorted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum MissEvent {
    /// L1D misses
    #[default]
    L1d,
    /// L2 misses
    L2,
    /// Misses of all caches
    L3,
    /// Lines transferred from other CPUs' caches
    Transfers,
    /// Misses of the first-level data TLB
    Dtlb,
    /// Page table walks
    Walks,
}

/// Misses and transfers, by event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
struct DataMisses {
    l1d_misses: u64,
    l1d_store_misses: u64,
    l2_misses: u64,
    l3_misses: u64,
    transfers: u64,
    dtlb_misses: u64,
    walks: u64,
}

impl DataMisses {
    fn add(&mut self, more: DataMisses) {
        for (sum, more) in [
            (&mut self.l1d_misses, more.l1d_misses),
            (&mut self.l1d_store_misses, more.l1d_store_misses),
            (&mut self.l2_misses, more.l2_misses),
            (&mut self.l3_misses, more.l3_misses),
            (&mut self.transfers, more.transfers),
            (&mut self.dtlb_misses, more.dtlb_misses),
            (&mut self.walks, more.walks),
        ] {
            *sum = sum.saturating_add(more);
        }
    }

    fn of(&self, event: MissEvent) -> u64 {
        match event {
            MissEvent::L1d => self.l1d_misses,
            MissEvent::L2 => self.l2_misses,
            MissEvent::L3 => self.l3_misses,
            MissEvent::Transfers => self.transfers,
            MissEvent::Dtlb => self.dtlb_misses,
            MissEvent::Walks => self.walks,
        }
    }

    fn cells(&self) -> [u64; 7] {
        [
            self.l1d_misses,
            self.l1d_store_misses,
            self.l2_misses,
            self.l3_misses,
            self.transfers,
            self.dtlb_misses,
            self.walks,
        ]
    }
}

/// Formats the columns of a row's misses.
macro_rules! misses {
    ($row:expr) => {
        DataMisses {
            l1d_misses: $row.l1d_misses,
            l1d_store_misses: $row.l1d_store_misses,
            l2_misses: $row.l2_misses,
            l3_misses: $row.l3_misses,
            transfers: $row.transfers,
            dtlb_misses: $row.dtlb_misses,
            walks: $row.walks,
        }
    };
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
struct ModeMisses {
    mode: &'static str,
    loads: u64,
    stores: u64,
    #[serde(flatten)]
    misses: DataMisses,
}

/// Data that is accessed: kind, object, type and member.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct DataPlace<'a> {
    kind: &'a str,
    /// Variable or slab cache.
    object: Option<&'a str>,
    #[serde(rename = "type")]
    type_name: Option<&'a str>,
    /// `None` in the table of types.
    field: Option<&'a str>,
}

fn some(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

impl DataPlace<'_> {
    /// Formats the data for people: `struct tcp_sock (slab TCP)`.
    fn text(&self) -> String {
        match (self.type_name, self.object) {
            (Some(type_name), Some(object)) => format!("{type_name} ({} {object})", self.kind),
            (None, Some(object)) => format!("{} {object}", self.kind),
            (Some(type_name), None) => type_name.to_owned(),
            (None, None) => format!("[{}]", self.kind),
        }
    }
}

#[derive(Debug, Serialize)]
struct PlaceMisses<'a> {
    #[serde(flatten)]
    place: DataPlace<'a>,
    #[serde(flatten)]
    misses: DataMisses,
}

#[derive(Debug, Serialize)]
struct FunctionMisses<'a> {
    function: &'a str,
    #[serde(flatten)]
    misses: DataMisses,
}

#[derive(Debug, Serialize)]
struct PathMisses<'a> {
    /// Names from the outermost function to the one that missed.
    path: Vec<&'a str>,
    #[serde(flatten)]
    misses: DataMisses,
}

/// Cache line that is transferred between CPUs.
#[derive(Debug, Serialize)]
struct SharedLine<'a> {
    /// Physical address.
    line: String,
    transfers: u64,
    /// `false` if no CPU accesses bytes that another CPU writes, else `true`.
    sharing: &'static str,
    /// Accessed pieces of the line, by CPU.
    pieces: Vec<LinePiece<'a>>,
}

#[derive(Debug, Clone, Serialize)]
struct LinePiece<'a> {
    cpu: u32,
    /// Offset from the beginning of the line, in bytes.
    at: u32,
    #[serde(flatten)]
    place: DataPlace<'a>,
    loads: u64,
    stores: u64,
    transfers: u64,
}

struct DataTables<'a> {
    totals: ScopeTotals,
    has_data: bool,
    model: &'a str,
    modes: [ModeMisses; 2],
    types: Vec<PlaceMisses<'a>>,
    fields: Vec<PlaceMisses<'a>>,
    functions: Vec<FunctionMisses<'a>>,
    paths: Vec<PathMisses<'a>>,
    lines: Vec<SharedLine<'a>>,
    memory: MemoryUse,
}

/// Name of user code.
const USER: &str = "[user code]";

fn find<'a>(profile: &'a Profile, options: &DataOptions) -> Result<DataTables<'a>> {
    let tables = &profile.tables;
    let scope = scope(profile, options.region.as_deref())?;
    let mut modes = ["kernel", "user"].map(|mode| ModeMisses { mode, ..ModeMisses::default() });
    for row in tables.data_accesses.iter().filter(|row| scope.contains(row.region)) {
        let mode = &mut modes[usize::from(row.mode == "user")];
        mode.loads = mode.loads.saturating_add(row.loads);
        mode.stores = mode.stores.saturating_add(row.stores);
        mode.misses.add(misses!(row));
    }
    let mut types: BTreeMap<DataPlace, DataMisses> = BTreeMap::new();
    let mut fields: BTreeMap<DataPlace, DataMisses> = BTreeMap::new();
    let mut functions: BTreeMap<&str, DataMisses> = BTreeMap::new();
    for row in tables.data_places.iter().filter(|row| scope.contains(row.region)) {
        let (object, type_name) = (some(&row.object), some(&row.type_name));
        let place = DataPlace { kind: &row.kind, object, type_name, field: None };
        types.entry(place.clone()).or_default().add(misses!(row));
        fields.entry(DataPlace { field: some(&row.field), ..place }).or_default().add(misses!(row));
        let function = row.function.known().map_or(USER, |function| tables.name(function));
        functions.entry(function).or_default().add(misses!(row));
    }
    let mut paths: BTreeMap<&str, DataMisses> = BTreeMap::new();
    for row in tables.data_paths.iter().filter(|row| scope.contains(row.region)) {
        paths.entry(&row.path).or_default().add(misses!(row));
    }
    let sort = options.sort;
    let mut types: Vec<_> = types.into_iter().map(|(place, misses)| PlaceMisses { place, misses }).collect();
    let mut fields: Vec<_> =
        fields.into_iter().map(|(place, misses)| PlaceMisses { place, misses }).collect();
    let mut functions: Vec<_> =
        functions.into_iter().map(|(function, misses)| FunctionMisses { function, misses }).collect();
    let path = |path: &'a str| if path.is_empty() { Vec::new() } else { path.split(';').collect() };
    let mut paths: Vec<_> =
        paths.into_iter().map(|(names, misses)| PathMisses { path: path(names), misses }).collect();
    types.sort_by_key(|row| Reverse(row.misses.of(sort)));
    fields.sort_by_key(|row| Reverse(row.misses.of(sort)));
    functions.sort_by_key(|row| Reverse(row.misses.of(sort)));
    paths.sort_by_key(|row| Reverse(row.misses.of(sort)));
    Ok(DataTables {
        totals: scope.totals(profile),
        has_data: profile.manifest.capture.data,
        model: profile.manifest.model.as_deref().unwrap_or_default(),
        modes,
        types,
        fields,
        functions,
        paths,
        lines: lines(profile, |region| scope.contains(region)),
        memory: MemoryUse::of(profile, &scope, options.region.as_deref()),
    })
}

/// Loads, stores and transfers of a line, by first byte, CPU and data.
type LineSums<'a> = BTreeMap<(u32, u32, DataPlace<'a>), [u64; 3]>;

fn lines(profile: &Profile, is_wanted: impl Fn(u32) -> bool) -> Vec<SharedLine<'_>> {
    let mut lines: BTreeMap<u64, LineSums> = BTreeMap::new();
    for row in profile.tables.shared_lines.iter().filter(|row| is_wanted(row.region)) {
        let place = DataPlace {
            kind: &row.kind,
            object: some(&row.object),
            type_name: some(&row.type_name),
            field: some(&row.field),
        };
        let sums = lines.entry(row.line.0).or_default().entry((row.at, row.cpu, place)).or_default();
        for (sum, more) in sums.iter_mut().zip([row.loads, row.stores, row.transfers]) {
            *sum = sum.saturating_add(more);
        }
    }
    let mut rows: Vec<SharedLine> = lines
        .into_iter()
        .map(|(line, pieces)| {
            let pieces: Vec<LinePiece> = pieces
                .into_iter()
                .map(|((at, cpu, place), [loads, stores, transfers])| LinePiece {
                    cpu,
                    at,
                    place,
                    loads,
                    stores,
                    transfers,
                })
                .collect();
            SharedLine {
                line: format!("{line:#x}"),
                transfers: pieces.iter().fold(0, |sum, piece| sum.saturating_add(piece.transfers)),
                sharing: sharing(&pieces),
                pieces,
            }
        })
        .filter(|row| row.transfers > 0)
        .collect();
    rows.sort_by_key(|row| Reverse((row.transfers, row.sharing == "false")));
    rows
}

/// Returns the kind of sharing: of the same bytes (`true`), or of others in the line (`false`).
fn sharing(pieces: &[LinePiece]) -> &'static str {
    let written: BTreeSet<(u32, u32)> =
        pieces.iter().filter(|piece| piece.stores > 0).map(|piece| (piece.at, piece.cpu)).collect();
    let meets = |piece: &LinePiece| written.iter().any(|(at, cpu)| *at == piece.at && *cpu != piece.cpu);
    if pieces.iter().any(meets) {
        "true"
    } else {
        "false"
    }
}

/// Builds a table with the columns of misses, and one that names the row.
fn table<'r>(title: &str, rows: impl Iterator<Item = (&'r DataMisses, String)>) -> TableBuilder {
    let mut table = TableBuilder::new([
        ("L1D", Alignment::Right),
        ("of stores", Alignment::Right),
        ("L2", Alignment::Right),
        ("L3", Alignment::Right),
        ("transfers", Alignment::Right),
        ("dTLB", Alignment::Right),
        ("walks", Alignment::Right),
        (title, Alignment::Left),
    ]);
    for (misses, what) in rows {
        let [a, b, c, d, e, f, g] = misses.cells().map(|cell| grouped(cell).into());
        table.row([a, b, c, d, e, f, g, what.into()]);
    }
    table
}

/// Number of a path's functions that are shown, from the one that missed.
const MAX_FRAMES: usize = 6;

fn path_text(path: &[&str]) -> String {
    let from_top: Vec<_> = path.iter().rev().take(MAX_FRAMES).map(|name| printable(name)).collect();
    match from_top.is_empty() {
        true => "[no function open]".into(),
        false => from_top.join(" < ") + if path.len() > MAX_FRAMES { " < …" } else { "" },
    }
}

/// Describes the CPUs' accesses to a line, combining pieces of one member and CPU.
fn pieces(row: &SharedLine) -> String {
    let mut sums: BTreeMap<(u32, &DataPlace), [u64; 2]> = BTreeMap::new();
    for piece in &row.pieces {
        let sum = sums.entry((piece.cpu, &piece.place)).or_default();
        // The bytes of one access may be in several pieces.
        sum[0] = sum[0].max(piece.loads);
        sum[1] = sum[1].max(piece.stores);
    }
    let mut by_cpu: BTreeMap<u32, Vec<(u64, String)>> = BTreeMap::new();
    for ((cpu, place), [loads, stores]) in sums {
        let what = format!(
            "{}{}",
            printable(&place.text()),
            place.field.map(|field| format!(" {}", printable(field))).unwrap_or_default()
        );
        let text = format!("{what} ({} r, {} w)", grouped(loads), grouped(stores));
        by_cpu.entry(cpu).or_default().push((loads.saturating_add(stores), text));
    }
    let lines: Vec<String> = by_cpu
        .into_iter()
        .map(|(cpu, mut places)| {
            places.sort_by_key(|(count, _)| Reverse(*count));
            let more = if places.len() > MAX_MEMBERS { ", …" } else { "" };
            let places: Vec<String> = places.into_iter().take(MAX_MEMBERS).map(|(_, text)| text).collect();
            format!("CPU {cpu}: {}{more}", places.join(", "))
        })
        .collect();
    lines.join("; ")
}

/// Number of members per CPU that are shown for a line.
const MAX_MEMBERS: usize = 2;

fn lines_table(found: &DataTables, top: usize) -> TableBuilder {
    let mut table = TableBuilder::new([
        ("transfers", Alignment::Right),
        ("sharing", Alignment::Left),
        ("line, by what CPUs read and write in it", Alignment::Left),
    ]);
    for row in found.lines.iter().take(top) {
        table.row([grouped(row.transfers).into(), row.sharing.into(), pieces(row).into()]);
    }
    table
}

/// JSON document of this report; [`SCHEMA`] names its version.
#[derive(Serialize)]
struct DataReport<'a> {
    #[serde(flatten)]
    head: JsonHead<'a>,
    model: &'a str,
    followed: bool,
    modes: &'a [ModeMisses],
    memory: &'a MemoryUse,
    types: &'a [PlaceMisses<'a>],
    fields: &'a [PlaceMisses<'a>],
    functions: &'a [FunctionMisses<'a>],
    paths: &'a [PathMisses<'a>],
    lines: &'a [SharedLine<'a>],
}

/// Default number of rows if several tables are shown.
const DEFAULT_ROWS_EACH: usize = 12;

impl Report for DataOptions {
    fn text(&self, profile: &Profile, style: Style) -> Result<String> {
        let found = find(profile, self)?;
        let mut out = header(profile, &found.totals, self.region.as_deref());
        if !found.has_data {
            return Ok(out + NO_DATA);
        }
        for ModeMisses { mode, loads, stores, misses } in &found.modes {
            let all = loads.saturating_add(*stores);
            out += &format!(
                "{:<20} = {:>13} reads, {} writes; of 1,000: {} L1D, {} L2, {} L3, {} dTLB misses, {} walks\n",
                format!("Accesses, {mode}"),
                grouped(*loads),
                grouped(*stores),
                per_thousand(misses.l1d_misses, all),
                per_thousand(misses.l2_misses, all),
                per_thousand(misses.l3_misses, all),
                per_thousand(misses.dtlb_misses, all),
                per_thousand(misses.walks, all),
            );
        }
        out += &style.paint(
            TextRole::Faint,
            &format!(
                "Misses are those of the model {}. CPUs execute in turn: lines go from one to another more often where CPUs run at once.\n",
                printable(found.model)
            ),
        );
        if self.by.is_none() && !found.memory.touched.is_empty() {
            let mut table = TableBuilder::new(memory::HEADS);
            for row in &found.memory.touched {
                table.row(memory::cells(row).map(Into::into));
            }
            out += &format!("\nMemory touched\n{}", table.render(style));
            let reach = found.memory.reach();
            out += &reach.map_or(String::new(), |text| style.paint(TextRole::Faint, &format!("{text}\n")));
        }
        let top = self.top.unwrap_or(if self.by.is_some() { crate::DEFAULT_ROWS } else { DEFAULT_ROWS_EACH });
        let wants = |by: DataTable| self.by.is_none_or(|wanted| wanted == by);
        if wants(DataTable::Type) {
            let rows = found.types.iter().take(top).map(|row| (&row.misses, printable(&row.place.text())));
            out += &table("type", rows).below(found.types.len(), top, style);
        }
        if wants(DataTable::Field) {
            let rows = found.fields.iter().take(top).map(|row| {
                let field = row.place.field.map(|field| format!("  {field}")).unwrap_or_default();
                (&row.misses, printable(&(row.place.text() + &field)))
            });
            out += &table("type and member", rows).below(found.fields.len(), top, style);
        }
        if wants(DataTable::Function) {
            let rows = found.functions.iter().take(top).map(|row| (&row.misses, printable(row.function)));
            out += &table("function", rows).below(found.functions.len(), top, style);
        }
        if wants(DataTable::Path) {
            let rows = found.paths.iter().take(top).map(|row| (&row.misses, path_text(&row.path)));
            out += &table("path, from the function that missed", rows).below(found.paths.len(), top, style);
        }
        if wants(DataTable::Line) && (self.by.is_some() || !found.lines.is_empty()) {
            out += &lines_table(&found, top).below(found.lines.len(), top, style);
        }
        out += &health::text(profile, style);
        Ok(out)
    }

    fn json(&self, profile: &Profile) -> Result<String> {
        let found = find(profile, self)?;
        let wants = |by: DataTable| self.by.is_none_or(|wanted| wanted == by);
        let top = |by: DataTable, all: usize| if wants(by) { self.top.unwrap_or(all).min(all) } else { 0 };
        crate::to_json(&DataReport {
            head: JsonHead::new(SCHEMA, profile, &self.region),
            model: found.model,
            followed: found.has_data,
            modes: &found.modes,
            memory: &found.memory,
            types: &found.types[..top(DataTable::Type, found.types.len())],
            fields: &found.fields[..top(DataTable::Field, found.fields.len())],
            functions: &found.functions[..top(DataTable::Function, found.functions.len())],
            paths: &found.paths[..top(DataTable::Path, found.paths.len())],
            lines: &found.lines[..top(DataTable::Line, found.lines.len())],
        })
    }
}

fn per_thousand(events: u64, accesses: u64) -> String {
    match accesses {
        0 => "0".into(),
        all => fixed(events as f64 * 1000.0 / all as f64, 2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(at: u32, cpu: u32, loads: u64, stores: u64) -> LinePiece<'static> {
        let place = DataPlace { kind: "variable", object: Some("x"), type_name: None, field: None };
        LinePiece { cpu, at, place, loads, stores, transfers: 1 }
    }

    #[test]
    fn sharing_is_false_if_nobody_touches_what_another_writes() {
        assert_eq!(sharing(&[piece(0, 0, 0, 5), piece(8, 1, 0, 5)]), "false");
        assert_eq!(sharing(&[piece(0, 0, 0, 5), piece(0, 1, 5, 0)]), "true");
        assert_eq!(sharing(&[piece(0, 0, 5, 0), piece(0, 1, 5, 0), piece(4, 0, 0, 1)]), "false");
    }
}
