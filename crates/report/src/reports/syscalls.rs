//! System calls: counts and times.

use super::{entry, Entry, Report};
use crate::columns::{Alignment, TableBuilder};
use crate::head::{threads_line, JsonHead};
use crate::style::{printable, TextRole};
use crate::system_calls::system_call;
use crate::unit::{header, run_time, DisplayUnit, TickUnit};
use crate::view::{scope, share};
use crate::{health, sampled, Result, Style, ThreadFilter};
use clap::{Args, ValueEnum};
use kerntune_compare::number::{fixed, grouped};
use kerntune_profile::{CallKind, FunctionTotals, Profile, ScopeTotals};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-syscalls/2";

/// Registry entry of `kerntune report PROFILE syscalls`.
pub const ENTRY: Entry = entry::<SyscallsOptions>("syscalls", 6);

/// Remark below the table, and in JSON.
const ERRORS: &str = "failed calls are not distinguished: return values are not recorded";

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
    /// Show at most N system calls [default: 40 in text, all in JSON]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// Sort by total, self, calls, avg or name
    #[arg(long, value_enum, default_value_t, hide_possible_values = true, value_name = "KEY")]
    pub sort: SyscallSort,
    /// Show only what happened in the regions of this name
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
    /// Threads to which the report is restricted.
    #[command(flatten)]
    pub threads: ThreadFilter,
}

/// System call with its counts and times.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct SyscallRow {
    name: String,
    /// `None` if calls are not counted.
    calls: Option<u64>,
    ended: u64,
    /// Self time of the system call's function.
    #[serde(rename = "self")]
    self_ns: u64,
    /// Total time of the calls that ended.
    #[serde(rename = "elapsed")]
    elapsed_ns: u64,
    #[serde(rename = "avg")]
    avg_ns: u64,
    /// Total time of the slowest call; its begin follows.
    #[serde(rename = "slowest")]
    slowest_ticks: u64,
    slowest_at_ns: u64,
}

struct SyscallTable {
    totals: ScopeTotals,
    /// Number of system call entries; `None` if entries are not counted.
    entered: Option<u64>,
    rows: Vec<SyscallRow>,
}

fn find(profile: &Profile, options: &SyscallsOptions) -> Result<SyscallTable> {
    let tables = &profile.tables;
    let scope = scope(profile, options.region.as_deref())?;
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
            self_ns: totals.self_ticks.get(),
            elapsed_ns: totals.total_ticks.get(),
            avg_ns: each.and_then(|calls| totals.total_ticks.get().checked_div(calls)).unwrap_or(0),
            slowest_ticks: totals.slowest_ticks.get(),
            slowest_at_ns: totals.slowest_at_ticks.get(),
        }
    };
    let mut rows: Vec<SyscallRow> = by_name.into_iter().map(row).collect();
    // A stable sort: ties stay in the order of names.
    match options.sort {
        SyscallSort::Total => rows.sort_by_key(|row| Reverse((row.elapsed_ns, row.calls))),
        SyscallSort::SelfTime => rows.sort_by_key(|row| Reverse((row.self_ns, row.calls))),
        SyscallSort::Calls => rows.sort_by_key(|row| Reverse(row.calls)),
        SyscallSort::Avg => rows.sort_by_key(|row| Reverse(row.avg_ns)),
        SyscallSort::Name => {}
    }
    let entries = tables.arcs.iter().filter(|arc| arc.how == CallKind::Syscall && scope.contains(arc.region));
    let entered = entries.fold(0, |sum: u64, arc| sum.saturating_add(arc.calls));
    let counted = !sampled::is(profile) && tables.arcs.iter().any(|arc| arc.how == CallKind::Syscall);
    Ok(SyscallTable { totals: scope.totals(profile), entered: counted.then_some(entered), rows })
}

/// JSON document of this report; [`SCHEMA`] names its version.
#[derive(Serialize)]
struct SyscallsReport<'a> {
    #[serde(flatten)]
    head: JsonHead<'a>,
    elapsed_ns: u64,
    #[serde(rename = "busy")]
    busy_ticks: u64,
    #[serde(rename = "user")]
    user_ticks: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    sampled: Option<sampled::JsonSampled<'a>>,
    entered: Option<u64>,
    errors: Option<u64>,
    syscalls: &'a [SyscallRow],
}

impl Report for SyscallsOptions {
    fn thread_filter(&self) -> Option<&ThreadFilter> {
        Some(&self.threads)
    }

    fn text(&self, profile: &Profile, style: Style) -> Result<String> {
        let SyscallTable { totals, entered, rows } = find(profile, self)?;
        let mut out = threads_line(&self.threads) + &header(profile, &totals, self.region.as_deref());
        let user = totals.user_ticks.get();
        let percent = fixed(share(user, totals.elapsed_ticks.get()), 2);
        let measure = TickUnit::of(profile);
        let head = if measure == TickUnit::Time { "User time" } else { "User instructions" };
        out += &format!("{head:<20} = {}  ({percent:>6}%)\n", run_time(profile, user));
        let done = rows.iter().filter_map(|row| row.calls).fold(0, u64::saturating_add);
        if let Some(entered) = entered {
            // Entries without a function of their own: numbers that no system call has.
            let other = match entered.abs_diff(done) {
                0 => String::new(),
                _ => format!("  ({} reached the function of one)", grouped(done)),
            };
            out += &format!("{:<20} = {}{other}\n", "System calls", grouped(entered));
        }
        out.push('\n');
        // Samples and call paths have no ends of calls.
        let measured = !sampled::is(profile) && rows.iter().any(|row| row.ended > 0);
        let largest = |of: fn(&SyscallRow) -> u64| measure.row_unit(rows.iter().map(of).max().unwrap_or(0));
        let (total, call) = (largest(|row| row.elapsed_ns), largest(|row| row.slowest_ticks.max(row.avg_ns)));
        let open = measured && rows.iter().any(|row| row.calls.is_some_and(|calls| calls != row.ended));
        let head = |head: &str, unit: DisplayUnit| (format!("{head}\n{}", unit.name()), Alignment::Right);
        let plain = |head: &str| (head.to_string(), Alignment::Right);
        let mut heads = vec![plain("% busy"), head("total", total), head("self", total), plain("calls")];
        if open {
            heads.push(plain("ended"));
        }
        heads.push(head("per call", call));
        if measured {
            heads.push(head("slowest", call));
        }
        heads.push(("system call".into(), Alignment::Left));
        let mut table = TableBuilder::with(heads.iter().map(|(head, side)| (head.as_str(), *side)));
        let shown = self.top.unwrap_or(crate::DEFAULT_ROWS).min(rows.len());
        for row in &rows[..shown] {
            let mut cells = vec![
                fixed(share(row.elapsed_ns, totals.busy_ticks.get()), 2).into(),
                // Unknown for calls that never end, such as exit_group.
                if row.elapsed_ns > 0 { total.format(row.elapsed_ns) } else { "-".into() }.into(),
                total.format(row.self_ns).into(),
                row.calls.map_or(String::new(), grouped).into(),
            ];
            if open {
                let ended = if row.calls == Some(row.ended) { String::new() } else { grouped(row.ended) };
                cells.push(ended.into());
            }
            cells.push(if row.elapsed_ns > 0 { call.format(row.avg_ns) } else { "-".into() }.into());
            if measured {
                cells.push(if row.ended > 0 { call.format(row.slowest_ticks) } else { "-".into() }.into());
            }
            cells.push(printable(&row.name).into());
            table.row_of(cells);
        }
        out += &table.render(style);
        if shown < rows.len() {
            let more = format!("{} more system calls (--top)\n", grouped((rows.len() - shown) as u64));
            out += &style.paint(TextRole::Faint, &more);
        }
        if open {
            let ended = "ended: calls that ended, if their number differs from the calls made here; per \
                         call, slowest and total are of those\n";
            out += &style.paint(TextRole::Faint, ended);
        }
        out += &style.paint(TextRole::Faint, &format!("{ERRORS}\n"));
        out += &health::text(profile, style);
        Ok(out)
    }

    fn json(&self, profile: &Profile) -> Result<String> {
        let SyscallTable { totals, entered, rows } = find(profile, self)?;
        crate::to_json(&SyscallsReport {
            head: JsonHead::new(SCHEMA, profile, &self.region).of(&self.threads),
            elapsed_ns: totals.elapsed_ticks.get(),
            busy_ticks: totals.busy_ticks.get(),
            user_ticks: totals.user_ticks.get(),
            sampled: sampled::json(profile),
            entered,
            errors: None,
            syscalls: &rows[..self.top.unwrap_or(rows.len()).min(rows.len())],
        })
    }
}
