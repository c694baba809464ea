//! Idle time: its amount, lengths of idle stretches, and the wakers that ended them.

use super::{entry, Entry, Report, Selection};
use crate::tally::{BucketTally, HistogramRow};
use crate::unit::{header, readable, DisplayUnit};
use crate::view::scope;
use crate::{head, health, Result};
use clap::Args;
use kerntune_profile::{Profile, Ticks};
use kerntune_table::number::grouped;
use kerntune_table::{Columns, Document, Table};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-idle/1";

/// Registry entry of `kerntune report PROFILE idle`.
pub const ENTRY: Entry = entry::<IdleOptions>("idle", 10);

/// Description of the JSON form.
const ABOUT: &str = "Idle time.";

/// Idle time: stretches by length, and their wakers
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct IdleOptions {
    /// Region and number of rows.
    #[command(flatten)]
    pub select: Selection,
}

#[derive(Default)]
struct IdleWaker<'a> {
    /// `None` if unknown.
    waker: Option<&'a str>,
    count: u64,
    idle_ticks: u64,
}

/// Returns the lengths of the stretches, and the wakers, most stretches first.
fn find<'a>(profile: &'a Profile, region: Option<&str>) -> Result<(BucketTally, Vec<IdleWaker<'a>>)> {
    let tables = &profile.tables;
    let scope = scope(profile, region)?;
    let mut stretches = BucketTally::default();
    let mut wakers: BTreeMap<Option<&str>, IdleWaker> = BTreeMap::new();
    for row in tables.idles.iter().filter(|row| scope.contains(row.region)) {
        stretches.add(row.bucket, row.count, Ticks::ZERO);
        let waker = row.waker.known().map(|function| tables.name(function));
        let sum = wakers.entry(waker).or_insert(IdleWaker { waker, ..IdleWaker::default() });
        sum.count = sum.count.saturating_add(row.count);
        sum.idle_ticks = sum.idle_ticks.saturating_add(row.idle_ticks.get());
    }
    let mut wakers: Vec<IdleWaker> = wakers.into_values().collect();
    wakers.sort_by_key(|row| Reverse((row.count, row.idle_ticks)));
    Ok((stretches, wakers))
}

fn mean(idle: u64, count: u64) -> u64 {
    idle.saturating_add(count / 2).checked_div(count).unwrap_or(0)
}

impl Report for IdleOptions {
    fn document<'a>(&'a self, profile: &'a Profile) -> Result<Document<'a>> {
        let Selection { top, region } = &self.select;
        let totals = scope(profile, region.as_deref())?.totals(profile);
        let (stretches, wakers) = find(profile, region.as_deref())?;
        let (idle, count) = (totals.idle_ticks.get(), stretches.count());
        let mut document = head::document(SCHEMA, ABOUT, profile, region.as_deref(), None);
        document.field("elapsed_ns", "Time inside regions.", totals.elapsed_ticks.get());
        document.field("idle_ns", "Time in which the CPU was halted.", idle);
        document.field("stretches", "Stretches of idle time.", count);
        document.field("avg_ns", "Mean length of a stretch.", mean(idle, count));
        document.text(header(profile, &totals, region.as_deref()));
        let average = match count {
            0 => String::new(),
            _ => format!("  ({} on average)", readable(mean(idle, count))),
        };
        document.line("Stretches", format!("{:>13}{average}", grouped(count)));
        let unit = DisplayUnit::for_largest(wakers.iter().map(|row| row.idle_ticks).max().unwrap_or(0));
        let mut columns = Columns::<IdleWaker>::new();
        columns.add("count", "Stretches that it ended.", |row| row.count).head("stretches");
        columns.add("idle_ns", "Idle time in these.", |row| row.idle_ticks).head("idle").unit(unit);
        columns.share("% idle", idle, |row| row.idle_ticks);
        columns.text_only("avg", |row| mean(row.idle_ticks, row.count)).unit(DisplayUnit::Nanoseconds);
        columns
            .add("waker", "Function of the interrupt that ended the stretches; null if unknown.", |row| {
                row.waker
            })
            .head("ended by")
            .null("[no interrupt seen]");
        document.table(
            Table::new("wakers", wakers, columns)
                .help("Most stretches first.")
                .noun("wakers")
                .top(*top)
                .hidden_if_empty(),
        );
        document.table(stretches.to_table("ns", "stretches"));
        let buckets = HistogramRow::columns("from_ns", "to_ns");
        document.table(Table::new("buckets", stretches.rows(), buckets).help("Stretches by length."));
        health::add(&mut document, profile);
        Ok(document)
    }
}
