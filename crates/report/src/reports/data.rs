//! Cache and TLB misses of data accesses by type, member, function and path, and cache lines shared
//! between CPUs.

use super::{entry, Entry, Report, Selection};
use crate::memory::{self, MemoryUse};
use crate::unit::header;
use crate::view::scope;
use crate::{head, health, Result, DEFAULT_ROWS};
use clap::{Args, ValueEnum};
use kerntune_profile::{Profile, RegionScope};
use kerntune_table::number::{fixed, grouped};
use kerntune_table::{printable, Columns, Document, Table, TextRole};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-data/1";

/// Registry entry of `kerntune report PROFILE data`.
pub const ENTRY: Entry = entry::<DataOptions>("data", 14);

/// Description of the JSON form.
const ABOUT: &str = "Misses of accesses to data, and lines that CPUs take from each other \
     ([data.md](data.md)). With `--by` the other lists are empty.";

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
    /// Region and number of rows; text has 12 rows of each of several tables.
    #[command(flatten)]
    pub select: Selection,
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

impl MissEvent {
    /// Returns the event's position in [`MISSES`].
    fn column(self) -> usize {
        match self {
            MissEvent::L1d => 0,
            MissEvent::L2 => 2,
            MissEvent::L3 => 3,
            MissEvent::Transfers => 4,
            MissEvent::Dtlb => 5,
            MissEvent::Walks => 6,
        }
    }
}

/// Misses and transfers: key, heading and meaning.
const MISSES: [(&str, &str, &str); 7] = [
    ("l1d_misses", "L1D", "Misses of the L1 data cache."),
    ("l1d_store_misses", "of stores", "Stores among `l1d_misses`."),
    ("l2_misses", "L2", "Misses of the L2 cache."),
    ("l3_misses", "L3", "Misses of all caches."),
    ("transfers", "transfers", "Lines taken from other CPUs' caches."),
    ("dtlb_misses", "dTLB", "Misses of the first-level data TLB."),
    ("walks", "walks", "Page table walks."),
];

/// Sums of [`MISSES`], in that order.
type DataMisses = [u64; MISSES.len()];

/// Returns the misses of a table's row.
macro_rules! misses {
    ($row:expr) => {
        [
            $row.l1d_misses,
            $row.l1d_store_misses,
            $row.l2_misses,
            $row.l3_misses,
            $row.transfers,
            $row.dtlb_misses,
            $row.walks,
        ]
    };
}

fn add<const N: usize>(sums: &mut [u64; N], more: [u64; N]) {
    for (sum, more) in sums.iter_mut().zip(more) {
        *sum = sum.saturating_add(more);
    }
}

/// Declares the columns of misses, in rows of `T` with its misses.
fn misses<'a, T: 'a>() -> Columns<'a, (T, DataMisses)> {
    let mut columns = Columns::new();
    for (at, (key, head, help)) in MISSES.into_iter().enumerate() {
        columns.add(key, help, move |row: &(T, DataMisses)| row.1[at]).head(head);
    }
    columns
}

/// Sorts sums by an event, most first; ties stay in order.
fn sorted<T>(sums: BTreeMap<T, DataMisses>, event: MissEvent) -> Vec<(T, DataMisses)> {
    let mut rows: Vec<_> = sums.into_iter().collect();
    rows.sort_by_key(|row| Reverse(row.1[event.column()]));
    rows
}

/// Accesses of the kernel or of user code.
#[derive(Default)]
struct ModeAccesses {
    mode: &'static str,
    /// Loads and stores.
    counts: [u64; 2],
}

/// Data that is accessed: kind, object, type and member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct DataPlace<'a> {
    kind: &'a str,
    /// Variable or slab cache.
    object: Option<&'a str>,
    type_name: Option<&'a str>,
    /// `None` in the table of types.
    field: Option<&'a str>,
}

fn some(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

impl<'a> DataPlace<'a> {
    fn columns() -> Columns<'a, Self> {
        let mut columns = Columns::<Self>::new();
        columns.add("kind", "Kind of memory.", |row| row.kind);
        columns.add("object", "Variable or slab cache.", |row| row.object);
        columns.add("type", "Type in C, where it is known.", |row| row.type_name);
        columns.add("field", "Member of the type; null in `types`.", |row| row.field);
        columns
    }

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

/// Cache line that is transferred between CPUs.
#[derive(Debug)]
struct SharedLine<'a> {
    /// Physical address.
    line: u64,
    transfers: u64,
    /// `false` if no CPU accesses bytes that another CPU writes, else `true`.
    sharing: &'static str,
    /// Accessed pieces of the line, by CPU.
    pieces: Vec<LinePiece<'a>>,
}

#[derive(Debug, Clone, Copy)]
struct LinePiece<'a> {
    cpu: u32,
    /// Offset from the beginning of the line, in bytes.
    at: u32,
    place: DataPlace<'a>,
    loads: u64,
    stores: u64,
    transfers: u64,
}

/// Name of user code.
const USER: &str = "[user code]";

/// Loads, stores and transfers of a line, by first byte, CPU and data.
type LineSums<'a> = BTreeMap<(u32, u32, DataPlace<'a>), [u64; 3]>;

fn lines<'a>(profile: &'a Profile, scope: &RegionScope) -> Vec<SharedLine<'a>> {
    let mut lines: BTreeMap<u64, LineSums> = BTreeMap::new();
    for row in profile.tables.shared_lines.iter().filter(|row| scope.contains(row.region)) {
        let place = DataPlace {
            kind: &row.kind,
            object: some(&row.object),
            type_name: some(&row.type_name),
            field: some(&row.field),
        };
        let sums = lines.entry(row.line.0).or_default().entry((row.at, row.cpu, place)).or_default();
        add(sums, [row.loads, row.stores, row.transfers]);
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
                line,
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

/// Returns the functions of a path, outermost first.
fn names(path: &str) -> Vec<&str> {
    path.split(';').filter(|name| !name.is_empty()).collect()
}

/// Number of a path's functions that are shown, from the one that missed.
const MAX_FRAMES: usize = 6;

fn path_text(path: &str) -> String {
    let path = names(path);
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

/// Default number of rows if several tables are shown.
const DEFAULT_ROWS_EACH: usize = 12;

impl DataOptions {
    /// Creates a table; it has no rows if only another one is wanted.
    fn table<'a, R>(
        &self,
        (by, key, help): (DataTable, &'static str, &'static str),
        rows: Vec<R>,
        columns: Columns<'a, R>,
    ) -> Table<'a, R> {
        let is_wanted = self.by.is_none_or(|wanted| wanted == by);
        let default_rows = if self.by.is_some() { DEFAULT_ROWS } else { DEFAULT_ROWS_EACH };
        let rows = rows.into_iter().filter(|_| is_wanted);
        let table = Table::new(key, rows, columns).help(help).top(self.select.top);
        table.default_rows(default_rows).hidden_if_empty()
    }
}

impl Report for DataOptions {
    fn document<'a>(&'a self, profile: &'a Profile) -> Result<Document<'a>> {
        let tables = &profile.tables;
        let region = self.select.region.as_deref();
        let scope = scope(profile, region)?;
        let mut document = head::document(SCHEMA, ABOUT, profile, region, None);
        document.text(header(profile, &scope.totals(profile), region));
        let model = profile.manifest.model.as_deref().unwrap_or_default();
        document.field("model", "Front-end model.", model);
        let has_data = profile.manifest.capture.data;
        document.field(
            "followed",
            "Accesses were followed: the profile was recorded with `--data`.",
            has_data,
        );
        modes(&mut document, profile, &scope);
        let memory = MemoryUse::of(profile, &scope, region);
        document.object("memory", "Memory that was touched.", MemoryUse::columns(), &memory);
        if !has_data {
            document.text(NO_DATA);
            document.end_text();
        }
        document.note(&format!(
            "Misses are those of the model {}. CPUs execute in turn: lines go from one to another more often where CPUs run at once.",
            printable(model)
        ));
        if self.by.is_none() && !memory.touched.is_empty() {
            let reach = memory.reach();
            let table = Table::new("", memory.touched, memory::columns());
            document.table(table.title(TextRole::Plain, "Memory touched").hidden_if_empty());
            reach.iter().for_each(|text| document.note(text));
        }
        let mut types: BTreeMap<DataPlace, DataMisses> = BTreeMap::new();
        let mut fields: BTreeMap<DataPlace, DataMisses> = BTreeMap::new();
        let mut functions: BTreeMap<&str, DataMisses> = BTreeMap::new();
        for row in tables.data_places.iter().filter(|row| scope.contains(row.region)) {
            let (object, type_name) = (some(&row.object), some(&row.type_name));
            let place = DataPlace { kind: &row.kind, object, type_name, field: None };
            add(types.entry(place).or_default(), misses!(row));
            add(fields.entry(DataPlace { field: some(&row.field), ..place }).or_default(), misses!(row));
            let function = row.function.known().map_or(USER, |function| tables.name(function));
            add(functions.entry(function).or_default(), misses!(row));
        }
        let mut paths: BTreeMap<&str, DataMisses> = BTreeMap::new();
        for row in tables.data_paths.iter().filter(|row| scope.contains(row.region)) {
            add(paths.entry(&row.path).or_default(), misses!(row));
        }
        let by_place = || {
            let mut columns = misses::<DataPlace>();
            columns.part(DataPlace::columns(), |row| &row.0);
            columns
        };
        let mut columns = by_place();
        columns.text_only("type", |row| row.0.text());
        let name = (DataTable::Type, "types", "Data by type and object.");
        document.table(self.table(name, sorted(types, self.sort), columns));
        let mut columns = by_place();
        columns.text_only("type and member", |row| {
            row.0.text() + &row.0.field.map(|field| format!("  {field}")).unwrap_or_default()
        });
        let name = (DataTable::Field, "fields", "Data by member.");
        document.table(self.table(name, sorted(fields, self.sort), columns));
        let mut columns = misses::<&str>();
        columns.add("function", "Function that missed.", |row| row.0).head("function");
        let name = (DataTable::Function, "functions", "Functions whose instructions missed.");
        document.table(self.table(name, sorted(functions, self.sort), columns));
        let mut columns = misses::<&str>();
        columns
            .add("path", "Functions from the outermost to the one that missed.", |row| names(row.0))
            .head("path, from the function that missed")
            .text(|row| path_text(row.0));
        let name = (DataTable::Path, "paths", "Call paths.");
        document.table(self.table(name, sorted(paths, self.sort), columns));
        let name = (DataTable::Line, "lines", "Cache lines that CPUs take from each other.");
        document.table(self.table(name, lines(profile, &scope), line_columns()));
        health::add(&mut document, profile);
        Ok(document)
    }
}

/// Adds the accesses of the kernel and of user code.
fn modes(document: &mut Document, profile: &Profile, scope: &RegionScope) {
    let mut modes = ["kernel", "user"]
        .map(|mode| (ModeAccesses { mode, ..ModeAccesses::default() }, DataMisses::default()));
    for row in profile.tables.data_accesses.iter().filter(|row| scope.contains(row.region)) {
        let (accesses, misses) = &mut modes[usize::from(row.mode == "user")];
        add(&mut accesses.counts, [row.loads, row.stores]);
        add(misses, misses!(row));
    }
    if profile.manifest.capture.data {
        for (ModeAccesses { mode, counts: [loads, stores] }, misses) in &modes {
            let per_thousand = |at: usize| per_thousand(misses[at], loads.saturating_add(*stores));
            document.line(
                &format!("Accesses, {mode}"),
                format!(
                    "{:>13} reads, {} writes; of 1,000: {} L1D, {} L2, {} L3, {} dTLB misses, {} walks",
                    grouped(*loads),
                    grouped(*stores),
                    per_thousand(0),
                    per_thousand(2),
                    per_thousand(3),
                    per_thousand(5),
                    per_thousand(6),
                ),
            );
        }
    }
    let mut columns = misses::<ModeAccesses>();
    columns.add("mode", "`kernel` or `user`.", |row| row.0.mode);
    columns.add("loads", "Loads.", |row| row.0.counts[0]);
    columns.add("stores", "Stores.", |row| row.0.counts[1]);
    document.table(Table::new("modes", modes, columns).help("Accesses by mode.").only_if(false));
}

fn line_columns<'a>() -> Columns<'a, SharedLine<'a>> {
    let mut of_piece = Columns::<LinePiece>::new();
    of_piece.add("cpu", "CPU.", |row| row.cpu);
    of_piece.add("at", "First byte in the line.", |row| row.at);
    of_piece.part(DataPlace::columns(), |row| &row.place);
    of_piece.add("loads", "Loads.", |row| row.loads);
    of_piece.add("stores", "Stores.", |row| row.stores);
    of_piece.add("transfers", "Transfers for these accesses.", |row| row.transfers);
    let mut columns = Columns::<SharedLine>::new();
    columns.add("transfers", "Transfers between CPUs.", |row| row.transfers).head("transfers");
    columns
        .add("sharing", "`true` if a CPU accesses bytes that another writes, else `false`.", |row| {
            row.sharing
        })
        .head("sharing");
    columns.add("line", "Physical address.", |row| format!("{:#x}", row.line));
    columns.records("pieces", "Accessed pieces of the line, by CPU.", of_piece, |row| row.pieces.clone());
    columns.text_only("line, by what CPUs read and write in it", pieces);
    columns
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
