//! Work counted by calls of well-known functions, as listed in `counters.tsv`. Each row names its
//! function, so that it can be checked.

use super::event::{EventStats, RateBase};
use crate::view::is_user;
use kerntune_profile::{source_name, FunctionIndex, FunctionTotals, Profile, RegionScope, Symbol};
use serde::Serialize;
use std::collections::BTreeMap;

const TABLE: &str = include_str!("counters.tsv");
/// Placeholder of an empty note.
const NO_NOTE: &str = "-";

/// Line of `counters.tsv`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CounterDefinition {
    group: &'static str,
    item: &'static str,
    title: &'static str,
    /// Names of the function in several kernel versions, separated by spaces.
    functions: &'static str,
    note: &'static str,
}

fn counters() -> impl Iterator<Item = CounterDefinition> {
    TABLE.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
        let mut words = line.split('\t');
        let mut next = || words.next();
        let (group, item, title, functions) = (next()?, next()?, next()?, next()?);
        let note = next()?;
        Some(CounterDefinition {
            group,
            item,
            title,
            functions,
            note: if note == NO_NOTE { "" } else { note },
        })
    })
}

/// Number of times that an item of work was done.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct WorkCount {
    pub group: &'static str,
    pub item: &'static str,
    /// Counted function, as the kernel names it; `None` if the kernel has no such function.
    pub function: Option<String>,
    /// Name and rates; `count` is `None` if unknown.
    #[serde(flatten)]
    pub event: EventStats,
    pub note: &'static str,
    /// Reason for a missing count.
    pub why: Option<&'static str>,
    /// Function that was looked for.
    pub wanted: &'static str,
}

/// Checks whether an item of this name exists.
#[cfg(test)]
pub(crate) fn is_item(item: &str) -> bool {
    counters().any(|counter| counter.item == item)
}

/// Returns all items of work, in the order of the table.
pub(crate) fn work(profile: &Profile, scope: &RegionScope, rates: &RateBase) -> Vec<WorkCount> {
    let symbols = SourceSymbols::new(profile);
    let totals: BTreeMap<u32, FunctionTotals> = profile
        .tables
        .totals(|region| scope.contains(region))
        .into_iter()
        .map(|totals| (totals.function.get(), totals))
        .collect();
    counters().map(|counter| symbols.count(counter, &totals, rates)).collect()
}

/// Kernel functions by their name in the source.
struct SourceSymbols<'a> {
    profile: &'a Profile,
    /// Only some functions were traced.
    selected: bool,
    by_name: BTreeMap<&'a str, Vec<&'a Symbol>>,
}

impl<'a> SourceSymbols<'a> {
    fn new(profile: &'a Profile) -> Self {
        let mut by_name: BTreeMap<&str, Vec<&Symbol>> = BTreeMap::new();
        let mut selected = false;
        for symbol in profile.tables.symbols.iter().filter(|symbol| !is_user(profile, symbol)) {
            selected |= symbol.name == NOT_TRACED;
            by_name.entry(source_name(&symbol.name).0).or_default().push(symbol);
        }
        Self { profile, selected, by_name }
    }

    fn count(
        &self,
        counter: CounterDefinition,
        totals: &BTreeMap<u32, FunctionTotals>,
        rates: &RateBase,
    ) -> WorkCount {
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
        WorkCount {
            group: counter.group,
            item: counter.item,
            function: whole.first().map(|symbol| symbol.name.clone()),
            event: EventStats::new(
                self.profile,
                counter.title,
                count,
                (sum.ended, sum.total_ticks.get()),
                rates,
            ),
            note: counter.note,
            why,
            wanted,
        }
    }

    /// Returns the reason why zero calls may not mean zero work; `None` if the count is reliable.
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
            // An imported profile has only the functions that were seen there.
            _ if manifest.machine != "emulator" => Some("not seen where this was recorded"),
            _ => None,
        }
    }
}

/// Symbol of code in untraced functions (`record --only`).
pub(crate) const NOT_TRACED: &str = "[not traced]";

/// Checks whether a symbol is a whole function or a copy of one, not a split-off part.
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
        let all: Vec<CounterDefinition> = counters().collect();
        assert_eq!(all.len(), lines.count());
        for CounterDefinition { group, item, title, functions, .. } in &all {
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
