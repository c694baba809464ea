//! Options, selection, order and numbering of entries that the flat profile and the call graph
//! share.

use crate::pattern::{is_below, is_of_set, matches};
use crate::selection::Selection;
use crate::unit::TickUnit;
use crate::view::scope;
use crate::{head, names, sampled, Error, Result, ThreadFilter};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::Args;
use kerntune_analyze::graph::{ArcChanges, CallGraph, GraphFunction};
use kerntune_profile::{Profile, Symbol};
use kerntune_table::number::grouped;
use kerntune_table::{printable, share, Columns, DisplayUnit, Document, Table};
use std::cmp::Reverse;
use std::collections::HashMap;

pub use kerntune_analyze::graph::Propagation;

/// Options of the flat profile and the call graph: functions to show, and how time goes to callers.
// Help shows the subcommand's own doc comment, not this one.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct GraphOptions {
    /// Show only this function, those of a pattern with * and ?, or those of a directory or file of
    /// the source (net/ipv4); may be repeated
    #[arg(long, value_name = "NAME|GLOB|DIR")]
    pub function: Vec<String>,
    /// Show only entries with at least this share of the time, in per cent
    #[arg(long, default_value_t = 0.0, value_name = "PERCENT")]
    pub min_percent: f64,
    /// Region and number of rows.
    #[command(flatten)]
    pub select: Selection,
    /// Divide a function's time among its callers as measured call by call (exact), or in
    /// proportion to the number of calls as gprof does (counts) [default: exact if calls were
    /// timed, else counts]
    #[arg(long, value_name = "HOW", value_parser = propagation())]
    pub propagate: Option<Propagation>,
    /// Also list the functions that never ran: all, those of a pattern (tcp_*), or those of a
    /// directory of the source (net/ipv4)
    #[arg(long, num_args = 0..=1, default_missing_value = "*", value_name = "GLOB|DIR")]
    pub never_called: Option<String>,
    /// Write times in instr, k or M (instructions of exact profiles), s, ms, us or ns [default:
    /// chosen by the largest figure; seconds for sampled times]
    #[arg(long, value_enum, hide_possible_values = true, value_name = "UNIT")]
    pub unit: Option<DisplayUnit>,
    /// Threads to which the report is restricted.
    #[command(flatten)]
    pub threads: ThreadFilter,
}

impl GraphOptions {
    /// Returns the row limit of text output: none if functions or a minimum share are chosen.
    pub(crate) fn max_in_text(&self) -> usize {
        let all = !self.function.is_empty() || self.min_percent > 0.0;
        self.select.top.unwrap_or(if all { usize::MAX } else { crate::DEFAULT_ROWS })
    }
}

fn propagation() -> impl TypedValueParser<Value = Propagation> {
    PossibleValuesParser::new(["exact", "counts"]).map(|word| match word.as_str() {
        "exact" => Propagation::Exact,
        _ => Propagation::Counts,
    })
}

/// Entry of the call graph: a function or a cycle, by its index in the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GraphEntry {
    Function(usize),
    Cycle(usize),
}

/// Call graph with its entries in output order, their numbers, and unique names.
pub(crate) struct GraphListing<'a> {
    pub graph: CallGraph,
    /// Functions that ran and cycles, greatest total time first.
    pub entries: Vec<GraphEntry>,
    /// By function: whether `--function` selects it.
    chosen: Vec<bool>,
    /// Entry number of each function, from 1 in output order. Cycles have no number: in McKusick's
    /// Figure 1 no number is skipped for cycle 1, which has more time than `EXAMPLE [2]`.
    index: Vec<Option<usize>>,
    /// Number of functions that share a name.
    names: HashMap<&'a str, usize>,
    profile: &'a Profile,
}

impl<'a> GraphListing<'a> {
    pub fn new(profile: &'a Profile, options: &GraphOptions) -> Result<Self> {
        Self::with(profile, options, &ArcChanges::default())
    }

    /// Builds the listing with arcs added and cut as `changes` says.
    pub fn with(profile: &'a Profile, options: &GraphOptions, changes: &ArcChanges) -> Result<Self> {
        let tables = &profile.tables;
        let scope = scope(profile, options.select.region.as_deref())?;
        let propagation = options.propagate.unwrap_or_else(|| CallGraph::suits(tables));
        let graph = CallGraph::of_tables_with(tables, |region| scope.contains(region), propagation, changes)?;
        let functions = (0..graph.functions.len()).filter(|at| graph.ran(*at));
        let mut entries: Vec<GraphEntry> = (0..graph.cycles.len())
            .map(GraphEntry::Cycle)
            .chain(functions.map(GraphEntry::Function))
            .collect();
        // The sort is stable: with equal totals a cycle stands before its members, as gprof has it.
        entries.sort_by_cached_key(|entry| match *entry {
            GraphEntry::Cycle(at) => (Reverse(graph.cycles[at].total_ns()), 0, Reverse(0), String::new()),
            GraphEntry::Function(at) => {
                let function = &graph.functions[at];
                (Reverse(function.total_ns()), 1, Reverse(function.calls), function.name.clone())
            }
        });
        let mut index = vec![None; graph.functions.len()];
        let numbered = entries.iter().filter_map(|entry| match entry {
            GraphEntry::Function(at) => Some(*at),
            GraphEntry::Cycle(_) => None,
        });
        numbered.zip(1..).for_each(|(function, number)| index[function] = Some(number));
        let mut names: HashMap<&str, usize> = HashMap::new();
        tables.symbols.iter().for_each(|symbol| *names.entry(&symbol.name).or_default() += 1);
        let fits = |set: &str, function: &GraphFunction| {
            let by_name = !set.contains('/') && matches(set, &function.name);
            by_name || set.contains('/') && function.file.as_deref().is_some_and(|file| is_below(file, set))
        };
        for set in &options.function {
            if !graph.functions.iter().any(|function| fits(set, function)) {
                return Err(names::none_of(tables, set));
            }
        }
        let is_chosen = |function: &GraphFunction| {
            options.function.is_empty() || options.function.iter().any(|set| fits(set, function))
        };
        let chosen = graph.functions.iter().map(is_chosen).collect();
        Ok(Self { graph, entries, chosen, index, names, profile })
    }

    /// Checks whether `--function` selects the function.
    pub fn is_chosen(&self, function: usize) -> bool {
        self.chosen.get(function).copied().unwrap_or(false)
    }

    /// Returns the number of a function; `None` if it has no entry.
    pub fn number(&self, function: usize) -> Option<usize> {
        self.index.get(function).copied().flatten()
    }

    /// Returns the share of all time, in per cent.
    pub fn percent(&self, ns: u64) -> f64 {
        share(ns, self.graph.total_ns)
    }

    /// Returns a function's unique name with its cycle and its number.
    pub fn label(&self, function: usize) -> String {
        let mut label = self.name(function);
        if let Some(cycle) = self.graph.functions.get(function).and_then(|f| f.cycle) {
            label += &format!(" <cycle {}>", cycle + 1);
        }
        if let Some(number) = self.number(function) {
            label += &format!(" [{number}]");
        }
        label
    }

    /// Returns a function's name, with its file if several functions share the name.
    pub fn name(&self, function: usize) -> String {
        let Some(function) = self.graph.functions.get(function) else { return "[unknown]".into() };
        let shared = self.names.get(function.name.as_str()).is_some_and(|count| *count > 1);
        match &function.file {
            Some(file) if shared => printable(&format!("{} ({file})", function.name)),
            _ => printable(&function.name),
        }
    }

    /// Returns the unit for a column whose largest value is `largest`.
    pub fn unit(&self, options: &GraphOptions, largest: u64) -> DisplayUnit {
        match options.unit {
            Some(unit) => unit,
            None if CallGraph::suits(&self.profile.tables) == Propagation::Counts => DisplayUnit::Seconds,
            None => TickUnit::of(self.profile).row_unit(largest),
        }
    }

    /// Returns the functions of a set that never ran, by file and name, and the size of the set.
    /// Parts that the compiler split off (`.cold`) are never called and are not counted as
    /// functions.
    pub fn never_called(&self, set: &str) -> Result<(Vec<&'a Symbol>, usize)> {
        let part = |symbol: &Symbol| symbol.name.split('.').any(|part| part == "cold");
        let of_set = |symbol: &&Symbol| is_of_set(symbol, set) && symbol.size > 0 && !part(symbol);
        let all: Vec<&Symbol> = self.profile.tables.symbols.iter().filter(of_set).collect();
        if all.is_empty() {
            return Err(Error::NoFunction { pattern: set.into() });
        }
        let idle = |symbol: &&&Symbol| {
            self.graph.functions.get(symbol.function.get() as usize).is_none_or(GraphFunction::is_idle)
        };
        let mut never: Vec<&Symbol> = all.iter().filter(idle).copied().collect();
        never.sort_by_key(|symbol| (symbol.file.as_deref(), symbol.name.as_str(), symbol.function));
        Ok((never, all.len()))
    }

    /// Begins a document with the fields that the flat profile and the call graph share.
    pub fn document(
        &self,
        schema: &'static str,
        about: &'static str,
        options: &GraphOptions,
    ) -> Document<'a> {
        let region = options.select.region.as_deref();
        let mut document = head::document(schema, about, self.profile, region, Some(&options.threads));
        document.field(
            "propagation",
            "Division of time among callers: `exact` (as measured call by call) or `counts` (in proportion to \
             calls, as gprof does).",
            self.graph.propagation.as_str(),
        );
        document.field(
            "total",
            "Self time of all functions, which percentages refer to.",
            self.graph.total_ns,
        );
        sampled::add(&mut document, self.profile);
        document
    }

    /// Adds the functions of `--never-called` that never ran.
    pub fn add_never_called(&self, document: &mut Document<'a>, options: &GraphOptions) -> Result<()> {
        let mut never = Vec::new();
        if let Some(set) = &options.never_called {
            let all;
            (never, all) = self.never_called(set)?;
            let [few, all] = [never.len(), all].map(|count| grouped(count as u64));
            document.text(format!("\nNever called: {few} of {all} functions of {}\n", printable(set)));
        }
        let mut file = None;
        for symbol in &never {
            if file != Some(&symbol.file) {
                file = Some(&symbol.file);
                let file = symbol.file.as_deref().unwrap_or("(file not known)");
                document.text(format!("{}\n", printable(file)));
            }
            document.text(format!("    {}\n", printable(&symbol.name)));
        }
        let mut columns = Columns::<&Symbol>::new();
        columns.add("name", "Name in the symbol table.", |row| row.name.as_str());
        columns.add("file", "Source file, where known.", |row| row.file.as_deref());
        document.table(
            Table::new("never_called", never, columns)
                .help("Functions of `--never-called` that never ran; null without the option.")
                .null_unless(options.never_called.is_some()),
        );
        Ok(())
    }
}
