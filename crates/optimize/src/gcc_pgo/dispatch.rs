//! Bound on the price that rare cases of a `switch` pay for frequent ones.
//!
//! GCC turns a `switch` without a jump table into comparisons in the order of its counts: what the
//! training never took comes last, in a chain. The kernel dispatches system calls and requests by
//! such switches, for all work and not only for the trained one.
//!
//! A function that does little but dispatch, by a switch of [`DISPATCHER_CASES`] or more, loses its
//! counts: GCC compiles it as in the base kernel. In other functions every case of a switch gets a
//! share: half of the weight goes to all cases alike. A rare case then stands about as deep in the
//! tree of comparisons as without a profile, and a frequent one a level deeper than by its counts.
//! The weights are those of calls that take each case once more, by the shortest way to it and from
//! it, so that what flows into a block still flows out of it.

use super::gcno::{FlowGraph, GcnoFile};
use kerntune_convert::gcda::{CounterKind, CounterValues, Gcda};
use std::collections::VecDeque;

/// Fewest cases of a switch that is balanced. A smaller one is a short chain in any order.
const MIN_CASES: usize = 8;
/// Fewest cases of a switch whose function has no other purpose. Linux's `x64_sys_call` has 463;
/// `sk_getsockopt`, the widest of those with work of their own, has 60.
const DISPATCHER_CASES: usize = 128;
/// Blocks of GCC's graphs at which a function begins and ends.
const ENTRY: usize = 0;
const EXIT: usize = 1;

/// Balances the switches of an object's functions, and removes the counts of those that only
/// dispatch. Returns the number of switches that got weights.
pub(super) fn balance(gcda: &mut Gcda, notes: &GcnoFile) -> usize {
    let mut balanced = 0;
    gcda.functions.retain_mut(|function| {
        let Some(note) = notes.functions.get(&function.ident) else { return true };
        if note.graph.dispatches() {
            return false;
        }
        let arcs = function.counters.iter_mut().find(|record| record.kind == CounterKind::Arcs);
        if let Some(CounterValues::Listed(counters)) = arcs.map(|record| &mut record.values) {
            balanced += balance_function(counters, &note.graph);
        }
        true
    });
    balanced
}

fn balance_function(counters: &mut [i64], graph: &FlowGraph) -> usize {
    let wide: Vec<usize> = (0..graph.blocks).filter(|block| graph.cases(*block) >= MIN_CASES).collect();
    if wide.is_empty() || counters.iter().all(|count| *count == 0) {
        return 0;
    }
    let Some(counts) = solve(counters, graph) else { return 0 };
    let out = |block: usize| graph.out_of(block).map(|arc| counts[arc]).fold(0, i64::saturating_add);
    let entries = out(ENTRY);
    let mut balanced = 0;
    for block in wide {
        let taken = out(block);
        // In a loop, one call takes many cases.
        if taken <= 0 || taken > entries {
            continue;
        }
        let Some(before) = graph.way(ENTRY, block) else { continue };
        let cases: Vec<usize> = graph.out_of(block).filter(|arc| !graph.arcs[*arc].is_fake).collect();
        let share = (taken / cases.len() as i64).max(1);
        for case in cases {
            let Some(after) = graph.way(graph.arcs[case].to, EXIT) else { continue };
            for arc in before.iter().chain([&case]).chain(&after) {
                if let Some(counter) = graph.arcs[*arc].counter.and_then(|number| counters.get_mut(number)) {
                    *counter = counter.saturating_add(share);
                }
            }
        }
        balanced += 1;
    }
    balanced
}

/// Returns the count of each arc, from those of the arcs with counters: what flows into a block flows
/// out of it. `None` if counters and graph do not belong together.
fn solve(counters: &[i64], graph: &FlowGraph) -> Option<Vec<i64>> {
    let mut counts: Vec<Option<i64>> = Vec::with_capacity(graph.arcs.len());
    for arc in &graph.arcs {
        counts.push(match arc.counter {
            Some(number) => Some(*counters.get(number)?),
            None => None,
        });
    }
    // Arcs without counters are a tree: some block has only one of them left.
    let mut unknown: Vec<usize> = (0..graph.arcs.len()).filter(|arc| counts[*arc].is_none()).collect();
    while !unknown.is_empty() {
        let before = unknown.len();
        unknown.retain(|&arc| {
            let found = [graph.arcs[arc].from, graph.arcs[arc].to]
                .into_iter()
                .filter(|block| ![ENTRY, EXIT].contains(block))
                .find_map(|block| rest(block, arc, &counts, graph));
            counts[arc] = found;
            found.is_none()
        });
        if unknown.len() == before {
            // Only the sum at the ends of the function is left: GCC joins them by an arc of its own.
            return None;
        }
    }
    counts.into_iter().collect()
}

/// Returns the count of `arc` if all others at `block` are known.
fn rest(block: usize, arc: usize, counts: &[Option<i64>], graph: &FlowGraph) -> Option<i64> {
    let sum = |arcs: &mut dyn Iterator<Item = usize>| {
        arcs.filter(|other| *other != arc)
            .try_fold(0_i64, |sum, other| Some(sum.saturating_add(counts[other]?)))
    };
    let (into, out) = (sum(&mut graph.into(block))?, sum(&mut graph.out_of(block))?);
    let is_out = graph.arcs[arc].from == block;
    Some(if is_out { into.saturating_sub(out) } else { out.saturating_sub(into) }.max(0))
}

impl FlowGraph {
    /// Returns the number of ways out of a block, without those of calls that do not return.
    fn cases(&self, block: usize) -> usize {
        self.out_of(block).filter(|arc| !self.arcs[*arc].is_fake).count()
    }

    /// Returns true if the function has a switch of [`DISPATCHER_CASES`] or more that no loop repeats.
    fn dispatches(&self) -> bool {
        let repeats =
            |block: usize| self.out_of(block).any(|arc| self.way(self.arcs[arc].to, block).is_some());
        (0..self.blocks).any(|block| self.cases(block) >= DISPATCHER_CASES && !repeats(block))
    }

    /// Returns the arcs of a shortest way between two blocks, without fake arcs if there is one.
    fn way(&self, from: usize, to: usize) -> Option<Vec<usize>> {
        self.way_by(from, to, |arc| !self.arcs[arc].is_fake).or_else(|| self.way_by(from, to, |_| true))
    }

    fn way_by(&self, from: usize, to: usize, is_usable: impl Fn(usize) -> bool) -> Option<Vec<usize>> {
        let mut reached: Vec<Option<usize>> = vec![None; self.blocks];
        let mut left = VecDeque::from([from]);
        while let Some(block) = left.pop_front() {
            if block == to {
                break;
            }
            for arc in self.out_of(block).filter(|arc| is_usable(*arc)) {
                let next = self.arcs[arc].to;
                if next != from && reached[next].is_none() {
                    reached[next] = Some(arc);
                    left.push_back(next);
                }
            }
        }
        let mut way = Vec::new();
        let mut at = to;
        while at != from {
            let arc = reached[at]?;
            way.push(arc);
            at = self.arcs[arc].from;
        }
        way.reverse();
        Some(way)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;
    use std::fs;
    use std::path::Path;
    use std::process::Command;

    /// Program with switches of sixty cases, of which it takes one, and of two hundred, each once in a
    /// loop and once not.
    fn source() -> String {
        let mut text = String::from("int work(int, int);\n");
        let repeat = "while (n-- > 1) ";
        for (function, cases, begin) in [
            ("called", 60, ""),
            ("looped", 60, repeat),
            ("dispatched", 200, ""),
            ("interpreted", 200, repeat),
        ] {
            writeln!(text, "int {function}(int n, int x) {{ {begin}switch (x) {{").unwrap();
            for case in 0..cases {
                writeln!(text, "case {case}: x = work({case}, x); break;").unwrap();
            }
            text.push_str("} return x; }\n");
        }
        text.push_str("__attribute__((noipa)) int work(int n, int x) { return n + x; }\n");
        text.push_str(
            "int main(int c, char **v) { int s = 0; for (int i = 0; i < 600; i++) s += called(9, 7);\n",
        );
        text.push_str("looped(1000, 7); dispatched(9, 7); interpreted(1000, 7); return s == 0; }\n");
        text
    }

    fn gcc(dir: &Path, args: &[&str]) {
        assert!(Command::new("gcc").current_dir(dir).args(args).status().unwrap().success());
    }

    #[test]
    fn each_case_of_a_switch_gets_a_share_and_the_flow_stays_whole() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        fs::write(dir.join("all.c"), source()).unwrap();
        gcc(dir, &["-O2", "-fno-jump-tables", "--coverage", "all.c", "-o", "image"]);
        assert!(Command::new(dir.join("image")).current_dir(dir).status().is_ok());
        let mut gcda = Gcda::parse(&fs::read(dir.join("image-all.gcda")).unwrap()).unwrap();
        let notes = GcnoFile::parse(&fs::read(dir.join("image-all.gcno")).unwrap()).unwrap();
        assert_eq!(balance(&mut gcda, &notes), 1, "a switch in a loop stays as it is");
        let has_counts = |name: &str| {
            let (ident, _) = notes.functions.iter().find(|(_, note)| note.name == name).unwrap();
            gcda.functions.iter().any(|function| function.ident == *ident)
        };
        assert_eq!(
            ["called", "looped", "dispatched", "interpreted"].map(has_counts),
            [true, true, false, true],
            "what only dispatches has no counts"
        );
        let function = |name: &str| {
            let (ident, note) = notes.functions.iter().find(|(_, note)| note.name == name).unwrap();
            let of = gcda.functions.iter().find(|function| function.ident == *ident).unwrap();
            let counters: Vec<i64> = of.counters_of(CounterKind::Arcs).unwrap().values.iter().collect();
            (solve(&counters, &note.graph).unwrap(), &note.graph)
        };
        let (counts, graph) = function("called");
        let sum = |arcs: &mut dyn Iterator<Item = usize>| arcs.map(|arc| counts[arc]).sum::<i64>();
        for block in (0..graph.blocks).filter(|block| ![ENTRY, EXIT].contains(block)) {
            assert_eq!(sum(&mut graph.into(block)), sum(&mut graph.out_of(block)), "block {block}");
        }
        let switch = (0..graph.blocks).max_by_key(|block| graph.out_of(*block).count()).unwrap();
        let mut cases: Vec<i64> = graph.out_of(switch).map(|arc| counts[arc]).collect();
        cases.sort_unstable();
        // Sixty cases and the default have 9 each of the 600 calls; one has those that were counted.
        assert_eq!((cases.len(), cases[0], cases[59], cases[60]), (61, 9, 9, 609));
        assert_eq!(sum(&mut graph.out_of(ENTRY)), 600 + 61 * 9);
    }
}
