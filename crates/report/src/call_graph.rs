//! What the flat profile and the call graph have in common: which functions, in which order, under
//! which numbers.

use crate::pattern::{is_below, is_of_set, matches};
use crate::style::{printable, Role};
use crate::unit::{Measure, TimeUnit};
use crate::view::scope;
use crate::{health, names, Error, Result, Style, Who};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::Args;
use kerntune_analyze::graph::{CallGraph, Changes, Function};
use kerntune_profile::{Profile, Symbol};
use std::cmp::Reverse;
use std::collections::HashMap;

pub use kerntune_analyze::graph::Propagation;

/// Which functions or entries, and how time goes to callers.
// A subcommand's comment is its help, and not this one.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct GraphOptions {
    /// Show at most N functions or entries [default: 40 in text, all in JSON]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// Only this function, those of a pattern with * and ?, or those of a directory or file of the source (net/ipv4); may
    /// be repeated
    #[arg(long, value_name = "NAME|GLOB|DIR")]
    pub function: Vec<String>,
    /// Show only entries with at least this share of the time, in per cent
    #[arg(long, default_value_t = 0.0, value_name = "PERCENT")]
    pub min_percent: f64,
    /// Only what happened in the regions of this name
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
    /// How a function's time is divided among its callers: as measured call by call, or in proportion to the number of calls as
    /// gprof does [default: exact if calls were timed, else counts]
    #[arg(long, value_name = "HOW", value_parser = propagation())]
    pub propagate: Option<Propagation>,
    /// Also list the functions that never ran: all, those of a pattern (tcp_*), or those of a
    /// directory of the source (net/ipv4)
    #[arg(long, num_args = 0..=1, default_missing_value = "*", value_name = "GLOB|DIR")]
    pub never_called: Option<String>,
    /// Unit: instr, k or M (instructions of exact profiles), s, ms, us or ns [default: chosen by the largest figure; seconds for
    /// sampled times]
    #[arg(long, value_enum, hide_possible_values = true, value_name = "UNIT")]
    pub unit: Option<TimeUnit>,
    /// Only what these threads did.
    #[command(flatten)]
    pub who: Who,
}

impl GraphOptions {
    /// The most functions or entries in text. Who names functions or a limit has chosen.
    pub(crate) fn most_in_text(&self) -> usize {
        let all = !self.function.is_empty() || self.min_percent > 0.0;
        self.top.unwrap_or(if all { usize::MAX } else { crate::TOP })
    }

    /// The same in JSON.
    pub(crate) fn most_in_json(&self) -> usize {
        self.top.unwrap_or(usize::MAX)
    }
}

fn propagation() -> impl TypedValueParser<Value = Propagation> {
    PossibleValuesParser::new(["exact", "counts"]).map(|word| match word.as_str() {
        "exact" => Propagation::Exact,
        _ => Propagation::Counts,
    })
}

/// An entry of the call graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    /// Index of a function.
    Function(usize),
    /// Index of a cycle.
    Cycle(usize),
}

/// A call graph with numbers and names for its readers.
pub(crate) struct Listing<'a> {
    pub graph: CallGraph,
    /// What ran, greatest total first.
    pub entries: Vec<Entry>,
    /// The functions that were asked for.
    chosen: Vec<bool>,
    /// Number of each function in the order of the entries, from 1. Cycles are not numbered: in
    /// McKusick's Figure 1 no number is left for cycle 1, which has more time than `EXAMPLE [2]`.
    index: Vec<Option<usize>>,
    /// How many functions have a name.
    names: HashMap<&'a str, usize>,
    profile: &'a Profile,
}

impl<'a> Listing<'a> {
    pub fn new(profile: &'a Profile, options: &GraphOptions) -> Result<Self> {
        Self::with(profile, options, &Changes::default())
    }

    /// The same with arcs added and cut.
    pub fn with(profile: &'a Profile, options: &GraphOptions, changes: &Changes) -> Result<Self> {
        let tables = &profile.tables;
        let scope = scope(profile, options.region.as_deref())?;
        let propagation = options.propagate.unwrap_or_else(|| CallGraph::suits(tables));
        let graph = CallGraph::of_tables_with(tables, |region| scope.contains(region), propagation, changes)?;
        let functions = (0..graph.functions.len()).filter(|at| graph.ran(*at));
        let mut entries: Vec<Entry> =
            (0..graph.cycles.len()).map(Entry::Cycle).chain(functions.map(Entry::Function)).collect();
        // The sort is stable: with equal totals a cycle stands before its members, as gprof has it.
        entries.sort_by_cached_key(|entry| match *entry {
            Entry::Cycle(at) => (Reverse(graph.cycles[at].total_ns()), 0, Reverse(0), String::new()),
            Entry::Function(at) => {
                let function = &graph.functions[at];
                (Reverse(function.total_ns()), 1, Reverse(function.calls), function.name.clone())
            }
        });
        let mut index = vec![None; graph.functions.len()];
        let numbered = entries.iter().filter_map(|entry| match entry {
            Entry::Function(at) => Some(*at),
            Entry::Cycle(_) => None,
        });
        numbered.zip(1..).for_each(|(function, number)| index[function] = Some(number));
        let mut names: HashMap<&str, usize> = HashMap::new();
        tables.symbols.iter().for_each(|symbol| *names.entry(&symbol.name).or_default() += 1);
        let fits = |set: &str, function: &Function| {
            let by_name = !set.contains('/') && matches(set, &function.name);
            by_name || set.contains('/') && function.file.as_deref().is_some_and(|file| is_below(file, set))
        };
        for set in &options.function {
            if !graph.functions.iter().any(|function| fits(set, function)) {
                return Err(names::none_of(tables, set));
            }
        }
        let is_chosen = |function: &Function| {
            options.function.is_empty() || options.function.iter().any(|set| fits(set, function))
        };
        let chosen = graph.functions.iter().map(is_chosen).collect();
        Ok(Self { graph, entries, chosen, index, names, profile })
    }

    /// Whether `--function` leaves it in.
    pub fn is_chosen(&self, function: usize) -> bool {
        self.chosen.get(function).copied().unwrap_or(false)
    }

    /// Number of a function, if it has an entry.
    pub fn number(&self, function: usize) -> Option<usize> {
        self.index.get(function).copied().flatten()
    }

    /// Share of all time, in per cent.
    pub fn percent(&self, ns: u64) -> f64 {
        crate::view::share(ns, self.graph.total_ns)
    }

    /// A function's name with what tells it from others of that name, its cycle and its number.
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

    /// A function's name, with its file if several have that name.
    pub fn name(&self, function: usize) -> String {
        let Some(function) = self.graph.functions.get(function) else { return "[unknown]".into() };
        let shared = self.names.get(function.name.as_str()).is_some_and(|count| *count > 1);
        match &function.file {
            Some(file) if shared => printable(&format!("{} ({file})", function.name)),
            _ => printable(&function.name),
        }
    }

    /// The unit of all times up to `largest`.
    pub fn unit(&self, options: &GraphOptions, largest: u64) -> TimeUnit {
        match options.unit {
            Some(unit) => unit,
            None if CallGraph::suits(&self.profile.tables) == Propagation::Counts => TimeUnit::Seconds,
            None => Measure::of(self.profile).row_unit(largest),
        }
    }

    /// The functions of a set that never ran, by file and name, and how many the set has. Parts
    /// that the compiler moved away (`.cold`) are never called and count as no function.
    pub fn never_called(&self, set: &str) -> Result<(Vec<&'a Symbol>, usize)> {
        let part = |symbol: &Symbol| symbol.name.split('.').any(|part| part == "cold");
        let of_set = |symbol: &&Symbol| is_of_set(symbol, set) && symbol.size > 0 && !part(symbol);
        let all: Vec<&Symbol> = self.profile.tables.symbols.iter().filter(of_set).collect();
        if all.is_empty() {
            return Err(Error::NoFunction { pattern: set.into() });
        }
        let idle = |symbol: &&&Symbol| {
            self.graph.functions.get(symbol.function.get() as usize).is_none_or(Function::is_idle)
        };
        let mut never: Vec<&Symbol> = all.iter().filter(idle).copied().collect();
        never.sort_by_key(|symbol| (symbol.file.as_deref(), symbol.name.as_str(), symbol.function));
        Ok((never, all.len()))
    }

    /// `The functions of a set that never ran` as text; nothing if none was asked for.
    pub fn never_called_text(&self, options: &GraphOptions) -> Result<String> {
        let Some(set) = &options.never_called else { return Ok(String::new()) };
        let (never, all) = self.never_called(set)?;
        let grouped = |count: usize| kerntune_compare::number::grouped(count as u64);
        let mut out = format!(
            "\nNever called: {} of {} functions of {}\n",
            grouped(never.len()),
            grouped(all),
            printable(set)
        );
        let mut file = None;
        for symbol in never {
            if file != Some(&symbol.file) {
                file = Some(&symbol.file);
                out += &format!("{}\n", printable(symbol.file.as_deref().unwrap_or("(file not known)")));
            }
            out += &format!("    {}\n", printable(&symbol.name));
        }
        Ok(out)
    }

    /// What a reader has to know of the profile; nothing if all is well.
    pub fn notes(&self, style: Style) -> String {
        let notes = health::notes(self.profile);
        let line = |note: &String| format!("{}  {}\n", style.paint(Role::Bad, "note"), printable(note));
        match notes.is_empty() {
            true => String::new(),
            false => format!("\n{}", notes.iter().map(line).collect::<String>()),
        }
    }
}
