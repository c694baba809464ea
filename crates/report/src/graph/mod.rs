//! The call graph profile of gprof: an entry for each function and each cycle, callers above,
//! callees below (McKusick, "Using gprof to Tune the 4.2BSD Kernel", 2.1.2 and Figure 1).
//!
//! [`Options`] print a profile's graph; [`Options::text_with`] and [`Options::json_with`] also what a kernel's [`Code`] has
//! and no run took.

mod cut;
mod json;
mod text;

pub use cut::Cut;

use crate::call_graph::{Entry, GraphOptions, Listing, Propagation};
use crate::head::of_threads;
use crate::style::Role;
use crate::unit::Measure;
use crate::{Report, Result, Style, Who};
use clap::Args;
use kerntune_analyze::graph::{Changes, CodeArc, Share};
use kerntune_compare::number::grouped;
use kerntune_profile::Profile;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-graph/3";

/// Callers and callees of each function and cycle, with the time they hand up (gprof's call graph)
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct Options {
    /// Which functions, and how.
    #[command(flatten)]
    pub graph: GraphOptions,
    /// Leave these calls out of cycles: CALLER/CALLEE, each a name or a pattern with * and ?; `auto` leaves out rare calls that
    /// form cycles (each at most 5 per cent of the calls within its cycle), auto:PERCENT sets the share; may be repeated
    #[arg(long, value_name = "CALLER/CALLEE|auto")]
    pub cut: Vec<Cut>,
}

/// What a kernel's code says of its calls. Functions are numbered as in the profile's table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Code {
    /// Who can call whom, by caller and callee.
    pub arcs: Vec<CodeArc>,
    /// Places that call who knows whom, by function.
    pub unknown: BTreeMap<usize, Unknown>,
    /// Whether calls that nobody made bind cycles.
    pub binds: bool,
}

/// Places in a function of which the code does not say whom they call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Unknown {
    /// Calls through a register or memory.
    pub calls: u32,
    /// Jumps through a register or memory, but for those of a `switch`.
    pub jumps: u32,
    /// Calls and jumps whose target is written into the code while the kernel runs.
    pub patched: u32,
}

impl Code {
    /// The places of an arc, if the code has it.
    fn places(&self, share: &Share) -> Option<CodeArc> {
        let key = (share.caller?, share.callee);
        let at = self.arcs.binary_search_by_key(&key, |arc| (arc.caller, arc.callee)).ok()?;
        self.arcs.get(at).copied()
    }
}

impl Listing<'_> {
    /// The entries that are wanted, in order.
    fn wanted(&self, options: &GraphOptions, most: usize) -> Vec<Entry> {
        let chosen = |entry: &&Entry| match **entry {
            Entry::Function(at) => self.is_chosen(at),
            Entry::Cycle(at) => self.graph.cycles[at].members.iter().any(|member| self.is_chosen(*member)),
        };
        let enough = |entry: &&Entry| self.percent(self.total(**entry)) >= options.min_percent;
        let entries = self.entries.iter().filter(chosen).filter(enough).copied();
        entries.take(most).collect()
    }

    fn total(&self, entry: Entry) -> u64 {
        match entry {
            Entry::Function(at) => self.graph.functions[at].total_ns(),
            Entry::Cycle(at) => self.graph.cycles[at].total_ns(),
        }
    }

    /// The arcs by which a function is called, smallest share first; none within its cycle is
    /// smaller than those. Its calls of itself are in its own line.
    fn parents(&self, function: usize) -> Vec<&Share> {
        let mut arcs = self.arcs(&self.graph.functions[function].parents);
        arcs.sort_by_key(|arc| (arc.total_ns(), arc.calls, arc.caller));
        arcs
    }

    /// The arcs by which it calls, greatest share first.
    fn children(&self, function: usize) -> Vec<&Share> {
        let mut arcs = self.arcs(&self.graph.functions[function].children);
        arcs.sort_by_key(|arc| (Reverse(arc.total_ns()), Reverse(arc.calls), arc.callee));
        arcs
    }

    fn arcs(&self, arcs: &[usize]) -> Vec<&Share> {
        let arcs = arcs.iter().map(|at| &self.graph.arcs[*at]);
        arcs.filter(|arc| arc.caller != Some(arc.callee)).collect()
    }

    fn caller(&self, arc: &Share) -> String {
        arc.caller.map_or("<spontaneous>".into(), |caller| self.label(caller))
    }
}

impl Options {
    /// The profile's graph, with the cuts that are asked for and what the code has beside it.
    fn listing<'a>(&self, profile: &'a Profile, code: Option<&Code>) -> Result<Listing<'a>> {
        let changes = Changes {
            cut: cut::named(profile, &self.cut, self.graph.region.as_deref())?,
            auto: cut::automatic(&self.cut),
            code: code.map_or(&[], |code| &code.arcs),
            code_binds: code.is_some_and(|code| code.binds),
        };
        Listing::with(profile, &self.graph, &changes)
    }

    /// [`Report::text`], with what the code has.
    ///
    /// # Errors
    /// As [`Report::text`]; a cut that cuts nothing.
    pub fn text_with(&self, profile: &Profile, code: Option<&Code>, style: Style) -> Result<String> {
        let options = &self.graph;
        let listing = self.listing(profile, code)?;
        let entries = listing.wanted(options, options.most_in_text());
        let how = match listing.graph.propagation {
            Propagation::Exact if profile.manifest.sampled.is_some() => "as sampled",
            Propagation::Exact => "as measured",
            Propagation::Counts => "in proportion to calls",
        };
        let total = Measure::of(profile).whole(listing.graph.total_ns);
        let mut out = of_threads(&options.who);
        out += &format!("Time in functions    = {total}  (handed to callers {how})\n");
        out += &text::code_line(&listing, code);
        out.push('\n');
        let unit =
            listing.unit(options, entries.iter().map(|entry| listing.total(*entry)).max().unwrap_or(0));
        out += &text::cuts(&listing, self, style);
        out += &text::columns(profile, &listing, &entries, code, unit, style);
        if entries.len() < listing.entries.len() && options.function.is_empty() {
            let rest = grouped((listing.entries.len() - entries.len()) as u64);
            out += &style.paint(Role::Faint, &format!("{rest} more entries (--top, --min-percent)\n"));
        }
        out += &text::index(&listing, &entries);
        out += &listing.never_called_text(options)?;
        out += &listing.notes(style);
        Ok(out)
    }

    /// [`Report::json`], with what the code has.
    ///
    /// # Errors
    /// As [`Options::text_with`].
    pub fn json_with(&self, profile: &Profile, code: Option<&Code>) -> Result<String> {
        json::json(self, profile, code)
    }
}

impl Report for Options {
    fn who(&self) -> Option<&Who> {
        Some(&self.graph.who)
    }

    fn text(&self, profile: &Profile, style: Style) -> Result<String> {
        self.text_with(profile, None, style)
    }

    fn json(&self, profile: &Profile) -> Result<String> {
        self.json_with(profile, None)
    }
}
