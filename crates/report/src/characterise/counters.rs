//! Work that is counted by the calls of well-known functions: `counters.tsv` says which. Each row names its function, so that
//! anybody can check it.

use super::event::{Event, Rates};
use super::split::is_user;
use kerntune_profile::{source_name, FunctionIndex, FunctionTotals, Profile, Scope, Symbol};
use serde::Serialize;
use std::collections::BTreeMap;

const TABLE: &str = include_str!("counters.tsv");
/// In the place of a note.
const NO_NOTE: &str = "-";

/// A line of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counter {
    group: &'static str,
    item: &'static str,
    title: &'static str,
    /// Names of several versions of the kernel, each without spaces.
    functions: &'static str,
    note: &'static str,
}

fn counters() -> impl Iterator<Item = Counter> {
    TABLE.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
        let mut words = line.split('\t');
        let mut next = || words.next();
        let (group, item, title, functions) = (next()?, next()?, next()?, next()?);
        let note = next()?;
        Some(Counter { group, item, title, functions, note: if note == NO_NOTE { "" } else { note } })
    })
}

/// How often a piece of work was done.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Work {
    pub group: &'static str,
    pub item: &'static str,
    /// The function that is counted, as the kernel has it; none if it has none of them.
    pub function: Option<String>,
    /// What it is, and how often; `count` is none where it is not known.
    #[serde(flatten)]
    pub event: Event,
    pub note: &'static str,
    /// Why there is no count.
    pub why: Option<&'static str>,
    /// The function that was looked for.
    pub wanted: &'static str,
}

/// Whether there is such an item.
#[cfg(test)]
pub(crate) fn is_item(item: &str) -> bool {
    counters().any(|counter| counter.item == item)
}

/// All of them, in the order of the table.
pub(crate) fn work(profile: &Profile, scope: &Scope, rates: &Rates) -> Vec<Work> {
    let symbols = Symbols::new(profile);
    let totals: BTreeMap<u32, FunctionTotals> = profile
        .tables
        .totals(|region| scope.contains(region))
        .into_iter()
        .map(|totals| (totals.function.get(), totals))
        .collect();
    counters().map(|counter| symbols.count(counter, &totals, rates)).collect()
}

/// The kernel's functions by the name that they have in its source.
struct Symbols<'a> {
    profile: &'a Profile,
    /// Whether only some functions were traced.
    selected: bool,
    by_name: BTreeMap<&'a str, Vec<&'a Symbol>>,
}

impl<'a> Symbols<'a> {
    fn new(profile: &'a Profile) -> Self {
        let mut by_name: BTreeMap<&str, Vec<&Symbol>> = BTreeMap::new();
        let mut selected = false;
        for symbol in profile.tables.symbols.iter().filter(|symbol| !is_user(profile, symbol)) {
            selected |= symbol.name == NOT_TRACED;
            by_name.entry(source_name(&symbol.name).0).or_default().push(symbol);
        }
        Self { profile, selected, by_name }
    }

    fn count(&self, counter: Counter, totals: &BTreeMap<u32, FunctionTotals>, rates: &Rates) -> Work {
        let mut names = counter.functions.split(' ');
        let first = names.clone().next().unwrap_or_default();
        let found = names.find_map(|name| Some((name, self.by_name.get(name)?.as_slice())));
        let (wanted, all) = found.unwrap_or((first, &[]));
        let whole: Vec<&Symbol> = all.iter().copied().filter(|symbol| is_whole(&symbol.name)).collect();
        let mut sum: Option<FunctionTotals> = None;
        for part in whole.iter().filter_map(|symbol| totals.get(&symbol.function.get())) {
            sum.get_or_insert_with(|| FunctionTotals::none(part.function)).add(part);
        }
        let sum = sum.unwrap_or(FunctionTotals::none(FunctionIndex::NONE));
        let why = if sum.calls == 0 { self.why(all, &whole) } else { None };
        let count = why.is_none().then_some(sum.calls);
        Work {
            group: counter.group,
            item: counter.item,
            function: whole.first().map(|symbol| symbol.name.clone()),
            event: Event::new(self.profile, counter.title, count, (sum.ended, sum.elapsed_ns.get()), rates),
            note: counter.note,
            why,
            wanted,
        }
    }

    /// Why no call says nothing; none if there was none.
    fn why(&self, all: &[&Symbol], whole: &[&Symbol]) -> Option<&'static str> {
        let manifest = &self.profile.manifest;
        if !manifest.capture.functions {
            return Some("functions were not recorded");
        }
        if let Some(sampled) = &manifest.sampled {
            return Some(match &sampled.calls {
                None => "calls were not counted",
                Some(_) => "not called, or its calls were not counted",
            });
        }
        match (whole, all) {
            ([], [_, ..]) => Some("inlined but for a part of it"),
            ([], []) => Some("not in this kernel, or inlined"),
            _ if self.selected => Some("not called, or not traced (--only, --skip)"),
            // What was imported from elsewhere has the functions that were seen there.
            _ if manifest.machine != "emulator" => Some("not seen where this was recorded"),
            _ => None,
        }
    }
}

/// Name of the symbol for code in no function where functions were chosen (`record --only`).
pub(crate) const NOT_TRACED: &str = "[not traced]";

/// Whether a symbol is a whole function or a copy of one, and no part that others call from within it.
pub(crate) fn is_whole(name: &str) -> bool {
    !name.split('.').skip(1).any(|word| word == "part" || word == "cold")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_line_of_the_table_is_whole_and_each_item_is_there_once() {
        let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
        for line in lines.clone() {
            assert_eq!(line.split('\t').count(), 5, "{line}");
        }
        let all: Vec<Counter> = counters().collect();
        assert_eq!(all.len(), lines.count());
        for Counter { group, item, title, functions, .. } in &all {
            let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            assert!(!item.is_empty() && item.chars().all(is_word), "{item}");
            assert!(!group.is_empty() && !title.is_empty() && !functions.is_empty(), "{item}");
            assert!(functions.split(' ').all(|name| !name.is_empty()), "{item}");
            assert!(!all.iter().any(|counter| counter.note == NO_NOTE));
        }
        assert_eq!(all.iter().map(|counter| counter.item).collect::<BTreeSet<_>>().len(), all.len());
    }

    #[test]
    fn copies_are_whole_and_parts_are_not() {
        for whole in ["tcp_ack", "tcp_ack.constprop.0", "tcp_ack.isra.0", "x.llvm.123"] {
            assert!(is_whole(whole), "{whole}");
        }
        for part in ["tcp_ack.part.0", "tcp_ack.cold", "tcp_ack.part.0.isra.0"] {
            assert!(!is_whole(part), "{part}");
        }
    }
}
