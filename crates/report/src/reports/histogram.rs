//! Distribution of a function's call durations: a log-scaled histogram with percentiles.

use super::{entry, Entry, Report, Selection};
use crate::head::{self, threads_line};
use crate::tally::{range, BucketTally, HistogramRow, PercentileRange};
use crate::unit::{seconds_at, TickUnit};
use crate::view::scope;
use crate::{health, names, Error, Result, ThreadFilter};
use clap::Args;
use kerntune_profile::{CallKind, FunctionIndex, FunctionTotals, Profile, RegionScope};
use kerntune_table::number::grouped;
use kerntune_table::{printable, Columns, DisplayUnit, Document, Table, TextRole};
use std::collections::BTreeMap;

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-histogram/2";

/// Default number of callers with a histogram of their own in text.
const DEFAULT_CALLERS: usize = 10;

/// Description of the JSON form.
const ABOUT: &str =
    "Elapsed times of the calls of a function. A percentile is known as the bucket that it lies in, bounds \
     included; the slowest call is exact.";

const PERCENTS: [f64; 4] = [50.0, 90.0, 99.0, 99.9];

/// Registry entry of `kerntune report PROFILE histogram`.
pub const ENTRY: Entry = entry::<HistogramOptions>("histogram", 5);

/// Durations of a function's calls: log-scaled histogram with percentiles, by caller if asked
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct HistogramOptions {
    /// Name of the function; NAME@FILE or NAME@0xADDRESS if several functions share it
    pub function: String,
    /// Also show a histogram for each caller, the caller with most calls first
    #[arg(long)]
    pub by_caller: bool,
    /// Region and number of callers.
    #[command(flatten)]
    pub select: Selection,
    /// Threads to which the report is restricted.
    #[command(flatten)]
    pub threads: ThreadFilter,
}

/// Ended calls of one caller, or of all callers.
#[derive(Default)]
struct CallerHistogram {
    caller: String,
    ended: u64,
    made: u64,
    total_ticks: u64,
    tally: BucketTally,
}

struct FunctionHistogram<'a> {
    name: &'a str,
    file: Option<&'a str>,
    totals: FunctionTotals,
    all: CallerHistogram,
    /// Most calls first.
    callers: Vec<CallerHistogram>,
}

fn find<'a>(profile: &'a Profile, options: &HistogramOptions) -> Result<FunctionHistogram<'a>> {
    let tables = &profile.tables;
    let scope = scope(profile, options.select.region.as_deref())?;
    let function = names::function(tables, &options.function)?;
    let mut totals = FunctionTotals::none(function);
    for row in tables.functions.iter().filter(|row| row.function == function && scope.contains(row.region)) {
        totals.add(&FunctionTotals::from(row));
    }
    let mut all = CallerHistogram {
        ended: totals.ended,
        made: totals.calls,
        total_ticks: totals.total_ticks.get(),
        ..CallerHistogram::default()
    };
    let mut callers: BTreeMap<FunctionIndex, CallerHistogram> = BTreeMap::new();
    let wanted = |row: &u32, callee: FunctionIndex| scope.contains(*row) && callee == function;
    for row in tables.arcs.iter().filter(|row| wanted(&row.region, row.callee)) {
        let caller = callers.entry(row.caller).or_insert_with(|| CallerHistogram {
            caller: caller_name(profile, &scope, row.caller, function),
            ..CallerHistogram::default()
        });
        caller.ended = caller.ended.saturating_add(row.ended);
        caller.made = caller.made.saturating_add(row.calls);
        caller.total_ticks = caller.total_ticks.saturating_add(row.total_ticks.get());
    }
    for row in tables.histograms.iter().filter(|row| wanted(&row.region, row.function)) {
        all.tally.add(row.bucket, row.count, row.example_ticks);
        if let Some(caller) = callers.get_mut(&row.caller) {
            caller.tally.add(row.bucket, row.count, row.example_ticks);
        }
    }
    if !options.threads.is_everybody()
        && tables.histograms.is_empty()
        && tables.functions.iter().all(|row| row.ended == 0)
    {
        return Err(Error::NoCallsByThread);
    }
    if all.tally.count() == 0 {
        return Err(Error::NoCalls {
            function: printable(&options.function),
            region: options.select.region.clone(),
        });
    }
    // Calls that did not end have no durations to show.
    let mut callers: Vec<CallerHistogram> = callers.into_values().filter(|caller| caller.ended > 0).collect();
    callers.sort_by(|a, b| b.ended.cmp(&a.ended).then_with(|| a.caller.cmp(&b.caller)));
    let symbol = tables.symbols.get(function.get() as usize);
    Ok(FunctionHistogram {
        name: tables.name(function),
        file: symbol.and_then(|symbol| symbol.file.as_deref()),
        totals,
        all,
        callers,
    })
}

/// Returns a caller's name, or the kind of entry if there is no caller.
fn caller_name(
    profile: &Profile,
    scope: &RegionScope,
    caller: FunctionIndex,
    callee: FunctionIndex,
) -> String {
    if caller.known().is_some() {
        return profile.tables.name(caller).into();
    }
    let arcs = profile.tables.arcs.iter();
    let mut hows = arcs
        .filter(|arc| scope.contains(arc.region) && arc.caller == caller && arc.callee == callee)
        .map(|arc| arc.how);
    let first = hows.next();
    match first.filter(|first| hows.all(|how| how == *first)) {
        Some(CallKind::Interrupt) => "[interrupt]",
        Some(CallKind::Syscall) => "[syscall]",
        Some(CallKind::Exception) => "[exception]",
        _ => "[nothing]",
    }
    .into()
}

fn mean(calls: &CallerHistogram) -> u64 {
    calls.total_ticks.saturating_add(calls.ended / 2).checked_div(calls.ended).unwrap_or(0)
}

/// Formats a number of calls: `2,000 calls`, or `12 calls that ended (14 were made)` if the numbers
/// differ.
fn ended(calls: &CallerHistogram) -> String {
    match (calls.ended, calls.made) {
        (ended, made) if ended == made => format!("{} calls", grouped(ended)),
        (ended, made) => format!("{} calls that ended ({} were made)", grouped(ended), grouped(made)),
    }
}

/// Returns the columns of ended calls. `slowest` is the time of the slowest of all calls.
fn columns<'a>(unit: DisplayUnit, slowest: u64) -> Columns<'a, CallerHistogram> {
    let within = move |calls: &CallerHistogram, percent| {
        let found = calls.tally.percentile(percent, Some(slowest));
        found.map_or("-".to_string(), |found| range(found.from_ns, found.to_ns))
    };
    let mut buckets = HistogramRow::columns("from", "to");
    let help =
        "Point in virtual time at which the first call of the bucket began, for `report PROFILE path`.";
    buckets.add("example_ns", help, |row| row.example_ns);
    let mut columns = Columns::<CallerHistogram>::new();
    columns
        .add("calls", "Calls that ended; all figures but `made` are of these.", |row| row.ended)
        .head("calls");
    columns.add("made", "Calls that were made.", |row| row.made);
    columns.add("elapsed", "Sum of the elapsed times.", |row| row.total_ticks);
    let help = "Medians and higher percentiles.";
    columns.records("percentiles", help, PercentileRange::columns(), move |row| row.percentiles(slowest));
    columns.records("buckets", "Buckets in order.", buckets, |row| row.tally.rows());
    columns.text_only("mean", mean).unit(unit);
    columns.text_only("p50 within", move |row| within(row, 50.0)).unit(unit).right();
    columns.text_only("p99 within", move |row| within(row, 99.0)).unit(unit).right();
    columns.text_only("longest within", move |row| within(row, 100.0)).unit(unit).right();
    columns
}

impl CallerHistogram {
    fn percentiles(&self, slowest: u64) -> Vec<PercentileRange> {
        PERCENTS.iter().filter_map(|percent| self.tally.percentile(*percent, Some(slowest))).collect()
    }
}

impl Report for HistogramOptions {
    fn thread_filter(&self) -> Option<&ThreadFilter> {
        Some(&self.threads)
    }

    fn document<'a>(&'a self, profile: &'a Profile) -> Result<Document<'a>> {
        let FunctionHistogram { name, file, totals, all, callers } = find(profile, self)?;
        let region = self.select.region.as_deref();
        let (slowest, at) = (totals.slowest_ticks.get(), totals.slowest_at_ticks.get());
        let one = TickUnit::of(profile).smallest_unit();
        let unit = one.name();
        let mut document = head::document(SCHEMA, ABOUT, profile, region, Some(&self.threads));
        document.field("function", "Name of the function.", name);
        document.field("file", "Its source file, where known.", file);
        document.field("slowest", "Elapsed time of the slowest call.", slowest);
        document.field("slowest_at_ns", "Point in virtual time at which the slowest call began.", at);
        document.fields(&columns(one, slowest), &all);
        let place = file.map_or(String::new(), |file| format!(" ({})", printable(file)));
        let region = region.map_or(String::new(), |name| format!(" in region {}", printable(name)));
        document.text(threads_line(&self.threads));
        document.painted(TextRole::Head, printable(name));
        document.text(format!("{place}: elapsed time of {}{region}\n\n", ended(&all)));
        let mut line = |word: &str, text: String| {
            document.painted(TextRole::Head, format!("{word:<6}"));
            document.text(format!("  {text}\n"));
        };
        line("mean", format!("{} {unit}", grouped(mean(&all))));
        for PercentileRange { percent, from_ns, to_ns } in all.percentiles(slowest) {
            let within = if from_ns == to_ns { "" } else { "within " };
            line(&format!("p{percent}"), format!("{within}{} {unit}", range(from_ns, to_ns)));
        }
        line("max", format!("{} {unit}, began at {}", grouped(slowest), seconds_at(at)));
        document.table(all.tally.to_table(unit, "calls"));
        if self.by_caller {
            document.text("\n");
        }
        let shown = self.select.top.unwrap_or(DEFAULT_CALLERS).min(callers.len());
        let histogram = |row: &CallerHistogram| {
            let title = format!("from {}, {}", printable(&row.caller), ended(row));
            row.tally.to_table(unit, "calls").title(TextRole::Head, title)
        };
        let histograms: Vec<_> = callers.iter().take(shown).map(histogram).collect();
        let rest = callers.len() - shown;
        let mut columns = columns(one, slowest);
        let help = "Name of the caller; without one `[interrupt]`, `[syscall]`, `[exception]`, or \
                    `[nothing]` if calls came in several ways.";
        columns.add("caller", help, |row| row.caller.clone()).head("caller");
        document.table(
            Table::new("callers", callers, columns)
                .help("With `--by-caller`, else null: callers, most calls first.")
                .top(self.select.top)
                .default_rows(DEFAULT_CALLERS)
                .without_rest()
                .null_unless(self.by_caller),
        );
        if self.by_caller {
            histograms.into_iter().for_each(|table| document.table(table));
            document.rest(rest, "callers");
        }
        health::add(&mut document, profile);
        Ok(document)
    }
}
