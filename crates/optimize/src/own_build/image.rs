//! Placement of hot functions in an image, beside that of the kernel that was recorded.

use crate::fixed_sections::fixed_sections;
use crate::share::{percent, share, share_in_front};
use kerntune_kernel::{KernelFunction, Symbols};
use kerntune_profile::{Profile, Symbol};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;
use std::ops::Range;

/// Format and version of the result in JSON.
pub const SCHEMA: &str = "kerntune-own-build/1";

/// Share of what ran that the hot functions hold.
const HOT_SHARE: f64 = 0.99;
const PAGE: u64 = 4096;

/// Placement of a profile's functions in the image of a build of the user's own. Pairs of values are
/// of the recorded kernel and of the image.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OwnBuild {
    /// Format and version of this object in JSON.
    pub schema: &'static str,
    /// Image that was examined.
    pub image: String,
    /// Id of the profile.
    pub profile: String,
    /// Label of the recorded kernel.
    pub kernel: String,
    /// Fewest functions of the kernel's image that hold 99 % of what ran, without assembly code and
    /// sections that no profile moves.
    pub hot: u64,
    /// Hot functions that the image has, by a name that no other function shares.
    pub found: u64,
    /// Share of what the hot functions ran that those found ran, 0 to 1.
    pub found_share: f64,
    /// Share of the pairs of a hot function and one that never ran in which the hot one comes first,
    /// 0 to 1; about 0.5 without a profile.
    pub in_front: [f64; 2],
    /// Hot functions with a cold part (`NAME.cold`) elsewhere.
    pub split: [u64; 2],
    /// 4-KiB pages that have code of hot functions.
    pub pages: [u64; 2],
    /// Share of the neighbors in the profile's order of functions that stand in this order, 0 to 1;
    /// about 0.5 by chance. `None` for a profile without calls.
    pub in_order: Option<[f64; 2]>,
}

/// Address and size of a function.
type Place = (u64, u64);

impl OwnBuild {
    /// Examines `image`, whose symbols are `symbols`. `order` are the functions of the profile in the
    /// order that its calls suggest.
    pub fn examine(profile: &Profile, order: Option<&[String]>, image: &str, symbols: &Symbols) -> Self {
        let of_image: Vec<&Symbol> =
            profile.tables.symbols.iter().filter(|symbol| symbol.module.is_none()).collect();
        let before = unique(of_image.iter().map(|s| (s.name.as_str(), (s.address.get(), s.size))));
        let movable = Movable::of(symbols);
        let after = unique(movable.functions(symbols).map(|f| (f.name.as_str(), (f.address, f.size))));
        let assembly: HashSet<&str> = of_image
            .iter()
            .filter(|s| s.file.as_deref().is_some_and(|file| file.ends_with(".S")))
            .map(|s| s.name.as_str())
            .collect();
        let ran = executed(profile, &of_image);
        // What the image has and does not move is no evidence; what it lacks is counted as not found.
        let fixed: HashSet<&str> = movable.fixed(symbols).collect();
        let counts = |name: &str| !assembly.contains(name) && !fixed.contains(name);
        let hot = hottest(ran.iter().filter(|(name, _)| counts(name)).map(|(name, n)| (*name, *n)));
        let is_found = |name: &&str| before.contains_key(name) && after.contains_key(name);
        let found: Vec<&str> = hot.iter().copied().filter(is_found).collect();
        let sum = |names: &[&str]| names.iter().map(|name| ran[name] as f64).sum::<f64>();
        let never = |places: &HashMap<&str, Place>| -> Vec<u64> {
            let names = after.keys().filter(|name| before.contains_key(*name) && !ran.contains_key(*name));
            names.filter(|name| counts(name)).filter_map(|name| Some(places.get(name)?.0)).collect()
        };
        let addresses =
            |places: &HashMap<&str, Place>| -> Vec<u64> { found.iter().map(|name| places[name].0).collect() };
        let front = |places: &HashMap<&str, Place>| share_in_front(&addresses(places), never(places));
        let pages = |places: &HashMap<&str, Place>| {
            let pages = found
                .iter()
                .map(|name| places[name])
                .flat_map(|(address, size)| address / PAGE..=address.saturating_add(size.max(1) - 1) / PAGE);
            pages.collect::<BTreeSet<u64>>().len() as u64
        };
        let names = [cold_parts(of_image.iter().map(|s| s.name.as_str())), cold_parts(all_names(symbols))];
        let split = |of: &HashSet<&str>| found.iter().filter(|name| of.contains(**name)).count() as u64;
        let both = [&before, &after];
        let in_order = order.map(|order| both.map(|places| in_order(order, places)));
        Self {
            schema: SCHEMA,
            image: image.to_string(),
            profile: profile.manifest.id.clone(),
            kernel: profile.manifest.kernel.label.clone(),
            hot: hot.len() as u64,
            found: found.len() as u64,
            found_share: if hot.is_empty() { 0.0 } else { sum(&found) / sum(&hot) },
            in_front: both.map(front),
            split: [split(&names[0]), split(&names[1])],
            pages: both.map(pages),
            in_order,
        }
    }

    /// Returns how far hot functions and those that never ran are apart, 0.5 to 1: 1 if all of one
    /// kind come first.
    pub fn apart(&self) -> f64 {
        let [_, after] = self.in_front;
        after.max(1.0 - after)
    }
}

/// Parts of an image's code that a profile moves.
struct Movable {
    text: Range<u64>,
    fixed: Vec<Range<u64>>,
}

impl Movable {
    fn of(symbols: &Symbols) -> Self {
        let at = |name: &str| symbols.address_of(name);
        Self {
            text: at("_stext").unwrap_or(0)..at("_etext").unwrap_or(u64::MAX),
            fixed: fixed_sections(symbols),
        }
    }

    fn moves(&self, function: &KernelFunction) -> bool {
        let at = function.address;
        self.text.contains(&at)
            && !function.is_code_label
            && !self.fixed.iter().any(|part| part.contains(&at))
    }

    fn functions<'a>(&'a self, symbols: &'a Symbols) -> impl Iterator<Item = &'a KernelFunction> {
        symbols.functions().iter().filter(|function| self.moves(function))
    }

    /// Returns the names of functions that nothing moves.
    fn fixed<'a>(&'a self, symbols: &'a Symbols) -> impl Iterator<Item = &'a str> {
        symbols.functions().iter().filter(|function| !self.moves(function)).map(|f| f.name.as_str())
    }
}

/// Returns what each function of the image ran: instructions, or the time of a profile without
/// blocks. Functions of one name are one.
fn executed<'a>(profile: &Profile, of_image: &[&'a Symbol]) -> HashMap<&'a str, u64> {
    let mut ran: HashMap<&str, u64> = HashMap::new();
    let mut add = |symbol: &'a Symbol, count: u64| {
        if count > 0 {
            let sum = ran.entry(symbol.name.as_str()).or_default();
            *sum = sum.saturating_add(count);
        }
    };
    let mut sorted: Vec<&Symbol> = of_image.iter().copied().filter(|symbol| symbol.size > 0).collect();
    sorted.sort_by_key(|symbol| symbol.address);
    for block in &profile.tables.blocks {
        let at = sorted.partition_point(|symbol| symbol.address <= block.start);
        let Some(symbol) = at.checked_sub(1).map(|at| sorted[at]) else { continue };
        if block.start.get() - symbol.address.get() < symbol.size {
            add(symbol, block.count.saturating_mul(block.instructions.get()));
        }
    }
    if profile.tables.blocks.is_empty() {
        let by_index: HashMap<_, &Symbol> =
            of_image.iter().map(|symbol| (symbol.function, *symbol)).collect();
        for row in &profile.tables.functions {
            if let Some(symbol) = by_index.get(&row.function) {
                add(symbol, row.self_ticks.0);
            }
        }
    }
    ran
}

/// Returns the fewest functions that hold [`HOT_SHARE`] of all counts, most first.
fn hottest<'a>(ran: impl Iterator<Item = (&'a str, u64)>) -> Vec<&'a str> {
    let mut ran: Vec<(&str, u64)> = ran.collect();
    ran.sort_unstable_by_key(|(name, count)| (Reverse(*count), *name));
    let all: u128 = ran.iter().map(|(_, count)| u128::from(*count)).sum();
    let mut left = all as f64 * HOT_SHARE;
    let is_hot = |(_, count): &(&str, u64)| {
        let wanted = left > 0.0;
        left -= *count as f64;
        wanted
    };
    ran.into_iter().take_while(is_hot).map(|(name, _)| name).collect()
}

/// Returns the values whose name occurs once.
fn unique<'a>(pairs: impl Iterator<Item = (&'a str, Place)>) -> HashMap<&'a str, Place> {
    let mut seen: HashMap<&str, Option<Place>> = HashMap::new();
    for (name, value) in pairs {
        seen.entry(name).and_modify(|v| *v = None).or_insert(Some(value));
    }
    seen.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

fn all_names(symbols: &Symbols) -> impl Iterator<Item = &str> {
    symbols.functions().iter().flat_map(|f| f.aliases.iter().chain([&f.name])).map(String::as_str)
}

/// Returns the functions of which there is a cold part: `f` for `f.cold` and `f.cold.3`.
fn cold_parts<'a>(names: impl Iterator<Item = &'a str>) -> HashSet<&'a str> {
    let whole = |name: &'a str| {
        let (whole, rest) = name.rsplit_once(".cold")?;
        let number = rest.trim_start_matches('.').bytes().all(|byte| byte.is_ascii_digit());
        (number && !whole.is_empty()).then_some(whole)
    };
    names.filter_map(whole).collect()
}

/// Returns the share of the neighbors of `order` with a place of which the second comes later.
fn in_order(order: &[String], places: &HashMap<&str, Place>) -> f64 {
    let there: Vec<u64> = order.iter().filter_map(|name| Some(places.get(name.as_str())?.0)).collect();
    let follow = there.windows(2).filter(|pair| pair[0] < pair[1]).count();
    share(follow as u64, there.len().saturating_sub(1) as u64)
}

impl fmt::Display for OwnBuild {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Profile {} in {}", self.profile, self.image)?;
        writeln!(
            f,
            "  hot         {} functions hold 99 % of what ran on kernel {}; {} are here by name, {} of that",
            self.hot,
            self.kernel,
            self.found,
            percent(self.found_share)
        )?;
        let [before, after] = self.in_front.map(percent);
        writeln!(
            f,
            "  in front    {before} → {after} of all pairs, what is hot comes before what never ran"
        )?;
        if let Some(in_order) = self.in_order {
            let [before, after] = in_order.map(percent);
            writeln!(f, "  order       {before} → {after} of neighbors stand in the profile's order")?;
        }
        let [before, after] = self.split;
        writeln!(f, "  split       {before} → {after} of the hot functions have a cold part elsewhere")?;
        let [before, after] = self.pages;
        write!(f, "  pages       {before} → {after} of 4 KiB have code of hot functions")
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
