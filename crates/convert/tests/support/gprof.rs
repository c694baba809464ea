//! Runs GNU gprof, parses its output, and compares a call graph with it.
#![allow(dead_code)] // each test program uses its own part

use kerntune_analyze::graph::{ArcBinding, ArcShare, CallGraph};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// Runs `gprof -b` with more arguments and returns its standard output.
pub fn gprof(arguments: &[&Path]) -> String {
    let output = Command::new("gprof").arg("-b").args(arguments).output().expect("gprof of binutils");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "gprof {arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// Line of an entry: times in gprof's unit, calls.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FlatRow {
    pub own: f64,
    pub descendants: f64,
    pub calls: u64,
    /// Number behind `/` or `+`.
    pub other: u64,
}

/// Entry of the call graph.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CallGraphEntry {
    pub line: FlatRow,
    pub cycle: Option<usize>,
    pub parents: BTreeMap<String, FlatRow>,
    pub children: BTreeMap<String, FlatRow>,
}

/// Parsed output of gprof.
#[derive(Debug, Default)]
pub struct GprofOutput {
    /// Self time, calls, total time per call, by name.
    pub flat: BTreeMap<String, (f64, u64, f64)>,
    /// Factor by which times per call were multiplied in print.
    pub scale: f64,
    pub entries: BTreeMap<String, CallGraphEntry>,
    /// Cycles by number: the line of the whole, the names of the members.
    pub cycles: BTreeMap<usize, (FlatRow, BTreeSet<String>)>,
}

pub fn parse(text: &str) -> GprofOutput {
    let mut printed = GprofOutput::default();
    let (flat, graph) = text.split_at(text.find("Call graph").expect("gprof prints a call graph"));
    for line in flat.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let Some(unit) = words.iter().find_map(|word| word.strip_suffix("/call")) {
            // A letter for the scale, if any, before the letter of the unit.
            let prefix = unit.chars().rev().nth(1).unwrap_or(' ');
            let scales = [
                ('T', 1e-12),
                ('G', 1e-9),
                ('M', 1e-6),
                ('K', 1e-3),
                (' ', 1.0),
                ('m', 1e3),
                ('u', 1e6),
                ('n', 1e9),
                ('p', 1e12),
            ];
            printed.scale = scales.iter().find(|(letter, _)| *letter == prefix).unwrap().1;
        }
        let number = |at: usize| words.get(at).and_then(|word| word.parse::<f64>().ok());
        if let (Some(_), Some(_), Some(own), Some(name)) = (number(0), number(1), number(2), words.last()) {
            let calls = if words.len() == 7 { words[3].parse().unwrap() } else { 0 };
            let per_call = number(5).filter(|_| words.len() == 7).unwrap_or(0.0) / printed.scale;
            printed.flat.insert((*name).to_string(), (own, calls, per_call));
        }
    }
    let body = graph.split("name\n").nth(1).unwrap();
    for block in body.split("-----------------------------------------------\n") {
        if block.starts_with('\u{c}') || block.contains("Index by function name") {
            break;
        }
        entry(block, &mut printed);
    }
    printed
}

fn entry(block: &str, printed: &mut GprofOutput) {
    let Some(main) = block.lines().find(|line| line.starts_with('[')) else { return };
    let (above, below) = block.split_once(main).unwrap();
    let words: Vec<&str> = main.split_whitespace().skip(2).collect();
    if let Some(at) = main.find("<cycle ").filter(|_| main.contains(" as a whole>")) {
        let number: usize = main[at + 7..].split_whitespace().next().unwrap().parse().unwrap();
        let members = below.lines().map(|line| arc(line).0).filter(|name| !name.is_empty()).collect();
        printed.cycles.insert(number, (times(&words).0, members));
        return;
    }
    let (line, rest) = times(&words);
    let cycle = rest
        .iter()
        .position(|word| *word == "<cycle")
        .map(|at| rest[at + 1].trim_end_matches('>').parse().unwrap());
    let arcs = |lines: &str| lines.lines().map(arc).filter(|(name, _)| !name.is_empty()).collect();
    let entry = CallGraphEntry { line, cycle, parents: arcs(above), children: arcs(below) };
    printed.entries.insert(rest[0].to_string(), entry);
}

/// Parses name and numbers of a parent, child or member; no name for gprof's own `<spontaneous>`.
fn arc(line: &str) -> (String, FlatRow) {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (line, rest) = times(&words);
    // Only a function of that name has a number.
    let name = if rest.len() < 2 { "" } else { rest[0] };
    (name.to_string(), line)
}

/// Parses times if there are two, calls if there are any, and returns the rest.
fn times<'a>(words: &'a [&'a str]) -> (FlatRow, &'a [&'a str]) {
    let mut line = FlatRow::default();
    let mut rest = words;
    if let [own, descendants, ..] = rest {
        if own.contains('.') && own.parse::<f64>().is_ok() {
            (line.own, line.descendants) = (own.parse().unwrap(), descendants.parse().unwrap());
            rest = &rest[2..];
        }
    }
    if let Some(first) = rest.first() {
        let parts: Vec<u64> = first.split(['/', '+']).map_while(|part| part.parse().ok()).collect();
        if let Some(&calls) = parts.first() {
            (line.calls, line.other) = (calls, parts.get(1).copied().unwrap_or(0));
            rest = &rest[1..];
        }
    }
    (line, rest)
}

/// Numbers of compared items.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct GprofComparison {
    pub functions: usize,
    pub arcs: usize,
    pub cycles: usize,
    pub recursive: usize,
}

/// Rounding error, in nanoseconds, of the times that arcs pass up: less than one for the arc
/// itself, which has whole nanoseconds, plus its share of the error of the arcs below it.
struct PrintRounding<'a> {
    graph: &'a CallGraph,
    by_arc: BTreeMap<usize, f64>,
}

impl PrintRounding<'_> {
    fn of_arc(&mut self, at: usize) -> f64 {
        if let Some(ns) = self.by_arc.get(&at) {
            return *ns;
        }
        let ArcShare { callee, calls, .. } = self.graph.arcs[at];
        let members = match self.graph.functions[callee].cycle {
            Some(cycle) => self.graph.cycles[cycle].members.clone(),
            None => vec![callee],
        };
        let part = calls as f64 / self.graph.calls_from_outside(callee).max(1) as f64;
        let ns = 1.0 + part * self.below(&members);
        self.by_arc.insert(at, ns);
        ns
    }

    /// Returns the error of the time that functions (of a cycle, or one) have from below.
    fn below(&mut self, functions: &[usize]) -> f64 {
        let children = functions.iter().flat_map(|function| &self.graph.functions[*function].children);
        let outside = |at: &&usize| {
            let arc = &self.graph.arcs[**at];
            arc.tie == ArcBinding::Bound && !self.graph.is_inner(arc)
        };
        let outside: Vec<usize> = children.filter(outside).copied().collect();
        outside.into_iter().map(|at| self.of_arc(at)).sum()
    }
}

/// Compares every function, arc and cycle with gprof's, in both directions. `name` returns gprof's
/// name of a function (`None` for the caller of functions without one), `unit_ns` is the
/// nanoseconds of its unit of time. Times may differ by the last digit that gprof prints, and by
/// the sum of the rounding errors of arcs on the way through the graph.
pub fn compare(
    graph: &CallGraph,
    printed: &GprofOutput,
    name: impl Fn(Option<usize>) -> String,
    unit_ns: f64,
) -> GprofComparison {
    let mut compared = GprofComparison::default();
    let mut rounding = PrintRounding { graph, by_arc: BTreeMap::new() };
    let same = |ours: u64, theirs: f64, rounding_ns: f64, what: &str| {
        let ours = ours as f64 / unit_ns;
        let apart = 0.011 + rounding_ns / unit_ns;
        assert!((ours - theirs).abs() <= apart, "{what}: {ours} here, {theirs} ± {apart} in gprof");
    };
    for (at, function) in graph.functions.iter().enumerate().filter(|(at, _)| graph.ran(*at)) {
        let own = name(Some(at));
        let entry = match printed.entries.get(&own) {
            Some(entry) => entry,
            // Only its calls are known: gprof has it only if its callees passed it some fraction of
            // a nanosecond.
            None if function.is_idle() => continue,
            None => panic!("gprof has no entry for {own}"),
        };
        let below = rounding.below(&[at]);
        same(function.self_ns, entry.line.own, 0.0, &own);
        same(function.descendants_ns, entry.line.descendants, below, &own);
        assert_eq!(
            (function.calls, function.self_calls),
            (entry.line.calls, entry.line.other),
            "calls of {own}"
        );
        assert_eq!(function.cycle.is_some(), entry.cycle.is_some(), "cycle of {own}");
        let (flat, calls, per_call) = printed.flat.get(&own).copied().unwrap_or_default();
        same(function.self_ns, flat, 0.0, &own);
        assert_eq!(function.calls, calls, "calls of {own} in the flat profile");
        if let Some(each) = function.total_ns().checked_div(calls) {
            let each = each as f64 / unit_ns;
            let digit = 0.0051 / printed.scale + 0.01 + below / calls as f64 / unit_ns;
            assert!((each - per_call).abs() <= digit, "{own} per call: {each}, {per_call} ± {digit}");
        }
        let mut arcs = |arcs: &[usize],
                        theirs: &BTreeMap<String, FlatRow>,
                        end: &dyn Fn(&ArcShare) -> Option<usize>| {
            let ours: Vec<(usize, &ArcShare)> = arcs
                .iter()
                .map(|at| (*at, &graph.arcs[*at]))
                .filter(|(_, arc)| arc.caller != Some(arc.callee))
                .collect();
            for &(at, arc) in &ours {
                let other = name(end(arc));
                let what = format!("{own} and {other}");
                let line = theirs.get(&other).unwrap_or_else(|| panic!("gprof has no arc between {what}"));
                let of_arc = if graph.is_inner(arc) { 0.0 } else { rounding.of_arc(at) };
                same(arc.self_ns, line.own, of_arc.min(1.0), &what);
                same(arc.descendants_ns, line.descendants, of_arc, &what);
                let total = if graph.is_inner(arc) { 0 } else { graph.calls_from_outside(arc.callee) };
                assert_eq!((arc.calls, total), (line.calls, line.other), "calls between {what}");
            }
            let others = theirs.keys().filter(|other| **other != own).count();
            assert_eq!(ours.len(), others, "arcs of {own}: {theirs:?}");
            ours.len()
        };
        arcs(&function.parents, &entry.parents, &|arc| arc.caller);
        compared.arcs += arcs(&function.children, &entry.children, &|arc| Some(arc.callee));
        compared.functions += 1;
        compared.recursive += usize::from(function.self_calls > 0);
    }
    let theirs: BTreeSet<(u64, u64, BTreeSet<String>)> =
        printed.cycles.values().map(|(line, members)| (line.calls, line.other, members.clone())).collect();
    for cycle in &graph.cycles {
        let members: BTreeSet<String> = cycle.members.iter().map(|member| name(Some(*member))).collect();
        let found = printed.cycles.values().find(|(_, theirs)| *theirs == members);
        let (line, _) = found.unwrap_or_else(|| panic!("gprof has no cycle {members:?}"));
        same(cycle.self_ns, line.own, 0.0, "a cycle");
        same(cycle.descendants_ns, line.descendants, rounding.below(&cycle.members), "a cycle");
        assert_eq!((cycle.calls, cycle.inner_calls), (line.calls, line.other), "calls of {members:?}");
    }
    assert_eq!(graph.cycles.len(), theirs.len(), "{theirs:?}");
    let own: BTreeSet<_> =
        (0..graph.functions.len()).filter(|at| graph.ran(*at)).map(|at| name(Some(at))).collect();
    let extra: Vec<_> =
        printed.entries.iter().filter(|(entry, _)| !own.contains(*entry) && **entry != name(None)).collect();
    assert!(extra.is_empty(), "gprof has entries of its own: {extra:?}");
    compared.cycles = graph.cycles.len();
    compared
}
