//! Flat profile of gprof: self time and calls of each function, greatest time first (McKusick,
//! "Using gprof to Tune the 4.2BSD Kernel", 2.1.1).

use super::{entry, Entry, Report};
use crate::call_graph::{GraphListing, GraphOptions, Propagation};
use crate::head::threads_line;
use crate::unit::TickUnit;
use crate::{health, sampled, Result, ThreadFilter};
use clap::Args;
use kerntune_analyze::graph::GraphFunction;
use kerntune_profile::Profile;
use kerntune_table::number::grouped;
use kerntune_table::{Columns, Document, Table};

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-flat/3";

/// Registry entry of `kerntune report PROFILE flat`.
pub const ENTRY: Entry = entry::<FlatOptions>("flat", 2);

/// Description of the JSON form.
const ABOUT: &str = "gprof's flat profile.";

/// Each function's self time and calls, greatest time first (gprof's flat profile)
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct FlatOptions {
    /// Options shared with the call graph.
    #[command(flatten)]
    pub graph: GraphOptions,
}

struct FlatRow {
    /// Number in the call graph.
    index: Option<usize>,
    label: String,
    function: GraphFunction,
    percent: f64,
    /// Self time of this function and of all before it, shown or not.
    cumulative_ticks: u64,
    /// Self and total time per call.
    per_call: [Option<u64>; 2],
}

/// Returns the selected rows in order, and the number of functions that ran.
fn rows(listing: &GraphListing, options: &GraphOptions) -> (Vec<FlatRow>, usize) {
    let all = &listing.graph.functions;
    let mut order: Vec<usize> = (0..all.len()).filter(|at| listing.graph.ran(*at)).collect();
    order.sort_by(|&a, &b| {
        let (x, y) = (&all[a], &all[b]);
        (y.self_ns, y.calls).cmp(&(x.self_ns, x.calls)).then_with(|| x.name.cmp(&y.name)).then(a.cmp(&b))
    });
    let ran = order.len();
    let mut cumulative_ticks: u64 = 0;
    let rows = order.into_iter().filter_map(|at| {
        let function = &all[at];
        cumulative_ticks = cumulative_ticks.saturating_add(function.self_ns);
        let percent = listing.percent(function.self_ns);
        (listing.is_chosen(at) && percent >= options.min_percent).then(|| FlatRow {
            index: listing.number(at),
            label: listing.label(at),
            function: function.clone(),
            percent,
            cumulative_ticks,
            per_call: each_call(listing, function),
        })
    });
    (rows.collect(), ran)
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

impl Report for FlatOptions {
    fn thread_filter(&self) -> Option<&ThreadFilter> {
        Some(&self.graph.threads)
    }

    fn document<'a>(&'a self, profile: &'a Profile) -> Result<Document<'a>> {
        let options = &self.graph;
        let listing = GraphListing::new(profile, options)?;
        let (rows, ran) = rows(&listing, options);
        let mut document = listing.document(SCHEMA, ABOUT, options);
        let total = TickUnit::of(profile).whole(listing.graph.total_ns);
        document.text(threads_line(&options.threads));
        document.line("Time in functions", format!("{total}  ({} functions)\n", grouped(ran as u64)));
        let shown = &rows[..options.max_in_text().min(rows.len())];
        let unit = listing.unit(options, shown.iter().map(|row| row.cumulative_ticks).max().unwrap_or(0));
        let largest = shown.iter().flat_map(|row| row.per_call).flatten().max().unwrap_or(0);
        let call = TickUnit::of(profile).row_unit(largest);
        // Samples have no single calls.
        let sampled = sampled::is(profile);
        let open = !sampled
            && listing.graph.propagation == Propagation::Exact
            && shown.iter().any(|row| has_open_calls(&row.function));
        let mut columns = Columns::<FlatRow>::new();
        columns.add("index", "Number in the call graph.", |row| row.index);
        columns.add("percent", "`self` of `total`.", |row| row.percent).head("%\ntime").decimals(2);
        let help = "`self` of this function and of all before it, shown or not.";
        columns.add("cumulative", help, |row| row.cumulative_ticks).head("cumulative").unit(unit);
        let help = "Time in the function itself.";
        columns.add("self", help, |row| row.function.self_ns).head("self").unit(unit);
        columns
            .add("error", sampled::ERROR_HELP, move |row| sampled::error_ns(profile, row.function.self_ns))
            .head(format!("{} self", sampled::ERROR))
            .unit(unit)
            .only_if(sampled)
            .optional();
        let help = "Calls by others; null where calls were not counted.";
        columns
            .add("calls", help, move |FlatRow { function, .. }| {
                let all = function.calls.saturating_add(function.self_calls);
                sampled::calls_of(profile, all).map(|_| function.calls)
            })
            .head("calls")
            .only_if(sampled::has_calls(profile))
            .text(|row| called(row.function.calls, row.function.self_calls));
        columns.add("self_calls", "Calls by itself.", |row| row.function.self_calls);
        columns
            .add("ended", "Calls by others that ended; 0 where times were sampled.", |row| row.function.ended)
            .head("ended")
            .only_if(open)
            .text(|FlatRow { function, .. }| match has_open_calls(function) {
                true if function.ended + function.self_ended == 0 => "0".into(),
                true => called(function.ended, function.self_ended),
                false => String::new(),
            });
        let help = "Calls by itself that ended; 0 where times were sampled.";
        columns.add("self_ended", help, |row| row.function.self_ended);
        columns.add("ended_self", "`self` of the calls that ended.", |row| row.function.ended_self_ticks);
        let help = "Elapsed time of the calls by others that ended.";
        columns.add("elapsed", help, |row| row.function.elapsed_ns);
        let help = "Time that its callees outside of its cycle hand up.";
        columns.add("descendants", help, |row| row.function.descendants_ns);
        for (at, head) in ["self", "total"].into_iter().enumerate() {
            columns
                .text_only(head, move |row| row.per_call[at])
                .unit(call)
                .head(format!("{head}\n{}/call", call.name()))
                .only_if(!sampled);
        }
        columns.text_only("total", |row| row.function.total_ns()).unit(unit).only_if(sampled);
        columns
            .add("name", "Name in the symbol table.", |row| row.function.name.clone())
            .head("name")
            .text(|row| row.label.clone());
        columns.add("file", "Source file, where known.", |row| row.function.file.clone());
        let help = "Number of the cycle that it is in.";
        columns.add("cycle", help, |row| row.function.cycle.map(|cycle| cycle + 1));
        let rest = if options.function.is_empty() { ran - shown.len() } else { 0 };
        document.table(
            Table::new("functions", rows, columns)
                .help("Functions that ran and were asked for, greatest `self` first.")
                .top(options.select.top)
                .default_rows(options.max_in_text())
                .without_rest(),
        );
        if open {
            document.note(super::functions::ENDED);
        }
        document.rest(rest, "functions");
        listing.add_never_called(&mut document, options)?;
        health::add(&mut document, profile);
        Ok(document)
    }
}
