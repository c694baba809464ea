//! Document of a difference.

use super::{find, DiffOptions, DiffRow, ProfileDiff, SCHEMA};
use crate::inlining::InlineMove;
use crate::side_by_side::{change_role, SideBySide};
use crate::unit::TickUnit;
use crate::{head, health, sampled, Result};
use kerntune_profile::{Profile, ProfileDifference, ScopeTotals};
use kerntune_table::number::{change, figure, fixed, grouped};
use kerntune_table::{printable, Columns, Document, Table, TextRole};

/// Description of the JSON form.
const ABOUT: &str = "Two profiles side by side, A first. Figures are `[A, B]` and whole, `--per-operation` or not. A \
     function that is inlined in one kernel and not in the other counts as its caller in both, in rows and in paths, \
     so that inlining alone changes no row; with `--as-compiled` nothing moves.";

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

/// Compares two profiles.
///
/// # Errors
/// An unknown region, no operations to divide by, or [`crate::Error::Sum`]: an internal error.
pub fn document<'a>(base: &'a Profile, other: &'a Profile, options: &DiffOptions) -> Result<Document<'a>> {
    let profiles = [base, other];
    let ProfileDiff { difference, moves, mut rows } = find(profiles, options)?;
    let common = TickUnit::common_to(profiles);
    let mut document = Document::new(SCHEMA, ABOUT);
    document.names_its_subject = true;
    document.field("by", "`function` or `path`.", if options.paths { "path" } else { "function" });
    document.field("unit", "Unit of both and of their difference: `instructions` or `ns`.", common.name());
    let help = "Name of the regions that both are restricted to; null for all.";
    document.field("region", help, options.region.as_deref());
    let [a, b] = difference.totals;
    document.object("base", "Profile A.", side_columns(), &(base, a));
    document.object("other", "Profile B.", side_columns(), &(other, b));
    document.field("change", "Change of the elapsed time.", difference.change());
    document.field("as_compiled", "Functions stay where they were compiled.", options.as_compiled);
    document.table(whole(profiles, &difference, options));
    document.text("\n");

    let is_exact = common == TickUnit::Instructions;
    let has_idle = is_exact && rows.iter().any(|row| row.name == IDLE);
    let top = options.top.unwrap_or(usize::MAX);
    let rest = rows.split_off(top.min(rows.len()));
    let mut foot = Vec::new();
    if !rest.is_empty() {
        let sum = [0, 1].map(|side| rest.iter().map(|row| row.self_ticks[side]).sum());
        let what = if options.paths { "paths" } else { "functions" };
        let name = format!("{} more {what} (--top)", grouped(rest.len() as u64));
        foot.push(DiffRow { role: TextRole::Faint, ..DiffRow::beside(&name, sum) });
    }
    let name = if has_idle { "total, idle ns included" } else { "total" };
    let totals = difference.totals.map(|whole| i128::from(whole.elapsed_ticks.get()));
    foot.push(DiffRow { role: TextRole::Head, ..DiffRow::beside(name, totals) });
    let is_several = !options.paths && rows.iter().any(DiffRow::is_several);
    let help = "Functions or paths and time outside of them, greatest change first; their `self_change` and \
         `more_change` sum to `change`.";
    let table = Table::new("rows", rows, row_columns(profiles, totals, &difference, options)).help(help);
    document.table(table.default_rows(usize::MAX).foot(foot));
    document.field("more_rows", "Rows that `--top` left out.", rest.len());
    let more_change: i128 = rest.iter().map(|row| row.self_change_ticks).sum();
    document.field("more_change", "Sum of their `self_change`.", more_change);
    if base.manifest.sampled.is_some() != other.manifest.sampled.is_some() {
        document.note(
            "One profile was sampled, in time of a real machine, and the other was not: compare shares, not times.",
        );
    }
    if let (Some(one), Some(other)) = (&base.manifest.emulator, &other.manifest.emulator) {
        if one != other {
            document.note(&format!(
                "A was recorded by {one}, and B by {other}: part of the change may be theirs (docs/install.md)."
            ));
        }
    }
    if !options.per_operation && a.operations != b.operations {
        document.note(
            "The profiles have different numbers of operations: --per-operation compares one with one.",
        );
    }
    if is_several {
        document.note(
            "*  copies and pieces that the compiler made in one kernel only are one row with their function",
        );
    }
    let has_moved = !moves.list.is_empty();
    document.table(moved(profiles, &difference, moves.list, options));
    if has_moved {
        document.note("--as-compiled keeps the functions of each kernel as compiled");
    }
    for (side, profile) in ["A", "B"].into_iter().zip(profiles) {
        health::add_side(&mut document, side, profile);
    }
    Ok(document)
}

fn side_columns<'a>() -> Columns<'a, (&'a Profile, ScopeTotals)> {
    let mut columns = Columns::<(&'a Profile, ScopeTotals)>::new();
    let sampled = |row: &(&Profile, ScopeTotals)| row.0.manifest.sampled.clone();
    columns.record("sampled", sampled::HELP, sampled::columns(), sampled).optional();
    columns.add("unit", "Unit of its figures of code.", |row| TickUnit::of(row.0).name());
    columns.part(head::of_profile(), |row| &row.0);
    columns.add("operations", "Operations that were counted.", |row| row.1.operations);
    columns.add("elapsed_ns", "Time inside regions.", |row| row.1.elapsed_ticks.get());
    columns.add("busy", "What code took.", |row| row.1.busy_ticks.get());
    columns.add("idle_ns", "Time in which the CPU was halted.", |row| row.1.idle_ticks.get());
    columns.add("user", "What user code took.", |row| row.1.user_ticks.get());
    columns
        .add("unattributed", "What kernel code in no function took.", |row| row.1.unattributed_ticks.get());
    columns
        .add("kernel_instructions", "Instructions executed in the kernel.", |row| row.1.kernel_instructions);
    columns
}

fn whole<'a>(
    profiles: [&Profile; 2],
    difference: &ProfileDifference,
    options: &DiffOptions,
) -> Table<'a, Vec<String>> {
    let mut table = SideBySide::new(&["A", "B", "B - A"], profiles, options.region.as_deref());
    let [elapsed, busy, idle, user] = match TickUnit::common_to(profiles) {
        TickUnit::Instructions => ["virtual ns", "instructions", "idle ns", "user instructions"],
        TickUnit::Time => ["elapsed ns", "busy ns", "idle ns", "user ns"],
    };
    let totals = &difference.totals;
    let mut row = |head: &str, of: fn(&ScopeTotals) -> u64| {
        let [a, b] = totals.each_ref().map(|whole| i128::from(of(whole)));
        table.row(head, [signed(a, ""), signed(b, ""), signed(b - a, "+")]);
    };
    row("operations", |whole| whole.operations);
    row(elapsed, |whole| whole.elapsed_ticks.get());
    row(busy, |whole| whole.busy_ticks.get());
    row(idle, |whole| whole.idle_ticks.get());
    row(user, |whole| whole.user_ticks.get());
    if totals.iter().all(|whole| whole.operations > 0 && whole.kernel_instructions > 0) {
        let [a, b] = totals.each_ref().map(|of| of.kernel_instructions as f64 / of.operations as f64);
        let percent = format!("{} %", change(100.0 * (b - a) / a, 2));
        table.row("path length instr./op", [figure(a), figure(b), percent]);
    }
    table.into_table()
}

/// Headings of the columns of ticks and of calls.
struct DiffHeads {
    ticks: String,
    calls: &'static str,
}

impl DiffHeads {
    fn new(profiles: [&Profile; 2], options: &DiffOptions) -> Self {
        let unit = TickUnit::common_to(profiles).smallest_unit().name();
        match options.per_operation {
            true => Self { ticks: format!("\n{unit}/op"), calls: "\n/op" },
            false => Self { ticks: format!("\n{unit}"), calls: "" },
        }
    }

    fn ticks(&self, head: &str) -> String {
        format!("{head}{}", self.ticks)
    }

    fn calls(&self, head: &str) -> String {
        format!("{head}{}", self.calls)
    }
}

fn row_columns<'a>(
    profiles: [&'a Profile; 2],
    totals: [i128; 2],
    difference: &ProfileDifference,
    options: &DiffOptions,
) -> Columns<'a, DiffRow> {
    let per = PerOperation::new(difference, options);
    let heads = DiffHeads::new(profiles, options);
    let mut columns = Columns::<DiffRow>::new();
    columns.add("self", "What the function itself took.", |row| row.self_ticks);
    for (side, head) in ["net A", "net B"].into_iter().enumerate() {
        columns.text_only(heads.ticks(head), move |row| per.format(row.self_ticks[side], side)).right();
    }
    columns
        .add("self_change", "Change of `self`.", |row| row.self_change_ticks)
        .head(heads.ticks("net B - A"))
        .text(move |row| per.change(row.self_ticks))
        .role(move |row| change_role(per.change_value(row.self_ticks)));
    columns
        .text_only(heads.ticks(sampled::ERROR), move |row| per.error(profiles, row.self_ticks))
        .right()
        .only_if(profiles.iter().any(|profile| sampled::is(profile)));
    let total = per.change_value(totals);
    columns
        .text_only("% of\nchange", move |row| match per.change_value(row.self_ticks) {
            _ if total == 0.0 => "-".to_string(),
            value => fixed(100.0 * value / total, 2),
        })
        .right();
    columns.add("calls", "Calls; null of time outside of functions.", |row| row.calls);
    for (side, head) in ["calls A", "calls B"].into_iter().enumerate() {
        let head = if sampled::has_calls(profiles[side]) { heads.calls(head) } else { String::new() };
        let calls = move |row: &DiffRow| {
            // Sampling does not count the calls of all functions.
            let calls = row.calls?[side];
            (calls != 0 || !sampled::is(profiles[side])).then(|| per.format(calls, side))
        };
        columns.text_only(head, calls).right();
    }
    columns
        .add(
            "elapsed",
            "With callees; null of time outside, and in a row that has lost calls to callers.",
            |row| row.total_ticks,
        )
        .head(heads.ticks("elapsed B - A"))
        .text(move |row| row.total_ticks.map_or(String::new(), |ticks| per.change(ticks)))
        .right();
    columns.add("path", "Names from the root; only with `--paths`.", |row| row.path.clone()).optional();
    let is_exact = TickUnit::common_to(profiles) == TickUnit::Instructions;
    columns
        .add("name", "Function, thread, or name in brackets of time outside of functions.", |row| {
            row.name.clone()
        })
        .head(if options.paths { "path, from its end" } else { "function" })
        .text(move |row| {
            // Idle time is virtual time even on the exact machine: it has no instructions.
            label(row) + if row.name == IDLE && is_exact { ", virtual ns" } else { "" }
        })
        .role(|row| row.role);
    columns.add("file", "Source file.", |row| row.file.clone());
    columns.add(
        "symbols",
        "Symbols of A and B that are one row because the compiler made others of the function in one kernel; else empty.",
        |row| row.symbols.clone(),
    );
    columns.add("with", "Functions that count as this one.", |row| row.with.clone());
    columns
}

/// Function that counts as its caller, with names.
struct MovedRow {
    moved: InlineMove,
    function: String,
    file: Option<String>,
    into: String,
}

/// Returns the functions that count as their callers.
fn moved<'a>(
    profiles: [&'a Profile; 2],
    difference: &ProfileDifference,
    list: Vec<InlineMove>,
    options: &DiffOptions,
) -> Table<'a, MovedRow> {
    let per = PerOperation::new(difference, options);
    let heads = DiffHeads::new(profiles, options);
    let functions = &difference.functions;
    let rows = list.into_iter().map(|moved| MovedRow {
        function: functions[moved.function].name.clone(),
        file: functions[moved.function].file.clone(),
        into: functions[moved.into].name.clone(),
        moved,
    });
    let mut columns = Columns::<MovedRow>::new();
    columns.add("self", "Time in `calls` that so counts as the caller's.", |row| row.moved.self_ticks);
    for (side, head) in ["net A", "net B"].into_iter().enumerate() {
        columns.text_only(heads.ticks(head), move |row| per.format(row.moved.self_ticks[side], side)).right();
    }
    columns.add("calls", "Calls by that caller.", |row| row.moved.calls);
    for (side, head) in ["calls A", "calls B"].into_iter().enumerate() {
        let calls = move |row: &MovedRow| {
            sampled::has_calls(profiles[side]).then(|| per.format(row.moved.calls[side], side))
        };
        columns.text_only(heads.calls(head), calls).right();
    }
    columns
        .add("inlined_in", "Kernel in which it is inlined: `A` or `B`.", |row| ["A", "B"][row.moved.side])
        .head("inlined\nin");
    columns
        .add(
            "known_by",
            "`no-symbol`: that kernel has no function of the name; `line-tables`: its debug information; \
             `fewer-calls`: the caller runs as often and makes at least a tenth, and at least 16, fewer of these calls, an inference.",
            |row| row.moved.why.words().replace(' ', "-"),
        )
        .head("known by")
        .text(|row| row.moved.why.words().into());
    columns
        .add("function", "Function that moved.", |row| row.function.clone())
        .head("function, and what it counts as")
        .text(|row| format!("{} -> {}", printable(&row.function), printable(&row.into)));
    columns.add("file", "Its source file.", |row| row.file.clone());
    columns.add("into", "Caller that it counts as.", |row| row.into.clone());
    let [one, other] = profiles.map(|profile| &profile.manifest.kernel.version);
    let title = match one == other {
        true => "Inlined in one kernel and not in the other: each counts as its caller in both, and is in its row above",
        // In another source, a function may have another name or be missing.
        false => "Without a frame in one kernel, because inlined or not in its source: each counts as its caller in both",
    };
    Table::new("moved", rows, columns)
        .help("Functions that count as their callers, greatest time first.")
        .title(TextRole::Head, title)
        .default_rows(options.top.unwrap_or(usize::MAX))
        .hidden_if_empty()
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
