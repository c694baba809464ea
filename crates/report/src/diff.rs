//! Two profiles side by side, per function or per call path: what explains the difference. The rows
//! sum exactly to the total change, what is not shown included.

use crate::columns::{Cell, Columns, Side};
use crate::style::{printable, Role};
use crate::view::scope;
use crate::{health, sampled, Error, Result, Style};
use kerntune_compare::number::{change, figure, fixed, grouped};
use kerntune_profile::{difference_within, Difference, KernelId, PathLabel, Profile, ScopeTotals};
use serde::Serialize;

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-diff/2";

/// What of the difference is wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// By call path instead of function.
    pub paths: bool,
    /// Times and calls divided by the operations of each profile.
    pub per_operation: bool,
    /// At most so many rows; all if none.
    pub top: Option<usize>,
    /// Only the regions of this name, in both; all if none.
    pub region: Option<String>,
}

/// A part of the whole: a function, a path, or time that is neither's.
#[derive(Debug, Clone, Serialize)]
struct Row {
    /// Function, or names from the root.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<Vec<String>>,
    name: String,
    file: Option<String>,
    net_ns: [i128; 2],
    net_change_ns: i128,
    /// None for time that is no function's.
    calls: Option<[i128; 2]>,
    elapsed_ns: Option<[i128; 2]>,
    /// The symbols that are one row, where they are not the same in both.
    symbols: [Vec<String>; 2],
}

impl Row {
    /// Whether it is several symbols in one of the profiles, or another in the other.
    fn is_several(&self) -> bool {
        self.symbols.iter().any(|names| !names.is_empty())
    }

    fn beside(name: &str, net_ns: [i128; 2]) -> Self {
        Self {
            path: None,
            name: name.into(),
            file: None,
            net_ns,
            net_change_ns: net_ns[1] - net_ns[0],
            calls: None,
            elapsed_ns: None,
            symbols: Default::default(),
        }
    }
}

struct Found {
    difference: Difference,
    /// What explains most of the difference first. Net times sum to the elapsed times.
    rows: Vec<Row>,
}

fn find(profiles: [&Profile; 2], options: &Options) -> Result<Found> {
    let region = options.region.as_deref();
    let scopes = [scope(profiles[0], region)?, scope(profiles[1], region)?];
    let difference = difference_within(profiles, [&scopes[0], &scopes[1]]);
    let operations = difference.totals.map(|whole| whole.operations);
    if options.per_operation && operations.contains(&0) {
        return Err(Error::NoOperations);
    }
    let mut rows = if options.paths { paths(&difference) } else { functions(&difference) };
    let sums = difference.sums()[usize::from(options.paths)];
    let total: i128 = rows.iter().map(|row| row.net_change_ns).sum();
    if !sums || total != difference.change() {
        return Err(Error::Sum { parts: total, whole: difference.change() });
    }
    let weight = |row: &Row| {
        // Exact: a/n − b/m has the order of am − bn.
        let [base, other] = row.net_ns;
        match options.per_operation {
            true => (other * i128::from(operations[0]) - base * i128::from(operations[1])).unsigned_abs(),
            false => row.net_change_ns.unsigned_abs(),
        }
    };
    rows.sort_by(|a, b| {
        let names = |row: &Row| (row.name.clone(), row.file.clone(), row.path.clone());
        weight(b).cmp(&weight(a)).then_with(|| names(a).cmp(&names(b)))
    });
    Ok(Found { difference, rows })
}

fn functions(difference: &Difference) -> Vec<Row> {
    let row = |function: &kerntune_profile::FunctionDifference| Row {
        path: None,
        name: function.name.clone(),
        file: function.file.clone(),
        net_ns: [function.net(0), function.net(1)],
        net_change_ns: function.net_change(),
        calls: Some([function.calls(0), function.calls(1)]),
        elapsed_ns: Some([function.elapsed(0), function.elapsed(1)]),
        symbols: function.symbols.clone(),
    };
    let beside = difference.beside_functions();
    let beside = beside.iter().filter(|(_, net)| *net != [0, 0]).map(|(name, net)| Row::beside(name, *net));
    difference.functions.iter().map(row).chain(beside).collect()
}

fn paths(difference: &Difference) -> Vec<Row> {
    let name = |label: &PathLabel| match label {
        PathLabel::Thread(comm) => comm.clone(),
        PathLabel::Interrupt => "[interrupt]".into(),
        PathLabel::Idle => "[idle task]".into(),
        PathLabel::User => "[user]".into(),
        PathLabel::Unattributed => "[unattributed]".into(),
        PathLabel::Function(row) => {
            difference.functions.get(*row).map_or(String::new(), |row| row.name.clone())
        }
    };
    let mut rows = Vec::new();
    for path in &difference.paths {
        let mut names = vec![name(&path.label)];
        let mut above = path.parent;
        while let Some(parent) = above.and_then(|at| difference.paths.get(at)) {
            names.push(name(&parent.label));
            above = parent.parent;
        }
        names.reverse();
        let function = match path.label {
            PathLabel::Function(row) => difference.functions.get(row),
            _ => None,
        };
        rows.push(Row {
            path: Some(names),
            name: name(&path.label),
            file: function.and_then(|function| function.file.clone()),
            net_ns: path.figures.map(|figures| figures.net_ns),
            net_change_ns: path.net_change(),
            calls: function.map(|_| path.figures.map(|figures| figures.calls)),
            elapsed_ns: Some(path.figures.map(|figures| figures.elapsed_ns)),
            symbols: function.map_or(Default::default(), |function| function.symbols.clone()),
        });
    }
    let beside = difference.beside_paths();
    rows.extend(beside.iter().filter(|(_, net)| *net != [0, 0]).map(|(name, net)| Row::beside(name, *net)));
    rows
}

/// A figure of both, whole or per operation.
#[derive(Clone, Copy)]
struct Per([Option<u64>; 2]);

impl Per {
    fn new(difference: &Difference, options: &Options) -> Self {
        Per(difference.totals.map(|whole| Some(whole.operations).filter(|_| options.per_operation)))
    }

    fn one(self, value: i128, side: usize) -> String {
        match self.0[side] {
            Some(operations) => decimals(value as f64 / operations as f64),
            None => signed(value, ""),
        }
    }

    fn change(self, values: [i128; 2]) -> String {
        match self.0 {
            [Some(base), Some(other)] => {
                let change = values[1] as f64 / other as f64 - values[0] as f64 / base as f64;
                let text = decimals(change);
                if change > 0.0 {
                    format!("+{text}")
                } else {
                    text
                }
            }
            _ => signed(values[1] - values[0], "+"),
        }
    }

    /// The standard error of a change: errors of two sums add as their squares do.
    fn error(self, profiles: [&Profile; 2], values: [i128; 2]) -> String {
        let square = |side: usize| {
            let ns = u64::try_from(values[side]).unwrap_or(0);
            let error = sampled::error_ns(profiles[side], ns).unwrap_or(0) as f64;
            (error / self.0[side].unwrap_or(1) as f64).powi(2)
        };
        let error = (square(0) + square(1)).sqrt();
        match self.0 {
            [Some(_), Some(_)] => decimals(error),
            _ => grouped(error.round() as u64),
        }
    }

    fn change_value(self, values: [i128; 2]) -> f64 {
        let of = |side: usize| values[side] as f64 / self.0[side].unwrap_or(1) as f64;
        of(1) - of(0)
    }
}

/// Tenths: a row is a few instructions of thousands per operation.
fn decimals(value: f64) -> String {
    fixed(value, 1)
}

fn signed(value: i128, plus: &str) -> String {
    let digits = grouped(u64::try_from(value.unsigned_abs()).unwrap_or(u64::MAX));
    match value {
        0 => digits,
        ..0 => format!("-{digits}"),
        _ => format!("{plus}{digits}"),
    }
}

/// The whole of both, then the rows, as text.
pub fn text(base: &Profile, other: &Profile, options: &Options, style: Style) -> Result<String> {
    let found = find([base, other], options)?;
    let mut out = whole([base, other], &found.difference, options).render(style);
    out.push('\n');
    out += &table([base, other], &found, options).render(style);
    if base.manifest.sampled.is_some() != other.manifest.sampled.is_some() {
        out += &style.paint(
            Role::Faint,
            "One was sampled, in time of a real machine, and the other was not: compare shares, not times.\n",
        );
    }
    let totals = &found.difference.totals;
    if !options.per_operation && totals[0].operations != totals[1].operations {
        out += &style.paint(
            Role::Faint,
            "The profiles have different numbers of operations: --per-operation compares one with one.\n",
        );
    }
    if !options.paths && found.rows.iter().take(options.top.unwrap_or(usize::MAX)).any(Row::is_several) {
        out += &style.paint(
            Role::Faint,
            "*  copies and pieces that the compiler made in one kernel only are one row with their function\n",
        );
    }
    for (side, profile) in ["A", "B"].into_iter().zip([base, other]) {
        for note in health::notes(profile) {
            out += &format!("{}  {side}: {}\n", style.paint(Role::Bad, "note"), printable(&note));
        }
    }
    Ok(out)
}

fn whole(profiles: [&Profile; 2], difference: &Difference, options: &Options) -> Columns {
    let mut table =
        Columns::new([("", Side::Left), ("A", Side::Right), ("B", Side::Right), ("B - A", Side::Right)]);
    let mut row = |head: &str, texts: [String; 3]| {
        let [a, b, change] = texts;
        table.row([Cell(head.into(), Role::Head), a.into(), b.into(), change.into()]);
    };
    let text = |of: fn(&Profile) -> String| {
        [printable(&of(profiles[0])), printable(&of(profiles[1])), String::new()]
    };
    row("profile", text(|profile| profile.manifest.id.clone()));
    let kernel = |profile: &Profile| {
        let KernelId { label, version, .. } = &profile.manifest.kernel;
        format!("{label} {version}")
    };
    row("kernel", text(kernel));
    row("workload", text(|profile| profile.manifest.workload.clone()));
    if let Some(region) = &options.region {
        row("region", [printable(region), printable(region), String::new()]);
    }
    let totals = &difference.totals;
    let count = |of: fn(&ScopeTotals) -> u64| totals.each_ref().map(|whole| i128::from(of(whole)));
    let mut figures = |head: &str, values: [i128; 2]| {
        let [a, b] = values.map(|value| signed(value, ""));
        row(head, [a, b, signed(values[1] - values[0], "+")]);
    };
    figures("operations", count(|whole| whole.operations));
    figures("elapsed ns", count(|whole| whole.elapsed_ns.get()));
    figures("busy ns", count(|whole| whole.busy_ns.get()));
    figures("idle ns", count(|whole| whole.idle_ns.get()));
    figures("user ns", count(|whole| whole.user_ns.get()));
    let length = |whole: &ScopeTotals| whole.kernel_instructions as f64 / whole.operations as f64;
    if totals.iter().all(|whole| whole.operations > 0 && whole.kernel_instructions > 0) {
        let [a, b] = totals.each_ref().map(length);
        row("path length instr./op", [figure(a), figure(b), format!("{} %", change(100.0 * (b - a) / a, 2))]);
    }
    table
}

fn table(profiles: [&Profile; 2], found: &Found, options: &Options) -> Columns {
    let per = Per::new(&found.difference, options);
    let head = |head: &str| match options.per_operation {
        true => format!("{head}\n/op"),
        false => head.to_string(),
    };
    let net = |side: &str| match options.per_operation {
        true => format!("net {side}\nns/op"),
        false => format!("net {side}\nns"),
    };
    let sampled = profiles.iter().any(|profile| profile.manifest.sampled.is_some());
    let calls = |side: usize| match sampled::has_calls(profiles[side]) {
        true => head(["calls A", "calls B"][side]),
        false => String::new(),
    };
    let error = net(sampled::ERROR).replace("net ", "");
    let mut table = Columns::with(
        [
            (net("A").as_str(), Side::Right),
            (net("B").as_str(), Side::Right),
            (net("B - A").as_str(), Side::Right),
        ]
        .into_iter()
        .chain(sampled.then_some((error.as_str(), Side::Right)))
        .chain([
            ("% of\nchange", Side::Right),
            (calls(0).as_str(), Side::Right),
            (calls(1).as_str(), Side::Right),
            (net("B - A").replace("net", "elapsed").as_str(), Side::Right),
            (if options.paths { "path, from its end" } else { "function" }, Side::Left),
        ]),
    );
    let totals = found.difference.totals.map(|whole| i128::from(whole.elapsed_ns.get()));
    let total = per.change_value(totals);
    let part = |values: [i128; 2]| match per.change_value(values) {
        _ if total == 0.0 => "-".to_string(),
        value => fixed(100.0 * value / total, 2),
    };
    let mut line = |net: [i128; 2], calls: Option<[i128; 2]>, elapsed: Option<[i128; 2]>, name: Cell| {
        let one = |side: usize, calls: i128| match sampled::is(profiles[side]) && calls == 0 {
            false => per.one(calls, side),
            // Not counted.
            true => String::new(),
        };
        let [a, b] = calls.map_or(Default::default(), |calls| [one(0, calls[0]), one(1, calls[1])]);
        let role = match per.change_value(net) {
            change if change < 0.0 => Role::Good,
            change if change > 0.0 => Role::Bad,
            _ => Role::Plain,
        };
        let mut cells: Vec<Cell> =
            vec![per.one(net[0], 0).into(), per.one(net[1], 1).into(), Cell(per.change(net), role)];
        if sampled {
            cells.push(per.error(profiles, net).into());
        }
        cells.extend([
            part(net).into(),
            a.into(),
            b.into(),
            elapsed.map_or(String::new(), |elapsed| per.change(elapsed)).into(),
            name,
        ]);
        table.row_of(cells);
    };
    let shown = options.top.unwrap_or(found.rows.len()).min(found.rows.len());
    let (rows, rest) = found.rows.split_at(shown);
    for row in rows {
        line(row.net_ns, row.calls, row.elapsed_ns, label(row).into());
    }
    if !rest.is_empty() {
        let sum = [0, 1].map(|side| rest.iter().map(|row| row.net_ns[side]).sum());
        let what = if options.paths { "paths" } else { "functions" };
        let name = format!("{} more {what} (--top)", grouped(rest.len() as u64));
        line(sum, None, None, Cell(name, Role::Faint));
    }
    line(totals, None, None, Cell("total".into(), Role::Head));
    table
}

/// A function's name, or a path from its end, so that what is cut off is the beginning.
fn label(row: &Row) -> String {
    let mark = if row.is_several() { " *" } else { "" };
    match &row.path {
        None => format!("{}{mark}", printable(&row.name)),
        Some(names) => {
            let names: Vec<String> = names.iter().rev().map(|name| printable(name)).collect();
            names.join(" < ")
        }
    }
}

#[derive(Serialize)]
struct Json<'a> {
    schema: &'static str,
    by: &'static str,
    region: Option<&'a str>,
    base: JsonSide<'a>,
    other: JsonSide<'a>,
    change_ns: i128,
    rows: &'a [Row],
    more_rows: usize,
    more_change_ns: i128,
}

#[derive(Serialize)]
struct JsonSide<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    sampled: Option<sampled::JsonSampled<'a>>,
    profile: &'a str,
    kernel: &'a KernelId,
    workload: &'a str,
    operations: u64,
    elapsed_ns: u64,
    busy_ns: u64,
    idle_ns: u64,
    user_ns: u64,
    unattributed_ns: u64,
    kernel_instructions: u64,
}

impl<'a> JsonSide<'a> {
    fn new(profile: &'a Profile, whole: &ScopeTotals) -> Self {
        let manifest = &profile.manifest;
        Self {
            sampled: sampled::json(profile),
            profile: &manifest.id,
            kernel: &manifest.kernel,
            workload: &manifest.workload,
            operations: whole.operations,
            elapsed_ns: whole.elapsed_ns.get(),
            busy_ns: whole.busy_ns.get(),
            idle_ns: whole.idle_ns.get(),
            user_ns: whole.user_ns.get(),
            unattributed_ns: whole.unattributed_ns.get(),
            kernel_instructions: whole.kernel_instructions,
        }
    }
}

/// The same as JSON (`docs/json.md`), with a newline at its end. Figures are whole, never per
/// operation, so that they are exact.
pub fn json(base: &Profile, other: &Profile, options: &Options) -> Result<String> {
    let found = find([base, other], options)?;
    let shown = options.top.unwrap_or(found.rows.len()).min(found.rows.len());
    let (rows, rest) = found.rows.split_at(shown);
    crate::to_json(&Json {
        schema: SCHEMA,
        by: if options.paths { "path" } else { "function" },
        region: options.region.as_deref(),
        base: JsonSide::new(base, &found.difference.totals[0]),
        other: JsonSide::new(other, &found.difference.totals[1]),
        change_ns: found.difference.change(),
        rows,
        more_rows: rest.len(),
        more_change_ns: rest.iter().map(|row| row.net_change_ns).sum(),
    })
}
