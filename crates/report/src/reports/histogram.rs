//! Distribution of a function's call durations: a log-scaled histogram with percentiles.

use super::{entry, Entry, Report};
use kerntune_table::columns::{Alignment, TableBuilder};
use crate::head::{threads_line, JsonHead};
use kerntune_table::{printable, TextRole};
use crate::tally::{range, BucketTally, HistogramRow, PercentileRange};
use crate::unit::{seconds_at, TickUnit};
use crate::view::scope;
use crate::{health, names, Error, Result, Style, ThreadFilter};
use clap::Args;
use kerntune_table::number::grouped;
use kerntune_profile::{CallKind, FunctionIndex, FunctionTotals, Profile, RegionScope};
use serde::Serialize;
use std::collections::BTreeMap;

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-histogram/2";

/// Default number of callers with a histogram of their own in text.
const DEFAULT_CALLERS: usize = 10;

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
    /// Show at most N callers [default: 10 in text, all in JSON]
    #[arg(long, value_name = "N", requires = "by_caller")]
    pub top: Option<usize>,
    /// Show only what happened in the regions of this name
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
    /// Threads to which the report is restricted.
    #[command(flatten)]
    pub threads: ThreadFilter,
}

/// Ended calls of one caller, or of all callers.
struct CallerHistogram {
    caller: String,
    calls: u64,
    made: u64,
    elapsed_ns: u64,
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
    let scope = scope(profile, options.region.as_deref())?;
    let function = names::function(tables, &options.function)?;
    let mut totals = FunctionTotals::none(function);
    for row in tables.functions.iter().filter(|row| row.function == function && scope.contains(row.region)) {
        totals.add(&FunctionTotals::from(row));
    }
    let mut all = CallerHistogram {
        caller: String::new(),
        calls: totals.ended,
        made: totals.calls,
        elapsed_ns: totals.total_ticks.get(),
        tally: BucketTally::default(),
    };
    let mut callers: BTreeMap<FunctionIndex, CallerHistogram> = BTreeMap::new();
    let wanted = |row: &u32, callee: FunctionIndex| scope.contains(*row) && callee == function;
    for row in tables.arcs.iter().filter(|row| wanted(&row.region, row.callee)) {
        let caller = callers.entry(row.caller).or_insert_with(|| CallerHistogram {
            caller: caller_name(profile, &scope, row.caller, function),
            calls: 0,
            made: 0,
            elapsed_ns: 0,
            tally: BucketTally::default(),
        });
        caller.calls = caller.calls.saturating_add(row.ended);
        caller.made = caller.made.saturating_add(row.calls);
        caller.elapsed_ns = caller.elapsed_ns.saturating_add(row.total_ticks.get());
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
            region: options.region.clone(),
        });
    }
    // Calls that did not end have no durations to show.
    let mut callers: Vec<CallerHistogram> = callers.into_values().filter(|caller| caller.calls > 0).collect();
    callers.sort_by(|a, b| b.calls.cmp(&a.calls).then_with(|| a.caller.cmp(&b.caller)));
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

fn percentiles(calls: &CallerHistogram, max: Option<u64>) -> Vec<PercentileRange> {
    PERCENTS.iter().filter_map(|percent| calls.tally.percentile(*percent, max)).collect()
}

fn mean(calls: &CallerHistogram) -> u64 {
    calls.elapsed_ns.saturating_add(calls.calls / 2).checked_div(calls.calls).unwrap_or(0)
}

/// Formats a number of calls: `2,000 calls`, or `12 calls that ended (14 were made)` if the numbers
/// differ.
fn ended(calls: &CallerHistogram) -> String {
    match (calls.calls, calls.made) {
        (ended, made) if ended == made => format!("{} calls", grouped(ended)),
        (ended, made) => format!("{} calls that ended ({} were made)", grouped(ended), grouped(made)),
    }
}

fn callers(found: &FunctionHistogram, most: usize, unit: &str) -> TableBuilder {
    let mut table = TableBuilder::new([
        ("calls", Alignment::Right),
        (format!("mean\n{unit}").as_str(), Alignment::Right),
        (format!("p50 within\n{unit}").as_str(), Alignment::Right),
        (format!("p99 within\n{unit}").as_str(), Alignment::Right),
        (format!("longest within\n{unit}").as_str(), Alignment::Right),
        ("caller", Alignment::Left),
    ]);
    for caller in found.callers.iter().take(most) {
        let within = |percent| {
            let p = caller.tally.percentile(percent, Some(found.totals.slowest_ticks.get()));
            p.map_or("-".to_string(), |p| range(p.from_ns, p.to_ns))
        };
        table.row([
            grouped(caller.calls).into(),
            grouped(mean(caller)).into(),
            within(50.0).into(),
            within(99.0).into(),
            within(100.0).into(),
            printable(&caller.caller).into(),
        ]);
    }
    table
}

/// JSON document of this report; [`SCHEMA`] names its version.
#[derive(Serialize)]
struct HistogramReport<'a> {
    #[serde(flatten)]
    head: JsonHead<'a>,
    function: &'a str,
    file: Option<&'a str>,
    #[serde(rename = "slowest")]
    slowest_ticks: u64,
    slowest_at_ns: u64,
    #[serde(flatten)]
    all: JsonCalls<'a>,
    callers: Option<Vec<JsonCalls<'a>>>,
}

#[derive(Serialize)]
struct JsonCalls<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    caller: Option<&'a str>,
    calls: u64,
    made: u64,
    #[serde(rename = "elapsed")]
    elapsed_ns: u64,
    percentiles: Vec<PercentileRange>,
    buckets: Vec<HistogramRow>,
}

impl Report for HistogramOptions {
    fn thread_filter(&self) -> Option<&ThreadFilter> {
        Some(&self.threads)
    }

    fn text(&self, profile: &Profile, style: Style) -> Result<String> {
        let found = find(profile, self)?;
        let place = found.file.map_or(String::new(), |file| format!(" ({})", printable(file)));
        let region =
            self.region.as_ref().map_or(String::new(), |name| format!(" in region {}", printable(name)));
        let mut out = threads_line(&self.threads);
        out += &format!(
            "{}{place}: elapsed time of {}{region}\n\n",
            style.paint(TextRole::Head, &printable(found.name)),
            ended(&found.all),
        );
        let (slowest, at) = (found.totals.slowest_ticks.get(), found.totals.slowest_at_ticks.get());
        let mut line = |word: &str, text: String| {
            out.push_str(&style.paint(TextRole::Head, &format!("{word:<6}")));
            out.push_str(&format!("  {text}\n"));
        };
        let unit = TickUnit::of(profile).smallest_unit().name();
        line("mean", format!("{} {unit}", grouped(mean(&found.all))));
        for p in percentiles(&found.all, Some(slowest)) {
            let word = format!("p{}", p.percent);
            match p.from_ns == p.to_ns {
                true => line(&word, format!("{} {unit}", grouped(p.from_ns))),
                false => line(&word, format!("within {} {unit}", range(p.from_ns, p.to_ns))),
            }
        }
        line("max", format!("{} {unit}, began at {}", grouped(slowest), seconds_at(at)));
        out.push('\n');
        out += &found.all.tally.table(unit, "calls").render(style);
        if self.by_caller {
            out.push('\n');
            let shown = self.top.unwrap_or(DEFAULT_CALLERS);
            out += &callers(&found, shown, unit).render(style);
            for caller in found.callers.iter().take(shown) {
                let head = format!("from {}, {}", printable(&caller.caller), ended(caller));
                out.push_str(&format!("\n{}\n", style.paint(TextRole::Head, &head)));
                out += &caller.tally.table(unit, "calls").render(style);
            }
            if shown < found.callers.len() {
                let rest =
                    format!("{} more callers (--top)\n", grouped((found.callers.len() - shown) as u64));
                out += &style.paint(TextRole::Faint, &rest);
            }
        }
        out += &health::text(profile, style);
        Ok(out)
    }

    fn json(&self, profile: &Profile) -> Result<String> {
        let found = find(profile, self)?;
        fn calls<'a>(of: &'a CallerHistogram, caller: Option<&'a str>, max: Option<u64>) -> JsonCalls<'a> {
            JsonCalls {
                caller,
                calls: of.calls,
                made: of.made,
                elapsed_ns: of.elapsed_ns,
                percentiles: percentiles(of, max),
                buckets: of.tally.rows(),
            }
        }
        let slowest = Some(found.totals.slowest_ticks.get());
        let callers = found.callers.iter().take(self.top.unwrap_or(usize::MAX));
        crate::to_json(&HistogramReport {
            head: JsonHead::new(SCHEMA, profile, &self.region).of(&self.threads),
            function: found.name,
            file: found.file,
            slowest_ticks: found.totals.slowest_ticks.get(),
            slowest_at_ns: found.totals.slowest_at_ticks.get(),
            all: calls(&found.all, None, slowest),
            callers: self.by_caller.then(|| callers.map(|c| calls(c, Some(&c.caller), slowest)).collect()),
        })
    }
}
