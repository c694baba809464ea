//! Call graph profile of gprof: an entry for each function and each cycle, callers above, callees
//! below (McKusick, "Using gprof to Tune the 4.2BSD Kernel", 2.1.2 and Figure 1).
//!
//! [`GraphReportOptions`] renders a profile's graph, with the arcs of a kernel's [`StaticCalls`] that
//! no run took.

mod cut;
mod json;
mod text;

pub use cut::ArcCut;

use crate::call_graph::{GraphEntry, GraphListing, GraphOptions};
use crate::{health, Report, Result, ThreadFilter};
use clap::Args;
use kerntune_analyze::graph::{ArcBinding, ArcChanges, ArcShare, CodeArc, CutReason};
use kerntune_profile::Profile;
use kerntune_table::Document;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-graph/3";

/// Description of the JSON form.
const ABOUT: &str = "gprof's call graph: functions that ran and cycles.";

/// Callers and callees of each function and cycle, with propagated time (gprof's call graph)
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct GraphReportOptions {
    /// Options shared with the flat profile.
    #[command(flatten)]
    pub graph: GraphOptions,
    /// Leave these calls out of cycles: CALLER/CALLEE, each a name or a pattern with * and ?;
    /// `auto` leaves out rare calls that form cycles (each at most 5 per cent of the calls within
    /// its cycle), auto:PERCENT sets the share; may be repeated
    #[arg(long, value_name = "CALLER/CALLEE|auto")]
    pub cut: Vec<ArcCut>,
    /// Adds the calls of the kernel's code.
    #[arg(skip)]
    pub code: Option<StaticCalls>,
}

/// Calls found in a kernel's code (gprof's static call graph). Functions are numbered as in the
/// profile's table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StaticCalls {
    /// Possible calls, by caller and callee.
    pub arcs: Vec<CodeArc>,
    /// Call sites with unknown callees, by function.
    pub unknown: BTreeMap<usize, UnknownCallees>,
    /// Includes arcs without calls when finding cycles.
    pub binds: bool,
}

/// Call sites of a function whose callees the code does not reveal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UnknownCallees {
    /// Calls through a register or memory.
    pub calls: u32,
    /// Jumps through a register or memory, except those of a `switch`.
    pub jumps: u32,
    /// Calls and jumps whose target is patched at run time.
    pub patched: u32,
}

impl StaticCalls {
    /// Returns the call sites of an arc, if the code has it.
    fn places(&self, share: &ArcShare) -> Option<CodeArc> {
        let key = (share.caller?, share.callee);
        let at = self.arcs.binary_search_by_key(&key, |arc| (arc.caller, arc.callee)).ok()?;
        self.arcs.get(at).copied()
    }

    /// Returns the sums of the call sites with unknown callees.
    fn all_unknown(&self) -> UnknownCallees {
        self.unknown.values().fold(UnknownCallees::default(), |sum, places| UnknownCallees {
            calls: sum.calls.saturating_add(places.calls),
            jumps: sum.jumps.saturating_add(places.jumps),
            patched: sum.patched.saturating_add(places.patched),
        })
    }

    /// Returns the number of arcs of the code that were never taken.
    fn never_taken(&self, listing: &GraphListing) -> usize {
        let arcs = listing.graph.arcs.iter();
        arcs.filter(|arc| arc.calls == 0 && self.places(arc).is_some()).count()
    }
}

/// Names the reason why an arc was cut.
fn cut_by(arc: &ArcShare) -> &'static str {
    match arc.tie {
        ArcBinding::Cut(CutReason::Heuristic) => "auto",
        _ => "name",
    }
}

impl GraphListing<'_> {
    /// Returns the selected entries, in order.
    fn wanted(&self, options: &GraphOptions) -> Vec<GraphEntry> {
        let chosen = |entry: &&GraphEntry| match **entry {
            GraphEntry::Function(at) => self.is_chosen(at),
            GraphEntry::Cycle(at) => {
                self.graph.cycles[at].members.iter().any(|member| self.is_chosen(*member))
            }
        };
        let enough = |entry: &&GraphEntry| self.percent(self.total(**entry)) >= options.min_percent;
        self.entries.iter().filter(chosen).filter(enough).copied().collect()
    }

    fn total(&self, entry: GraphEntry) -> u64 {
        let [own, descendants, ..] = self.figures(entry);
        own.saturating_add(descendants)
    }

    /// Returns self time, time of descendants, calls, and recursive calls (of a cycle: calls between
    /// different members).
    fn figures(&self, entry: GraphEntry) -> [u64; 4] {
        match entry {
            GraphEntry::Function(at) => {
                let function = &self.graph.functions[at];
                [function.self_ns, function.descendants_ns, function.calls, function.self_calls]
            }
            GraphEntry::Cycle(at) => {
                let cycle = &self.graph.cycles[at];
                [cycle.self_ns, cycle.descendants_ns, cycle.calls, cycle.inner_calls]
            }
        }
    }

    /// Returns the arcs from callers, smallest share first; arcs within the cycle come before them.
    /// Recursive calls are on the function's own line.
    fn parents(&self, function: usize) -> Vec<&ArcShare> {
        let mut arcs = self.arcs(&self.graph.functions[function].parents);
        arcs.sort_by_key(|arc| (arc.total_ns(), arc.calls, arc.caller));
        arcs
    }

    /// Returns the arcs to callees, greatest share first.
    fn children(&self, function: usize) -> Vec<&ArcShare> {
        let mut arcs = self.arcs(&self.graph.functions[function].children);
        arcs.sort_by_key(|arc| (Reverse(arc.total_ns()), Reverse(arc.calls), arc.callee));
        arcs
    }

    fn arcs(&self, arcs: &[usize]) -> Vec<&ArcShare> {
        let arcs = arcs.iter().map(|at| &self.graph.arcs[*at]);
        arcs.filter(|arc| arc.caller != Some(arc.callee)).collect()
    }

    fn caller(&self, arc: &ArcShare) -> String {
        arc.caller.map_or("<spontaneous>".into(), |caller| self.label(caller))
    }
}

impl GraphReportOptions {
    /// Builds the profile's graph, with the requested cuts and the arcs of the code.
    fn listing<'a>(&self, profile: &'a Profile) -> Result<GraphListing<'a>> {
        let code = self.code.as_ref();
        let changes = ArcChanges {
            cut: cut::named(profile, &self.cut, self.graph.select.region.as_deref())?,
            auto: cut::automatic(&self.cut),
            code: code.map_or(&[], |code| &code.arcs),
            code_binds: code.is_some_and(|code| code.binds),
        };
        GraphListing::with(profile, &self.graph, &changes)
    }
}

impl Report for GraphReportOptions {
    fn thread_filter(&self) -> Option<&ThreadFilter> {
        Some(&self.graph.threads)
    }

    fn document<'a>(&'a self, profile: &'a Profile) -> Result<Document<'a>> {
        let listing = Rc::new(self.listing(profile)?);
        let mut document = listing.document(SCHEMA, ABOUT, &self.graph);
        let entries = listing.wanted(&self.graph);
        text::add(&mut document, &listing, self, &entries, profile);
        json::add(&mut document, &listing, self, entries);
        listing.add_never_called(&mut document, &self.graph)?;
        health::add(&mut document, profile);
        Ok(document)
    }
}
