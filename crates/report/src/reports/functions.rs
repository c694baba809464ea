//! The flat table of functions: McRae's Figure 3 (`docs/measuring.md`).

use super::{entry, Entry, Report};
use crate::columns::{Cell, Columns, Side};
use crate::head::{of_threads, Head};
use crate::style::{printable, Role};
use crate::unit::{run_time, whole, Measure, TimeUnit};
use crate::view::{share, FunctionRow, Times, View};
use crate::{health, names, sampled, Result, Style, Who};
use clap::{Args, ValueEnum};
use kerntune_compare::number::{fixed, grouped};
use kerntune_profile::{FunctionTotals, Nanoseconds, Profile};
use serde::Serialize;
use std::cmp::Ordering;

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-functions/3";

/// What stands below a table with the column `ended`.
pub(crate) const ENDED: &str =
    "ended: calls that ended, if their number differs from the calls made here; times of single calls are of \
     those that ended";

/// What the table is ordered by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    /// Net time, greatest first.
    #[default]
    Net,
    /// Elapsed time, greatest first.
    Elapsed,
    /// Calls that were made, most first.
    Calls,
    /// Greatest net time of one call, greatest first.
    Max,
    /// Net time per call that ended, greatest first.
    Avg,
    /// Name, A to Z.
    Name,
}

impl Sort {
    /// Ties are in the order of names, then files: the same profile is always the same table.
    fn compare(self, a: &FunctionRow, b: &FunctionRow) -> Ordering {
        let (x, y) = (&a.totals, &b.totals);
        let first = match self {
            Sort::Net => y.net_ns.cmp(&x.net_ns),
            Sort::Elapsed => y.elapsed_ns.cmp(&x.elapsed_ns),
            Sort::Calls => y.calls.cmp(&x.calls),
            Sort::Max => y.max_ns.cmp(&x.max_ns),
            Sort::Avg => y.avg_ns().cmp(&x.avg_ns()),
            Sort::Name => Ordering::Equal,
        };
        first.then_with(|| a.name.cmp(&b.name)).then_with(|| a.file.cmp(&b.file))
    }
}

/// `kerntune report PROFILE functions`.
pub const ENTRY: Entry = entry::<Options>("functions", 1);

/// Each function's calls, elapsed and net time (McRae's summary)
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct Options {
    /// Show at most N functions [default: 40 in text, all in JSON]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// Order: net, elapsed, calls, max, avg, name
    #[arg(long, value_enum, default_value_t, hide_possible_values = true, value_name = "KEY")]
    pub sort: Sort,
    /// Only this function, those of a pattern with * and ?, or those of a directory or file of the source (net/ipv4); may
    /// be repeated
    #[arg(long, value_name = "NAME|GLOB|DIR")]
    pub function: Vec<String>,
    /// Only what happened in the regions of this name
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
    /// Only what these threads did.
    #[command(flatten)]
    pub who: Who,
}

/// The first rows in order, the number that there are, and the times.
fn selected(profile: &Profile, options: &Options, most: usize) -> Result<(Vec<FunctionRow>, usize, Times)> {
    let View { mut functions, times } = View::new(profile, options.region.as_deref())?;
    let sets = &options.function;
    let wanted = names::chosen(&profile.tables, sets)?;
    functions.retain(|row| sets.is_empty() || wanted.contains(&row.totals.function));
    functions.sort_by(|a, b| options.sort.compare(a, b));
    let all = functions.len();
    functions.truncate(most);
    Ok((functions, all, times))
}

impl Report for Options {
    fn who(&self) -> Option<&Who> {
        Some(&self.who)
    }

    fn text(&self, profile: &Profile, style: Style) -> Result<String> {
        let (functions, all, times) = selected(profile, self, self.top.unwrap_or(crate::TOP))?;
        let mut out = header(profile, &times, self);
        out.push('\n');
        let measure = Measure::of(profile);
        let largest = |of: fn(&FunctionTotals) -> Nanoseconds| {
            measure.row_unit(functions.iter().map(|row| of(&row.totals).get()).max().unwrap_or(0))
        };
        let elapsed = largest(|totals| totals.elapsed_ns);
        let net = largest(|totals| totals.net_ns);
        let call = largest(|totals| totals.max_ns);
        let unit = |head: &str, unit: TimeUnit| format!("{head}\n{}", unit.name());
        // Of sampled times no end of a call is known.
        let measured = profile.tables.functions.iter().any(|row| row.ended > 0);
        let open = measured && functions.iter().any(|row| row.totals.has_open_calls());
        let right = |head: &str, of: TimeUnit| (unit(head, of), Side::Right);
        let plain = |head: &str| (head.to_string(), Side::Right);
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
        heads.extend([plain("% real"), plain("% net"), ("function".into(), Side::Left)]);
        let mut table = Columns::with(heads.iter().map(|(head, side)| (head.as_str(), *side)));
        for row in &functions {
            let totals = &row.totals;
            let per_call = |ns: Nanoseconds| {
                Cell::from(if totals.ended == 0 { "-".into() } else { call.format(ns.get()) })
            };
            let mut cells: Vec<Cell> = vec![
                elapsed.format(totals.elapsed_ns.get()).into(),
                net.format(totals.net_ns.get()).into(),
                grouped(totals.calls).into(),
            ];
            if open {
                let sign = if totals.open_ns() < 0 { "-" } else { "" };
                let open_net = format!("{sign}{}", net.format(totals.open_ns().unsigned_abs()));
                cells.extend(match totals.has_open_calls() {
                    true => [grouped(totals.ended).into(), open_net.into()],
                    false => ["".into(), "".into()],
                });
            }
            cells.extend([totals.max_ns, totals.avg_ns(), totals.min_ns].map(per_call));
            cells.extend([
                fixed(share(totals.net_ns.get(), times.elapsed), 2).into(),
                fixed(share(totals.net_ns.get(), times.busy), 2).into(),
                printable(&row.name).into(),
            ]);
            table.row_of(cells);
        }
        out.push_str(&table.render(style));
        if open {
            out.push_str(&style.paint(Role::Faint, ENDED));
            out.push('\n');
        }
        out.push_str(&rest(all, functions.len(), style));
        out.push_str(&health::text(profile, style));
        Ok(out)
    }

    fn json(&self, profile: &Profile) -> Result<String> {
        let (functions, _, times) = selected(profile, self, self.top.unwrap_or(usize::MAX))?;
        let json = Json {
            head: Head::new(SCHEMA, profile, &self.region).of(&self.who),
            elapsed_ns: times.elapsed,
            busy_ns: times.busy,
            idle_ns: times.idle,
            user_ns: times.user,
            unattributed_ns: times.unattributed,
            events: profile.manifest.events,
            lost_events: profile.manifest.lost_events,
            sampled: sampled::json(profile),
            functions: functions
                .iter()
                .map(|row| JsonFunction {
                    name: &row.name,
                    file: row.file.as_deref(),
                    error_ns: sampled::error_ns(profile, row.totals.net_ns.get()),
                    calls: sampled::calls_of(profile, row.totals.calls),
                    ended: row.totals.ended,
                    net_ns: row.totals.net_ns.get(),
                    ended_net_ns: row.totals.ended_net_ns.get(),
                    elapsed_ns: row.totals.elapsed_ns.get(),
                    max_ns: row.totals.max_ns.get(),
                    avg_ns: row.totals.avg_ns().get(),
                    min_ns: row.totals.min_ns.get(),
                })
                .collect(),
        };
        crate::to_json(&json)
    }
}

/// How many functions are not shown.
fn rest(all: usize, shown: usize, style: Style) -> String {
    match all.saturating_sub(shown) {
        0 => String::new(),
        more => style.paint(Role::Faint, &format!("{} more functions (--top)", grouped(more as u64))) + "\n",
    }
}

/// What sampling knows of functions: no times of single calls, and their number only if something else counted them.
fn sampled_table(profile: &Profile, functions: &[FunctionRow], times: &Times) -> Columns {
    let unit =
        TimeUnit::for_largest(functions.iter().map(|row| row.totals.elapsed_ns.get()).max().unwrap_or(0));
    let head = |head: &str| format!("{head}\n{}", unit.name());
    let has_calls = sampled::has_calls(profile);
    let counted = [
        ("calls".to_string(), Side::Right),
        (format!("net/call\n{}", TimeUnit::Nanoseconds.name()), Side::Right),
    ];
    let heads = [
        (head("elapsed"), Side::Right),
        (head("net"), Side::Right),
        (head(&format!("{} net", sampled::ERROR)), Side::Right),
        ("samples\nnet".into(), Side::Right),
    ];
    let rest = [("% real", Side::Right), ("% net", Side::Right), ("function", Side::Left)];
    let heads: Vec<(String, Side)> = heads
        .into_iter()
        .chain(counted.into_iter().filter(|_| has_calls))
        .chain(rest.map(|(head, side)| (head.to_string(), side)))
        .collect();
    let mut table = Columns::with(heads.iter().map(|(head, side)| (head.as_str(), *side)));
    for row in functions {
        let net = row.totals.net_ns;
        let samples = profile.manifest.sampled.as_ref().map_or(0, |sampled| sampled.samples_in(net));
        let mut cells: Vec<Cell> = vec![
            unit.format(row.totals.elapsed_ns.get()).into(),
            unit.format(net.get()).into(),
            sampled::error(profile, net.get(), unit).into(),
            grouped(samples).into(),
        ];
        if has_calls {
            // A share of what was sampled: without samples it is not known to be nothing.
            let each = net.get().checked_div(row.totals.calls).filter(|_| samples > 0);
            let each = each.map_or(String::new(), |ns| TimeUnit::Nanoseconds.format(ns));
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

fn header(profile: &Profile, times: &Times, options: &Options) -> String {
    let manifest = &profile.manifest;
    let mut out = match &options.region {
        Some(region) => format!("Region {}\n", printable(region)),
        None => String::new(),
    };
    out += &of_threads(&options.who);
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
    let user = match Measure::of(profile) {
        Measure::Instructions => "User instructions",
        Measure::Time => "User time",
    };
    out += &line(user, times.user);
    if times.unattributed > 0 {
        out += &line("No function known", times.unattributed);
    }
    out += &format!("{:<20} = {}\n", "Lost events", grouped(manifest.lost_events));
    out
}

#[derive(Serialize)]
struct Json<'a> {
    #[serde(flatten)]
    head: Head<'a>,
    elapsed_ns: u64,
    #[serde(rename = "busy")]
    busy_ns: u64,
    idle_ns: u64,
    #[serde(rename = "user")]
    user_ns: u64,
    #[serde(rename = "unattributed")]
    unattributed_ns: u64,
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
    net_ns: u64,
    #[serde(rename = "ended_self")]
    ended_net_ns: u64,
    #[serde(rename = "elapsed")]
    elapsed_ns: u64,
    #[serde(rename = "max")]
    max_ns: u64,
    #[serde(rename = "avg")]
    avg_ns: u64,
    #[serde(rename = "min")]
    min_ns: u64,
}
