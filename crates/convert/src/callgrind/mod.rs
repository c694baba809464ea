//! [Callgrind](https://valgrind.org/docs/manual/cl-format.html)'s format, for `callgrind_annotate` and KCachegrind.
//!
//! Threads of a name, interrupts and idle tasks are functions that call those below them. The cost
//! of an arc is the total of the callee's paths; if a path contains an arc more than once, only the
//! outermost counts, so that no arc costs more than everything. There are no source lines, so all
//! line numbers are 0. Readers ignore an arc without calls, so an arc whose calls were all made
//! before recording began gets one call.

use crate::stacks::{CallStacks, FigureUnit};
use std::collections::{BTreeMap, HashSet};
use std::io::{self, Write};

/// Calls and total of an arc.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct ArcCost {
    calls: u64,
    inclusive: u64,
}

/// Function with its callees, by index of their frames.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct CallgrindFunction {
    own: u64,
    callees: BTreeMap<usize, ArcCost>,
}

/// Writes functions and arcs. Returns the number of functions.
pub fn write(stacks: &CallStacks, title: &str, creator: &str, out: &mut impl Write) -> io::Result<usize> {
    let functions = functions(stacks);
    let event = match stacks.unit {
        FigureUnit::Instructions => "Instructions",
        FigureUnit::Nanoseconds | FigureUnit::Sampled(_) => "Nanoseconds",
    };
    writeln!(out, "# callgrind format\nversion: 1\ncreator: {creator}\ncmd: {title}")?;
    writeln!(out, "desc: Unit: {}", stacks.unit.name())?;
    writeln!(out, "positions: line\nevents: {event}\nsummary: {}", stacks.total())?;
    let mut names = NameTable::default();
    for (at, function) in &functions {
        let [object, file, name] = names.of(stacks, *at);
        writeln!(out, "\nob={object}\nfl={file}\nfn={name}\n0 {}", function.own)?;
        for (callee, cost) in &function.callees {
            let [object, file, name] = names.of(stacks, *callee);
            writeln!(out, "cob={object}\ncfi={file}\ncfn={name}")?;
            writeln!(out, "calls={} 0\n0 {}", cost.calls.max(1), cost.inclusive)?;
        }
    }
    writeln!(out, "\ntotals: {}", stacks.total())?;
    Ok(functions.len())
}

fn functions(stacks: &CallStacks) -> BTreeMap<usize, CallgrindFunction> {
    let inclusive = stacks.inclusive();
    let mut functions: BTreeMap<usize, CallgrindFunction> = BTreeMap::new();
    for (path, inclusive) in stacks.paths.iter().zip(inclusive) {
        functions.entry(path.frame).or_default().own += path.figures.own;
        let Some(caller) = path.parent.and_then(|at| stacks.paths.get(at)) else { continue };
        let cost = functions.entry(caller.frame).or_default().callees.entry(path.frame).or_default();
        cost.calls = cost.calls.saturating_add(path.figures.calls);
        // If the same arc is further up, its total includes this time.
        let mut above = *caller;
        let mut is_outermost = true;
        while let Some(next) = above.parent.and_then(|at| stacks.paths.get(at)) {
            is_outermost &= (next.frame, above.frame) != (caller.frame, path.frame);
            above = *next;
        }
        if is_outermost {
            cost.inclusive = cost.inclusive.saturating_add(inclusive);
        }
    }
    functions.retain(|_, function| function.own > 0 || !function.callees.is_empty());
    functions
}

/// Names that were written. A name is written once, and afterwards only its number.
#[derive(Default)]
struct NameTable([HashSet<usize>; 3], BTreeMap<String, usize>, BTreeMap<String, usize>);

impl NameTable {
    /// Returns object, file and function of a frame.
    fn of(&mut self, stacks: &CallStacks, frame: usize) -> [String; 3] {
        let Some(known) = stacks.frames.get(frame) else { return Default::default() };
        let number = |all: &mut BTreeMap<String, usize>, name: &str| {
            let next = all.len() + 1;
            *all.entry(name.to_owned()).or_insert(next)
        };
        let object = known.module.as_deref().unwrap_or("vmlinux");
        let file = known.file.as_deref().unwrap_or("???");
        let numbers = [number(&mut self.1, object), number(&mut self.2, file), frame + 1];
        let names = [object, file, known.name.as_str()];
        let mut out: [String; 3] = Default::default();
        for at in 0..3 {
            out[at] = match self.0[at].insert(numbers[at]) {
                // Readers take blanks for no name.
                true if names[at].trim().is_empty() => format!("({}) \"{}\"", numbers[at], names[at]),
                true => format!("({}) {}", numbers[at], names[at]),
                false => format!("({})", numbers[at]),
            };
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stacks::tests::stacks;

    #[test]
    fn an_arc_costs_what_is_below_it_once() {
        let stacks = stacks();
        let functions = functions(&stacks);
        assert_eq!(functions.values().map(|function| function.own).sum::<u64>(), 1000);
        let frame = |name: &str| stacks.frames.iter().position(|frame| frame.name == name).unwrap();
        let arc = |from: &str, to: &str| functions[&frame(from)].callees[&frame(to)];
        assert_eq!(arc("rr", "sys"), ArcCost { calls: 3, inclusive: 200 });
        assert_eq!(arc("sys", "walk"), ArcCost { calls: 2, inclusive: 50 });
        assert_eq!(arc("walk", "walk"), ArcCost { calls: 1, inclusive: 20 });
        assert_eq!(arc("[interrupt]", "irq;x"), ArcCost { calls: 3, inclusive: 400 });
    }

    #[test]
    fn names_are_written_once() {
        let mut out = Vec::new();
        write(&stacks(), "rr", "kerntune 0", &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("events: Instructions\nsummary: 1000\n"), "{text}");
        assert_eq!(text.matches(") walk\n").count(), 1, "{text}");
        assert!(text.ends_with("\ntotals: 1000\n"), "{text}");
        assert!(text.contains("[user]\ncalls=1 0\n0 400\n") && !text.contains("calls=0"), "{text}");
    }
}
