//! The call graph profile of gprof: an entry for each function and each cycle, callers above,
//! callees below (McKusick, "Using gprof to Tune the 4.2BSD Kernel", 2.1.2 and Figure 1).

use super::flat::{called, never, Never};
use super::Report;
use crate::call_graph::{Entry, GraphOptions, Listing, Propagation};
use crate::columns::{Cell, Columns, Side};
use crate::head::Head;
use crate::style::Role;
use crate::unit::{seconds, TimeUnit};
use crate::{sampled, Result, Style};
use clap::Args;
use kerntune_analyze::graph::Share;
use kerntune_compare::number::{fixed, grouped};
use kerntune_profile::Profile;
use serde::Serialize;
use std::cmp::Reverse;

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-graph/2";

/// `kerntune report PROFILE graph`.
pub const ENTRY: super::Entry = super::entry::<Options>("graph", 3);

/// Callers and callees of each function and cycle, with the time they hand up (gprof's call graph)
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct Options {
    /// Which functions, and how.
    #[command(flatten)]
    pub graph: GraphOptions,
}

/// Between entries.
const RULE: &str = "-----------------------------------------------";

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

/// A line of the table before its columns are aligned.
struct Line {
    index: String,
    percent: String,
    times: Option<(u64, u64)>,
    /// `4` and `/10`, `10` and `+4`.
    called: (String, String),
    name: Cell,
}

impl Line {
    /// A parent or a child. `4/10`: four of the ten calls from outside of its cycle; within a
    /// cycle no time is handed up, and the calls have nothing to be a part of.
    fn of_arc(listing: &Listing, arc: &Share, name: String) -> Self {
        let inner = listing.graph.is_inner(arc);
        let all = format!("/{}", grouped(listing.graph.calls_from_outside(arc.callee)));
        Self {
            index: String::new(),
            percent: String::new(),
            times: (!inner).then_some((arc.self_ns, arc.descendants_ns)),
            called: (grouped(arc.calls), if inner { String::new() } else { all }),
            name: format!("    {name}").into(),
        }
    }

    fn calls(calls: u64, self_calls: u64) -> (String, String) {
        let text = called(calls, self_calls);
        let at = text.find('+').unwrap_or(text.len());
        let (calls, own) = text.split_at(at);
        (calls.into(), own.into())
    }
}

/// The lines of an entry.
fn lines(listing: &Listing, entry: Entry) -> Vec<Line> {
    let graph = &listing.graph;
    let main = |index: String, (own, descendants): (u64, u64), called, name: String| Line {
        index,
        percent: fixed(listing.percent(own.saturating_add(descendants)), 1),
        times: Some((own, descendants)),
        called,
        name: Cell(name, Role::Head),
    };
    let arc = |arc: &Share, name| Line::of_arc(listing, arc, name);
    match entry {
        Entry::Function(at) => {
            let function = &graph.functions[at];
            let mut lines: Vec<Line> =
                listing.parents(at).into_iter().map(|parent| arc(parent, listing.caller(parent))).collect();
            if lines.is_empty() {
                let name = "    <spontaneous>".into();
                let nothing = String::new;
                let called = (nothing(), nothing());
                lines.push(Line { index: nothing(), percent: nothing(), times: None, called, name });
            }
            lines.push(main(
                listing.number(at).map(|number| format!("[{number}]")).unwrap_or_default(),
                (function.self_ns, function.descendants_ns),
                Line::calls(function.calls, function.self_calls),
                listing.label(at),
            ));
            let children = listing.children(at).into_iter();
            lines.extend(children.map(|child| arc(child, listing.label(child.callee))));
            lines
        }
        Entry::Cycle(at) => {
            let cycle = &graph.cycles[at];
            let mut entering: Vec<&Share> = cycle
                .members
                .iter()
                .flat_map(|member| listing.parents(*member))
                .filter(|arc| !graph.is_inner(arc))
                .collect();
            entering.sort_by_key(|arc| (arc.total_ns(), arc.calls, arc.caller, arc.callee));
            let mut lines: Vec<Line> =
                entering.into_iter().map(|parent| arc(parent, listing.caller(parent))).collect();
            lines.push(main(
                format!("[c{}]", at + 1),
                (cycle.self_ns, cycle.descendants_ns),
                Line::calls(cycle.calls, cycle.inner_calls),
                format!("<cycle {} as a whole>", at + 1),
            ));
            lines.extend(cycle.members.iter().map(|member| {
                let function = &graph.functions[*member];
                Line {
                    index: String::new(),
                    percent: String::new(),
                    times: Some((function.self_ns, function.descendants_ns)),
                    called: Line::calls(function.calls, function.self_calls),
                    name: format!("    {}", listing.label(*member)).into(),
                }
            }));
            lines
        }
    }
}

fn columns(profile: &Profile, listing: &Listing, entries: &[Entry], unit: TimeUnit, style: Style) -> String {
    let blocks: Vec<Vec<Line>> = entries.iter().map(|entry| lines(listing, *entry)).collect();
    let width =
        |part: fn(&Line) -> &String| blocks.iter().flatten().map(|line| part(line).len()).max().unwrap_or(0);
    let (left, right) = (width(|line| &line.called.0), width(|line| &line.called.1));
    let has_calls = sampled::has_calls(profile);
    let error = format!("\n{} both\n{}", sampled::ERROR, unit.name());
    let mut table = Columns::new([
        ("\nindex\n", Side::Left),
        ("\n% time\n", Side::Right),
        (format!("\nself\n{}", unit.name()).as_str(), Side::Right),
        (format!("\ndescendants\n{}", unit.name()).as_str(), Side::Right),
        (if has_calls { "called/total\ncalled+self\ncalled/total" } else { &error }, Side::Right),
        ("    parents\nname [index]\n    children", Side::Left),
    ]);
    for block in blocks {
        for line in block {
            let time = |time: Option<u64>| Cell::from(time.map_or(String::new(), |ns| unit.format(ns)));
            let (calls, rest) = &line.called;
            let both = line.times.map(|(own, descendants)| own.saturating_add(descendants));
            let called = match has_calls {
                true => format!("{calls:>left$}{rest:<right$}"),
                false => both.map_or(String::new(), |both| sampled::error(profile, both, unit)),
            };
            table.row([
                line.index.into(),
                line.percent.into(),
                time(line.times.map(|times| times.0)),
                time(line.times.map(|times| times.1)),
                called.into(),
                line.name,
            ]);
        }
        table.gap();
    }
    let text = table.render(style);
    text.lines().map(|line| if line.is_empty() { RULE } else { line }.to_string() + "\n").collect()
}

/// Numbers by name, of the entries that are shown.
fn index(listing: &Listing, entries: &[Entry]) -> String {
    let mut names: Vec<(String, String)> = entries
        .iter()
        .map(|entry| match *entry {
            Entry::Function(at) => {
                (listing.name(at), listing.number(at).map(|n| format!("[{n}]")).unwrap_or_default())
            }
            Entry::Cycle(at) => (format!("<cycle {}>", at + 1), format!("[c{}]", at + 1)),
        })
        .collect();
    names.sort();
    let width = names.iter().map(|(_, number)| number.len()).max().unwrap_or(0);
    let lines = names.iter().map(|(name, number)| format!("{number:>width$}  {name}\n"));
    format!("\nIndex by function name\n\n{}", lines.collect::<String>())
}

#[derive(Serialize)]
struct Json<'a> {
    #[serde(flatten)]
    head: Head<'a>,
    propagation: &'static str,
    total_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    sampled: Option<sampled::JsonSampled<'a>>,
    entries: Vec<JsonEntry<'a>>,
    never_called: Option<Vec<Never<'a>>>,
}

#[derive(Serialize)]
struct JsonEntry<'a> {
    kind: &'static str,
    #[serde(flatten)]
    function: Named<'a>,
    percent: f64,
    self_ns: u64,
    descendants_ns: u64,
    calls: u64,
    self_calls: u64,
    parents: Vec<JsonArc<'a>>,
    children: Vec<JsonArc<'a>>,
    members: Vec<Member<'a>>,
}

/// Which function; all null for what has none.
#[derive(Default, Serialize)]
struct Named<'a> {
    index: Option<usize>,
    name: Option<&'a str>,
    file: Option<&'a str>,
    cycle: Option<usize>,
}

#[derive(Serialize)]
struct JsonArc<'a> {
    #[serde(flatten)]
    function: Named<'a>,
    self_ns: u64,
    descendants_ns: u64,
    calls: u64,
    total_calls: Option<u64>,
}

#[derive(Serialize)]
struct Member<'a> {
    #[serde(flatten)]
    function: Named<'a>,
    self_ns: u64,
    descendants_ns: u64,
    calls: u64,
    self_calls: u64,
}

impl Listing<'_> {
    fn named(&self, function: Option<usize>) -> Named<'_> {
        let Some((at, function)) = function.and_then(|at| Some((at, self.graph.functions.get(at)?))) else {
            return Named::default();
        };
        Named {
            index: self.number(at),
            name: Some(&function.name),
            file: function.file.as_deref(),
            cycle: function.cycle.map(|cycle| cycle + 1),
        }
    }

    fn json_arc(&self, arc: &Share, function: Option<usize>) -> JsonArc<'_> {
        let inner = self.graph.is_inner(arc);
        JsonArc {
            function: self.named(function),
            self_ns: arc.self_ns,
            descendants_ns: arc.descendants_ns,
            calls: arc.calls,
            total_calls: (!inner).then(|| self.graph.calls_from_outside(arc.callee)),
        }
    }

    fn json_entry(&self, entry: Entry) -> JsonEntry<'_> {
        let percent = self.percent(self.total(entry));
        match entry {
            Entry::Function(at) => {
                let function = &self.graph.functions[at];
                JsonEntry {
                    kind: "function",
                    function: self.named(Some(at)),
                    percent,
                    self_ns: function.self_ns,
                    descendants_ns: function.descendants_ns,
                    calls: function.calls,
                    self_calls: function.self_calls,
                    parents: self.parents(at).into_iter().map(|arc| self.json_arc(arc, arc.caller)).collect(),
                    children: self
                        .children(at)
                        .into_iter()
                        .map(|arc| self.json_arc(arc, Some(arc.callee)))
                        .collect(),
                    members: Vec::new(),
                }
            }
            Entry::Cycle(at) => {
                let cycle = &self.graph.cycles[at];
                let member = |&member: &usize| {
                    let function = &self.graph.functions[member];
                    Member {
                        function: self.named(Some(member)),
                        self_ns: function.self_ns,
                        descendants_ns: function.descendants_ns,
                        calls: function.calls,
                        self_calls: function.self_calls,
                    }
                };
                JsonEntry {
                    kind: "cycle",
                    function: Named { cycle: Some(at + 1), ..Named::default() },
                    percent,
                    self_ns: cycle.self_ns,
                    descendants_ns: cycle.descendants_ns,
                    calls: cycle.calls,
                    self_calls: cycle.inner_calls,
                    parents: Vec::new(),
                    children: Vec::new(),
                    members: cycle.members.iter().map(member).collect(),
                }
            }
        }
    }
}

impl Report for Options {
    fn text(&self, profile: &Profile, style: Style) -> Result<String> {
        let options = &self.graph;
        let listing = Listing::new(profile, options)?;
        let entries = listing.wanted(options, options.most_in_text());
        let how = match listing.graph.propagation {
            Propagation::Exact if profile.manifest.sampled.is_some() => "as sampled",
            Propagation::Exact => "as measured",
            Propagation::Counts => "in proportion to calls",
        };
        let total = seconds(listing.graph.total_ns);
        let mut out = format!("Time in functions    = {total}  (handed to callers {how})\n\n");
        let unit =
            listing.unit(options, entries.iter().map(|entry| listing.total(*entry)).max().unwrap_or(0));
        out += &columns(profile, &listing, &entries, unit, style);
        if entries.len() < listing.entries.len() && options.function.is_empty() {
            let rest = grouped((listing.entries.len() - entries.len()) as u64);
            out += &style.paint(Role::Faint, &format!("{rest} more entries (--top, --min-percent)\n"));
        }
        out += &index(&listing, &entries);
        out += &listing.never_called_text(options)?;
        out += &listing.notes(style);
        Ok(out)
    }

    fn json(&self, profile: &Profile) -> Result<String> {
        let options = &self.graph;
        let listing = Listing::new(profile, options)?;
        crate::to_json(&Json {
            head: Head::new(SCHEMA, profile, &options.region),
            propagation: listing.graph.propagation.word(),
            total_ns: listing.graph.total_ns,
            sampled: sampled::json(profile),
            entries: listing
                .wanted(options, options.most_in_json())
                .into_iter()
                .map(|entry| listing.json_entry(entry))
                .collect(),
            never_called: never(&listing, options)?,
        })
    }
}
