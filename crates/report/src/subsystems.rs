//! Time by groups of functions, and who calls into whom.

use crate::columns::{Columns, Side};
use crate::groups::Grouping;
use crate::head::Head;
use crate::style::{printable, Role};
use crate::unit::{header, Measure};
use crate::view::{scope, share};
use crate::{health, sampled, Result, Style};
use kerntune_compare::number::{fixed, grouped};
use kerntune_profile::{FunctionIndex, How, Profile, ScopeTotals};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-subsystems/3";

/// What of the table is wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// What a group is.
    pub grouping: Grouping,
    /// Also who calls into whom.
    pub matrix: bool,
    /// At most so many groups, and pairs of them; all if none.
    pub top: Option<usize>,
    /// Only the regions of this name; all if none.
    pub region: Option<String>,
}

#[derive(Debug, Default, Serialize)]
struct Group {
    group: String,
    #[serde(rename = "self")]
    net_ns: u64,
    calls: u64,
    functions: u64,
}

/// Calls from one group into another, or into itself.
#[derive(Debug, Serialize)]
struct Pair {
    from: String,
    to: String,
    calls: u64,
    #[serde(rename = "elapsed")]
    elapsed_ns: u64,
}

struct Found {
    totals: ScopeTotals,
    /// Most net time first; user and unattributed time last. Their net times sum to the busy time.
    groups: Vec<Group>,
    /// Most elapsed time first.
    matrix: Vec<Pair>,
}

fn find(profile: &Profile, options: &Options) -> Result<Found> {
    let tables = &profile.tables;
    let scope = scope(profile, options.region.as_deref())?;
    let totals = scope.totals(profile);
    let mut known: HashMap<FunctionIndex, String> = HashMap::new();
    let mut of = |function: FunctionIndex| {
        known.entry(function).or_insert_with(|| options.grouping.of(&tables.symbols, function)).clone()
    };
    let mut groups: BTreeMap<String, (Group, BTreeSet<FunctionIndex>)> = BTreeMap::new();
    for row in tables.functions.iter().filter(|row| scope.contains(row.region)) {
        let (group, functions) = groups.entry(of(row.function)).or_default();
        group.net_ns = group.net_ns.saturating_add(row.net_ns.get());
        group.calls = group.calls.saturating_add(row.calls);
        functions.insert(row.function);
    }
    let mut groups: Vec<Group> = groups
        .into_iter()
        .map(|(name, (group, functions))| Group { group: name, functions: functions.len() as u64, ..group })
        .collect();
    groups.sort_by(|a, b| b.net_ns.cmp(&a.net_ns).then_with(|| a.group.cmp(&b.group)));
    let mut pairs: BTreeMap<(String, String), (u64, u64)> = BTreeMap::new();
    for arc in tables.arcs.iter().filter(|arc| scope.contains(arc.region)) {
        let from = match (arc.caller.known(), arc.how) {
            (Some(caller), _) => of(caller),
            (None, How::Interrupt) => "[interrupt]".into(),
            (None, How::Syscall) => "[syscall]".into(),
            // With nothing of the kernel open, it is user code that faults.
            (None, How::Exception) => "[user]".into(),
            (None, How::Call | How::Jump) => "[nothing]".into(),
        };
        let sum = pairs.entry((from, of(arc.callee))).or_default();
        *sum = (sum.0.saturating_add(arc.calls), sum.1.saturating_add(arc.elapsed_ns.get()));
    }
    let pair = |((from, to), (calls, elapsed_ns))| Pair { from, to, calls, elapsed_ns };
    let mut matrix: Vec<Pair> = pairs.into_iter().map(pair).collect();
    matrix.sort_by(|a, b| {
        b.elapsed_ns.cmp(&a.elapsed_ns).then_with(|| (&a.from, &a.to).cmp(&(&b.from, &b.to)))
    });
    Ok(Found { totals, groups, matrix })
}

/// Header, groups and matrix as text.
pub fn text(profile: &Profile, options: &Options, style: Style) -> Result<String> {
    let found = find(profile, options)?;
    let busy = found.totals.busy_ns.get();
    let mut out = header(profile, &found.totals, options.region.as_deref());
    out.push('\n');
    let beside =
        [("[user]", found.totals.user_ns.get()), ("[unattributed]", found.totals.unattributed_ns.get())];
    let unit = Measure::of(profile).unit(busy);
    let has_calls = sampled::has_calls(profile);
    let error = format!("{} net\n{}", sampled::ERROR, unit.name());
    let mut table = Columns::new([
        (format!("net\n{}", unit.name()).as_str(), Side::Right),
        ("% net", Side::Right),
        (if has_calls { "calls" } else { &error }, Side::Right),
        ("functions", Side::Right),
        ("group", Side::Left),
    ]);
    let calls = |group: &Group| match has_calls {
        true => grouped(group.calls),
        false => sampled::error(profile, group.net_ns, unit),
    };
    let shown = options.top.unwrap_or(found.groups.len()).min(found.groups.len());
    let (groups, rest) = found.groups.split_at(shown);
    for group in groups {
        table.row([
            unit.format(group.net_ns).into(),
            fixed(share(group.net_ns, busy), 2).into(),
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
        let net = rest.iter().fold(0, |sum: u64, group| sum.saturating_add(group.net_ns));
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

/// Who calls into whom: calls within a group are left out, they are in no one's way.
fn matrix(profile: &Profile, found: &Found, options: &Options, style: Style) -> String {
    let pairs: Vec<&Pair> = found.matrix.iter().filter(|pair| pair.from != pair.to).collect();
    let unit = Measure::of(profile).unit(pairs.iter().map(|pair| pair.elapsed_ns).max().unwrap_or(0));
    let has_calls = sampled::has_calls(profile);
    let error = format!("{}\n{}", sampled::ERROR, unit.name());
    let calls = |pair: &Pair| match has_calls {
        true => grouped(pair.calls),
        false => sampled::error(profile, pair.elapsed_ns, unit),
    };
    let mut table = Columns::new([
        (format!("elapsed\n{}", unit.name()).as_str(), Side::Right),
        ("% busy", Side::Right),
        (if has_calls { "calls" } else { &error }, Side::Right),
        ("from", Side::Left),
        ("into", Side::Left),
    ]);
    let shown = options.top.unwrap_or(pairs.len()).min(pairs.len());
    for pair in pairs.iter().take(shown) {
        table.row([
            unit.format(pair.elapsed_ns).into(),
            fixed(share(pair.elapsed_ns, found.totals.busy_ns.get()), 2).into(),
            calls(pair).into(),
            printable(&pair.from).into(),
            printable(&pair.to).into(),
        ]);
    }
    let mut out = format!("\n{}", table.render(style));
    if shown < pairs.len() {
        let rest = format!("{} more pairs (--top)\n", grouped((pairs.len() - shown) as u64));
        out += &style.paint(Role::Faint, &rest);
    }
    out
}

#[derive(Serialize)]
struct Json<'a> {
    #[serde(flatten)]
    head: Head<'a>,
    elapsed_ns: u64,
    #[serde(rename = "busy")]
    busy_ns: u64,
    idle_ns: u64,
    #[serde(rename = "user")]
    user_ns: u64,
    #[serde(rename = "unattributed")]
    unattributed_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    sampled: Option<sampled::JsonSampled<'a>>,
    groups: &'a [Group],
    matrix: Option<&'a [Pair]>,
}

/// The same as JSON (`docs/json.md`), with a newline at its end; calls within a group are in it.
pub fn json(profile: &Profile, options: &Options) -> Result<String> {
    let found = find(profile, options)?;
    let top = |all: usize| options.top.unwrap_or(all).min(all);
    crate::to_json(&Json {
        head: Head::new(SCHEMA, profile, &options.region),
        elapsed_ns: found.totals.elapsed_ns.get(),
        busy_ns: found.totals.busy_ns.get(),
        idle_ns: found.totals.idle_ns.get(),
        user_ns: found.totals.user_ns.get(),
        unattributed_ns: found.totals.unattributed_ns.get(),
        sampled: sampled::json(profile),
        groups: &found.groups[..top(found.groups.len())],
        matrix: options.matrix.then(|| &found.matrix[..top(found.matrix.len())]),
    })
}
