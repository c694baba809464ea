//! Small functions that are called often: calls that inlining may save.
//!
//! Graham, Kessler and McKusick found such functions in the kernel's call graph profile, and expanded
//! them inline: "gprof: a call graph execution profiler" (1982), section 6. A compiler decides by the
//! size of a function and by what it sees of it; this report says where the calls are.

use super::{entry, Entry, Report, Selection};
use crate::characterize::counters::NOT_TRACED;
use crate::unit::{header, TickUnit};
use crate::view::scope;
use crate::{head, health, Error, Result};
use clap::Args;
use kerntune_profile::{CallKind, EdgeKind, FunctionIndex, Profile, ScopeTotals, Symbol, Tables};
use kerntune_table::number::{fixed, grouped};
use kerntune_table::{share, Columns, Document, Table};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-inline/1";

/// Registry entry of `kerntune report PROFILE inline`.
pub const ENTRY: Entry = entry::<InlineOptions>("inline", 12);

/// Description of the JSON form.
const ABOUT: &str = "Calls of small functions of the kernel that inlining may save.";

/// Instructions that a call needs besides the function's own work: the call and the return.
const INSTRUCTIONS_OF_A_CALL: u64 = 2;

/// Small functions that are called often: calls that inlining may save
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct InlineOptions {
    /// Consider functions that execute at most N instructions of their own in a call
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub small: u64,
    /// Show each caller on a row of its own
    #[arg(long)]
    pub by_caller: bool,
    /// Region and number of rows.
    #[command(flatten)]
    pub select: Selection,
}

/// Calls of a small function: all direct ones from C, or those from one caller.
struct InlineRow {
    function: FunctionIndex,
    calls: u64,
    /// Own instructions of the function in a call, the mean over all calls.
    own: f64,
    /// Functions that called it in any way.
    callers: u64,
    size: u64,
    /// Calls from the function's own source file; `None` if a file is not known.
    own_file_calls: Option<u64>,
    name: String,
    /// Caller with the most calls, the first by name of several, and its calls.
    most: (u64, String),
}

impl InlineRow {
    fn saved(&self) -> u64 {
        self.calls.saturating_mul(INSTRUCTIONS_OF_A_CALL)
    }

    /// Adds the calls from another caller.
    fn add(&mut self, other: Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.own_file_calls = self.own_file_calls.zip(other.own_file_calls).map(|(a, b)| a.saturating_add(b));
        if (other.most.0, &self.most.1) > (self.most.0, &other.most.1) {
            self.most = other.most;
        }
    }
}

/// Calls that no compiler can inline, by reason.
#[derive(Default)]
struct CallsLeftOut {
    assembly: u64,
    indirect: u64,
}

struct InlineTables {
    totals: ScopeTotals,
    /// Calls from functions of the kernel to functions of the kernel.
    calls: u64,
    left_out: CallsLeftOut,
    /// Most saved instructions first.
    rows: Vec<InlineRow>,
}

fn find(profile: &Profile, options: &InlineOptions) -> Result<InlineTables> {
    let tables = &profile.tables;
    // Of a selection of functions, the caller is the nearest that was traced.
    let is_selection = tables.symbols.iter().any(|symbol| symbol.name == NOT_TRACED);
    if !profile.manifest.exact || tables.arcs.is_empty() || is_selection {
        return Err(Error::NoExactCalls);
    }
    let scope = scope(profile, options.select.region.as_deref())?;
    let mut own: HashMap<FunctionIndex, (u64, u64)> = HashMap::new();
    for row in tables.functions.iter().filter(|row| scope.contains(row.region)) {
        let sum = own.entry(row.function).or_default();
        *sum = (sum.0.saturating_add(row.ended), sum.1.saturating_add(row.ended_self_ticks.get()));
    }
    let own = |function: FunctionIndex| {
        own.get(&function).filter(|(ended, _)| *ended > 0).map(|(ended, ticks)| *ticks as f64 / *ended as f64)
    };
    let mut arcs: BTreeMap<(FunctionIndex, FunctionIndex), u64> = BTreeMap::new();
    for arc in tables.arcs.iter().filter(|arc| arc.how == CallKind::Call && scope.contains(arc.region)) {
        let kernel = |function: FunctionIndex| symbol(tables, function).is_some_and(Symbol::is_kernel);
        if let Some(caller) = arc.caller.known().filter(|caller| kernel(*caller) && kernel(arc.callee)) {
            let calls = arcs.entry((caller, arc.callee)).or_default();
            *calls = calls.saturating_add(arc.calls);
        }
    }
    arcs.retain(|_, calls| *calls > 0);
    let mut callers: HashMap<FunctionIndex, u64> = HashMap::new();
    arcs.keys().for_each(|(_, callee)| *callers.entry(*callee).or_default() += 1);
    let direct = DirectCalls::of(tables);
    let (mut left_out, mut rows) = (CallsLeftOut::default(), Vec::new());
    for ((caller, callee), calls) in &arcs {
        let (Some(from), Some(to)) = (symbol(tables, *caller), symbol(tables, *callee)) else { continue };
        let Some(own) = own(*callee).filter(|own| *own <= options.small as f64 && caller != callee) else {
            continue;
        };
        if [from, to].iter().any(|symbol| is_assembly(symbol)) {
            left_out.assembly = left_out.assembly.saturating_add(*calls);
        } else if direct.as_ref().is_some_and(|direct| !direct.has(from, to)) {
            left_out.indirect = left_out.indirect.saturating_add(*calls);
        } else {
            let is_own_file = from.file.as_ref().zip(to.file.as_ref()).map(|(from, to)| from == to);
            rows.push(InlineRow {
                function: *callee,
                calls: *calls,
                own,
                callers: callers.get(callee).copied().unwrap_or_default(),
                size: to.size,
                own_file_calls: is_own_file.map(|own| if own { *calls } else { 0 }),
                name: to.name.clone(),
                most: (*calls, from.name.clone()),
            });
        }
    }
    if !options.by_caller {
        rows = by_function(rows);
    }
    rows.sort_by(|a, b| b.calls.cmp(&a.calls).then_with(|| (&a.name, &a.most.1).cmp(&(&b.name, &b.most.1))));
    let calls = arcs.values().fold(0, |sum: u64, calls| sum.saturating_add(*calls));
    Ok(InlineTables { totals: scope.totals(profile), calls, left_out, rows })
}

/// Adds up the rows of each function.
fn by_function(rows: Vec<InlineRow>) -> Vec<InlineRow> {
    let mut sums: BTreeMap<FunctionIndex, InlineRow> = BTreeMap::new();
    for row in rows {
        match sums.get_mut(&row.function) {
            Some(sum) => sum.add(row),
            None => {
                sums.insert(row.function, row);
            }
        }
    }
    sums.into_values().collect()
}

fn symbol(tables: &Tables, function: FunctionIndex) -> Option<&Symbol> {
    tables.symbols.get(usize::try_from(function.get()).ok()?)
}

/// Checks whether a function is written in assembly, where that is known.
fn is_assembly(symbol: &Symbol) -> bool {
    symbol.file.as_deref().is_some_and(|file| Path::new(file).extension().is_some_and(|end| end == "S"))
}

/// Direct calls by the executed branches of all regions. A call through a pointer can be inlined only
/// after the compiler has made it a direct one.
struct DirectCalls(BTreeMap<u64, BTreeSet<u64>>);

impl DirectCalls {
    /// Returns the direct calls; `None` if the profile has no branches.
    fn of(tables: &Tables) -> Option<Self> {
        let mut sources: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
        for edge in tables.edges.iter().filter(|edge| edge.kind == EdgeKind::Call && edge.count > 0) {
            sources.entry(edge.target.get()).or_default().insert(edge.source.get());
        }
        (!tables.edges.is_empty()).then_some(Self(sources))
    }

    fn has(&self, from: &Symbol, to: &Symbol) -> bool {
        let within = from.address.get()..from.address.get().saturating_add(from.size);
        self.0.get(&to.address.get()).is_some_and(|sources| sources.range(within).next().is_some())
    }
}

impl Report for InlineOptions {
    fn document<'a>(&'a self, profile: &'a Profile) -> Result<Document<'a>> {
        let InlineTables { totals, calls, left_out, rows } = find(profile, self)?;
        let kernel = totals.kernel_instructions;
        let small = rows.iter().fold(0, |sum: u64, row| sum.saturating_add(row.calls));
        let saved = rows.iter().fold(0, |sum: u64, row| sum.saturating_add(row.saved()));
        let mut document = head::document(SCHEMA, ABOUT, profile, self.select.region.as_deref(), None);
        document.field("kernel_instructions", "Instructions executed in the kernel.", kernel);
        document.field("small", "Most own instructions of a function that is considered.", self.small);
        document.field("calls", "Calls from functions of the kernel to others.", calls);
        document.field("small_calls", "Those of `candidates`, all together.", small);
        document.field("saved", "Instructions that inlining all of these saves at least.", saved);
        document.field("assembly", "Calls of small functions from or to assembly.", left_out.assembly);
        document.field(
            "indirect",
            "Calls of small functions through a pointer, and those from parts that a compiler split off.",
            left_out.indirect,
        );
        document.text(header(profile, &totals, self.select.region.as_deref()) + "\n");
        document.line(
            "Calls in the kernel",
            format_args!(
                "{}  ({}, {} %, of functions of at most {} instructions of their own)",
                grouped(calls),
                grouped(small),
                fixed(share(small, calls), 1),
                self.small
            ),
        );
        document.line(
            "Inlining saves",
            format_args!(
                "{}  ({} % of the kernel's, at least: a call and a return each)",
                TickUnit::Instructions.readable(saved),
                fixed(share(saved, kernel), 2)
            ),
        );
        document.line(
            "Left out",
            format_args!(
                "{} calls of assembly, {} through pointers",
                grouped(left_out.assembly),
                grouped(left_out.indirect)
            ),
        );
        let mut columns = Columns::<InlineRow>::new();
        let by_caller = self.by_caller;
        columns.add("calls", "Direct calls from functions in C.", |row| row.calls).head("calls");
        columns
            .add(
                "saved",
                "Instructions that inlining saves at least: a call and a return for each call.",
                InlineRow::saved,
            )
            .head("saved\ninstr.");
        columns.share("% kernel", kernel, InlineRow::saved);
        columns
            .add("own", "Own instructions of the function in a call, the mean over all calls.", |row| row.own)
            .head("own\ninstr.")
            .decimals(1);
        columns.add("size", "Size of the function in bytes.", |row| row.size).head("bytes");
        columns
            .add("callers", "Functions that called it; a function that is inlined into all can go.", |row| {
                row.callers
            })
            .head("callers");
        columns
            .add(
                "own_file_calls",
                "Those of `calls` from the function's own source file, where a compiler without link-time \
                 optimization sees it; null if a file is not known.",
                |row| row.own_file_calls,
            )
            .head("% in own\nfile")
            .text(|row| row.own_file_calls.map_or("?".into(), |own| fixed(share(own, row.calls), 0)));
        columns.add("function", "Called function.", |row| row.name.clone()).head("function");
        columns
            .add("caller", "Caller with the most calls; with `--by-caller` the only one.", |row| {
                row.most.1.clone()
            })
            .head(if by_caller { "called by" } else { "most by" });
        columns.add("caller_calls", "Those of `calls` from this caller.", |row| row.most.0);
        document.text("\n");
        document.table(
            Table::new("candidates", rows, columns)
                .help("By `saved`, greatest first.")
                .noun(if self.by_caller { "callers" } else { "functions" })
                .top(self.select.top),
        );
        health::add(&mut document, profile);
        Ok(document)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_profile::{Address, CallArc, Edge, FunctionStats, KernelId, Manifest, RegionStats, Ticks};
    use serde_json::Value;

    /// `sys_read` calls one function of each kind.
    fn profile() -> Profile {
        let symbols = [
            ("sys_read", "fs/read_write.c", 0x1000, 0x100),
            ("rw_verify_area", "fs/read_write.c", 0x1100, 0x20),
            ("fput", "fs/file_table.c", 0x2000, 0x30),
            ("copy", "arch/x86/lib/copy.S", 0x3000, 0x10),
            ("large", "mm/filemap.c", 0x4000, 0x400),
            ("read_iter", "mm/shmem.c", 0x5000, 0x10),
        ];
        let symbol = |(at, &(name, file, address, size)): (usize, &(&str, &str, u64, u64))| Symbol {
            function: FunctionIndex(at as u32),
            name: name.into(),
            address: Address(address),
            size,
            file: Some(file.into()),
            module: None,
        };
        let stats = |(at, own): (usize, &u64)| FunctionStats {
            function: FunctionIndex(at as u32),
            ended: 10,
            ended_self_ticks: Ticks(10 * own),
            ..FunctionStats::default()
        };
        let arc = |caller, callee, how, calls| CallArc {
            region: 0,
            caller: FunctionIndex(caller),
            callee: FunctionIndex(callee),
            how,
            calls,
            ended: calls,
            total_ticks: Ticks(0),
        };
        let edge =
            |source, target, kind| Edge { source: Address(source), target: Address(target), count: 1, kind };
        let mut tables = Tables {
            symbols: symbols.iter().enumerate().map(symbol).collect(),
            regions: vec![RegionStats { name: "all".into(), ..RegionStats::default() }],
            functions: [50, 4, 6, 3, 100, 8].iter().enumerate().map(stats).collect(),
            arcs: vec![
                arc(0, 0, CallKind::Call, 1),
                arc(0, 1, CallKind::Call, 10),
                arc(0, 2, CallKind::Call, 20),
                arc(0, 2, CallKind::Jump, 7),
                arc(0, 3, CallKind::Call, 5),
                arc(0, 4, CallKind::Call, 3),
                arc(0, 5, CallKind::Call, 4),
                arc(4, 2, CallKind::Call, 2),
            ],
            edges: vec![
                edge(0x1010, 0x1100, EdgeKind::Call),
                edge(0x1020, 0x2000, EdgeKind::Call),
                edge(0x1030, 0x5000, EdgeKind::IndirectCall),
                edge(0x4010, 0x5000, EdgeKind::Call),
                edge(0x4020, 0x2000, EdgeKind::Call),
            ],
            ..Tables::default()
        };
        tables.regions[0].kernel_instructions = kerntune_profile::Instructions(1_000);
        let mut manifest = Manifest::new("p", KernelId::default(), "w", "emulator");
        manifest.exact = true;
        Profile { manifest, tables }
    }

    fn options() -> InlineOptions {
        InlineOptions { small: 20, by_caller: false, select: Selection::default() }
    }

    fn functions(json: &Value) -> Vec<&str> {
        let rows = json["candidates"].as_array().unwrap();
        rows.iter().map(|row| row["function"].as_str().unwrap()).collect()
    }

    #[test]
    fn small_functions_are_listed_by_what_their_calls_cost() {
        let profile = profile();
        let json: Value = serde_json::from_str(&options().json(&profile).unwrap()).unwrap();
        assert_eq!(functions(&json), ["fput", "rw_verify_area"]);
        let first = &json["candidates"][0];
        assert_eq!((&first["calls"], &first["saved"], &first["own"]), (&22.into(), &44.into(), &6.0.into()));
        assert_eq!(
            (&first["own_file_calls"], &json["candidates"][1]["own_file_calls"]),
            (&0.into(), &10.into())
        );
        assert_eq!(
            (&json["calls"], &json["small_calls"], &json["saved"]),
            (&45.into(), &32.into(), &64.into())
        );
        assert_eq!((&json["assembly"], &json["indirect"]), (&5.into(), &4.into()));
        let text = options().text(&profile, crate::Style::PLAIN).unwrap();
        assert!(text.contains("6.40 % of the kernel's"), "{text}");
    }

    #[test]
    fn callers_are_told_apart() {
        let profile = profile();
        let json: Value = serde_json::from_str(&options().json(&profile).unwrap()).unwrap();
        let first = &json["candidates"][0];
        assert_eq!(
            (&first["callers"], &first["caller"], &first["caller_calls"]),
            (&2.into(), &"sys_read".into(), &20.into())
        );
        let options = InlineOptions { by_caller: true, ..options() };
        let json: Value = serde_json::from_str(&options.json(&profile).unwrap()).unwrap();
        assert_eq!(functions(&json), ["fput", "rw_verify_area", "fput"]);
        let last = &json["candidates"][2];
        assert_eq!(
            (&last["calls"], &last["caller"], &json["saved"]),
            (&2.into(), &"large".into(), &64.into())
        );
    }

    #[test]
    fn without_branches_a_call_may_be_direct() {
        let mut profile = profile();
        profile.tables.edges.clear();
        let json: Value = serde_json::from_str(&options().json(&profile).unwrap()).unwrap();
        assert_eq!(functions(&json), ["fput", "rw_verify_area", "read_iter"]);
        assert_eq!(json["indirect"], 0);
    }

    #[test]
    fn only_exact_calls_will_do() {
        let mut profile = profile();
        profile.manifest.exact = false;
        assert!(matches!(options().document(&profile), Err(Error::NoExactCalls)));
        profile.manifest.exact = true;
        profile.tables.symbols[5].name = NOT_TRACED.into();
        assert!(matches!(options().document(&profile), Err(Error::NoExactCalls)));
    }
}
