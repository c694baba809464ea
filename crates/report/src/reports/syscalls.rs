//! System calls: counts and times.

use super::{entry, Entry, Report, Selection};
use crate::head::{self, threads_line};
use crate::unit::{header, readable, run_time, DisplayUnit, TickUnit};
use crate::view::scope;
use crate::{health, sampled, Result, ThreadFilter};
use clap::{Args, ValueEnum};
use kerntune_profile::{system_call, CallKind, FunctionTotals, Profile, ScopeTotals};
use kerntune_table::number::{fixed, grouped};
use kerntune_table::{share, Columns, Document, Table};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-syscalls/2";

/// Registry entry of `kerntune report PROFILE syscalls`.
pub const ENTRY: Entry = entry::<SyscallsOptions>("syscalls", 6);

/// Description of the JSON form.
const ABOUT: &str =
    "System calls by the functions that do them (`__x64_sys_*`), and with their times by the clock and \
     their errors in profiles of the running kernel with `--syscalls` ([live.md](live.md#system-calls)).";

/// Remark below the table.
const ERRORS: &str = "failed calls are not distinguished: return values are not recorded";
/// Remark below the table of a sampled profile.
const LIVE_ERRORS: &str =
    "errors and times of calls are not known: `kerntune record --live --syscalls -- COMMAND` records them";

/// Sort key of the table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum SyscallSort {
    /// Total time, greatest first.
    #[default]
    Total,
    /// Self time of the system call's function, greatest first.
    #[value(name = "self")]
    SelfTime,
    /// Calls, most first.
    Calls,
    /// Total time per call, greatest first.
    Avg,
    /// Name, A to Z.
    Name,
}

/// System calls: counts and times (as strace -c)
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct SyscallsOptions {
    /// Sort by total, self, calls, avg or name
    #[arg(long, value_enum, default_value_t, hide_possible_values = true, value_name = "KEY")]
    pub sort: SyscallSort,
    /// Region and number of rows.
    #[command(flatten)]
    pub select: Selection,
    /// Show traced calls for each thread name apart, not only those of all together
    #[arg(long)]
    pub by_thread: bool,
    /// Threads to which the report is restricted.
    #[command(flatten)]
    pub threads: ThreadFilter,
}

/// System call with its counts and times.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SyscallRow {
    name: String,
    /// `None` if calls are not counted.
    calls: Option<u64>,
    ended: u64,
    /// Self time of the system call's function.
    self_ticks: u64,
    /// Total time of the calls that ended.
    total_ticks: u64,
    avg_ticks: u64,
    /// Total time of the slowest call; its begin follows.
    slowest_ticks: u64,
    slowest_at_ns: u64,
}

/// System call with its times by the clock, of the threads of a name or of all.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TracedCall<'a> {
    /// `None` for all threads together.
    thread: Option<&'a str>,
    name: &'a str,
    calls: u64,
    ended: u64,
    errors: u64,
    elapsed_ticks: u64,
    max_ticks: u64,
}

impl TracedCall<'_> {
    /// Returns the mean time of a call that ended, rounded to the nearest.
    fn avg_ticks(&self) -> u64 {
        self.elapsed_ticks.saturating_add(self.ended / 2).checked_div(self.ended).unwrap_or(0)
    }
}

/// Returns the calls that were traced, longest time first: by thread name if `by_thread`, else of
/// all threads together.
fn traced<'a>(
    profile: &'a Profile,
    options: &SyscallsOptions,
    by_thread: bool,
) -> Result<Vec<TracedCall<'a>>> {
    let scope = scope(profile, options.select.region.as_deref())?;
    let mut sums: BTreeMap<(Option<&str>, &str), TracedCall> = BTreeMap::new();
    for row in profile.tables.system_calls.iter().filter(|row| scope.contains(row.region)) {
        let thread = by_thread.then_some(row.comm.as_str());
        let sum = sums.entry((thread, &row.name)).or_insert(TracedCall {
            thread,
            name: &row.name,
            calls: 0,
            ended: 0,
            errors: 0,
            elapsed_ticks: 0,
            max_ticks: 0,
        });
        sum.calls = sum.calls.saturating_add(row.calls);
        sum.ended = sum.ended.saturating_add(row.ended);
        sum.errors = sum.errors.saturating_add(row.errors);
        sum.elapsed_ticks = sum.elapsed_ticks.saturating_add(row.elapsed_ticks.get());
        sum.max_ticks = sum.max_ticks.max(row.max_ticks.get());
    }
    let mut rows: Vec<TracedCall> = sums.into_values().collect();
    match options.sort {
        SyscallSort::Total | SyscallSort::SelfTime => {
            rows.sort_by_key(|row| Reverse((row.elapsed_ticks, row.calls)));
        }
        SyscallSort::Calls => rows.sort_by_key(|row| Reverse(row.calls)),
        SyscallSort::Avg => rows.sort_by_key(|row| Reverse(row.avg_ticks())),
        SyscallSort::Name => {}
    }
    Ok(rows)
}

fn traced_columns<'a>(rows: &[TracedCall], by_thread: bool) -> Columns<'a, TracedCall<'a>> {
    let largest =
        |of: fn(&TracedCall) -> u64| DisplayUnit::for_largest(rows.iter().map(of).max().unwrap_or(0));
    let all = rows.iter().fold(0, |sum: u64, row| sum.saturating_add(row.elapsed_ticks));
    let is_open = rows.iter().any(|row| row.calls != row.ended);
    let each = largest(|row| row.max_ticks);
    let mut columns = Columns::<TracedCall>::new();
    columns.share("% time", all, |row| row.elapsed_ticks);
    columns
        .add("elapsed_ns", "Time from entry to exit of the calls that ended, whoever ran meanwhile.", |row| {
            row.elapsed_ticks
        })
        .head("time")
        .unit(largest(|row| row.elapsed_ticks));
    columns.add("calls", "Calls that were made.", |row| row.calls).head("calls");
    columns.add("ended", "Calls of them that ended.", |row| row.ended).head("ended").only_if(is_open);
    columns.add("errors", "Calls of them that returned an error.", |row| row.errors).head("errors").zero("-");
    columns
        .add("avg_ns", "Mean time of a call that ended.", |row| row.avg_ticks())
        .head("per call")
        .unit(each);
    columns.add("max_ns", "Longest call.", |row| row.max_ticks).head("longest").unit(each);
    columns
        .add("thread", "Name of the thread that made them; null for all threads together.", |row| row.thread)
        .head("thread")
        .only_if(by_thread);
    columns.add("name", "Name of the system call.", |row| row.name).head("system call");
    columns
}

struct SyscallTable {
    totals: ScopeTotals,
    /// Number of system call entries; `None` if entries are not counted.
    entered: Option<u64>,
    rows: Vec<SyscallRow>,
}

fn find(profile: &Profile, options: &SyscallsOptions) -> Result<SyscallTable> {
    let tables = &profile.tables;
    let scope = scope(profile, options.select.region.as_deref())?;
    let kernel = || tables.symbols.iter().filter(|symbol| symbol.module.is_none());
    // A system call without arguments has one function under both names; otherwise the outer
    // function calls the inner.
    let outer: BTreeSet<String> = kernel()
        .filter_map(|symbol| system_call(&symbol.name))
        .filter(|(_, is_inner)| !is_inner)
        .map(|(name, _)| name)
        .collect();
    let mut by_name: BTreeMap<String, FunctionTotals> = BTreeMap::new();
    for totals in tables.totals(|region| scope.contains(region)) {
        let symbol = tables.symbols.get(totals.function.get() as usize);
        let Some(symbol) = symbol.filter(|symbol| symbol.module.is_none()) else { continue };
        let Some((name, is_inner)) = system_call(&symbol.name) else { continue };
        if !is_inner || !outer.contains(&name) {
            by_name.entry(name).or_insert_with(|| FunctionTotals::none(totals.function)).add(&totals);
        }
    }
    let row = |(name, totals): (String, FunctionTotals)| {
        let calls = sampled::calls_of(profile, totals.calls);
        // Sampled times have no ends of calls.
        let each = if totals.ended > 0 { Some(totals.ended) } else { calls };
        SyscallRow {
            name,
            calls,
            ended: totals.ended,
            self_ticks: totals.self_ticks.get(),
            total_ticks: totals.total_ticks.get(),
            avg_ticks: each.and_then(|calls| totals.total_ticks.get().checked_div(calls)).unwrap_or(0),
            slowest_ticks: totals.slowest_ticks.get(),
            slowest_at_ns: totals.slowest_at_ticks.get(),
        }
    };
    let mut rows: Vec<SyscallRow> = by_name.into_iter().map(row).collect();
    // A stable sort: ties stay in the order of names.
    match options.sort {
        SyscallSort::Total => rows.sort_by_key(|row| Reverse((row.total_ticks, row.calls))),
        SyscallSort::SelfTime => rows.sort_by_key(|row| Reverse((row.self_ticks, row.calls))),
        SyscallSort::Calls => rows.sort_by_key(|row| Reverse(row.calls)),
        SyscallSort::Avg => rows.sort_by_key(|row| Reverse(row.avg_ticks)),
        SyscallSort::Name => {}
    }
    let entries = tables.arcs.iter().filter(|arc| arc.how == CallKind::Syscall && scope.contains(arc.region));
    let entered = entries.fold(0, |sum: u64, arc| sum.saturating_add(arc.calls));
    let counted = !sampled::is(profile) && tables.arcs.iter().any(|arc| arc.how == CallKind::Syscall);
    Ok(SyscallTable { totals: scope.totals(profile), entered: counted.then_some(entered), rows })
}

impl Report for SyscallsOptions {
    fn thread_filter(&self) -> Option<&ThreadFilter> {
        Some(&self.threads)
    }

    fn document<'a>(&'a self, profile: &'a Profile) -> Result<Document<'a>> {
        let SyscallTable { totals, entered, rows } = find(profile, self)?;
        let region = self.select.region.as_deref();
        let mut document = head::document(SCHEMA, ABOUT, profile, region, Some(&self.threads));
        let (elapsed, busy, user) =
            (totals.elapsed_ticks.get(), totals.busy_ticks.get(), totals.user_ticks.get());
        document.field("elapsed_ns", "Time inside regions.", elapsed);
        document.field("busy", "What code took.", busy);
        document.field("user", "What user code took.", user);
        sampled::add(&mut document, profile);
        document.field(
            "entered",
            "Entries to the kernel by a system call; null where they are not counted. Numbers that no system \
             call has reach no function, so that `calls` of all may sum to less.",
            entered,
        );
        let traced = traced(profile, self, self.by_thread)?;
        let is_traced = !traced.is_empty();
        let sum = |of: fn(&TracedCall) -> u64| traced.iter().map(of).fold(0, u64::saturating_add);
        let errors = is_traced.then(|| sum(|row| row.errors));
        document.field("errors", "Calls that returned an error; null where that is not recorded.", errors);
        document.text(threads_line(&self.threads) + &header(profile, &totals, region));
        if is_traced {
            let [calls, time] = [sum(|row| row.calls), sum(|row| row.elapsed_ticks)];
            let failed = grouped(errors.unwrap_or(0));
            document.line("System calls", format!("{}  ({failed} returned an error)", grouped(calls)));
            document
                .line("Time in them", format!("{}  (by the clock, all threads together)", readable(time)));
        }
        let columns = traced_columns(&traced, self.by_thread);
        let table = Table::new("traced", traced, columns).noun("system calls").top(self.select.top);
        document.table(
            table
                .help("Of profiles with `--syscalls`: by `elapsed_ns`, greatest first, unless `--sort` says otherwise.")
                .hidden_if_empty(),
        );
        let measure = TickUnit::of(profile);
        if is_traced {
            document.text("\nTime on CPUs in the functions of system calls:\n");
        }
        let percent = fixed(share(user, elapsed), 2);
        document.line(
            if measure == TickUnit::Time { "User time" } else { "User instructions" },
            format!("{}  ({percent:>6}%)", run_time(profile, user)),
        );
        let done = rows.iter().filter_map(|row| row.calls).fold(0, u64::saturating_add);
        if let Some(entered) = entered {
            // Entries without a function of their own: numbers that no system call has.
            let other = match entered.abs_diff(done) {
                0 => String::new(),
                _ => format!("  ({} reached the function of one)", grouped(done)),
            };
            document.line("System calls", grouped(entered) + &other);
        }
        document.text("\n");
        // Samples and call paths have no ends of calls.
        let measured = !sampled::is(profile) && rows.iter().any(|row| row.ended > 0);
        let open = measured && rows.iter().any(|row| row.calls.is_some_and(|calls| calls != row.ended));
        let largest = |of: fn(&SyscallRow) -> u64| measure.row_unit(rows.iter().map(of).max().unwrap_or(0));
        let total = largest(|row| row.total_ticks);
        let call = largest(|row| row.slowest_ticks.max(row.avg_ticks));
        let mut columns = Columns::<SyscallRow>::new();
        columns.share("% busy", busy, |row| row.total_ticks);
        columns
            .add("elapsed", "Total of the calls that ended, without time off the CPU.", |row| row.total_ticks)
            .head("total")
            .unit(total)
            // Unknown for calls that never end, such as exit_group.
            .zero("-");
        columns
            .add("self", "Time in the system call's own function.", |row| row.self_ticks)
            .head("self")
            .unit(total);
        columns.add("calls", "Calls made; null where calls are not counted.", |row| row.calls).head("calls");
        columns.add("ended", "Calls that ended.", |row| row.ended).head("ended").only_if(open).text(|row| {
            if row.calls == Some(row.ended) {
                String::new()
            } else {
                grouped(row.ended)
            }
        });
        columns
            .add("avg", "Mean total of one call that ended.", |row| row.avg_ticks)
            .head("per call")
            .unit(call)
            .text(move |row| if row.total_ticks > 0 { call.format(row.avg_ticks) } else { "-".into() });
        columns
            .add("slowest", "Total of the slowest call.", |row| row.slowest_ticks)
            .head("slowest")
            .unit(call)
            .only_if(measured)
            .text(move |row| if row.ended > 0 { call.format(row.slowest_ticks) } else { "-".into() });
        columns
            .add("slowest_at_ns", "Virtual time at which the slowest call began.", |row| row.slowest_at_ns);
        columns.add("name", "Name of the system call.", |row| row.name.clone()).head("system call");
        document.table(
            Table::new("syscalls", rows, columns)
                .help("By `elapsed`, greatest first, unless `--sort` says otherwise.")
                .noun("system calls")
                .top(self.select.top),
        );
        if open {
            document.note(
                "ended: calls that ended, if their number differs from the calls made here; per call, slowest \
                 and total are of those",
            );
        }
        if !is_traced {
            document.note(if sampled::is(profile) { LIVE_ERRORS } else { ERRORS });
        }
        health::add(&mut document, profile);
        Ok(document)
    }
}
