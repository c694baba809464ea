//! Time by groups of functions, and calls between the groups.

use crate::groups::Grouping;
use crate::selection::Selection;
use crate::unit::{header, TickUnit};
use crate::view::{scope, ScopeTimes};
use crate::{head, health, sampled, Report, Result};
use kerntune_profile::{CallKind, FunctionIndex, Profile, ScopeTotals};
use kerntune_table::number::grouped;
use kerntune_table::{Columns, Document, Table};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-subsystems/3";

/// Description of the JSON form.
const ABOUT: &str =
    "Time by groups of functions. The groups' `self`, `user` and `unattributed` sum exactly to `busy`.";

/// Options of the subsystems report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubsystemsOptions {
    /// Rule that assigns functions to groups.
    pub grouping: Grouping,
    /// Adds the matrix of calls between groups.
    pub matrix: bool,
    /// Region and number of groups and of pairs.
    pub select: Selection,
}

#[derive(Debug, Default)]
struct SubsystemRow {
    group: String,
    self_ticks: u64,
    /// `None` of rows that are no group.
    calls: Option<u64>,
    functions: Option<u64>,
}

/// Calls from one group into another, or within a group.
#[derive(Debug)]
struct GroupPair {
    from: String,
    to: String,
    calls: u64,
    total_ticks: u64,
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
    let scope = scope(profile, options.select.region.as_deref())?;
    let totals = scope.totals(profile);
    let mut known: HashMap<FunctionIndex, String> = HashMap::new();
    let mut of = |function: FunctionIndex| {
        known.entry(function).or_insert_with(|| options.grouping.of(&tables.symbols, function)).clone()
    };
    let mut groups: BTreeMap<String, (SubsystemRow, BTreeSet<FunctionIndex>)> = BTreeMap::new();
    for row in tables.functions.iter().filter(|row| scope.contains(row.region)) {
        let (group, functions) = groups.entry(of(row.function)).or_default();
        group.self_ticks = group.self_ticks.saturating_add(row.self_ticks.get());
        group.calls = Some(group.calls.unwrap_or(0).saturating_add(row.calls));
        functions.insert(row.function);
    }
    let mut groups: Vec<SubsystemRow> = groups
        .into_iter()
        .map(|(name, (group, functions))| SubsystemRow {
            group: name,
            functions: Some(functions.len() as u64),
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
    let pair = |((from, to), (calls, total_ticks))| GroupPair { from, to, calls, total_ticks };
    let mut matrix: Vec<GroupPair> = pairs.into_iter().map(pair).collect();
    matrix.sort_by(|a, b| {
        b.total_ticks.cmp(&a.total_ticks).then_with(|| (&a.from, &a.to).cmp(&(&b.from, &b.to)))
    });
    Ok(SubsystemTables { totals, groups, matrix })
}

impl Report for SubsystemsOptions {
    fn document<'a>(&'a self, profile: &'a Profile) -> Result<Document<'a>> {
        let SubsystemTables { totals, groups, matrix } = find(profile, self)?;
        let Selection { top, region } = &self.select;
        let times = ScopeTimes::from(&totals);
        let mut document = head::document(SCHEMA, ABOUT, profile, region.as_deref(), None);
        times.add(&mut document);
        sampled::add(&mut document, profile);
        document.text(header(profile, &totals, region.as_deref()) + "\n");
        let unit = TickUnit::of(profile).unit(times.busy);
        let has_calls = sampled::has_calls(profile);
        let rest = &groups[self.select.shown(&groups).len()..];
        let beside =
            |group: String, self_ticks| SubsystemRow { group, self_ticks, ..SubsystemRow::default() };
        let rest = (!rest.is_empty()).then(|| {
            let own = rest.iter().fold(0, |sum: u64, group| sum.saturating_add(group.self_ticks));
            beside(format!("{} more groups (--top)", grouped(rest.len() as u64)), own)
        });
        let others = [("[user]", times.user), ("[unattributed]", times.unattributed)];
        let others = others.into_iter().filter(|(_, own)| *own > 0);
        let foot: Vec<_> =
            rest.into_iter().chain(others.map(|(name, own)| beside(name.into(), own))).collect();
        let mut columns = Columns::<SubsystemRow>::new();
        columns.add("self", "Time in functions of the group.", |row| row.self_ticks).head("net").unit(unit);
        columns.share("% net", times.busy, |row| row.self_ticks);
        columns.add("calls", "Calls of these.", |row| row.calls).head("calls").only_if(has_calls);
        columns
            .text_only(format!("{} net", sampled::ERROR), move |row| {
                row.calls.and_then(|_| sampled::error_ns(profile, row.self_ticks))
            })
            .unit(unit)
            .only_if(!has_calls);
        columns.add("functions", "Functions of the group that ran.", |row| row.functions).head("functions");
        columns.add("group", "Name of the group.", |row| row.group.clone()).head("group");
        document.table(
            Table::new("groups", groups, columns)
                .help("By `self`, greatest first.")
                .top(*top)
                .foot(foot)
                .without_rest(),
        );
        let between = matrix.iter().filter(|pair| pair.from != pair.to);
        let unit = TickUnit::of(profile).unit(between.map(|pair| pair.total_ticks).max().unwrap_or(0));
        let mut columns = Columns::<GroupPair>::new();
        columns
            .add("elapsed", "Elapsed time of the calls; such times nest and sum to nothing.", |row| {
                row.total_ticks
            })
            .head("elapsed")
            .unit(unit);
        columns.share("% busy", times.busy, |row| row.total_ticks);
        columns.add("calls", "Calls.", |row| row.calls).head("calls").only_if(has_calls);
        columns
            .text_only(sampled::ERROR, move |row| sampled::error_ns(profile, row.total_ticks))
            .unit(unit)
            .only_if(!has_calls);
        columns
            .add(
                "from",
                "Group of the caller; without one `[syscall]`, `[interrupt]`, `[user]` (exceptions of user code) \
                 or `[nothing]` (where threads begin).",
                |row| row.from.clone(),
            )
            .head("from");
        columns.add("to", "Group of the callee.", |row| row.to.clone()).head("into");
        if self.matrix {
            document.text("\n");
        }
        document.table(
            Table::new("matrix", matrix, columns)
                .help(
                    "With `--matrix`, else null: calls between groups and within each, by `elapsed`, greatest first.",
                )
                .noun("pairs")
                .top(*top)
                .text_if(|pair| pair.from != pair.to)
                .null_unless(self.matrix),
        );
        health::add(&mut document, profile);
        Ok(document)
    }
}
