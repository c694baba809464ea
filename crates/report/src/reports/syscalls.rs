//! System calls: how many, and what they took.

use super::{entry, Entry, Report};
use crate::columns::{Columns, Side};
use crate::head::{of_threads, Head};
use crate::style::{printable, Role};
use crate::system_calls::system_call;
use crate::unit::{header, run_time, Measure, TimeUnit};
use crate::view::{scope, share};
use crate::{health, sampled, Result, Style, Who};
use clap::{Args, ValueEnum};
use kerntune_compare::number::{fixed, grouped};
use kerntune_profile::{FunctionTotals, How, Profile, ScopeTotals};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-syscalls/2";

/// `kerntune report PROFILE syscalls`.
pub const ENTRY: Entry = entry::<Options>("syscalls", 6);

/// What stands below the table, and in JSON.
const ERRORS: &str = "failed calls are not distinguished: return values are not recorded";

/// What the table is ordered by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    /// Time with callees, greatest first.
    #[default]
    Total,
    /// Time in the system call's own function, greatest first.
    #[value(name = "self")]
    Own,
    /// Calls that were made, most first.
    Calls,
    /// Time per call, greatest first.
    Avg,
    /// Name, A to Z.
    Name,
}

/// System calls: how many, and what they took (as strace -c)
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct Options {
    /// Show at most N system calls [default: 40 in text, all in JSON]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// Order: total, self, calls, avg, name
    #[arg(long, value_enum, default_value_t, hide_possible_values = true, value_name = "KEY")]
    pub sort: Sort,
    /// Only what happened in the regions of this name
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
    /// Only what these threads did.
    #[command(flatten)]
    pub who: Who,
}

/// A system call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Row {
    name: String,
    /// None where calls are not counted.
    calls: Option<u64>,
    ended: u64,
    /// In the function of the system call itself.
    #[serde(rename = "self")]
    self_ns: u64,
    /// With what it calls, of the calls that ended.
    #[serde(rename = "elapsed")]
    elapsed_ns: u64,
    #[serde(rename = "avg")]
    avg_ns: u64,
    /// Elapsed time of the slowest, and when it began.
    #[serde(rename = "slowest")]
    slowest_ns: u64,
    slowest_at_ns: u64,
}

struct Found {
    totals: ScopeTotals,
    /// How often the kernel was entered by one; none where that is not counted.
    entered: Option<u64>,
    rows: Vec<Row>,
}

fn find(profile: &Profile, options: &Options) -> Result<Found> {
    let tables = &profile.tables;
    let scope = scope(profile, options.region.as_deref())?;
    let kernel = || tables.symbols.iter().filter(|symbol| symbol.module.is_none());
    // Of a system call without arguments the inner name is another name of the outer function; else the outer calls it.
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
        // Of sampled times no end of a call is known.
        let each = if totals.ended > 0 { Some(totals.ended) } else { calls };
        Row {
            name,
            calls,
            ended: totals.ended,
            self_ns: totals.net_ns.get(),
            elapsed_ns: totals.elapsed_ns.get(),
            avg_ns: each.and_then(|calls| totals.elapsed_ns.get().checked_div(calls)).unwrap_or(0),
            slowest_ns: totals.slowest_ns.get(),
            slowest_at_ns: totals.slowest_at_ns.get(),
        }
    };
    let mut rows: Vec<Row> = by_name.into_iter().map(row).collect();
    // Stable: what is equal stays in the order of names.
    match options.sort {
        Sort::Total => rows.sort_by_key(|row| Reverse((row.elapsed_ns, row.calls))),
        Sort::Own => rows.sort_by_key(|row| Reverse((row.self_ns, row.calls))),
        Sort::Calls => rows.sort_by_key(|row| Reverse(row.calls)),
        Sort::Avg => rows.sort_by_key(|row| Reverse(row.avg_ns)),
        Sort::Name => {}
    }
    let entries = tables.arcs.iter().filter(|arc| arc.how == How::Syscall && scope.contains(arc.region));
    let entered = entries.fold(0, |sum: u64, arc| sum.saturating_add(arc.calls));
    let counted = !sampled::is(profile) && tables.arcs.iter().any(|arc| arc.how == How::Syscall);
    Ok(Found { totals: scope.totals(profile), entered: counted.then_some(entered), rows })
}

#[derive(Serialize)]
struct Json<'a> {
    #[serde(flatten)]
    head: Head<'a>,
    elapsed_ns: u64,
    #[serde(rename = "busy")]
    busy_ns: u64,
    #[serde(rename = "user")]
    user_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    sampled: Option<sampled::JsonSampled<'a>>,
    entered: Option<u64>,
    errors: Option<u64>,
    syscalls: &'a [Row],
}

impl Report for Options {
    fn who(&self) -> Option<&Who> {
        Some(&self.who)
    }

    fn text(&self, profile: &Profile, style: Style) -> Result<String> {
        let Found { totals, entered, rows } = find(profile, self)?;
        let mut out = of_threads(&self.who) + &header(profile, &totals, self.region.as_deref());
        let user = totals.user_ns.get();
        let percent = fixed(share(user, totals.elapsed_ns.get()), 2);
        let measure = Measure::of(profile);
        let head = if measure == Measure::Time { "User time" } else { "User instructions" };
        out += &format!("{head:<20} = {}  ({percent:>6}%)\n", run_time(profile, user));
        let done = rows.iter().filter_map(|row| row.calls).fold(0, u64::saturating_add);
        if let Some(entered) = entered {
            // What is not done by a function of its own: a number that no system call has.
            let other = match entered.abs_diff(done) {
                0 => String::new(),
                _ => format!("  ({} reached the function of one)", grouped(done)),
            };
            out += &format!("{:<20} = {}{other}\n", "System calls", grouped(entered));
        }
        out.push('\n');
        // Sampling and call paths do not say when a call ended.
        let measured = !sampled::is(profile) && rows.iter().any(|row| row.ended > 0);
        let largest = |of: fn(&Row) -> u64| measure.row_unit(rows.iter().map(of).max().unwrap_or(0));
        let (total, call) = (largest(|row| row.elapsed_ns), largest(|row| row.slowest_ns.max(row.avg_ns)));
        let open = measured && rows.iter().any(|row| row.calls.is_some_and(|calls| calls != row.ended));
        let head = |head: &str, unit: TimeUnit| (format!("{head}\n{}", unit.name()), Side::Right);
        let plain = |head: &str| (head.to_string(), Side::Right);
        let mut heads = vec![plain("% busy"), head("total", total), head("self", total), plain("calls")];
        if open {
            heads.push(plain("ended"));
        }
        heads.push(head("per call", call));
        if measured {
            heads.push(head("slowest", call));
        }
        heads.push(("system call".into(), Side::Left));
        let mut table = Columns::with(heads.iter().map(|(head, side)| (head.as_str(), *side)));
        let shown = self.top.unwrap_or(crate::TOP).min(rows.len());
        for row in &rows[..shown] {
            let mut cells = vec![
                fixed(share(row.elapsed_ns, totals.busy_ns.get()), 2).into(),
                // Of calls that never end, exit_group's, it is not known.
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
                cells.push(if row.ended > 0 { call.format(row.slowest_ns) } else { "-".into() }.into());
            }
            cells.push(printable(&row.name).into());
            table.row_of(cells);
        }
        out += &table.render(style);
        if shown < rows.len() {
            let more = format!("{} more system calls (--top)\n", grouped((rows.len() - shown) as u64));
            out += &style.paint(Role::Faint, &more);
        }
        if open {
            let ended = "ended: calls that ended, if their number differs from the calls made here; per \
                         call, slowest and total are of those\n";
            out += &style.paint(Role::Faint, ended);
        }
        out += &style.paint(Role::Faint, &format!("{ERRORS}\n"));
        out += &health::text(profile, style);
        Ok(out)
    }

    fn json(&self, profile: &Profile) -> Result<String> {
        let Found { totals, entered, rows } = find(profile, self)?;
        crate::to_json(&Json {
            head: Head::new(SCHEMA, profile, &self.region).of(&self.who),
            elapsed_ns: totals.elapsed_ns.get(),
            busy_ns: totals.busy_ns.get(),
            user_ns: totals.user_ns.get(),
            sampled: sampled::json(profile),
            entered,
            errors: None,
            syscalls: &rows[..self.top.unwrap_or(rows.len()).min(rows.len())],
        })
    }
}
