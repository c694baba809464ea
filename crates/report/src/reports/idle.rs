//! Idle time: how much, in stretches of what length, and what ended them.

use super::{entry, Entry, Report};
use crate::columns::{Columns, Side};
use crate::head::Head;
use crate::style::printable;
use crate::tally::{Row, Tally};
use crate::unit::{header, readable, TimeUnit};
use crate::view::{scope, share};
use crate::{health, Result, Style};
use clap::Args;
use kerntune_compare::number::{fixed, grouped};
use kerntune_profile::{Nanoseconds, Profile, ScopeTotals};
use serde::Serialize;
use std::collections::BTreeMap;

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-idle/1";

/// `kerntune report PROFILE idle`.
pub const ENTRY: Entry = entry::<Options>("idle", 10);

/// Idle time: stretches by length, and what ended them
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct Options {
    /// Only what happened in the regions of this name
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
}

#[derive(Debug, Serialize)]
struct Waker {
    /// None where it is not known.
    waker: Option<String>,
    count: u64,
    idle_ns: u64,
}

struct Found {
    totals: ScopeTotals,
    stretches: Tally,
    wakers: Vec<Waker>,
}

fn find(profile: &Profile, options: &Options) -> Result<Found> {
    let tables = &profile.tables;
    let scope = scope(profile, options.region.as_deref())?;
    let mut stretches = Tally::default();
    let mut wakers: BTreeMap<Option<&str>, (u64, u64)> = BTreeMap::new();
    for row in tables.idles.iter().filter(|row| scope.contains(row.region)) {
        stretches.add(row.bucket, row.count, Nanoseconds::ZERO);
        let sum = wakers.entry(row.waker.known().map(|function| tables.name(function))).or_default();
        *sum = (sum.0.saturating_add(row.count), sum.1.saturating_add(row.idle_ns.get()));
    }
    let waker =
        |(waker, (count, idle_ns)): (Option<&str>, _)| Waker { waker: waker.map(Into::into), count, idle_ns };
    let mut wakers: Vec<Waker> = wakers.into_iter().map(waker).collect();
    wakers.sort_by_key(|row| std::cmp::Reverse((row.count, row.idle_ns)));
    Ok(Found { totals: scope.totals(profile), stretches, wakers })
}

fn mean(idle: u64, count: u64) -> u64 {
    idle.saturating_add(count / 2).checked_div(count).unwrap_or(0)
}

fn wakers(found: &Found) -> Columns {
    let unit = TimeUnit::for_largest(found.wakers.iter().map(|row| row.idle_ns).max().unwrap_or(0));
    let mut table = Columns::new([
        ("stretches", Side::Right),
        (format!("idle\n{}", unit.name()).as_str(), Side::Right),
        ("% idle", Side::Right),
        ("avg\nns", Side::Right),
        ("ended by", Side::Left),
    ]);
    for row in &found.wakers {
        table.row([
            grouped(row.count).into(),
            unit.format(row.idle_ns).into(),
            fixed(share(row.idle_ns, found.totals.idle_ns.get()), 2).into(),
            grouped(mean(row.idle_ns, row.count)).into(),
            printable(row.waker.as_deref().unwrap_or("[no interrupt seen]")).into(),
        ]);
    }
    table
}

#[derive(Serialize)]
struct Json<'a> {
    #[serde(flatten)]
    head: Head<'a>,
    elapsed_ns: u64,
    idle_ns: u64,
    stretches: u64,
    avg_ns: u64,
    wakers: &'a [Waker],
    buckets: Vec<JsonRow>,
}

#[derive(Serialize)]
struct JsonRow {
    from_ns: u64,
    to_ns: u64,
    count: u64,
}

impl Report for Options {
    fn text(&self, profile: &Profile, style: Style) -> Result<String> {
        let found = find(profile, self)?;
        let mut out = header(profile, &found.totals, self.region.as_deref());
        let (idle, count) = (found.totals.idle_ns.get(), found.stretches.count());
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
        let row = |row: Row| JsonRow { from_ns: row.from_ns, to_ns: row.to_ns, count: row.count };
        crate::to_json(&Json {
            head: Head::new(SCHEMA, profile, &self.region),
            elapsed_ns: found.totals.elapsed_ns.get(),
            idle_ns: found.totals.idle_ns.get(),
            stretches: count,
            avg_ns: mean(found.totals.idle_ns.get(), count),
            wakers: &found.wakers,
            buckets: found.stretches.rows().into_iter().map(row).collect(),
        })
    }
}
