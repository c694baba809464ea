//! Table of functions: McRae's Figure 3 (`docs/measuring.md`).

use super::{entry, Entry, Report};
use kerntune_table::columns::{Alignment, TableBuilder, TextCell};
use crate::head::{threads_line, JsonHead};
use kerntune_table::{printable, TextRole};
use crate::unit::{run_time, whole, DisplayUnit, TickUnit};
use crate::view::{FunctionRow, ScopeTimes, ScopeView};
use kerntune_table::share;
use crate::{health, names, sampled, Result, Style, ThreadFilter};
use clap::{Args, ValueEnum};
use kerntune_table::number::{fixed, grouped};
use kerntune_profile::{FunctionTotals, Profile, Ticks};
use serde::Serialize;
use std::cmp::Ordering;

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-functions/3";

/// Remark below a table with the column `ended`.
pub(crate) const ENDED: &str =
    "ended: calls that ended, if their number differs from the calls made here; times of single calls are of \
     those that ended";

/// Sort key of the table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum FunctionSort {
    /// Net (self) time, greatest first.
    #[default]
    #[value(name = "net")]
    SelfTime,
    /// Elapsed (total) time, greatest first.
    #[value(name = "elapsed")]
    Total,
    /// Calls, most first.
    Calls,
    /// Greatest net time of a single call, greatest first.
    Max,
    /// Net time per call that ended, greatest first.
    Avg,
    /// Name, A to Z.
    Name,
}

impl FunctionSort {
    /// Compares rows by this key. Ties are broken by name and file, so that equal profiles give
    /// equal tables.
    fn compare(self, a: &FunctionRow, b: &FunctionRow) -> Ordering {
        let (x, y) = (&a.totals, &b.totals);
        let first = match self {
            FunctionSort::SelfTime => y.self_ticks.cmp(&x.self_ticks),
            FunctionSort::Total => y.total_ticks.cmp(&x.total_ticks),
            FunctionSort::Calls => y.calls.cmp(&x.calls),
            FunctionSort::Max => y.max_ticks.cmp(&x.max_ticks),
            FunctionSort::Avg => y.avg_ticks().cmp(&x.avg_ticks()),
            FunctionSort::Name => Ordering::Equal,
        };
        first.then_with(|| a.name.cmp(&b.name)).then_with(|| a.file.cmp(&b.file))
    }
}

/// Registry entry of `kerntune report PROFILE functions`.
pub const ENTRY: Entry = entry::<FunctionsOptions>("functions", 1);

/// Each function's calls, elapsed and net time (McRae's summary)
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct FunctionsOptions {
    /// Show at most N functions [default: 40 in text, all in JSON]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// Sort by net, elapsed, calls, max, avg or name
    #[arg(long, value_enum, default_value_t, hide_possible_values = true, value_name = "KEY")]
    pub sort: FunctionSort,
    /// Show only this function, those of a pattern with * and ?, or those of a directory or file of
    /// the source (net/ipv4); may be repeated
    #[arg(long, value_name = "NAME|GLOB|DIR")]
    pub function: Vec<String>,
    /// Show only what happened in the regions of this name
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
    /// Threads to which the report is restricted.
    #[command(flatten)]
    pub threads: ThreadFilter,
}

/// Returns the first rows in order, the number of all rows, and the times.
fn selected(
    profile: &Profile,
    options: &FunctionsOptions,
    most: usize,
) -> Result<(Vec<FunctionRow>, usize, ScopeTimes)> {
    let ScopeView { mut functions, times } = ScopeView::new(profile, options.region.as_deref())?;
    let sets = &options.function;
    let wanted = names::chosen(&profile.tables, sets)?;
    functions.retain(|row| sets.is_empty() || wanted.contains(&row.totals.function));
    functions.sort_by(|a, b| options.sort.compare(a, b));
    let all = functions.len();
    functions.truncate(most);
    Ok((functions, all, times))
}

impl Report for FunctionsOptions {
    fn thread_filter(&self) -> Option<&ThreadFilter> {
        Some(&self.threads)
    }

    fn text(&self, profile: &Profile, style: Style) -> Result<String> {
        let (functions, all, times) = selected(profile, self, self.top.unwrap_or(crate::DEFAULT_ROWS))?;
        let mut out = header(profile, &times, self);
        out.push('\n');
        let measure = TickUnit::of(profile);
        let largest = |of: fn(&FunctionTotals) -> Ticks| {
            measure.row_unit(functions.iter().map(|row| of(&row.totals).get()).max().unwrap_or(0))
        };
        let elapsed = largest(|totals| totals.total_ticks);
        let net = largest(|totals| totals.self_ticks);
        let call = largest(|totals| totals.max_ticks);
        let unit = |head: &str, unit: DisplayUnit| format!("{head}\n{}", unit.name());
        // Sampled times have no ends of calls.
        let measured = profile.tables.functions.iter().any(|row| row.ended > 0);
        let open = measured && functions.iter().any(|row| row.totals.has_open_calls());
        let right = |head: &str, of: DisplayUnit| (unit(head, of), Alignment::Right);
        let plain = |head: &str| (head.to_string(), Alignment::Right);
        if sampled::is(profile) {
            out.push_str(&sampled_table(profile, &functions, &times).render(style));
            out.push_str(&rest(all, functions.len(), style));
            out.push_str(&health::text(profile, style));
            return Ok(out);
        }
        let mut heads = vec![right("elapsed", elapsed), right("net", net), plain("calls")];
        if open {
            heads.extend([plain("ended"), right("open net", net)]);
        }
        heads.extend(["max", "avg", "min"].map(|head| right(head, call)));
        heads.extend([plain("% real"), plain("% net"), ("function".into(), Alignment::Left)]);
        let mut table = TableBuilder::with(heads.iter().map(|(head, side)| (head.as_str(), *side)));
        for row in &functions {
            let totals = &row.totals;
            let per_call = |ns: Ticks| {
                TextCell::from(if totals.ended == 0 { "-".into() } else { call.format(ns.get()) })
            };
            let mut cells: Vec<TextCell> = vec![
                elapsed.format(totals.total_ticks.get()).into(),
                net.format(totals.self_ticks.get()).into(),
                grouped(totals.calls).into(),
            ];
            if open {
                let sign = if totals.open_ticks() < 0 { "-" } else { "" };
                let open_self = format!("{sign}{}", net.format(totals.open_ticks().unsigned_abs()));
                cells.extend(match totals.has_open_calls() {
                    true => [grouped(totals.ended).into(), open_self.into()],
                    false => ["".into(), "".into()],
                });
            }
            cells.extend([totals.max_ticks, totals.avg_ticks(), totals.min_ticks].map(per_call));
            cells.extend([
                fixed(share(totals.self_ticks.get(), times.elapsed), 2).into(),
                fixed(share(totals.self_ticks.get(), times.busy), 2).into(),
                printable(&row.name).into(),
            ]);
            table.row_of(cells);
        }
        out.push_str(&table.render(style));
        if open {
            out.push_str(&style.paint(TextRole::Faint, ENDED));
            out.push('\n');
        }
        out.push_str(&rest(all, functions.len(), style));
        out.push_str(&health::text(profile, style));
        Ok(out)
    }

    fn json(&self, profile: &Profile) -> Result<String> {
        let (functions, _, times) = selected(profile, self, self.top.unwrap_or(usize::MAX))?;
        let json = FunctionsReport {
            head: JsonHead::new(SCHEMA, profile, &self.region).of(&self.threads),
            elapsed_ns: times.elapsed,
            busy_ticks: times.busy,
            idle_ns: times.idle,
            user_ticks: times.user,
            unattributed_ticks: times.unattributed,
            events: profile.manifest.events,
            lost_events: profile.manifest.lost_events,
            sampled: sampled::json(profile),
            functions: functions
                .iter()
                .map(|row| JsonFunction {
                    name: &row.name,
                    file: row.file.as_deref(),
                    error_ns: sampled::error_ns(profile, row.totals.self_ticks.get()),
                    calls: sampled::calls_of(profile, row.totals.calls),
                    ended: row.totals.ended,
                    self_ticks: row.totals.self_ticks.get(),
                    ended_self_ticks: row.totals.ended_self_ticks.get(),
                    elapsed_ns: row.totals.total_ticks.get(),
                    max_ns: row.totals.max_ticks.get(),
                    avg_ns: row.totals.avg_ticks().get(),
                    min_ticks: row.totals.min_ticks.get(),
                })
                .collect(),
        };
        crate::to_json(&json)
    }
}

/// Renders the number of functions that are not shown.
fn rest(all: usize, shown: usize, style: Style) -> String {
    match all.saturating_sub(shown) {
        0 => String::new(),
        more => {
            style.paint(TextRole::Faint, &format!("{} more functions (--top)", grouped(more as u64))) + "\n"
        }
    }
}

/// Builds the table of a sampled profile, without times of single calls; calls only if counted by
/// other means.
fn sampled_table(profile: &Profile, functions: &[FunctionRow], times: &ScopeTimes) -> TableBuilder {
    let unit =
        DisplayUnit::for_largest(functions.iter().map(|row| row.totals.total_ticks.get()).max().unwrap_or(0));
    let head = |head: &str| format!("{head}\n{}", unit.name());
    let has_calls = sampled::has_calls(profile);
    let counted = [
        ("calls".to_string(), Alignment::Right),
        (format!("net/call\n{}", DisplayUnit::Nanoseconds.name()), Alignment::Right),
    ];
    let heads = [
        (head("elapsed"), Alignment::Right),
        (head("net"), Alignment::Right),
        (head(&format!("{} net", sampled::ERROR)), Alignment::Right),
        ("samples\nnet".into(), Alignment::Right),
    ];
    let rest = [("% real", Alignment::Right), ("% net", Alignment::Right), ("function", Alignment::Left)];
    let heads: Vec<(String, Alignment)> = heads
        .into_iter()
        .chain(counted.into_iter().filter(|_| has_calls))
        .chain(rest.map(|(head, side)| (head.to_string(), side)))
        .collect();
    let mut table = TableBuilder::with(heads.iter().map(|(head, side)| (head.as_str(), *side)));
    for row in functions {
        let net = row.totals.self_ticks;
        let samples = profile.manifest.sampled.as_ref().map_or(0, |sampled| sampled.samples_in(net));
        let mut cells: Vec<TextCell> = vec![
            unit.format(row.totals.total_ticks.get()).into(),
            unit.format(net.get()).into(),
            sampled::error(profile, net.get(), unit).into(),
            grouped(samples).into(),
        ];
        if has_calls {
            // An estimate from samples: without samples, the time per call is unknown rather than
            // 0.
            let each = net.get().checked_div(row.totals.calls).filter(|_| samples > 0);
            let each = each.map_or(String::new(), |ns| DisplayUnit::Nanoseconds.format(ns));
            cells.extend([sampled::calls(row.totals.calls).into(), each.into()]);
        }
        cells.extend([
            fixed(share(net.get(), times.elapsed), 2).into(),
            fixed(share(net.get(), times.busy), 2).into(),
            printable(&row.name).into(),
        ]);
        table.row_of(cells);
    }
    table
}

fn header(profile: &Profile, times: &ScopeTimes, options: &FunctionsOptions) -> String {
    let manifest = &profile.manifest;
    let mut out = match &options.region {
        Some(region) => format!("Region {}\n", printable(region)),
        None => String::new(),
    };
    out += &threads_line(&options.threads);
    let percent = |ns| format!("({:>6}%)", fixed(share(ns, times.elapsed), 2));
    let line = |head: &str, ns: u64| format!("{head:<20} = {}  {}\n", run_time(profile, ns), percent(ns));
    // Events are not counted by region.
    let events = match &options.region {
        Some(_) => String::new(),
        None => match &manifest.sampled {
            Some(sampled) => {
                format!("({} samples, {} CPUs)", grouped(sampled.samples), grouped(sampled.cpus))
            }
            None => format!("({} events)", grouped(manifest.events)),
        },
    };
    out += &whole(profile, times.elapsed, times.busy, times.idle, &events);
    let user = match TickUnit::of(profile) {
        TickUnit::Instructions => "User instructions",
        TickUnit::Time => "User time",
    };
    out += &line(user, times.user);
    if times.unattributed > 0 {
        out += &line("No function known", times.unattributed);
    }
    out += &format!("{:<20} = {}\n", "Lost events", grouped(manifest.lost_events));
    out
}

/// JSON document of this report; [`SCHEMA`] names its version.
#[derive(Serialize)]
struct FunctionsReport<'a> {
    #[serde(flatten)]
    head: JsonHead<'a>,
    elapsed_ns: u64,
    #[serde(rename = "busy")]
    busy_ticks: u64,
    idle_ns: u64,
    #[serde(rename = "user")]
    user_ticks: u64,
    #[serde(rename = "unattributed")]
    unattributed_ticks: u64,
    events: u64,
    lost_events: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    sampled: Option<sampled::JsonSampled<'a>>,
    functions: Vec<JsonFunction<'a>>,
}

#[derive(Serialize)]
struct JsonFunction<'a> {
    name: &'a str,
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "error")]
    error_ns: Option<u64>,
    calls: Option<u64>,
    ended: u64,
    #[serde(rename = "self")]
    self_ticks: u64,
    #[serde(rename = "ended_self")]
    ended_self_ticks: u64,
    #[serde(rename = "elapsed")]
    elapsed_ns: u64,
    #[serde(rename = "max")]
    max_ns: u64,
    #[serde(rename = "avg")]
    avg_ns: u64,
    #[serde(rename = "min")]
    min_ticks: u64,
}
