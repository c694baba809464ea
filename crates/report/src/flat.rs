//! The flat profile of gprof: each function's own time and calls, greatest time first
//! (McKusick, "Using gprof to Tune the 4.2BSD Kernel", 2.1.1).

use crate::call_graph::{GraphOptions, Listing};
use crate::columns::{Cell, Columns, Side};
use crate::head::Head;
use crate::style::Role;
use crate::unit::{seconds, TimeUnit};
use crate::{Result, Style};
use kerntune_analyze::graph::Function;
use kerntune_compare::number::{fixed, grouped};
use kerntune_profile::{Profile, Symbol};
use serde::Serialize;

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-flat/1";

/// A function that is shown, and the own time of it and of all before it.
struct Row<'a> {
    function: usize,
    of: &'a Function,
    cumulative_ns: u64,
}

/// The rows that are wanted in order, and how many functions ran.
fn rows<'a>(listing: &'a Listing, options: &GraphOptions) -> (Vec<Row<'a>>, usize) {
    let all = &listing.graph.functions;
    let mut order: Vec<usize> = (0..all.len()).filter(|at| !all[*at].is_idle()).collect();
    order.sort_by(|&a, &b| {
        let (x, y) = (&all[a], &all[b]);
        (y.self_ns, y.calls).cmp(&(x.self_ns, x.calls)).then_with(|| x.name.cmp(&y.name)).then(a.cmp(&b))
    });
    let ran = order.len();
    let mut cumulative_ns: u64 = 0;
    let rows = order.into_iter().map(|function| {
        cumulative_ns = cumulative_ns.saturating_add(all[function].self_ns);
        Row { function, of: &all[function], cumulative_ns }
    });
    let wanted =
        |row: &Row| listing.is_chosen(row.function) && listing.percent(row.of.self_ns) >= options.min_percent;
    (rows.filter(wanted).take(options.top.unwrap_or(usize::MAX)).collect(), ran)
}

/// A time per call, rounded; nothing without calls.
fn per_call(ns: u64, calls: u64) -> Option<u64> {
    ns.saturating_add(calls / 2).checked_div(calls)
}

/// `10`, or `10+4` for ten calls by others and four by itself; nothing for none.
pub(crate) fn called(calls: u64, self_calls: u64) -> String {
    match (calls, self_calls) {
        (0, 0) => String::new(),
        (calls, 0) => grouped(calls),
        (calls, own) => format!("{}+{}", grouped(calls), grouped(own)),
    }
}

/// The table as text.
pub fn table(profile: &Profile, options: &GraphOptions, style: Style) -> Result<String> {
    let listing = Listing::new(profile, options)?;
    let (rows, ran) = rows(&listing, options);
    let total = listing.graph.total_ns;
    let mut out =
        format!("Time in functions    = {}  ({} functions)\n\n", seconds(total), grouped(ran as u64));
    let unit = listing.unit(options, rows.iter().map(|row| row.cumulative_ns).max().unwrap_or(0));
    let totals = rows.iter().filter_map(|row| per_call(row.of.total_ns(), row.of.calls));
    let call = TimeUnit::for_largest(totals.max().unwrap_or(0));
    let head = |head: &str, unit: TimeUnit| format!("{head}\n{}", unit.name());
    let mut table = Columns::new([
        ("%\ntime", Side::Right),
        (head("cumulative", unit).as_str(), Side::Right),
        (head("self", unit).as_str(), Side::Right),
        ("calls", Side::Right),
        (format!("self\n{}/call", call.name()).as_str(), Side::Right),
        (format!("total\n{}/call", call.name()).as_str(), Side::Right),
        ("name", Side::Left),
    ]);
    for row in &rows {
        let each = |ns: u64| Cell::from(per_call(ns, row.of.calls).map_or("".into(), |ns| call.format(ns)));
        table.row([
            fixed(listing.percent(row.of.self_ns), 2).into(),
            unit.format(row.cumulative_ns).into(),
            unit.format(row.of.self_ns).into(),
            called(row.of.calls, row.of.self_calls).into(),
            each(row.of.self_ns),
            each(row.of.total_ns()),
            listing.label(row.function).into(),
        ]);
    }
    out += &table.render(style);
    if rows.len() < ran && options.functions.is_empty() {
        let rest = format!("{} more functions (--top)\n", grouped((ran - rows.len()) as u64));
        out += &style.paint(Role::Faint, &rest);
    }
    out += &listing.never_called_text(options)?;
    out += &listing.notes(style);
    Ok(out)
}

#[derive(Serialize)]
struct Json<'a> {
    #[serde(flatten)]
    head: Head<'a>,
    propagation: &'static str,
    total_ns: u64,
    functions: Vec<JsonFunction<'a>>,
    never_called: Option<Vec<Never<'a>>>,
}

#[derive(Serialize)]
struct JsonFunction<'a> {
    index: Option<usize>,
    name: &'a str,
    file: Option<&'a str>,
    cycle: Option<usize>,
    percent: f64,
    cumulative_ns: u64,
    self_ns: u64,
    descendants_ns: u64,
    calls: u64,
    self_calls: u64,
}

/// A function that never ran.
#[derive(Serialize)]
pub(crate) struct Never<'a> {
    name: &'a str,
    file: Option<&'a str>,
}

/// The functions of the chosen set that never ran; none if no set was chosen.
pub(crate) fn never<'a>(listing: &Listing<'a>, options: &GraphOptions) -> Result<Option<Vec<Never<'a>>>> {
    let Some(set) = &options.never_called else { return Ok(None) };
    let never = |symbol: &'a Symbol| Never { name: &symbol.name, file: symbol.file.as_deref() };
    Ok(Some(listing.never_called(set)?.0.into_iter().map(never).collect()))
}

/// The same as JSON (`docs/json.md`), with a newline at its end.
pub fn json(profile: &Profile, options: &GraphOptions) -> Result<String> {
    let listing = Listing::new(profile, options)?;
    let (rows, _) = rows(&listing, options);
    let function = |row: &Row| {
        let Function { self_ns, descendants_ns, calls, self_calls, .. } = *row.of;
        JsonFunction {
            index: listing.number(row.function),
            name: &listing.graph.functions[row.function].name,
            file: listing.graph.functions[row.function].file.as_deref(),
            cycle: row.of.cycle.map(|cycle| cycle + 1),
            percent: listing.percent(self_ns),
            cumulative_ns: row.cumulative_ns,
            self_ns,
            descendants_ns,
            calls,
            self_calls,
        }
    };
    crate::to_json(&Json {
        head: Head::new(SCHEMA, profile, &options.region),
        propagation: listing.graph.propagation.word(),
        total_ns: listing.graph.total_ns,
        functions: rows.iter().map(function).collect(),
        never_called: never(&listing, options)?,
    })
}
