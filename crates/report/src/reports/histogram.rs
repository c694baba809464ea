//! How long the calls of a function took: a log-scaled histogram with percentiles.

use super::{entry, Entry, Report};
use crate::columns::{Columns, Side};
use crate::head::{of_threads, Head};
use crate::style::{printable, Role};
use crate::tally::{range, Percentile, Row, Tally};
use crate::unit::{seconds_at, Measure};
use crate::view::scope;
use crate::{health, names, Error, Result, Style, Who};
use clap::Args;
use kerntune_compare::number::grouped;
use kerntune_profile::{FunctionIndex, FunctionTotals, How, Profile, Scope};
use serde::Serialize;
use std::collections::BTreeMap;

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-histogram/2";

/// Callers with a histogram of their own in text where no number is asked for.
const CALLERS: usize = 10;

const PERCENTS: [f64; 4] = [50.0, 90.0, 99.0, 99.9];

/// `kerntune report PROFILE histogram`.
pub const ENTRY: Entry = entry::<Options>("histogram", 5);

/// How long a function's calls took: log-scaled, with percentiles, by caller if asked
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct Options {
    /// NAME, or NAME@FILE or NAME@0xADDRESS where several functions have that name
    pub function: String,
    /// Also show a histogram for each caller, the caller with most calls first
    #[arg(long)]
    pub by_caller: bool,
    /// Show at most N callers [default: 10 in text, all in JSON]
    #[arg(long, value_name = "N", requires = "by_caller")]
    pub top: Option<usize>,
    /// Only what happened in the regions of this name
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
    /// Only what these threads did.
    #[command(flatten)]
    pub who: Who,
}

/// The calls of one caller, or of all, that ended.
struct Calls {
    caller: String,
    calls: u64,
    made: u64,
    elapsed_ns: u64,
    tally: Tally,
}

struct Found<'a> {
    name: &'a str,
    file: Option<&'a str>,
    totals: FunctionTotals,
    all: Calls,
    /// Most calls first.
    callers: Vec<Calls>,
}

fn find<'a>(profile: &'a Profile, options: &Options) -> Result<Found<'a>> {
    let tables = &profile.tables;
    let scope = scope(profile, options.region.as_deref())?;
    let function = names::function(tables, &options.function)?;
    let mut totals = FunctionTotals::none(function);
    for row in tables.functions.iter().filter(|row| row.function == function && scope.contains(row.region)) {
        totals.add(&FunctionTotals::from(row));
    }
    let mut all = Calls {
        caller: String::new(),
        calls: totals.ended,
        made: totals.calls,
        elapsed_ns: totals.elapsed_ns.get(),
        tally: Tally::default(),
    };
    let mut callers: BTreeMap<FunctionIndex, Calls> = BTreeMap::new();
    let wanted = |row: &u32, callee: FunctionIndex| scope.contains(*row) && callee == function;
    for row in tables.arcs.iter().filter(|row| wanted(&row.region, row.callee)) {
        let caller = callers.entry(row.caller).or_insert_with(|| Calls {
            caller: caller_name(profile, &scope, row.caller, function),
            calls: 0,
            made: 0,
            elapsed_ns: 0,
            tally: Tally::default(),
        });
        caller.calls = caller.calls.saturating_add(row.ended);
        caller.made = caller.made.saturating_add(row.calls);
        caller.elapsed_ns = caller.elapsed_ns.saturating_add(row.elapsed_ns.get());
    }
    for row in tables.histograms.iter().filter(|row| wanted(&row.region, row.function)) {
        all.tally.add(row.bucket, row.count, row.example_ns);
        if let Some(caller) = callers.get_mut(&row.caller) {
            caller.tally.add(row.bucket, row.count, row.example_ns);
        }
    }
    if !options.who.is_everybody()
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
    // Of calls that did not end there is nothing to show.
    let mut callers: Vec<Calls> = callers.into_values().filter(|caller| caller.calls > 0).collect();
    callers.sort_by(|a, b| b.calls.cmp(&a.calls).then_with(|| a.caller.cmp(&b.caller)));
    let symbol = tables.symbols.get(function.get() as usize);
    Ok(Found {
        name: tables.name(function),
        file: symbol.and_then(|symbol| symbol.file.as_deref()),
        totals,
        all,
        callers,
    })
}

/// A caller's name, or by what a function without one was entered.
fn caller_name(profile: &Profile, scope: &Scope, caller: FunctionIndex, callee: FunctionIndex) -> String {
    if caller.known().is_some() {
        return profile.tables.name(caller).into();
    }
    let arcs = profile.tables.arcs.iter();
    let mut hows = arcs
        .filter(|arc| scope.contains(arc.region) && arc.caller == caller && arc.callee == callee)
        .map(|arc| arc.how);
    let first = hows.next();
    match first.filter(|first| hows.all(|how| how == *first)) {
        Some(How::Interrupt) => "[interrupt]",
        Some(How::Syscall) => "[syscall]",
        Some(How::Exception) => "[exception]",
        _ => "[nothing]",
    }
    .into()
}

fn percentiles(calls: &Calls, max: Option<u64>) -> Vec<Percentile> {
    PERCENTS.iter().filter_map(|percent| calls.tally.percentile(*percent, max)).collect()
}

fn mean(calls: &Calls) -> u64 {
    calls.elapsed_ns.saturating_add(calls.calls / 2).checked_div(calls.calls).unwrap_or(0)
}

/// `2,000 calls`; `12 calls that ended (14 were made)` where these are others.
fn ended(calls: &Calls) -> String {
    match (calls.calls, calls.made) {
        (ended, made) if ended == made => format!("{} calls", grouped(ended)),
        (ended, made) => format!("{} calls that ended ({} were made)", grouped(ended), grouped(made)),
    }
}

fn callers(found: &Found, most: usize, unit: &str) -> Columns {
    let mut table = Columns::new([
        ("calls", Side::Right),
        (format!("mean\n{unit}").as_str(), Side::Right),
        (format!("p50 within\n{unit}").as_str(), Side::Right),
        (format!("p99 within\n{unit}").as_str(), Side::Right),
        (format!("longest within\n{unit}").as_str(), Side::Right),
        ("caller", Side::Left),
    ]);
    for caller in found.callers.iter().take(most) {
        let within = |percent| {
            let p = caller.tally.percentile(percent, Some(found.totals.slowest_ns.get()));
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

#[derive(Serialize)]
struct Json<'a> {
    #[serde(flatten)]
    head: Head<'a>,
    function: &'a str,
    file: Option<&'a str>,
    #[serde(rename = "slowest")]
    slowest_ns: u64,
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
    percentiles: Vec<Percentile>,
    buckets: Vec<Row>,
}

impl Report for Options {
    fn who(&self) -> Option<&Who> {
        Some(&self.who)
    }

    fn text(&self, profile: &Profile, style: Style) -> Result<String> {
        let found = find(profile, self)?;
        let place = found.file.map_or(String::new(), |file| format!(" ({})", printable(file)));
        let region =
            self.region.as_ref().map_or(String::new(), |name| format!(" in region {}", printable(name)));
        let mut out = of_threads(&self.who);
        out += &format!(
            "{}{place}: elapsed time of {}{region}\n\n",
            style.paint(Role::Head, &printable(found.name)),
            ended(&found.all),
        );
        let (slowest, at) = (found.totals.slowest_ns.get(), found.totals.slowest_at_ns.get());
        let mut line = |word: &str, text: String| {
            out.push_str(&style.paint(Role::Head, &format!("{word:<6}")));
            out.push_str(&format!("  {text}\n"));
        };
        let unit = Measure::of(profile).one().name();
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
            let shown = self.top.unwrap_or(CALLERS);
            out += &callers(&found, shown, unit).render(style);
            for caller in found.callers.iter().take(shown) {
                let head = format!("from {}, {}", printable(&caller.caller), ended(caller));
                out.push_str(&format!("\n{}\n", style.paint(Role::Head, &head)));
                out += &caller.tally.table(unit, "calls").render(style);
            }
            if shown < found.callers.len() {
                let rest =
                    format!("{} more callers (--top)\n", grouped((found.callers.len() - shown) as u64));
                out += &style.paint(Role::Faint, &rest);
            }
        }
        out += &health::text(profile, style);
        Ok(out)
    }

    fn json(&self, profile: &Profile) -> Result<String> {
        let found = find(profile, self)?;
        fn calls<'a>(of: &'a Calls, caller: Option<&'a str>, max: Option<u64>) -> JsonCalls<'a> {
            JsonCalls {
                caller,
                calls: of.calls,
                made: of.made,
                elapsed_ns: of.elapsed_ns,
                percentiles: percentiles(of, max),
                buckets: of.tally.rows(),
            }
        }
        let slowest = Some(found.totals.slowest_ns.get());
        let callers = found.callers.iter().take(self.top.unwrap_or(usize::MAX));
        crate::to_json(&Json {
            head: Head::new(SCHEMA, profile, &self.region).of(&self.who),
            function: found.name,
            file: found.file,
            slowest_ns: found.totals.slowest_ns.get(),
            slowest_at_ns: found.totals.slowest_at_ns.get(),
            all: calls(&found.all, None, slowest),
            callers: self.by_caller.then(|| callers.map(|c| calls(c, Some(&c.caller), slowest)).collect()),
        })
    }
}
