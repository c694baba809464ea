//! Table of functions: McRae's Figure 3 (`docs/measuring.md`).

use super::{entry, Entry, Report, Selection};
use crate::head::{self, threads_line};
use crate::unit::{run_time, whole, TickUnit};
use crate::view::{FunctionRow, ScopeTimes, ScopeView};
use crate::{health, names, sampled, Result, ThreadFilter};
use clap::{Args, ValueEnum};
use kerntune_profile::{FunctionTotals, Profile, Ticks};
use kerntune_table::number::{fixed, grouped};
use kerntune_table::{printable, share, Columns, DisplayUnit, Document, Table};
use std::cmp::Ordering;

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-functions/3";

/// Description of the JSON form.
const ABOUT: &str = "The flat table of functions of a profile.";

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
    /// Sort by net, elapsed, calls, max, avg or name
    #[arg(long, value_enum, default_value_t, hide_possible_values = true, value_name = "KEY")]
    pub sort: FunctionSort,
    /// Show only this function, those of a pattern with * and ?, or those of a directory or file of
    /// the source (net/ipv4); may be repeated
    #[arg(long, value_name = "NAME|GLOB|DIR")]
    pub function: Vec<String>,
    /// Region and number of rows.
    #[command(flatten)]
    pub select: Selection,
    /// Threads to which the report is restricted.
    #[command(flatten)]
    pub threads: ThreadFilter,
}

impl Report for FunctionsOptions {
    fn thread_filter(&self) -> Option<&ThreadFilter> {
        Some(&self.threads)
    }

    fn document<'a>(&'a self, profile: &'a Profile) -> Result<Document<'a>> {
        let region = self.select.region.as_deref();
        let ScopeView { mut functions, times } = ScopeView::new(profile, region)?;
        let wanted = names::chosen(&profile.tables, &self.function)?;
        functions.retain(|row| self.function.is_empty() || wanted.contains(&row.totals.function));
        functions.sort_by(|a, b| self.sort.compare(a, b));
        let mut document = head::document(SCHEMA, ABOUT, profile, region, Some(&self.threads));
        times.add(&mut document);
        document.field("events", "Events of the whole profile.", profile.manifest.events);
        document.field(
            "lost_events",
            "Events of the whole profile that were seen and could not be kept; 0 in a good one.",
            profile.manifest.lost_events,
        );
        sampled::add(&mut document, profile);
        self.header(&mut document, profile, &times);
        let sampled = sampled::is(profile);
        let shown = self.select.shown(&functions);
        let largest = |of: fn(&FunctionTotals) -> Ticks| {
            let ticks = shown.iter().map(|row| of(&row.totals).get()).max().unwrap_or(0);
            TickUnit::of(profile).row_unit(ticks)
        };
        let elapsed = largest(|totals| totals.total_ticks);
        let own = if sampled { elapsed } else { largest(|totals| totals.self_ticks) };
        let call = largest(|totals| totals.max_ticks);
        // Sampled times have no ends of calls.
        let open = !sampled
            && profile.tables.functions.iter().any(|row| row.ended > 0)
            && shown.iter().any(|row| row.totals.has_open_calls());
        let samples =
            move |ticks| profile.manifest.sampled.as_ref().map_or(0, |sampled| sampled.samples_in(ticks));
        let mut columns = Columns::<FunctionRow>::new();
        let help =
            "Time from entry to exit of the calls that ended, callees included; once per level of recursion.";
        columns.add("elapsed", help, |row| row.totals.total_ticks.get()).head("elapsed").unit(elapsed);
        let help = "Time in the function itself, without its callees, in all calls.";
        columns.add("self", help, |row| row.totals.self_ticks.get()).head("net").unit(own);
        columns
            .add("error", sampled::ERROR_HELP, move |row| {
                sampled::error_ns(profile, row.totals.self_ticks.get())
            })
            .head(format!("{} net", sampled::ERROR))
            .unit(own)
            .only_if(sampled)
            .optional();
        columns.text_only("samples\nnet", move |row| samples(row.totals.self_ticks)).only_if(sampled);
        let help = "Calls that were made; null where they were not counted.";
        columns
            .add("calls", help, move |row| sampled::calls_of(profile, row.totals.calls))
            .head("calls")
            .only_if(sampled::has_calls(profile));
        // An estimate from samples: without samples, the time per call is unknown rather than 0.
        columns
            .text_only("net/call", move |FunctionRow { totals, .. }| {
                let each = totals.self_ticks.get().checked_div(totals.calls);
                each.filter(|_| samples(totals.self_ticks) > 0)
            })
            .unit(DisplayUnit::Nanoseconds)
            .only_if(sampled && sampled::has_calls(profile));
        let help = "Calls that ended. Calls that never end, or cross the border of what is shown, did not.";
        columns.add("ended", help, |row| row.totals.ended).head("ended").only_if(open).text(
            |FunctionRow { totals, .. }| match totals.has_open_calls() {
                true => grouped(totals.ended),
                false => String::new(),
            },
        );
        columns.add("ended_self", "`self` of the calls that ended.", |row| row.totals.ended_self_ticks.get());
        columns
            .text_only("open net", |FunctionRow { totals, .. }| {
                totals.has_open_calls().then(|| totals.open_ticks())
            })
            .unit(own)
            .only_if(open);
        let mut of_calls = |key, help, of: fn(&FunctionTotals) -> Ticks| {
            columns
                .add(key, help, move |row| of(&row.totals).get())
                .head(key)
                .unit(call)
                .only_if(!sampled)
                .text(move |FunctionRow { totals, .. }| match totals.ended {
                    0 => "-".into(),
                    _ => call.format(of(totals).get()),
                });
        };
        of_calls("max", "Greatest `self` of one call that ended; 0 without any.", |totals| totals.max_ticks);
        let help = "Mean `self` of the calls that ended, rounded down; 0 without any.";
        of_calls("avg", help, FunctionTotals::avg_ticks);
        of_calls("min", "Least `self` of one call that ended; 0 without any.", |totals| totals.min_ticks);
        columns.share("% real", times.elapsed, |row| row.totals.self_ticks.get());
        columns.share("% net", times.busy, |row| row.totals.self_ticks.get());
        let help = "`self` in percent of the kernel's time, `busy` − `user`; null for functions of programs.";
        columns
            .add("kernel_percent", help, move |row| row.kernel_percent(&times))
            .head("%\nkernel")
            .decimals(2);
        let help = "Name in the symbol table; functions that share it are rows of their own.";
        columns.add("name", help, |row| row.name.clone()).head("function").text(move |row| {
            let symbol = profile.tables.symbols.get(row.totals.function.get() as usize);
            match symbol.is_some_and(|symbol| !sampled && symbol.loaded_module().is_some()) {
                true => names::label(&profile.tables, row.totals.function),
                false => printable(&row.name),
            }
        });
        columns.add("file", "Source file, where known.", |row| row.file.clone());
        let rest = functions.len() - shown.len();
        document.table(
            Table::new("functions", functions, columns)
                .help("By `self`, greatest first, unless `--sort` says otherwise.")
                .top(self.select.top)
                .without_rest(),
        );
        if open {
            document.note(ENDED);
        }
        document.rest(rest, "functions");
        health::add(&mut document, profile);
        Ok(document)
    }
}

impl FunctionsOptions {
    fn header(&self, document: &mut Document, profile: &Profile, times: &ScopeTimes) {
        let manifest = &profile.manifest;
        // Events are not counted by region.
        let (place, events) = match (&self.select.region, &manifest.sampled) {
            (Some(region), _) => (format!("Region {}\n", printable(region)), String::new()),
            (None, Some(sampled)) => (
                String::new(),
                format!("({} samples, {} CPUs)", grouped(sampled.samples), grouped(sampled.cpus)),
            ),
            (None, None) => (String::new(), format!("({} events)", grouped(manifest.events))),
        };
        document.text(place + &threads_line(&self.threads));
        document.text(whole(profile, times.elapsed, times.busy, times.idle, &events));
        let time =
            |ticks| format!("{}  ({:>6}%)", run_time(profile, ticks), fixed(share(ticks, times.elapsed), 2));
        let user = match TickUnit::of(profile) {
            TickUnit::Instructions => "User instructions",
            TickUnit::Time => "User time",
        };
        document.line(user, time(times.user));
        if times.unattributed > 0 {
            document.line("No function known", time(times.unattributed));
        }
        document.line("Lost events", grouped(manifest.lost_events));
        document.text("\n");
    }
}
