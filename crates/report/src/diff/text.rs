//! Difference of two profiles as text.

use super::{find, DiffOptions, DiffRow, ProfileDiff};
use kerntune_table::columns::{Alignment, TableBuilder, TextCell};
use kerntune_table::{printable, TextRole};
use crate::unit::TickUnit;
use crate::{health, sampled, Result, Style};
use kerntune_table::number::{change, figure, fixed, grouped};
use kerntune_profile::{KernelId, Profile, ProfileDifference, ScopeTotals};

/// Row of idle time.
const IDLE: &str = "[idle]";

/// Divisor of both profiles' figures: operations, or none for whole figures.
#[derive(Clone, Copy)]
struct PerOperation([Option<u64>; 2]);

impl PerOperation {
    fn new(difference: &ProfileDifference, options: &DiffOptions) -> Self {
        PerOperation(difference.totals.map(|whole| Some(whole.operations).filter(|_| options.per_operation)))
    }

    fn format(self, value: i128, side: usize) -> String {
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

    /// Formats the standard error of a change: errors of sums add in quadrature.
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

/// Formats tenths: a row may be a few instructions of thousands per operation.
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

/// Renders the totals of both profiles, then the rows, as text.
pub fn text(base: &Profile, other: &Profile, options: &DiffOptions, style: Style) -> Result<String> {
    let found = find([base, other], options)?;
    let mut out = whole([base, other], &found.difference, options).render(style);
    out.push('\n');
    out += &table([base, other], &found, options).render(style);
    if base.manifest.sampled.is_some() != other.manifest.sampled.is_some() {
        out += &style.paint(
            TextRole::Faint,
            "One profile was sampled, in time of a real machine, and the other was not: compare shares, not \
             times.\n",
        );
    }
    let totals = &found.difference.totals;
    if !options.per_operation && totals[0].operations != totals[1].operations {
        out += &style.paint(
            TextRole::Faint,
            "The profiles have different numbers of operations: --per-operation compares one with one.\n",
        );
    }
    if !options.paths && found.rows.iter().take(options.top.unwrap_or(usize::MAX)).any(DiffRow::is_several) {
        out += &style.paint(
            TextRole::Faint,
            "*  copies and pieces that the compiler made in one kernel only are one row with their function\n",
        );
    }
    out += &moved([base, other], &found, options, style);
    for (side, profile) in ["A", "B"].into_iter().zip([base, other]) {
        for note in health::text_notes(profile, style) {
            out += &format!("{}  {side}: {}\n", style.paint(TextRole::Bad, "note"), printable(&note));
        }
    }
    Ok(out)
}

/// Renders the functions that count as their callers; empty if there are none.
fn moved(profiles: [&Profile; 2], found: &ProfileDiff, options: &DiffOptions, style: Style) -> String {
    let list = &found.moves.list;
    if list.is_empty() {
        return String::new();
    }
    let per = PerOperation::new(&found.difference, options);
    let head = |head: &str| match options.per_operation {
        true => format!("{head}\n/op"),
        false => head.to_string(),
    };
    let unit = TickUnit::common_to(profiles).smallest_unit().name();
    let net = |side: &str| match options.per_operation {
        true => format!("net {side}\n{unit}/op"),
        false => format!("net {side}\n{unit}"),
    };
    let mut table = TableBuilder::new([
        (net("A").as_str(), Alignment::Right),
        (net("B").as_str(), Alignment::Right),
        (head("calls A").as_str(), Alignment::Right),
        (head("calls B").as_str(), Alignment::Right),
        ("inlined\nin", Alignment::Left),
        ("known by", Alignment::Left),
        ("function, and what it counts as", Alignment::Left),
    ]);
    let calls = |side: usize, calls: i128| match sampled::has_calls(profiles[side]) {
        true => per.format(calls, side),
        false => String::new(),
    };
    let top = options.top.unwrap_or(usize::MAX);
    let name = |row: usize| printable(&found.difference.functions[row].name);
    for moved in list.iter().take(top) {
        table.row([
            per.format(moved.self_ticks[0], 0).into(),
            per.format(moved.self_ticks[1], 1).into(),
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
        // In another source, a function may have another name or be missing.
        false => "Without a frame in one kernel, because inlined or not in its source: each counts as its \
                  caller in both\n",
    };
    format!(
        "\n{}{}{}",
        style.paint(TextRole::Head, what),
        table.below(list.len(), top, style).trim_start_matches('\n'),
        style.paint(TextRole::Faint, "--as-compiled keeps the functions of each kernel as compiled\n")
    )
}

fn whole(profiles: [&Profile; 2], difference: &ProfileDifference, options: &DiffOptions) -> TableBuilder {
    let mut table = TableBuilder::new([
        ("", Alignment::Left),
        ("A", Alignment::Right),
        ("B", Alignment::Right),
        ("B - A", Alignment::Right),
    ]);
    let mut row = |head: &str, texts: [String; 3]| {
        let [a, b, change] = texts;
        table.row([TextCell(head.into(), TextRole::Head), a.into(), b.into(), change.into()]);
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
    let [elapsed, busy, idle, user] = match TickUnit::common_to(profiles) {
        TickUnit::Instructions => ["virtual ns", "instructions", "idle ns", "user instructions"],
        TickUnit::Time => ["elapsed ns", "busy ns", "idle ns", "user ns"],
    };
    figures(elapsed, count(|whole| whole.elapsed_ticks.get()));
    figures(busy, count(|whole| whole.busy_ticks.get()));
    figures(idle, count(|whole| whole.idle_ticks.get()));
    figures(user, count(|whole| whole.user_ticks.get()));
    let length = |whole: &ScopeTotals| whole.kernel_instructions as f64 / whole.operations as f64;
    if totals.iter().all(|whole| whole.operations > 0 && whole.kernel_instructions > 0) {
        let [a, b] = totals.each_ref().map(length);
        row("path length instr./op", [figure(a), figure(b), format!("{} %", change(100.0 * (b - a) / a, 2))]);
    }
    table
}

fn table(profiles: [&Profile; 2], found: &ProfileDiff, options: &DiffOptions) -> TableBuilder {
    let per = PerOperation::new(&found.difference, options);
    let head = |head: &str| match options.per_operation {
        true => format!("{head}\n/op"),
        false => head.to_string(),
    };
    let unit = TickUnit::common_to(profiles).smallest_unit().name();
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
    let mut table = TableBuilder::with(
        [
            (net("A").as_str(), Alignment::Right),
            (net("B").as_str(), Alignment::Right),
            (net("B - A").as_str(), Alignment::Right),
        ]
        .into_iter()
        .chain(sampled.then_some((error.as_str(), Alignment::Right)))
        .chain([
            ("% of\nchange", Alignment::Right),
            (calls(0).as_str(), Alignment::Right),
            (calls(1).as_str(), Alignment::Right),
            (net("B - A").replace("net", "elapsed").as_str(), Alignment::Right),
            (if options.paths { "path, from its end" } else { "function" }, Alignment::Left),
        ]),
    );
    let totals = found.difference.totals.map(|whole| i128::from(whole.elapsed_ticks.get()));
    let total = per.change_value(totals);
    let part = |values: [i128; 2]| match per.change_value(values) {
        _ if total == 0.0 => "-".to_string(),
        value => fixed(100.0 * value / total, 2),
    };
    let mut line = |net: [i128; 2], calls: Option<[i128; 2]>, elapsed: Option<[i128; 2]>, name: TextCell| {
        let one = |side: usize, calls: i128| match sampled::is(profiles[side]) && calls == 0 {
            false => per.format(calls, side),
            // Calls were not counted.
            true => String::new(),
        };
        let [a, b] = calls.map_or(Default::default(), |calls| [one(0, calls[0]), one(1, calls[1])]);
        let role = match per.change_value(net) {
            change if change < 0.0 => TextRole::Good,
            change if change > 0.0 => TextRole::Bad,
            _ => TextRole::Plain,
        };
        let mut cells: Vec<TextCell> =
            vec![per.format(net[0], 0).into(), per.format(net[1], 1).into(), TextCell(per.change(net), role)];
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
    let exact = TickUnit::common_to(profiles) == TickUnit::Instructions;
    let shown = options.top.unwrap_or(found.rows.len()).min(found.rows.len());
    let (rows, rest) = found.rows.split_at(shown);
    for row in rows {
        // Idle time is virtual time even on the exact machine: it has no instructions.
        let unit = if row.name == IDLE && exact { ", virtual ns" } else { "" };
        line(row.self_ticks, row.calls, row.elapsed_ns, format!("{}{unit}", label(row)).into());
    }
    if !rest.is_empty() {
        let sum = [0, 1].map(|side| rest.iter().map(|row| row.self_ticks[side]).sum());
        let what = if options.paths { "paths" } else { "functions" };
        let name = format!("{} more {what} (--top)", grouped(rest.len() as u64));
        line(sum, None, None, TextCell(name, TextRole::Faint));
    }
    let idle = exact && found.rows.iter().any(|row| row.name == IDLE);
    line(
        totals,
        None,
        None,
        TextCell(if idle { "total, idle ns included" } else { "total" }.into(), TextRole::Head),
    );
    table
}

/// Returns a function's name, or a path from its end, so that its beginning is cut off.
fn label(row: &DiffRow) -> String {
    let mark = if row.is_several() { " *" } else { "" };
    match &row.path {
        None => format!("{}{mark}{}", printable(&row.name), with(row)),
        Some(names) => {
            let names: Vec<String> = names.iter().rev().map(|name| printable(name)).collect();
            names.join(" < ")
        }
    }
}

/// Names the first few functions that count as this one.
fn with(row: &DiffRow) -> String {
    const MAX_NAMES: usize = 3;
    let few: Vec<String> = row.with.iter().take(MAX_NAMES).map(|name| printable(name)).collect();
    match (few.is_empty(), row.with.len().saturating_sub(MAX_NAMES)) {
        (true, _) => String::new(),
        (false, 0) => format!("  with {}", few.join(", ")),
        (false, more) => format!("  with {} and {more} more", few.join(", ")),
    }
}
