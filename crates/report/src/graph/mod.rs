//! Call graph profile of gprof: an entry for each function and each cycle, callers above, callees
//! below (McKusick, "Using gprof to Tune the 4.2BSD Kernel", 2.1.2 and Figure 1).
//!
//! [`GraphReportOptions`] renders a profile's graph; [`GraphReportOptions::text_with`] and
//! [`GraphReportOptions::json_with`] add the arcs of a kernel's [`StaticCalls`] that no run took.

mod cut;
mod json;
mod text;

pub use cut::ArcCut;

use crate::call_graph::{GraphEntry, GraphListing, GraphOptions, Propagation};
use crate::head::threads_line;
use kerntune_table::TextRole;
use crate::unit::TickUnit;
use crate::{Report, Result, Style, ThreadFilter};
use clap::Args;
use kerntune_analyze::graph::{ArcChanges, ArcShare, CodeArc};
use kerntune_table::number::grouped;
use kerntune_profile::Profile;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-graph/3";

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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
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
}

impl GraphListing<'_> {
    /// Returns the selected entries, in order.
    fn wanted(&self, options: &GraphOptions, most: usize) -> Vec<GraphEntry> {
        let chosen = |entry: &&GraphEntry| match **entry {
            GraphEntry::Function(at) => self.is_chosen(at),
            GraphEntry::Cycle(at) => {
                self.graph.cycles[at].members.iter().any(|member| self.is_chosen(*member))
            }
        };
        let enough = |entry: &&GraphEntry| self.percent(self.total(**entry)) >= options.min_percent;
        let entries = self.entries.iter().filter(chosen).filter(enough).copied();
        entries.take(most).collect()
    }

    fn total(&self, entry: GraphEntry) -> u64 {
        match entry {
            GraphEntry::Function(at) => self.graph.functions[at].total_ns(),
            GraphEntry::Cycle(at) => self.graph.cycles[at].total_ns(),
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
    fn listing<'a>(&self, profile: &'a Profile, code: Option<&StaticCalls>) -> Result<GraphListing<'a>> {
        let changes = ArcChanges {
            cut: cut::named(profile, &self.cut, self.graph.region.as_deref())?,
            auto: cut::automatic(&self.cut),
            code: code.map_or(&[], |code| &code.arcs),
            code_binds: code.is_some_and(|code| code.binds),
        };
        GraphListing::with(profile, &self.graph, &changes)
    }

    /// Renders [`Report::text`] with the arcs of the code.
    ///
    /// # Errors
    /// Same as [`Report::text`]; a cut that matches no arc.
    pub fn text_with(&self, profile: &Profile, code: Option<&StaticCalls>, style: Style) -> Result<String> {
        let options = &self.graph;
        let listing = self.listing(profile, code)?;
        let entries = listing.wanted(options, options.most_in_text());
        let how = match listing.graph.propagation {
            Propagation::Exact if profile.manifest.sampled.is_some() => "as sampled",
            Propagation::Exact => "as measured",
            Propagation::Counts => "in proportion to calls",
        };
        let total = TickUnit::of(profile).whole(listing.graph.total_ns);
        let mut out = threads_line(&options.threads);
        out += &format!("Time in functions    = {total}  (handed to callers {how})\n");
        out += &text::code_line(&listing, code);
        out.push('\n');
        let unit =
            listing.unit(options, entries.iter().map(|entry| listing.total(*entry)).max().unwrap_or(0));
        out += &text::cuts(&listing, self, style);
        out += &text::columns(profile, &listing, &entries, code, unit, style);
        if entries.len() < listing.entries.len() && options.function.is_empty() {
            let rest = grouped((listing.entries.len() - entries.len()) as u64);
            out += &style.paint(TextRole::Faint, &format!("{rest} more entries (--top, --min-percent)\n"));
        }
        out += &text::index(&listing, &entries);
        out += &listing.never_called_text(options)?;
        out += &listing.notes(style);
        Ok(out)
    }

    /// Renders [`Report::json`] with the arcs of the code.
    ///
    /// # Errors
    /// Same as [`GraphReportOptions::text_with`].
    pub fn json_with(&self, profile: &Profile, code: Option<&StaticCalls>) -> Result<String> {
        json::json(self, profile, code)
    }
}

impl Report for GraphReportOptions {
    fn thread_filter(&self) -> Option<&ThreadFilter> {
        Some(&self.graph.threads)
    }

    fn text(&self, profile: &Profile, style: Style) -> Result<String> {
        self.text_with(profile, None, style)
    }

    fn json(&self, profile: &Profile) -> Result<String> {
        self.json_with(profile, None)
    }
}
