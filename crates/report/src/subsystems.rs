//! Time by groups of functions, and calls between the groups.

use kerntune_table::columns::{Alignment, TableBuilder};
use crate::groups::Grouping;
use crate::head::JsonHead;
use kerntune_table::{printable, TextRole};
use crate::unit::{header, TickUnit};
use crate::view::scope;
use kerntune_table::share;
use crate::{health, sampled, Result, Style};
use kerntune_table::number::{fixed, grouped};
use kerntune_profile::{CallKind, FunctionIndex, Profile, ScopeTotals};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-subsystems/3";

/// Options of the subsystems report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubsystemsOptions {
    /// Rule that assigns functions to groups.
    pub grouping: Grouping,
    /// Adds the matrix of calls between groups.
    pub matrix: bool,
    /// Largest number of groups and of pairs; `None` for all.
    pub top: Option<usize>,
    /// Region to report on; `None` for the whole profile.
    pub region: Option<String>,
}

#[derive(Debug, Default, Serialize)]
struct SubsystemRow {
    group: String,
    #[serde(rename = "self")]
    self_ticks: u64,
    calls: u64,
    functions: u64,
}

/// Calls from one group into another, or within a group.
#[derive(Debug, Serialize)]
struct GroupPair {
    from: String,
    to: String,
    calls: u64,
    #[serde(rename = "elapsed")]
    elapsed_ns: u64,
}

struct SubsystemTables {
    totals: ScopeTotals,
    /// Most self time first; user and unattributed time last. Their self times sum to the busy
    /// time.
    groups: Vec<SubsystemRow>,
    /// Most total time first.
    matrix: Vec<GroupPair>,
}

fn find(profile: &Profile, options: &SubsystemsOptions) -> Result<SubsystemTables> {
    let tables = &profile.tables;
    let scope = scope(profile, options.region.as_deref())?;
    let totals = scope.totals(profile);
    let mut known: HashMap<FunctionIndex, String> = HashMap::new();
    let mut of = |function: FunctionIndex| {
        known.entry(function).or_insert_with(|| options.grouping.of(&tables.symbols, function)).clone()
    };
    let mut groups: BTreeMap<String, (SubsystemRow, BTreeSet<FunctionIndex>)> = BTreeMap::new();
    for row in tables.functions.iter().filter(|row| scope.contains(row.region)) {
        let (group, functions) = groups.entry(of(row.function)).or_default();
        group.self_ticks = group.self_ticks.saturating_add(row.self_ticks.get());
        group.calls = group.calls.saturating_add(row.calls);
        functions.insert(row.function);
    }
    let mut groups: Vec<SubsystemRow> = groups
        .into_iter()
        .map(|(name, (group, functions))| SubsystemRow {
            group: name,
            functions: functions.len() as u64,
            ..group
        })
        .collect();
    groups.sort_by(|a, b| b.self_ticks.cmp(&a.self_ticks).then_with(|| a.group.cmp(&b.group)));
    let mut pairs: BTreeMap<(String, String), (u64, u64)> = BTreeMap::new();
    for arc in tables.arcs.iter().filter(|arc| scope.contains(arc.region)) {
        let from = match (arc.caller.known(), arc.how) {
            (Some(caller), _) => of(caller),
            (None, CallKind::Interrupt) => "[interrupt]".into(),
            (None, CallKind::Syscall) => "[syscall]".into(),
            // Without an open kernel function, user code raised the exception.
            (None, CallKind::Exception) => "[user]".into(),
            (None, CallKind::Call | CallKind::Jump) => "[nothing]".into(),
        };
        let sum = pairs.entry((from, of(arc.callee))).or_default();
        *sum = (sum.0.saturating_add(arc.calls), sum.1.saturating_add(arc.total_ticks.get()));
    }
    let pair = |((from, to), (calls, elapsed_ns))| GroupPair { from, to, calls, elapsed_ns };
    let mut matrix: Vec<GroupPair> = pairs.into_iter().map(pair).collect();
    matrix.sort_by(|a, b| {
        b.elapsed_ns.cmp(&a.elapsed_ns).then_with(|| (&a.from, &a.to).cmp(&(&b.from, &b.to)))
    });
    Ok(SubsystemTables { totals, groups, matrix })
}

/// Renders header, groups and matrix as text.
pub fn text(profile: &Profile, options: &SubsystemsOptions, style: Style) -> Result<String> {
    let found = find(profile, options)?;
    let busy = found.totals.busy_ticks.get();
    let mut out = header(profile, &found.totals, options.region.as_deref());
    out.push('\n');
    let beside = [
        ("[user]", found.totals.user_ticks.get()),
        ("[unattributed]", found.totals.unattributed_ticks.get()),
    ];
    let unit = TickUnit::of(profile).unit(busy);
    let has_calls = sampled::has_calls(profile);
    let error = format!("{} net\n{}", sampled::ERROR, unit.name());
    let mut table = TableBuilder::new([
        (format!("net\n{}", unit.name()).as_str(), Alignment::Right),
        ("% net", Alignment::Right),
        (if has_calls { "calls" } else { &error }, Alignment::Right),
        ("functions", Alignment::Right),
        ("group", Alignment::Left),
    ]);
    let calls = |group: &SubsystemRow| match has_calls {
        true => grouped(group.calls),
        false => sampled::error(profile, group.self_ticks, unit),
    };
    let shown = options.top.unwrap_or(found.groups.len()).min(found.groups.len());
    let (groups, rest) = found.groups.split_at(shown);
    for group in groups {
        table.row([
            unit.format(group.self_ticks).into(),
            fixed(share(group.self_ticks, busy), 2).into(),
            calls(group).into(),
            grouped(group.functions).into(),
            printable(&group.group).into(),
        ]);
    }
    let mut more = |name: &str, net: u64| {
        table.row([
            unit.format(net).into(),
            fixed(share(net, busy), 2).into(),
            "".into(),
            "".into(),
            name.into(),
        ]);
    };
    if !rest.is_empty() {
        let net = rest.iter().fold(0, |sum: u64, group| sum.saturating_add(group.self_ticks));
        more(&format!("{} more groups (--top)", grouped(rest.len() as u64)), net);
    }
    beside.iter().filter(|(_, net)| *net > 0).for_each(|(name, net)| more(name, *net));
    out += &table.render(style);
    if options.matrix {
        out += &matrix(profile, &found, options, style);
    }
    out += &health::text(profile, style);
    Ok(out)
}

/// Renders the calls between groups; calls within a group are left out.
fn matrix(profile: &Profile, found: &SubsystemTables, options: &SubsystemsOptions, style: Style) -> String {
    let pairs: Vec<&GroupPair> = found.matrix.iter().filter(|pair| pair.from != pair.to).collect();
    let unit = TickUnit::of(profile).unit(pairs.iter().map(|pair| pair.elapsed_ns).max().unwrap_or(0));
    let has_calls = sampled::has_calls(profile);
    let error = format!("{}\n{}", sampled::ERROR, unit.name());
    let calls = |pair: &GroupPair| match has_calls {
        true => grouped(pair.calls),
        false => sampled::error(profile, pair.elapsed_ns, unit),
    };
    let mut table = TableBuilder::new([
        (format!("elapsed\n{}", unit.name()).as_str(), Alignment::Right),
        ("% busy", Alignment::Right),
        (if has_calls { "calls" } else { &error }, Alignment::Right),
        ("from", Alignment::Left),
        ("into", Alignment::Left),
    ]);
    let shown = options.top.unwrap_or(pairs.len()).min(pairs.len());
    for pair in pairs.iter().take(shown) {
        table.row([
            unit.format(pair.elapsed_ns).into(),
            fixed(share(pair.elapsed_ns, found.totals.busy_ticks.get()), 2).into(),
            calls(pair).into(),
            printable(&pair.from).into(),
            printable(&pair.to).into(),
        ]);
    }
    let mut out = format!("\n{}", table.render(style));
    if shown < pairs.len() {
        let rest = format!("{} more pairs (--top)\n", grouped((pairs.len() - shown) as u64));
        out += &style.paint(TextRole::Faint, &rest);
    }
    out
}

/// JSON document of this report; [`SCHEMA`] names its version.
#[derive(Serialize)]
struct SubsystemsReport<'a> {
    #[serde(flatten)]
    head: JsonHead<'a>,
    elapsed_ns: u64,
    #[serde(rename = "busy")]
    busy_ticks: u64,
    idle_ns: u64,
    #[serde(rename = "user")]
    user_ticks: u64,
    #[serde(rename = "unattributed")]
    unattributed_ticks: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    sampled: Option<sampled::JsonSampled<'a>>,
    groups: &'a [SubsystemRow],
    matrix: Option<&'a [GroupPair]>,
}

/// Renders the JSON document (`docs/json.md`), with a newline at its end. It includes calls within
/// a group.
pub fn json(profile: &Profile, options: &SubsystemsOptions) -> Result<String> {
    let found = find(profile, options)?;
    let top = |all: usize| options.top.unwrap_or(all).min(all);
    crate::to_json(&SubsystemsReport {
        head: JsonHead::new(SCHEMA, profile, &options.region),
        elapsed_ns: found.totals.elapsed_ticks.get(),
        busy_ticks: found.totals.busy_ticks.get(),
        idle_ns: found.totals.idle_ticks.get(),
        user_ticks: found.totals.user_ticks.get(),
        unattributed_ticks: found.totals.unattributed_ticks.get(),
        sampled: sampled::json(profile),
        groups: &found.groups[..top(found.groups.len())],
        matrix: options.matrix.then(|| &found.matrix[..top(found.matrix.len())]),
    })
}
