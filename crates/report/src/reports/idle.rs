//! Idle time: its amount, lengths of idle stretches, and the wakers that ended them.

use super::{entry, Entry, Report};
use kerntune_table::columns::{Alignment, TableBuilder};
use crate::head::JsonHead;
use kerntune_table::printable;
use crate::tally::{BucketTally, HistogramRow};
use crate::unit::{header, readable, DisplayUnit};
use crate::view::scope;
use kerntune_table::share;
use crate::{health, Result, Style};
use clap::Args;
use kerntune_table::number::{fixed, grouped};
use kerntune_profile::{Profile, ScopeTotals, Ticks};
use serde::Serialize;
use std::collections::BTreeMap;

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-idle/1";

/// Registry entry of `kerntune report PROFILE idle`.
pub const ENTRY: Entry = entry::<IdleOptions>("idle", 10);

/// Idle time: stretches by length, and their wakers
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct IdleOptions {
    /// Show only what happened in the regions of this name
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
}

#[derive(Debug, Serialize)]
struct IdleWaker {
    /// `None` if unknown.
    waker: Option<String>,
    count: u64,
    idle_ns: u64,
}

struct IdleTables {
    totals: ScopeTotals,
    stretches: BucketTally,
    wakers: Vec<IdleWaker>,
}

fn find(profile: &Profile, options: &IdleOptions) -> Result<IdleTables> {
    let tables = &profile.tables;
    let scope = scope(profile, options.region.as_deref())?;
    let mut stretches = BucketTally::default();
    let mut wakers: BTreeMap<Option<&str>, (u64, u64)> = BTreeMap::new();
    for row in tables.idles.iter().filter(|row| scope.contains(row.region)) {
        stretches.add(row.bucket, row.count, Ticks::ZERO);
        let sum = wakers.entry(row.waker.known().map(|function| tables.name(function))).or_default();
        *sum = (sum.0.saturating_add(row.count), sum.1.saturating_add(row.idle_ticks.get()));
    }
    let waker = |(waker, (count, idle_ns)): (Option<&str>, _)| IdleWaker {
        waker: waker.map(Into::into),
        count,
        idle_ns,
    };
    let mut wakers: Vec<IdleWaker> = wakers.into_iter().map(waker).collect();
    wakers.sort_by_key(|row| std::cmp::Reverse((row.count, row.idle_ns)));
    Ok(IdleTables { totals: scope.totals(profile), stretches, wakers })
}

fn mean(idle: u64, count: u64) -> u64 {
    idle.saturating_add(count / 2).checked_div(count).unwrap_or(0)
}

fn wakers(found: &IdleTables) -> TableBuilder {
    let unit = DisplayUnit::for_largest(found.wakers.iter().map(|row| row.idle_ns).max().unwrap_or(0));
    let mut table = TableBuilder::new([
        ("stretches", Alignment::Right),
        (format!("idle\n{}", unit.name()).as_str(), Alignment::Right),
        ("% idle", Alignment::Right),
        ("avg\nns", Alignment::Right),
        ("ended by", Alignment::Left),
    ]);
    for row in &found.wakers {
        table.row([
            grouped(row.count).into(),
            unit.format(row.idle_ns).into(),
            fixed(share(row.idle_ns, found.totals.idle_ticks.get()), 2).into(),
            grouped(mean(row.idle_ns, row.count)).into(),
            printable(row.waker.as_deref().unwrap_or("[no interrupt seen]")).into(),
        ]);
    }
    table
}

/// JSON document of this report; [`SCHEMA`] names its version.
#[derive(Serialize)]
struct IdleReport<'a> {
    #[serde(flatten)]
    head: JsonHead<'a>,
    elapsed_ns: u64,
    idle_ns: u64,
    stretches: u64,
    avg_ns: u64,
    wakers: &'a [IdleWaker],
    buckets: Vec<JsonIdleBucket>,
}

#[derive(Serialize)]
struct JsonIdleBucket {
    from_ns: u64,
    to_ns: u64,
    count: u64,
}

impl Report for IdleOptions {
    fn text(&self, profile: &Profile, style: Style) -> Result<String> {
        let found = find(profile, self)?;
        let mut out = header(profile, &found.totals, self.region.as_deref());
        let (idle, count) = (found.totals.idle_ticks.get(), found.stretches.count());
        out += &format!("{:<20} = {:>13}", "Stretches", grouped(count));
        out += &match count {
            0 => "\n".to_string(),
            _ => format!("  ({} on average)\n", readable(mean(idle, count))),
        };
        if count > 0 {
            out.push('\n');
            out += &wakers(&found).render(style);
            out.push('\n');
            out += &found.stretches.table("ns", "stretches").render(style);
        }
        out += &health::text(profile, style);
        Ok(out)
    }

    fn json(&self, profile: &Profile) -> Result<String> {
        let found = find(profile, self)?;
        let count = found.stretches.count();
        let row =
            |row: HistogramRow| JsonIdleBucket { from_ns: row.from_ns, to_ns: row.to_ns, count: row.count };
        crate::to_json(&IdleReport {
            head: JsonHead::new(SCHEMA, profile, &self.region),
            elapsed_ns: found.totals.elapsed_ticks.get(),
            idle_ns: found.totals.idle_ticks.get(),
            stretches: count,
            avg_ns: mean(found.totals.idle_ticks.get(), count),
            wakers: &found.wakers,
            buckets: found.stretches.rows().into_iter().map(row).collect(),
        })
    }
}
