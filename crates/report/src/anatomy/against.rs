//! Comparison of one operation in two profiles: its figures, and the functions that explain the
//! difference.

use super::{before, head, AnatomyView};
use crate::side_by_side::{change_role, SideBySide};
use crate::{health, Error, Result};
use kerntune_analyze::anatomy::{FigureSpread, FigureSpreads};
use kerntune_profile::{difference, FunctionDifference, FunctionTotals, Profile, RegionStats, Tables, Ticks};
use kerntune_table::number::{change, fixed, grouped};
use kerntune_table::{printable, Columns, Document, Table, TextRole};
use std::collections::BTreeMap;

/// Functions of both profiles, largest contribution to the difference per operation first.
struct ExplainedFunctions {
    rows: Vec<FunctionDifference>,
    /// Time of each profile that is in no row: 0.
    rest: [i128; 2],
}

/// Explains the difference by function.
///
/// # Errors
/// [`Error::Sum`] if the rows do not sum to the times of both: an internal error.
fn explain(sides: [&AnatomyView; 2]) -> Result<ExplainedFunctions> {
    let profiles = sides.map(of_operation);
    let found = difference(&profiles[0], &profiles[1]);
    let times = sides.map(|side| i128::from(side.anatomy.all.ns.sum));
    let sum = |side: usize| -> i128 { found.functions.iter().map(|row| row.self_ticks(side)).sum() };
    let rest = [times[0] - sum(0), times[1] - sum(1)];
    if rest != [0, 0] {
        let whole = times[1] - times[0];
        return Err(Error::Sum { parts: whole - (rest[1] - rest[0]), whole });
    }
    let calls = sides.map(|side| i128::from(side.calls()));
    // Exact integers: b/m − a/n has the order of bn − am.
    let weight = |row: &FunctionDifference| {
        (row.self_ticks(1) * calls[0] - row.self_ticks(0) * calls[1]).unsigned_abs()
    };
    let mut rows = found.functions;
    rows.sort_by(|a, b| {
        let names = |row: &FunctionDifference| (row.name.clone(), row.file.clone());
        weight(b).cmp(&weight(a)).then_with(|| names(a).cmp(&names(b)))
    });
    Ok(ExplainedFunctions { rows, rest })
}

/// Builds a profile of the operation alone, for comparison: one region with each function's sums
/// over all calls.
fn of_operation(shown: &AnatomyView) -> Profile {
    let mut totals: BTreeMap<_, FunctionTotals> = BTreeMap::new();
    for node in &shown.anatomy.nodes {
        let sum = totals.entry(node.function).or_insert(FunctionTotals::none(node.function));
        sum.calls += node.all.whole.calls;
        sum.self_ticks += Ticks(node.all.whole.self_ticks);
    }
    let (time, none) = (Ticks(shown.anatomy.all.ns.sum), Ticks::ZERO);
    let region = RegionStats {
        begin_ticks: none,
        elapsed_ticks: time,
        busy_ticks: time,
        idle_ticks: none,
        user_ticks: none,
        unattributed_ticks: none,
        operations: shown.calls(),
        ..RegionStats::default()
    };
    let tables = Tables {
        symbols: shown.profile.tables.symbols.clone(),
        functions: totals.into_values().map(|totals| totals.row(0)).collect(),
        regions: vec![region],
        ..Tables::default()
    };
    Profile { manifest: shown.profile.manifest.clone(), tables }
}

/// Adds the comparison, and ends the texts; without `other` it is null.
///
/// # Errors
/// No complete call in the other profile, or [`Error::Sum`].
pub(super) fn add<'a>(
    document: &mut Document<'a>,
    shown: &AnatomyView<'a>,
    other: Option<&AnatomyView<'a>>,
) -> Result<()> {
    let explained = match other {
        Some(other) => {
            other.check()?;
            Some((*other, explain([shown, other])?))
        }
        None => None,
    };
    let help = "`--against`: the other profile, and the difference by function.";
    document.nullable("against", help, columns(*other.unwrap_or(shown)), explained.as_ref());
    if let Some((other, explained)) = explained {
        add_text(document, [shown, &other], explained);
        document.end_text();
    }
    Ok(())
}

/// Declares the members of `against`.
fn columns<'a>(other: AnatomyView<'a>) -> Columns<'a, (AnatomyView<'a>, ExplainedFunctions)> {
    let mut functions = Columns::<FunctionDifference>::new();
    functions.add("function", "Function.", |row| row.name.clone());
    functions.add("file", "Its source file.", |row| row.file.clone());
    functions.add("symbols", "As in `kerntune-diff/4`.", |row| row.symbols.clone());
    functions.add("only", "Profile in which alone it is: `A` or `B`.", only);
    functions.add("self", "Time of both in all calls.", |row| [0, 1].map(|side| row.self_ticks(side)));
    functions.add("calls", "Calls of both.", |row| [0, 1].map(|side| row.calls(side)));
    let mut columns = Columns::<(AnatomyView<'a>, ExplainedFunctions)>::new();
    columns.part(crate::head::of_profile(), |row| &row.0.profile);
    columns.part(head::counts(other), |row| &row.0);
    columns.record("before", "As `before` above.", before::columns(other), |row| row.0.until.map(|_| row.0));
    let help = "Functions, greatest difference per call first.";
    columns.records("functions", help, functions, |row| row.1.rows.clone());
    columns.add("rest", "Time of both that is in no row: 0, or the command fails.", |row| row.1.rest);
    columns
}

fn add_text(document: &mut Document, sides: [&AnatomyView; 2], explained: ExplainedFunctions) {
    let names = sides.map(|side| side.name(side.function));
    let name = if names[0] == names[1] { names[0].clone() } else { names.join(" and ") };
    document.painted(TextRole::Head, format!("Anatomy of {name}\n"));
    document.text("\n");
    document.table(figures(sides));
    let top = sides[0].top.unwrap_or(crate::DEFAULT_ROWS);
    let is_several =
        explained.rows.iter().take(top).any(|row| row.symbols.iter().any(|names| !names.is_empty()));
    document.table(table(sides, explained, top));
    if is_several {
        document.note(
            "*  copies and pieces that the compiler made in one kernel only are one row with their function",
        );
    }
    for (which, side) in ["A", "B"].into_iter().zip(sides) {
        for (what, count) in head::left_out(side.anatomy) {
            document.note(&format!("{which}: {}: {count}", what.to_lowercase()));
        }
        health::add_side(document, which, side.profile);
    }
}

fn figures<'a>(sides: [&AnatomyView; 2]) -> Table<'a, Vec<String>> {
    let profiles = sides.map(|side| side.profile);
    let mut table = SideBySide::new(&["A", "B", "B - A", "%"], profiles, sides[0].region);
    table.row("calls seen whole", sides.map(|side| grouped(side.calls())));
    let mut row = |head: String, [a, b]: [f64; 2], write: fn(f64) -> String| {
        let percent = if a == 0.0 { "-".into() } else { change(100.0 * (b - a) / a, 2) };
        table.row(head, [write(a), write(b), signed(b - a, write), percent]);
    };
    let mut spread = |what: &str, of: &dyn Fn(&FigureSpreads) -> FigureSpread, before: bool| {
        let both = sides.map(|side| match before {
            true => of(&side.anatomy.before.spreads),
            false => of(&side.anatomy.all),
        });
        row(format!("{what}, mean"), both.map(|spread| mean(&spread)), tenths);
        row(format!("{what}, median"), both.map(|spread| spread.median as f64), whole);
        row(format!("{what}, greatest"), both.map(|spread| spread.greatest as f64), whole);
    };
    let unit = sides[0].unit();
    for before in [false, true] {
        if before && sides[0].until.is_none() {
            continue;
        }
        let until = if before { " before" } else { "" };
        spread(&format!("{unit}{until}"), &|of| of.ns, before);
        spread(&format!("calls{until}"), &|of| of.calls, before);
        spread(&format!("functions{until}"), &|of| of.functions, before);
        spread(&format!("depth{until}"), &|of| of.depth, before);
    }
    if let Some(until) = sides[0].until {
        let reach = sides.map(|side| side.anatomy.before.spreads.ns.count as f64);
        row(format!("calls that reach {}", printable(until)), reach, whole);
    }
    table.into_table()
}

fn mean(spread: &FigureSpread) -> f64 {
    match spread.count {
        0 => 0.0,
        count => spread.sum as f64 / count as f64,
    }
}

fn tenths(value: f64) -> String {
    fixed(value, 1)
}

fn whole(value: f64) -> String {
    fixed(value, 0)
}

/// Formats with a sign; a nonzero change keeps its sign even if it rounds to zero.
fn signed(value: f64, write: fn(f64) -> String) -> String {
    let sign = match value {
        _ if value > 0.0 => "+",
        _ if value < 0.0 => "-",
        _ => "",
    };
    format!("{sign}{}", write(value.abs()))
}

/// Line of the table of functions.
struct FunctionLine {
    self_ticks: [i128; 2],
    calls: Option<[i128; 2]>,
    name: String,
    role: TextRole,
}

fn table<'a>(sides: [&AnatomyView; 2], explained: ExplainedFunctions, top: usize) -> Table<'a, FunctionLine> {
    let sums = |rows: &[FunctionDifference]| {
        let sum = |of: fn(&FunctionDifference, usize) -> i128| -> [i128; 2] {
            [0, 1].map(|side| rows.iter().map(|row| of(row, side)).sum())
        };
        (sum(FunctionDifference::self_ticks), Some(sum(FunctionDifference::calls)))
    };
    let line = |(self_ticks, calls), name: String, role| FunctionLine { self_ticks, calls, name, role };
    let (shown, more) = explained.rows.split_at(top.min(explained.rows.len()));
    let mut lines: Vec<FunctionLine> = shown
        .iter()
        .map(|row| {
            let only = only(row).map_or(String::new(), |side| format!("  only here: {side}"));
            let several = if row.symbols.iter().any(|names| !names.is_empty()) { " *" } else { "" };
            let name = format!("{}{several}{only}", printable(&row.name));
            line(sums(std::slice::from_ref(row)), name, TextRole::Plain)
        })
        .collect();
    if !more.is_empty() {
        let name = format!("{} more functions (--top)", grouped(more.len() as u64));
        lines.push(line(sums(more), name, TextRole::Faint));
    }
    lines.push(line((explained.rest, None), "rest".into(), TextRole::Faint));
    let times = sides.map(|side| i128::from(side.anatomy.all.ns.sum));
    lines.push(line((times, None), "total".into(), TextRole::Head));

    let unit = if sides[0].profile.manifest.exact { "instr." } else { "ns" };
    let operations = sides.map(|side| side.calls() as f64);
    let per = move |side: usize, values: &[i128; 2]| values[side] as f64 / operations[side];
    let moved = move |line: &FunctionLine| per(1, &line.self_ticks) - per(0, &line.self_ticks);
    let mut columns = Columns::<FunctionLine>::new();
    for (side, head) in ["self A", "self B"].into_iter().enumerate() {
        columns.text_only(format!("{head}\n{unit}/op"), move |line| per(side, &line.self_ticks)).decimals(1);
    }
    columns
        .text_only(format!("B - A\n{unit}/op"), move |line| signed(moved(line), tenths))
        .right()
        .role(move |line| change_role(moved(line)));
    for (side, head) in ["calls A\n/op", "calls B\n/op"].into_iter().enumerate() {
        columns.text_only(head, move |line| Some(per(side, &line.calls?)));
    }
    columns.text_only("function", |line| line.name.clone()).role(|line| line.role);
    Table::text_only(lines, columns).hidden_if_empty()
}

/// Names the profile that a function is in, if it is not in both.
fn only(row: &FunctionDifference) -> Option<&'static str> {
    match row.totals {
        [Some(_), None] => Some("A"),
        [None, Some(_)] => Some("B"),
        _ => None,
    }
}
