//! Flat profile of gprof: self time and calls of each function, greatest time first (McKusick,
//! "Using gprof to Tune the 4.2BSD Kernel", 2.1.1).

use super::{entry, Entry, Report};
use crate::call_graph::{GraphListing, GraphOptions, Propagation};
use kerntune_table::columns::{Alignment, TableBuilder, TextCell};
use crate::head::{threads_line, JsonHead};
use kerntune_table::TextRole;
use crate::unit::{DisplayUnit, TickUnit};
use crate::{sampled, Result, Style, ThreadFilter};
use clap::Args;
use kerntune_analyze::graph::GraphFunction;
use kerntune_table::number::{fixed, grouped};
use kerntune_profile::{Profile, Symbol};
use serde::Serialize;

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-flat/3";

/// Registry entry of `kerntune report PROFILE flat`.
pub const ENTRY: Entry = entry::<FlatOptions>("flat", 2);

/// Each function's self time and calls, greatest time first (gprof's flat profile)
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct FlatOptions {
    /// Options shared with the call graph.
    #[command(flatten)]
    pub graph: GraphOptions,
}

/// Row of the flat profile, with the self time of it and of all rows before.
struct FlatRow<'a> {
    function: usize,
    of: &'a GraphFunction,
    cumulative_ns: u64,
}

/// Returns the selected rows in order, and the number of functions that ran.
fn rows<'a>(listing: &'a GraphListing, options: &GraphOptions, most: usize) -> (Vec<FlatRow<'a>>, usize) {
    let all = &listing.graph.functions;
    let mut order: Vec<usize> = (0..all.len()).filter(|at| listing.graph.ran(*at)).collect();
    order.sort_by(|&a, &b| {
        let (x, y) = (&all[a], &all[b]);
        (y.self_ns, y.calls).cmp(&(x.self_ns, x.calls)).then_with(|| x.name.cmp(&y.name)).then(a.cmp(&b))
    });
    let ran = order.len();
    let mut cumulative_ns: u64 = 0;
    let rows = order.into_iter().map(|function| {
        cumulative_ns = cumulative_ns.saturating_add(all[function].self_ns);
        FlatRow { function, of: &all[function], cumulative_ns }
    });
    let wanted = |row: &FlatRow| {
        listing.is_chosen(row.function) && listing.percent(row.of.self_ns) >= options.min_percent
    };
    (rows.filter(wanted).take(most).collect(), ran)
}

/// Returns the rounded time per call; `None` without calls.
fn per_call(ns: u64, calls: u64) -> Option<u64> {
    ns.saturating_add(calls / 2).checked_div(calls)
}

/// Returns self and total time per call. For sampled times, all time is divided by all calls, as in
/// gprof. For measured calls, only those that ended count; `None` if their total time is unknown.
fn each_call(listing: &GraphListing, of: &GraphFunction) -> [Option<u64>; 2] {
    if listing.graph.propagation == Propagation::Counts {
        return [of.self_ns, of.total_ns()].map(|ns| per_call(ns, of.calls));
    }
    let total = match of.cycle {
        None => per_call(of.elapsed_ns, of.ended),
        Some(_) if !has_open_calls(of) => per_call(of.total_ns(), of.ended),
        // Total times within a cycle contain each other.
        Some(_) => None,
    };
    [per_call(of.ended_self_ticks, of.ended), total]
}

/// Checks whether calls did not end here, or ended but began elsewhere.
fn has_open_calls(of: &GraphFunction) -> bool {
    (of.calls, of.self_calls, of.self_ns) != (of.ended, of.self_ended, of.ended_self_ticks)
}

/// Formats calls: `10`, or `10+4` for ten calls by others and four recursive ones; empty for none.
pub(crate) fn called(calls: u64, self_calls: u64) -> String {
    match (calls, self_calls) {
        (0, 0) => String::new(),
        (calls, 0) => grouped(calls),
        (calls, own) => format!("{}+{}", grouped(calls), grouped(own)),
    }
}

/// JSON document of this report; [`SCHEMA`] names its version.
#[derive(Serialize)]
struct FlatReport<'a> {
    #[serde(flatten)]
    head: JsonHead<'a>,
    propagation: &'static str,
    #[serde(rename = "total")]
    total_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    sampled: Option<sampled::JsonSampled<'a>>,
    functions: Vec<JsonFlatFunction<'a>>,
    never_called: Option<Vec<NeverCalled<'a>>>,
}

#[derive(Serialize)]
struct JsonFlatFunction<'a> {
    index: Option<usize>,
    name: &'a str,
    file: Option<&'a str>,
    cycle: Option<usize>,
    percent: f64,
    #[serde(rename = "cumulative")]
    cumulative_ns: u64,
    #[serde(rename = "self")]
    self_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "error")]
    error_ns: Option<u64>,
    #[serde(rename = "descendants")]
    descendants_ns: u64,
    calls: Option<u64>,
    self_calls: u64,
    ended: u64,
    self_ended: u64,
    #[serde(rename = "ended_self")]
    ended_self_ticks: u64,
    #[serde(rename = "elapsed")]
    elapsed_ns: u64,
}

/// Function that never ran.
#[derive(Serialize)]
pub(crate) struct NeverCalled<'a> {
    name: &'a str,
    file: Option<&'a str>,
}

/// Returns the functions of `--never-called` that never ran; `None` without the option.
pub(crate) fn never<'a>(
    listing: &GraphListing<'a>,
    options: &GraphOptions,
) -> Result<Option<Vec<NeverCalled<'a>>>> {
    let Some(set) = &options.never_called else { return Ok(None) };
    let never = |symbol: &'a Symbol| NeverCalled { name: &symbol.name, file: symbol.file.as_deref() };
    Ok(Some(listing.never_called(set)?.0.into_iter().map(never).collect()))
}

/// Renders the number of functions that are not shown.
fn more(shown: usize, ran: usize, options: &GraphOptions, style: Style) -> String {
    if shown >= ran || !options.function.is_empty() {
        return String::new();
    }
    style.paint(TextRole::Faint, &format!("{} more functions (--top)\n", grouped((ran - shown) as u64)))
}

/// Builds the table of a sampled profile, without times of single calls; calls only if counted by
/// other means.
fn sampled_table(
    profile: &Profile,
    listing: &GraphListing,
    rows: &[FlatRow],
    unit: DisplayUnit,
) -> TableBuilder {
    let head = |head: &str| format!("{head}\n{}", unit.name());
    let has_calls = sampled::has_calls(profile);
    let heads = [
        ("%\ntime".to_string(), Alignment::Right),
        (head("cumulative"), Alignment::Right),
        (head("self"), Alignment::Right),
        (head(&format!("{} self", sampled::ERROR)), Alignment::Right),
    ];
    let counted = has_calls.then(|| ("calls".to_string(), Alignment::Right));
    let rest = [(head("total"), Alignment::Right), ("name".to_string(), Alignment::Left)];
    let heads: Vec<(String, Alignment)> = heads.into_iter().chain(counted).chain(rest).collect();
    let mut table = TableBuilder::with(heads.iter().map(|(head, side)| (head.as_str(), *side)));
    for row in rows {
        let mut cells: Vec<TextCell> = vec![
            fixed(listing.percent(row.of.self_ns), 2).into(),
            unit.format(row.cumulative_ns).into(),
            unit.format(row.of.self_ns).into(),
            sampled::error(profile, row.of.self_ns, unit).into(),
        ];
        if has_calls {
            cells.push(called(row.of.calls, row.of.self_calls).into());
        }
        cells.extend([unit.format(row.of.total_ns()).into(), listing.label(row.function).into()]);
        table.row_of(cells);
    }
    table
}

impl Report for FlatOptions {
    fn thread_filter(&self) -> Option<&ThreadFilter> {
        Some(&self.graph.threads)
    }

    fn text(&self, profile: &Profile, style: Style) -> Result<String> {
        let options = &self.graph;
        let listing = GraphListing::new(profile, options)?;
        let (rows, ran) = rows(&listing, options, options.most_in_text());
        let total = listing.graph.total_ns;
        let mut out = threads_line(&options.threads);
        out += &format!(
            "Time in functions    = {}  ({} functions)\n\n",
            TickUnit::of(profile).whole(total),
            grouped(ran as u64)
        );
        let unit = listing.unit(options, rows.iter().map(|row| row.cumulative_ns).max().unwrap_or(0));
        if sampled::is(profile) {
            out += &sampled_table(profile, &listing, &rows, unit).render(style);
            out += &more(rows.len(), ran, options, style);
            out += &listing.never_called_text(options)?;
            out += &listing.notes(style);
            return Ok(out);
        }
        let each: Vec<[Option<u64>; 2]> = rows.iter().map(|row| each_call(&listing, row.of)).collect();
        let call =
            TickUnit::of(profile).row_unit(each.iter().flatten().flatten().copied().max().unwrap_or(0));
        let head = |head: &str, unit: DisplayUnit| format!("{head}\n{}", unit.name());
        let measured = listing.graph.propagation == Propagation::Exact;
        let open = measured && rows.iter().any(|row| has_open_calls(row.of));
        let (cumulative, own) = (head("cumulative", unit), head("self", unit));
        let per = ["self", "total"].map(|word| format!("{word}\n{}/call", call.name()));
        let ended = open.then_some(("ended", Alignment::Right));
        let heads = [
            ("%\ntime", Alignment::Right),
            (cumulative.as_str(), Alignment::Right),
            (&own, Alignment::Right),
        ];
        let rest =
            [(per[0].as_str(), Alignment::Right), (&per[1], Alignment::Right), ("name", Alignment::Left)];
        let mut table = TableBuilder::with(
            heads.into_iter().chain([("calls", Alignment::Right)]).chain(ended).chain(rest),
        );
        for (row, each) in rows.iter().zip(each) {
            let [own, total] = each.map(|ns| TextCell::from(ns.map_or(String::new(), |ns| call.format(ns))));
            let mut cells = vec![
                fixed(listing.percent(row.of.self_ns), 2).into(),
                unit.format(row.cumulative_ns).into(),
                unit.format(row.of.self_ns).into(),
                called(row.of.calls, row.of.self_calls).into(),
            ];
            if open {
                let ended = match has_open_calls(row.of) {
                    true if row.of.ended + row.of.self_ended == 0 => "0".into(),
                    true => called(row.of.ended, row.of.self_ended),
                    false => String::new(),
                };
                cells.push(ended.into());
            }
            cells.extend([own, total, listing.label(row.function).into()]);
            table.row_of(cells);
        }
        out += &table.render(style);
        if open {
            out += &style.paint(TextRole::Faint, super::functions::ENDED);
            out.push('\n');
        }
        out += &more(rows.len(), ran, options, style);
        out += &listing.never_called_text(options)?;
        out += &listing.notes(style);
        Ok(out)
    }

    fn json(&self, profile: &Profile) -> Result<String> {
        let options = &self.graph;
        let listing = GraphListing::new(profile, options)?;
        let (rows, _) = rows(&listing, options, options.most_in_json());
        let function = |row: &FlatRow| {
            let GraphFunction { self_ns, descendants_ns, calls, self_calls, .. } = *row.of;
            let GraphFunction { ended, self_ended, ended_self_ticks, elapsed_ns, .. } = *row.of;
            JsonFlatFunction {
                index: listing.number(row.function),
                name: &listing.graph.functions[row.function].name,
                file: listing.graph.functions[row.function].file.as_deref(),
                cycle: row.of.cycle.map(|cycle| cycle + 1),
                percent: listing.percent(self_ns),
                cumulative_ns: row.cumulative_ns,
                self_ns,
                error_ns: sampled::error_ns(profile, self_ns),
                descendants_ns,
                calls: sampled::calls_of(profile, calls.saturating_add(self_calls)).map(|_| calls),
                self_calls,
                ended,
                self_ended,
                ended_self_ticks,
                elapsed_ns,
            }
        };
        crate::to_json(&FlatReport {
            head: JsonHead::new(SCHEMA, profile, &options.region).of(&options.threads),
            propagation: listing.graph.propagation.as_str(),
            total_ns: listing.graph.total_ns,
            sampled: sampled::json(profile),
            functions: rows.iter().map(function).collect(),
            never_called: never(&listing, options)?,
        })
    }
}
