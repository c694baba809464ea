//! Two profiles side by side: figures of the operation, and what explains the difference, function by function.

use super::{head, Shown};
use crate::columns::{Cell, Columns, Side};
use crate::style::{printable, Role, Style};
use crate::{health, Error, Result};
use kerntune_analyze::anatomy::{Spread, Spreads};
use kerntune_compare::number::{change, figure, fixed, grouped};
use kerntune_profile::{
    difference, FunctionDifference, FunctionTotals, Instructions, KernelId, Nanoseconds, Profile,
    RegionStats, Tables,
};
use std::collections::BTreeMap;

/// Functions of both, what explains most of the difference per operation first.
pub(super) struct Explained {
    pub rows: Vec<FunctionDifference>,
    /// Time of both that no row has: 0.
    pub rest: [i128; 2],
}

/// Explains the difference.
///
/// # Errors
/// [`Error::Sum`] if the rows do not sum to the times of both: an error of kerntune's.
pub(super) fn explain(sides: [&Shown; 2]) -> Result<Explained> {
    let profiles = sides.map(of_operation);
    let found = difference(&profiles[0], &profiles[1]);
    let times = sides.map(|side| i128::from(side.anatomy.all.ns.sum));
    let sum = |side: usize| -> i128 { found.functions.iter().map(|row| row.net(side)).sum() };
    let rest = [times[0] - sum(0), times[1] - sum(1)];
    if rest != [0, 0] {
        let whole = times[1] - times[0];
        return Err(Error::Sum { parts: whole - (rest[1] - rest[0]), whole });
    }
    let calls = sides.map(|side| i128::from(side.calls()));
    // Exact: b/m − a/n has the order of bn − am.
    let weight = |row: &FunctionDifference| (row.net(1) * calls[0] - row.net(0) * calls[1]).unsigned_abs();
    let mut rows = found.functions;
    rows.sort_by(|a, b| {
        let names = |row: &FunctionDifference| (row.name.clone(), row.file.clone());
        weight(b).cmp(&weight(a)).then_with(|| names(a).cmp(&names(b)))
    });
    Ok(Explained { rows, rest })
}

/// A profile of the operation alone, for who compares profiles: one region, and what each function did in all calls.
fn of_operation(shown: &Shown) -> Profile {
    let mut totals: BTreeMap<_, FunctionTotals> = BTreeMap::new();
    for node in &shown.anatomy.nodes {
        let sum = totals.entry(node.function).or_insert(FunctionTotals::none(node.function));
        sum.calls += node.all.whole.calls;
        sum.net_ns += Nanoseconds(node.all.whole.net_ns);
    }
    let (time, none) = (Nanoseconds(shown.anatomy.all.ns.sum), Nanoseconds::ZERO);
    let region = RegionStats {
        region: 0,
        name: String::new(),
        begin_ns: none,
        elapsed_ns: time,
        busy_ns: time,
        idle_ns: none,
        user_ns: none,
        unattributed_ns: none,
        operations: shown.calls(),
        depth: 0,
        kernel_instructions: Instructions::ZERO,
        user_instructions: Instructions::ZERO,
        kernel_taken_branches: 0,
        user_taken_branches: 0,
        kernel_l1i_misses: 0,
        user_l1i_misses: 0,
        kernel_itlb_misses: 0,
        user_itlb_misses: 0,
    };
    let tables = Tables {
        symbols: shown.profile.tables.symbols.clone(),
        functions: totals.into_values().map(|totals| totals.row(0)).collect(),
        regions: vec![region],
        ..Tables::default()
    };
    Profile { manifest: shown.profile.manifest.clone(), tables }
}

/// The figures of both, then the functions, as text.
///
/// # Errors
/// No call of one of them was seen whole, or [`Error::Sum`].
pub fn text_against(sides: [&Shown; 2], style: Style) -> Result<String> {
    sides[0].check()?;
    sides[1].check()?;
    let names = sides.map(|side| side.name(side.function));
    let name = if names[0] == names[1] { names[0].clone() } else { names.join(" and ") };
    let mut out = style.paint(Role::Head, &format!("Anatomy of {name}")) + "\n\n";
    out += &figures(sides).render(style);
    out.push('\n');
    let explained = explain(sides)?;
    let top = sides[0].top.unwrap_or(crate::TOP);
    out += &table(sides, &explained, top).render(style);
    if explained.rows.iter().take(top).any(|row| row.symbols.iter().any(|names| !names.is_empty())) {
        let note = "*  copies and pieces that the compiler made in one kernel only are one row with their function\n";
        out += &style.paint(Role::Faint, note);
    }
    for (which, side) in ["A", "B"].into_iter().zip(sides) {
        for (what, count) in head::left_out(side.anatomy) {
            out += &style.paint(Role::Faint, &format!("{which}: {}: {count}\n", what.to_lowercase()));
        }
        for note in health::notes(side.profile) {
            out += &format!("{}  {which}: {}\n", style.paint(Role::Bad, "note"), printable(&note));
        }
    }
    Ok(out)
}

fn figures(sides: [&Shown; 2]) -> Columns {
    let mut table = Columns::new([
        ("", Side::Left),
        ("A", Side::Right),
        ("B", Side::Right),
        ("B - A", Side::Right),
        ("%", Side::Right),
    ]);
    let mut words = |head: &str, of: &dyn Fn(&Shown) -> String| {
        let [a, b] = sides.map(|side| Cell::from(printable(&of(side))));
        table.row([Cell(head.into(), Role::Head), a, b, "".into(), "".into()]);
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
        table.row([Cell(head, Role::Head), write(a).into(), write(b).into(), difference, percent.into()]);
    };
    let mut spread = |what: &str, of: &dyn Fn(&Spreads) -> Spread, before: bool| {
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

fn mean(spread: &Spread) -> f64 {
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

/// With its sign; a change that is not zero keeps it where it rounds to zero.
fn signed(value: f64, write: fn(f64) -> String) -> String {
    let sign = match value {
        _ if value > 0.0 => "+",
        _ if value < 0.0 => "-",
        _ => "",
    };
    format!("{sign}{}", write(value.abs()))
}

fn table(sides: [&Shown; 2], explained: &Explained, top: usize) -> Columns {
    let unit = if sides[0].profile.manifest.exact { "instr." } else { "ns" };
    let heads = ["self A", "self B", "B - A"].map(|head| format!("{head}\n{unit}/op"));
    let mut table = Columns::new([
        (heads[0].as_str(), Side::Right),
        (heads[1].as_str(), Side::Right),
        (heads[2].as_str(), Side::Right),
        ("calls A\n/op", Side::Right),
        ("calls B\n/op", Side::Right),
        ("function", Side::Left),
    ]);
    let operations = sides.map(|side| side.calls() as f64);
    let per = |values: [i128; 2]| [values[0] as f64 / operations[0], values[1] as f64 / operations[1]];
    let mut row = |self_ns: [i128; 2], calls: Option<[i128; 2]>, name: Cell| {
        let [a, b] = per(self_ns);
        let role = match b - a {
            less if less < 0.0 => Role::Good,
            more if more > 0.0 => Role::Bad,
            _ => Role::Plain,
        };
        let [calls_a, calls_b] = calls.map_or(Default::default(), |calls| per(calls).map(figure));
        table.row([
            tenths(a).into(),
            tenths(b).into(),
            Cell(signed(b - a, tenths), role),
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
        row([function.net(0), function.net(1)], Some([function.calls(0), function.calls(1)]), name.into());
    }
    if !more.is_empty() {
        let sum = |of: fn(&FunctionDifference, usize) -> i128| {
            [0, 1].map(|side| more.iter().map(|row| of(row, side)).sum())
        };
        let name = format!("{} more functions (--top)", grouped(more.len() as u64));
        row(sum(FunctionDifference::net), Some(sum(FunctionDifference::calls)), Cell(name, Role::Faint));
    }
    row(explained.rest, None, Cell("rest".into(), Role::Faint));
    let times = sides.map(|side| i128::from(side.anatomy.all.ns.sum));
    row(times, None, Cell("total".into(), Role::Head));
    table
}

/// In which of the two a function is, if it is not in both.
pub(super) fn only(row: &FunctionDifference) -> Option<&'static str> {
    match row.totals {
        [Some(_), None] => Some("A"),
        [None, Some(_)] => Some("B"),
        _ => None,
    }
}
