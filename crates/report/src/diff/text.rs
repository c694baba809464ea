//! A difference as text.

use super::{find, Found, Options, Row};
use crate::columns::{Cell, Columns, Side};
use crate::style::{printable, Role};
use crate::unit::Measure;
use crate::{health, sampled, Result, Style};
use kerntune_compare::number::{change, figure, fixed, grouped};
use kerntune_profile::{Difference, KernelId, Profile, ScopeTotals};

/// The row of what nothing did.
const IDLE: &str = "[idle]";

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
            "One profile was sampled, in time of a real machine, and the other was not: compare shares, not \
             times.\n",
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
    out += &moved([base, other], &found, options, style);
    for (side, profile) in ["A", "B"].into_iter().zip([base, other]) {
        for note in health::notes(profile) {
            out += &format!("{}  {side}: {}\n", style.paint(Role::Bad, "note"), printable(&note));
        }
    }
    Ok(out)
}

/// The functions that count as their callers; nothing if there are none.
fn moved(profiles: [&Profile; 2], found: &Found, options: &Options, style: Style) -> String {
    let list = &found.moves.list;
    if list.is_empty() {
        return String::new();
    }
    let per = Per::new(&found.difference, options);
    let head = |head: &str| match options.per_operation {
        true => format!("{head}\n/op"),
        false => head.to_string(),
    };
    let unit = Measure::of_both(profiles).one().name();
    let net = |side: &str| match options.per_operation {
        true => format!("net {side}\n{unit}/op"),
        false => format!("net {side}\n{unit}"),
    };
    let mut table = Columns::new([
        (net("A").as_str(), Side::Right),
        (net("B").as_str(), Side::Right),
        (head("calls A").as_str(), Side::Right),
        (head("calls B").as_str(), Side::Right),
        ("inlined\nin", Side::Left),
        ("known by", Side::Left),
        ("function, and what it counts as", Side::Left),
    ]);
    let calls = |side: usize, calls: i128| match sampled::has_calls(profiles[side]) {
        true => per.one(calls, side),
        false => String::new(),
    };
    let top = options.top.unwrap_or(usize::MAX);
    let name = |row: usize| printable(&found.difference.functions[row].name);
    for moved in list.iter().take(top) {
        table.row([
            per.one(moved.net_ns[0], 0).into(),
            per.one(moved.net_ns[1], 1).into(),
            calls(0, moved.calls[0]).into(),
            calls(1, moved.calls[1]).into(),
            ["A", "B"][moved.side].into(),
            moved.why.words().into(),
            format!("{} -> {}", name(moved.function), name(moved.into)).into(),
        ]);
    }
    let [one, other] = profiles.map(|profile| &profile.manifest.kernel.version);
    let what = match one == other {
        true => "Inlined in one kernel and not in the other: each counts as its caller in both, and is in its row above\n",
        // Of another source it may have another name, or be no more.
        false => "Without a frame in one kernel, because inlined or not in its source: each counts as its \
                  caller in both\n",
    };
    format!(
        "\n{}{}{}",
        style.paint(Role::Head, what),
        table.below(list.len(), top, style).trim_start_matches('\n'),
        style.paint(Role::Faint, "--as-compiled keeps the functions of each kernel as compiled\n")
    )
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
    let [elapsed, busy, idle, user] = match Measure::of_both(profiles) {
        Measure::Instructions => ["virtual ns", "instructions", "idle ns", "user instructions"],
        Measure::Time => ["elapsed ns", "busy ns", "idle ns", "user ns"],
    };
    figures(elapsed, count(|whole| whole.elapsed_ns.get()));
    figures(busy, count(|whole| whole.busy_ns.get()));
    figures(idle, count(|whole| whole.idle_ns.get()));
    figures(user, count(|whole| whole.user_ns.get()));
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
    let unit = Measure::of_both(profiles).one().name();
    let net = |side: &str| match options.per_operation {
        true => format!("net {side}\n{unit}/op"),
        false => format!("net {side}\n{unit}"),
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
    let exact = Measure::of_both(profiles) == Measure::Instructions;
    let shown = options.top.unwrap_or(found.rows.len()).min(found.rows.len());
    let (rows, rest) = found.rows.split_at(shown);
    for row in rows {
        // What nothing did is time of the exact machine, too: there is no instruction in it.
        let unit = if row.name == IDLE && exact { ", virtual ns" } else { "" };
        line(row.net_ns, row.calls, row.elapsed_ns, format!("{}{unit}", label(row)).into());
    }
    if !rest.is_empty() {
        let sum = [0, 1].map(|side| rest.iter().map(|row| row.net_ns[side]).sum());
        let what = if options.paths { "paths" } else { "functions" };
        let name = format!("{} more {what} (--top)", grouped(rest.len() as u64));
        line(sum, None, None, Cell(name, Role::Faint));
    }
    let idle = exact && found.rows.iter().any(|row| row.name == IDLE);
    line(totals, None, None, Cell(if idle { "total, idle ns included" } else { "total" }.into(), Role::Head));
    table
}

/// A function's name, or a path from its end, so that what is cut off is the beginning.
fn label(row: &Row) -> String {
    let mark = if row.is_several() { " *" } else { "" };
    match &row.path {
        None => format!("{}{mark}{}", printable(&row.name), with(row)),
        Some(names) => {
            let names: Vec<String> = names.iter().rev().map(|name| printable(name)).collect();
            names.join(" < ")
        }
    }
}

/// The functions that count as this one: the first few of them.
fn with(row: &Row) -> String {
    const FEW: usize = 3;
    let few: Vec<String> = row.with.iter().take(FEW).map(|name| printable(name)).collect();
    match (few.is_empty(), row.with.len().saturating_sub(FEW)) {
        (true, _) => String::new(),
        (false, 0) => format!("  with {}", few.join(", ")),
        (false, more) => format!("  with {} and {more} more", few.join(", ")),
    }
}
