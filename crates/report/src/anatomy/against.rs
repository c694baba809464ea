//! Comparison of one operation in two profiles: its figures, and the functions that explain the
//! difference.

use super::{head, AnatomyView};
use kerntune_table::columns::{Alignment, TableBuilder, TextCell};
use kerntune_table::{printable, Style, TextRole};
use crate::{health, Error, Result};
use kerntune_analyze::anatomy::{FigureSpread, FigureSpreads};
use kerntune_table::number::{change, figure, fixed, grouped};
use kerntune_profile::{
    difference, FunctionDifference, FunctionTotals, KernelId, Profile, RegionStats, Tables, Ticks,
};
use std::collections::BTreeMap;

/// Functions of both profiles, largest contribution to the difference per operation first.
pub(super) struct ExplainedFunctions {
    pub rows: Vec<FunctionDifference>,
    /// Time of each profile that is in no row: 0.
    pub rest: [i128; 2],
}

/// Explains the difference by function.
///
/// # Errors
/// [`Error::Sum`] if the rows do not sum to the times of both: an internal error.
pub(super) fn explain(sides: [&AnatomyView; 2]) -> Result<ExplainedFunctions> {
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

/// Renders the figures of both profiles, then the functions, as text.
///
/// # Errors
/// No complete call in one of them, or [`Error::Sum`].
pub fn text_against(sides: [&AnatomyView; 2], style: Style) -> Result<String> {
    sides[0].check()?;
    sides[1].check()?;
    let names = sides.map(|side| side.name(side.function));
    let name = if names[0] == names[1] { names[0].clone() } else { names.join(" and ") };
    let mut out = style.paint(TextRole::Head, &format!("Anatomy of {name}")) + "\n\n";
    out += &figures(sides).render(style);
    out.push('\n');
    let explained = explain(sides)?;
    let top = sides[0].top.unwrap_or(crate::DEFAULT_ROWS);
    out += &table(sides, &explained, top).render(style);
    if explained.rows.iter().take(top).any(|row| row.symbols.iter().any(|names| !names.is_empty())) {
        let note = "*  copies and pieces that the compiler made in one kernel only are one row with their function\n";
        out += &style.paint(TextRole::Faint, note);
    }
    for (which, side) in ["A", "B"].into_iter().zip(sides) {
        for (what, count) in head::left_out(side.anatomy) {
            out += &style.paint(TextRole::Faint, &format!("{which}: {}: {count}\n", what.to_lowercase()));
        }
        for note in health::notes(side.profile) {
            out += &format!("{}  {which}: {}\n", style.paint(TextRole::Bad, "note"), printable(&note));
        }
    }
    Ok(out)
}

fn figures(sides: [&AnatomyView; 2]) -> TableBuilder {
    let mut table = TableBuilder::new([
        ("", Alignment::Left),
        ("A", Alignment::Right),
        ("B", Alignment::Right),
        ("B - A", Alignment::Right),
        ("%", Alignment::Right),
    ]);
    let mut words = |head: &str, of: &dyn Fn(&AnatomyView) -> String| {
        let [a, b] = sides.map(|side| TextCell::from(printable(&of(side))));
        table.row([TextCell(head.into(), TextRole::Head), a, b, "".into(), "".into()]);
    };
    words("profile", &|side| side.profile.manifest.id.clone());
    words("kernel", &|side| {
        let KernelId { label, version, .. } = &side.profile.manifest.kernel;
        format!("{label} {version}")
    });
    words("workload", &|side| side.profile.manifest.workload.clone());
    if let Some(region) = sides[0].region {
        words("region", &|_| region.to_string());
    }
    words("calls seen whole", &|side| grouped(side.calls()));
    let mut row = |head: String, [a, b]: [f64; 2], write: fn(f64) -> String| {
        let percent = if a == 0.0 { "-".into() } else { change(100.0 * (b - a) / a, 2) };
        let difference = signed(b - a, write).into();
        table.row([
            TextCell(head, TextRole::Head),
            write(a).into(),
            write(b).into(),
            difference,
            percent.into(),
        ]);
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
    table
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

fn table(sides: [&AnatomyView; 2], explained: &ExplainedFunctions, top: usize) -> TableBuilder {
    let unit = if sides[0].profile.manifest.exact { "instr." } else { "ns" };
    let heads = ["self A", "self B", "B - A"].map(|head| format!("{head}\n{unit}/op"));
    let mut table = TableBuilder::new([
        (heads[0].as_str(), Alignment::Right),
        (heads[1].as_str(), Alignment::Right),
        (heads[2].as_str(), Alignment::Right),
        ("calls A\n/op", Alignment::Right),
        ("calls B\n/op", Alignment::Right),
        ("function", Alignment::Left),
    ]);
    let operations = sides.map(|side| side.calls() as f64);
    let per = |values: [i128; 2]| [values[0] as f64 / operations[0], values[1] as f64 / operations[1]];
    let mut row = |self_ns: [i128; 2], calls: Option<[i128; 2]>, name: TextCell| {
        let [a, b] = per(self_ns);
        let role = match b - a {
            less if less < 0.0 => TextRole::Good,
            more if more > 0.0 => TextRole::Bad,
            _ => TextRole::Plain,
        };
        let [calls_a, calls_b] = calls.map_or(Default::default(), |calls| per(calls).map(figure));
        table.row([
            tenths(a).into(),
            tenths(b).into(),
            TextCell(signed(b - a, tenths), role),
            calls_a.into(),
            calls_b.into(),
            name,
        ]);
    };
    let (shown, more) = explained.rows.split_at(top.min(explained.rows.len()));
    for function in shown {
        let only = match only(function) {
            Some(side) => format!("  only here: {side}"),
            None => String::new(),
        };
        let several = if function.symbols.iter().any(|names| !names.is_empty()) { " *" } else { "" };
        let name = format!("{}{several}{only}", printable(&function.name));
        row(
            [function.self_ticks(0), function.self_ticks(1)],
            Some([function.calls(0), function.calls(1)]),
            name.into(),
        );
    }
    if !more.is_empty() {
        let sum = |of: fn(&FunctionDifference, usize) -> i128| {
            [0, 1].map(|side| more.iter().map(|row| of(row, side)).sum())
        };
        let name = format!("{} more functions (--top)", grouped(more.len() as u64));
        row(
            sum(FunctionDifference::self_ticks),
            Some(sum(FunctionDifference::calls)),
            TextCell(name, TextRole::Faint),
        );
    }
    row(explained.rest, None, TextCell("rest".into(), TextRole::Faint));
    let times = sides.map(|side| i128::from(side.anatomy.all.ns.sum));
    row(times, None, TextCell("total".into(), TextRole::Head));
    table
}

/// Names the profile that a function is in, if it is not in both.
pub(super) fn only(row: &FunctionDifference) -> Option<&'static str> {
    match row.totals {
        [Some(_), None] => Some("A"),
        [None, Some(_)] => Some("B"),
        _ => None,
    }
}
