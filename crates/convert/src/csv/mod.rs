//! Tables as comma-separated values (RFC 4180), for spreadsheets and data frames.
//!
//! A column's name has its unit: `self_instructions`, `self_ns`. Figures are whole numbers.

use crate::stacks::{function_name, CallStacks, FigureUnit};
use kerntune_profile::{Profile, RegionScope, ThreadKind};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Table to export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CsvTable {
    /// A row for each function, and rows for time outside of functions.
    Functions,
    /// A row for each call path.
    Paths,
    /// A row for each thread.
    Threads,
    /// A row for each region.
    Regions,
}

impl CsvTable {
    /// All tables with their names on the command line.
    pub const ALL: [(&'static str, Self); 4] = [
        ("functions", Self::Functions),
        ("paths", Self::Paths),
        ("threads", Self::Threads),
        ("regions", Self::Regions),
    ];

    /// Returns the table of a name.
    pub fn from_name(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == word).map(|(_, table)| *table)
    }
}

/// Writes a table for the regions of a scope. Returns the number of rows without the header.
pub fn write(
    profile: &Profile,
    scope: &RegionScope,
    table: CsvTable,
    out: &mut impl Write,
) -> io::Result<usize> {
    let unit = match FigureUnit::of(profile) {
        FigureUnit::Instructions => "instructions",
        FigureUnit::Nanoseconds | FigureUnit::Sampled(_) => "ns",
    };
    let (head, rows) = match table {
        CsvTable::Functions => functions(profile, scope),
        CsvTable::Paths => paths(profile, scope),
        CsvTable::Threads => threads(profile, scope),
        CsvTable::Regions => regions(profile, scope),
    };
    let head: Vec<String> = head.iter().map(|column| column.replace("UNIT", unit)).collect();
    line(out, &head)?;
    for row in &rows {
        line(out, row)?;
    }
    Ok(rows.len())
}

fn line(out: &mut impl Write, fields: &[String]) -> io::Result<()> {
    let fields: Vec<String> = fields.iter().map(|text| field(text)).collect();
    write!(out, "{}\r\n", fields.join(","))
}

/// Quotes a field if necessary.
fn field(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

type CsvRows = (&'static [&'static str], Vec<Vec<String>>);

fn functions(profile: &Profile, scope: &RegionScope) -> CsvRows {
    let tables = &profile.tables;
    let mut totals = tables.totals(|region| scope.contains(region));
    totals.sort_by_key(|row| (std::cmp::Reverse(row.self_ticks), row.function));
    let row = |of: &kerntune_profile::FunctionTotals| {
        let symbol = tables.symbols.get(of.function.get() as usize);
        let text = |part: Option<&String>| part.cloned().unwrap_or_default();
        let figures = [
            of.calls,
            of.ended,
            of.self_ticks.get(),
            of.total_ticks.get(),
            of.min_ticks.get(),
            of.max_ticks.get(),
        ];
        let names = [
            function_name(tables, of.function),
            text(symbol.and_then(|symbol| symbol.file.as_ref())),
            text(symbol.and_then(|symbol| symbol.module.as_ref())),
            symbol.map_or(String::new(), |symbol| symbol.address.to_string()),
        ];
        names.into_iter().chain(figures.map(|figure| figure.to_string())).collect()
    };
    let whole = scope.totals(profile);
    let beside = |name: &str, own: u64| {
        let empty = String::new;
        let mut row = vec![name.to_owned(), empty(), empty(), empty(), empty(), empty(), own.to_string()];
        row.extend([empty(), empty(), empty()]);
        row
    };
    let rest = [("[user]", whole.user_ticks), ("[unattributed]", whole.unattributed_ticks)];
    let rest = rest.into_iter().filter(|(_, own)| own.get() > 0).map(|(name, own)| beside(name, own.get()));
    let head = &[
        "function",
        "file",
        "module",
        "address",
        "calls",
        "ended",
        "self_UNIT",
        "elapsed_UNIT",
        "min_self_UNIT",
        "max_self_UNIT",
    ];
    (head, totals.iter().map(row).chain(rest).collect())
}

fn paths(profile: &Profile, scope: &RegionScope) -> CsvRows {
    let head = &["path", "depth", "calls", "self_UNIT", "total_UNIT"];
    let Ok(stacks) = CallStacks::of(profile, scope) else { return (head, Vec::new()) };
    let inclusive = stacks.inclusive();
    let row = |(at, total): (usize, &u64)| {
        let stack = stacks.stack(at);
        let names: Vec<String> = stack.iter().map(|at| stacks.frames[*at].name.replace(';', ":")).collect();
        let path = &stacks.paths[at];
        let figures = [stack.len() as u64 - 1, path.figures.calls, path.figures.own, *total];
        std::iter::once(names.join(";")).chain(figures.map(|figure| figure.to_string())).collect()
    };
    (head, inclusive.iter().enumerate().map(row).collect())
}

fn threads(profile: &Profile, scope: &RegionScope) -> CsvRows {
    let mut sums: BTreeMap<u32, (&kerntune_profile::ThreadStats, [u64; 3])> = BTreeMap::new();
    for row in profile.tables.threads.iter().filter(|row| scope.contains(row.region)) {
        let (_, sums) = sums.entry(row.thread).or_insert((row, [0; 3]));
        for (sum, figure) in
            sums.iter_mut().zip([row.self_ticks.get(), row.user_ticks.get(), row.switches_in])
        {
            *sum = sum.saturating_add(figure);
        }
    }
    let row = |(thread, figures): &(&kerntune_profile::ThreadStats, [u64; 3])| {
        // The row of all interrupts has no thread number.
        let number = |number: u32| {
            if thread.kind == ThreadKind::Interrupt {
                String::new()
            } else {
                number.to_string()
            }
        };
        let names = [thread.kind.to_string(), number(thread.pid), number(thread.tgid), thread.comm.clone()];
        names.into_iter().chain(figures.map(|figure| figure.to_string())).collect()
    };
    let head = &["kind", "pid", "tgid", "comm", "self_UNIT", "user_UNIT", "switches_in"];
    (head, sums.values().map(row).collect())
}

fn regions(profile: &Profile, scope: &RegionScope) -> CsvRows {
    let row = |of: &kerntune_profile::RegionStats| {
        let figures = [
            of.begin_ticks.get(),
            of.elapsed_ticks.get(),
            of.busy_ticks.get(),
            of.idle_ticks.get(),
            of.operations,
        ];
        let head = [of.region.to_string(), of.name.clone(), of.depth.to_string()];
        head.into_iter().chain(figures.map(|figure| figure.to_string())).collect()
    };
    let head =
        &["region", "name", "depth", "begin_UNIT", "elapsed_UNIT", "busy_UNIT", "idle_UNIT", "operations"];
    let wanted = profile.tables.regions.iter().filter(|row| scope.contains(row.region));
    (head, wanted.map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stacks::tests::profile;

    fn text(table: CsvTable) -> String {
        let (profile, mut out) = (profile(), Vec::new());
        write(&profile, &RegionScope::all(&profile.tables), table, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn heads_say_the_unit_and_paths_sum_to_the_whole() {
        let text = text(CsvTable::Paths);
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some("path,depth,calls,self_instructions,total_instructions"));
        let own = |line: &str| line.rsplit(',').nth(1).unwrap().parse::<u64>().unwrap();
        assert_eq!(lines.map(own).sum::<u64>(), 1000);
        assert!(text.contains("\r\nrr;sys;walk,2,2,30,50\r\n"), "{text}");
    }

    #[test]
    fn regions_are_rows() {
        assert!(text(CsvTable::Regions).contains("\r\n1,two,0,1000,450,450,0,1\r\n"));
    }

    #[test]
    fn fields_are_quoted_where_need_be() {
        assert_eq!([field("a"), field("a,b"), field("a\"b")], ["a", "\"a,b\"", "\"a\"\"b\""]);
    }
}
