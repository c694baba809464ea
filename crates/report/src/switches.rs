//! Context switches: how often, why, and from whom to whom.

use crate::columns::{Columns, Side};
use crate::head::Head;
use crate::style::{printable, Role};
use crate::unit::{header, per_second};
use crate::view::{scope, share};
use crate::{health, Result, Style};
use kerntune_compare::number::{figure, fixed, grouped};
use kerntune_profile::{Profile, ScopeTotals, SwitchKind};
use serde::Serialize;
use std::collections::BTreeMap;

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-switches/1";

/// What of the tables is wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// At most so many reasons, and pairs; all if none.
    pub top: Option<usize>,
    /// Only the regions of this name; all if none.
    pub region: Option<String>,
}

#[derive(Debug, Serialize)]
struct Reason {
    /// None where no function was open.
    reason: Option<String>,
    kind: SwitchKind,
    count: u64,
}

#[derive(Debug, Serialize)]
struct Pair {
    from: String,
    to: String,
    count: u64,
    preempted: u64,
}

struct Found {
    totals: ScopeTotals,
    count: u64,
    voluntary: u64,
    preempted: u64,
    reasons: Vec<Reason>,
    pairs: Vec<Pair>,
}

fn find(profile: &Profile, options: &Options) -> Result<Found> {
    let tables = &profile.tables;
    let scope = scope(profile, options.region.as_deref())?;
    let mut kinds: BTreeMap<SwitchKind, u64> = BTreeMap::new();
    let mut reasons: BTreeMap<(Option<&str>, SwitchKind), u64> = BTreeMap::new();
    let mut pairs: BTreeMap<(&str, &str), [u64; 2]> = BTreeMap::new();
    let add = |sum: &mut u64, count: u64| *sum = sum.saturating_add(count);
    for row in tables.switches.iter().filter(|row| scope.contains(row.region)) {
        let reason = row.reason.known().map(|function| tables.name(function));
        add(kinds.entry(row.kind).or_default(), row.count);
        add(reasons.entry((reason, row.kind)).or_default(), row.count);
        let [all, preempted] = pairs.entry((&row.from, &row.to)).or_default();
        add(all, row.count);
        add(preempted, if row.kind == SwitchKind::Preempted { row.count } else { 0 });
    }
    let mut reasons: Vec<Reason> = reasons
        .into_iter()
        .map(|((reason, kind), count)| Reason { reason: reason.map(Into::into), kind, count })
        .collect();
    reasons.sort_by_key(|row| std::cmp::Reverse(row.count));
    let mut pairs: Vec<Pair> = pairs
        .into_iter()
        .map(|((from, to), [count, preempted])| Pair { from: from.into(), to: to.into(), count, preempted })
        .collect();
    pairs.sort_by_key(|row| std::cmp::Reverse(row.count));
    let of = |kind| kinds.get(&kind).copied().unwrap_or(0);
    let (voluntary, preempted) = (of(SwitchKind::Voluntary), of(SwitchKind::Preempted));
    let count = voluntary.saturating_add(preempted);
    Ok(Found { totals: scope.totals(profile), count, voluntary, preempted, reasons, pairs })
}

/// Header and both tables as text.
pub fn text(profile: &Profile, options: &Options, style: Style) -> Result<String> {
    let found = find(profile, options)?;
    let mut out = header(&found.totals, options.region.as_deref());
    let rate = |count| figure(per_second(count, found.totals.elapsed_ns.get()));
    let mut line = |head: &str, count: u64| {
        let text = format!("{head:<20} = {:>13}  ({} per second", grouped(count), rate(count));
        let of = fixed(share(count, found.count), 2);
        out += &if head == "Context switches" { text + ")\n" } else { format!("{text}, {of}%)\n") };
    };
    line("Context switches", found.count);
    line("Voluntary", found.voluntary);
    line("Preempted", found.preempted);
    if found.count > 0 {
        out.push('\n');
        out += &reasons(&found, options).render(style);
        out += &more("reasons", options.top, found.reasons.len(), style);
        out.push('\n');
        out += &pairs(&found, options).render(style);
        out += &more("pairs", options.top, found.pairs.len(), style);
    }
    out += &health::text(profile, style);
    Ok(out)
}

fn more(what: &str, top: Option<usize>, all: usize, style: Style) -> String {
    match top.filter(|top| *top < all) {
        Some(top) => {
            style.paint(Role::Faint, &format!("{} more {what} (--top)\n", grouped((all - top) as u64)))
        }
        None => String::new(),
    }
}

fn reasons(found: &Found, options: &Options) -> Columns {
    let mut table = Columns::new([
        ("switches", Side::Right),
        ("%", Side::Right),
        ("kind", Side::Left),
        ("reason: called the scheduler", Side::Left),
    ]);
    for row in found.reasons.iter().take(options.top.unwrap_or(usize::MAX)) {
        table.row([
            grouped(row.count).into(),
            fixed(share(row.count, found.count), 2).into(),
            row.kind.word().into(),
            printable(row.reason.as_deref().unwrap_or("[no function open]")).into(),
        ]);
    }
    table
}

fn pairs(found: &Found, options: &Options) -> Columns {
    let mut table = Columns::new([
        ("switches", Side::Right),
        ("%", Side::Right),
        ("preempted", Side::Right),
        ("from", Side::Left),
        ("to", Side::Left),
    ]);
    for row in found.pairs.iter().take(options.top.unwrap_or(usize::MAX)) {
        table.row([
            grouped(row.count).into(),
            fixed(share(row.count, found.count), 2).into(),
            grouped(row.preempted).into(),
            printable(&row.from).into(),
            printable(&row.to).into(),
        ]);
    }
    table
}

#[derive(Serialize)]
struct Json<'a> {
    #[serde(flatten)]
    head: Head<'a>,
    elapsed_ns: u64,
    count: u64,
    per_second: f64,
    voluntary: u64,
    preempted: u64,
    reasons: &'a [Reason],
    pairs: &'a [Pair],
}

/// The same as JSON (`docs/json.md`), with a newline at its end.
pub fn json(profile: &Profile, options: &Options) -> Result<String> {
    let found = find(profile, options)?;
    let top = |all: usize| options.top.unwrap_or(all).min(all);
    crate::to_json(&Json {
        head: Head::new(SCHEMA, profile, &options.region),
        elapsed_ns: found.totals.elapsed_ns.get(),
        count: found.count,
        per_second: per_second(found.count, found.totals.elapsed_ns.get()),
        voluntary: found.voluntary,
        preempted: found.preempted,
        reasons: &found.reasons[..top(found.reasons.len())],
        pairs: &found.pairs[..top(found.pairs.len())],
    })
}
