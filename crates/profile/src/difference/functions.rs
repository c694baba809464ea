//! Matching of the functions of two profiles.

use super::names::source_name;
use crate::{FunctionIndex, FunctionTotals, Profile, RegionScope, Symbol};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Calls and times of one function in both profiles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionDifference {
    /// Name in the symbol table, or in the source if several symbols share a row.
    pub name: String,
    /// Source file or user binary in the second profile, or else in the first.
    pub file: Option<String>,
    /// Totals in both profiles; `None` where the function did not run. `function` is the lowest of
    /// the symbols' numbers. If several symbols share a row, total time counts once for each symbol
    /// on the stack.
    pub totals: [Option<FunctionTotals>; 2],
    /// Symbols of both profiles if the compiler made different variants of the function
    /// (`foo.constprop.0`, `foo.part.0`, `foo.cold`); empty if the names are the same.
    pub symbols: [Vec<String>; 2],
}

impl FunctionDifference {
    /// Returns the self time in the first (0) or second (1) profile, in ticks.
    pub fn self_ticks(&self, side: usize) -> i128 {
        self.of(side, |totals| totals.self_ticks.0)
    }

    /// Returns the total time in the first (0) or second (1) profile, in ticks.
    pub fn total_ticks(&self, side: usize) -> i128 {
        self.of(side, |totals| totals.total_ticks.0)
    }

    /// Returns the calls in the first (0) or second (1) profile.
    pub fn calls(&self, side: usize) -> i128 {
        self.of(side, |totals| totals.calls)
    }

    /// Returns the change of the self time from base to other, in ticks.
    pub fn self_change(&self) -> i128 {
        self.self_ticks(1) - self.self_ticks(0)
    }

    /// Returns the change of the number of calls from base to other.
    pub fn calls_change(&self) -> i128 {
        self.calls(1) - self.calls(0)
    }

    fn of(&self, side: usize, figure: impl Fn(&FunctionTotals) -> u64) -> i128 {
        self.totals.get(side).and_then(Option::as_ref).map_or(0, |totals| i128::from(figure(totals)))
    }
}

/// Function of one profile before matching.
#[derive(Debug, Clone)]
struct RanFunction<'a> {
    side: usize,
    function: FunctionIndex,
    name: &'a str,
    /// Path or user binary that distinguishes functions of one name; `None` if the file has no
    /// directory.
    place: Option<&'a str>,
    file: Option<&'a str>,
    totals: Option<FunctionTotals>,
}

/// Functions of one profile that ran.
pub(super) struct ProfileSide<'a> {
    symbols: &'a [Symbol],
    ran: BTreeMap<FunctionIndex, Option<FunctionTotals>>,
}

impl<'a> ProfileSide<'a> {
    pub fn new(profile: &'a Profile, scope: &RegionScope) -> Self {
        let tables = &profile.tables;
        let totals = tables.totals(|region| scope.contains(region)).into_iter();
        let mut ran: BTreeMap<_, _> = totals.map(|totals| (totals.function, Some(totals))).collect();
        for row in tables.paths.iter().filter(|row| scope.contains(row.region)) {
            if let Some(function) = row.function.known() {
                ran.entry(function).or_default();
            }
        }
        Self { symbols: &tables.symbols, ran }
    }

    fn entries(&self, side: usize) -> impl Iterator<Item = RanFunction<'a>> + use<'a, '_> {
        self.ran.iter().map(move |(&function, &totals)| {
            let symbol = self.symbols.get(function.0 as usize);
            let file = symbol.and_then(Symbol::place);
            let bare = symbol.is_some_and(|s| s.module.is_none()) && !file.unwrap_or("").contains('/');
            RanFunction {
                side,
                function,
                name: symbol.map_or("[unknown]", |symbol| &symbol.name),
                place: file.filter(|_| !bare),
                file,
                totals,
            }
        })
    }
}

/// Row of each function, for both profiles.
pub(super) type RowByFunction = [HashMap<FunctionIndex, usize>; 2];

/// Matches the functions of both profiles by name and file.
pub(super) fn join(sides: &[ProfileSide; 2]) -> (Vec<FunctionDifference>, RowByFunction) {
    let mut by_name: BTreeMap<&str, Vec<RanFunction>> = BTreeMap::new();
    for (number, side) in sides.iter().enumerate() {
        for entry in side.entries(number) {
            by_name.entry(source_name(entry.name).0).or_default().push(entry);
        }
    }
    let (mut functions, mut rows) = (Vec::new(), RowByFunction::default());
    for (name, entries) in by_name {
        for same_place in by_place(entries) {
            for (symbols, same) in by_symbol(same_place) {
                for entry in &same {
                    rows[entry.side].insert(entry.function, functions.len());
                }
                functions.push(row(name, symbols, &same));
            }
        }
    }
    (functions, rows)
}

/// Groups functions of one name by place, if the place of all is known and there are several. A
/// single function on each side matches even if its file was renamed.
fn by_place(entries: Vec<RanFunction>) -> Vec<Vec<RanFunction>> {
    let places = |side: usize| -> BTreeSet<&str> {
        entries.iter().filter(|e| e.side == side).filter_map(|entry| entry.place).collect()
    };
    let [base, other] = [places(0), places(1)];
    let unknown = entries.iter().any(|entry| entry.place.is_none());
    if unknown || base.len() <= 1 && other.len() <= 1 {
        return vec![entries];
    }
    let alone = |of: &BTreeSet<&str>, not: &BTreeSet<&str>| -> Option<String> {
        let mut alone = of.difference(not);
        alone.next().filter(|_| alone.next().is_none()).map(|place| place.to_string())
    };
    // One only in the first and one only in the second profile: the function moved.
    let moved = alone(&base, &other).zip(alone(&other, &base));
    let mut groups: BTreeMap<&str, Vec<RanFunction>> = BTreeMap::new();
    for entry in entries {
        let place = entry.place.unwrap_or_default();
        let to = moved.as_ref().filter(|(_, to)| to == place).map(|(from, _)| from.as_str());
        groups.entry(to.unwrap_or(place)).or_default().push(entry);
    }
    groups.into_values().collect()
}

/// Groups functions of one name and place by symbol, if both profiles have the same symbols or only
/// one has any; with the symbols of both where they share a row.
fn by_symbol(entries: Vec<RanFunction>) -> Vec<([Vec<String>; 2], Vec<RanFunction>)> {
    let symbols = [0, 1].map(|side| -> BTreeSet<&str> {
        entries.iter().filter(|entry| entry.side == side).map(|entry| entry.name).collect()
    });
    if symbols[0] != symbols[1] && symbols.iter().all(|names| !names.is_empty()) {
        return vec![(symbols.map(|names| names.into_iter().map(Into::into).collect()), entries)];
    }
    let mut groups: BTreeMap<&str, Vec<RanFunction>> = BTreeMap::new();
    for entry in entries {
        groups.entry(entry.name).or_default().push(entry);
    }
    groups.into_values().map(|entries| (Default::default(), entries)).collect()
}

fn row(source: &str, symbols: [Vec<String>; 2], entries: &[RanFunction]) -> FunctionDifference {
    let one = symbols.iter().any(|names| !names.is_empty());
    let name = entries.first().map_or(source, |entry| if one { source } else { entry.name });
    let mut totals: [Option<FunctionTotals>; 2] = [None, None];
    for entry in entries {
        let Some(mut more) = entry.totals else { continue };
        if one && source_name(entry.name).1 {
            // A cold part is entered by a jump: its time counts, its entries are no calls.
            more = more.without_calls();
        }
        totals[entry.side].get_or_insert(FunctionTotals::none(more.function)).add(&more);
    }
    let file = entries.iter().rev().find_map(|entry| entry.file);
    FunctionDifference { name: name.into(), file: file.map(Into::into), totals, symbols }
}
