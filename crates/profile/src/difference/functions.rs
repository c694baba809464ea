//! Which function of one profile is which of the other.

use super::names::source_name;
use crate::{FunctionIndex, FunctionTotals, Profile, Scope, Symbol};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// One function in both profiles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionDifference {
    /// Name in the symbol table, or in the source where several symbols are one row.
    pub name: String,
    /// Source file or user binary, as the second profile has it, or else the first.
    pub file: Option<String>,
    /// What it did in both; `None` where it did not run. `function` is the lowest of the symbols'.
    /// Where several symbols are one row, elapsed time counts once per symbol on the stack.
    pub totals: [Option<FunctionTotals>; 2],
    /// The symbols of both profiles where the compiler made others of the function in one than in
    /// the other (`foo.constprop.0`, `foo.part.0`, `foo.cold`); empty where names are the same.
    pub symbols: [Vec<String>; 2],
}

impl FunctionDifference {
    /// Net time in the first (0) or second (1) profile, in nanoseconds.
    pub fn net(&self, side: usize) -> i128 {
        self.of(side, |totals| totals.net_ns.0)
    }

    /// Elapsed time, likewise.
    pub fn elapsed(&self, side: usize) -> i128 {
        self.of(side, |totals| totals.elapsed_ns.0)
    }

    /// Calls, likewise.
    pub fn calls(&self, side: usize) -> i128 {
        self.of(side, |totals| totals.calls)
    }

    /// Change of the net time in nanoseconds, from base to other.
    pub fn net_change(&self) -> i128 {
        self.net(1) - self.net(0)
    }

    /// Change of the number of calls, from base to other.
    pub fn calls_change(&self) -> i128 {
        self.calls(1) - self.calls(0)
    }

    fn of(&self, side: usize, figure: impl Fn(&FunctionTotals) -> u64) -> i128 {
        self.totals.get(side).and_then(Option::as_ref).map_or(0, |totals| i128::from(figure(totals)))
    }
}

/// A function of one profile.
#[derive(Debug, Clone)]
struct Entry<'a> {
    side: usize,
    function: FunctionIndex,
    name: &'a str,
    /// Where it is, if that tells functions of one name apart: a path or a user binary.
    place: Option<&'a str>,
    file: Option<&'a str>,
    totals: Option<FunctionTotals>,
}

/// The functions of one profile that ran.
pub(super) struct Side<'a> {
    symbols: &'a [Symbol],
    ran: BTreeMap<FunctionIndex, Option<FunctionTotals>>,
}

impl<'a> Side<'a> {
    pub fn new(profile: &'a Profile, scope: &Scope) -> Self {
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

    fn entries(&self, side: usize) -> impl Iterator<Item = Entry<'a>> + use<'a, '_> {
        self.ran.iter().map(move |(&function, &totals)| {
            let symbol = self.symbols.get(function.0 as usize);
            let file = symbol.and_then(|s| s.module.as_deref().or(s.file.as_deref()));
            let bare = symbol.is_some_and(|s| s.module.is_none()) && !file.unwrap_or("").contains('/');
            Entry {
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

/// For each side the row of each function.
pub(super) type Rows = [HashMap<FunctionIndex, usize>; 2];

/// The functions of both, by name and file.
pub(super) fn join(sides: &[Side; 2]) -> (Vec<FunctionDifference>, Rows) {
    let mut by_name: BTreeMap<&str, Vec<Entry>> = BTreeMap::new();
    for (number, side) in sides.iter().enumerate() {
        for entry in side.entries(number) {
            by_name.entry(source_name(entry.name).0).or_default().push(entry);
        }
    }
    let (mut functions, mut rows) = (Vec::new(), Rows::default());
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

/// Functions of one name, apart by place where that is known of all, and only if there are several:
/// a function alone on its side in a file that was renamed is still itself.
fn by_place(entries: Vec<Entry>) -> Vec<Vec<Entry>> {
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
    // One that is in the first only and one that is in the second only: it moved.
    let moved = alone(&base, &other).zip(alone(&other, &base));
    let mut groups: BTreeMap<&str, Vec<Entry>> = BTreeMap::new();
    for entry in entries {
        let place = entry.place.unwrap_or_default();
        let to = moved.as_ref().filter(|(_, to)| to == place).map(|(from, _)| from.as_str());
        groups.entry(to.unwrap_or(place)).or_default().push(entry);
    }
    groups.into_values().collect()
}

/// Functions of one name and place, apart by symbol where both have the same symbols or only one has
/// any; with the symbols of both where they are one row.
fn by_symbol(entries: Vec<Entry>) -> Vec<([Vec<String>; 2], Vec<Entry>)> {
    let symbols = [0, 1].map(|side| -> BTreeSet<&str> {
        entries.iter().filter(|entry| entry.side == side).map(|entry| entry.name).collect()
    });
    if symbols[0] != symbols[1] && symbols.iter().all(|names| !names.is_empty()) {
        return vec![(symbols.map(|names| names.into_iter().map(Into::into).collect()), entries)];
    }
    let mut groups: BTreeMap<&str, Vec<Entry>> = BTreeMap::new();
    for entry in entries {
        groups.entry(entry.name).or_default().push(entry);
    }
    groups.into_values().map(|entries| (Default::default(), entries)).collect()
}

fn row(source: &str, symbols: [Vec<String>; 2], entries: &[Entry]) -> FunctionDifference {
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
