//! Numbers in a sum of everything that its parts number.

use crate::rules::MergePart;
use crate::{Address, CallKind, Error, FunctionIndex, PathKind, Result, Symbol, Tables, ThreadKind};
use std::collections::hash_map::Entry;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

/// MergeNumbering of keys in order of their first use.
struct KeyNumbers<K> {
    numbers: HashMap<K, u32>,
}

impl<K: Hash + Eq> KeyNumbers<K> {
    /// Returns the number of a key. `what` names the keys in an error.
    fn of(&mut self, key: K, what: &'static str) -> Result<u32> {
        let next = u32::try_from(self.numbers.len()).map_err(|_| Error::TooMany(what))?;
        Ok(*self.numbers.entry(key).or_insert(next))
    }

    /// Returns the keys in the order of their numbers.
    fn into_keys(self) -> impl Iterator<Item = K> {
        let mut keys: Vec<(K, u32)> = self.numbers.into_iter().collect();
        keys.sort_unstable_by_key(|&(_, number)| number);
        keys.into_iter().map(|(key, _)| key)
    }
}

impl<K> Default for KeyNumbers<K> {
    fn default() -> Self {
        Self { numbers: HashMap::new() }
    }
}

type NthOfKey<K> = (K, u32);
/// Region, parent, and everything that distinguishes a path from its siblings.
type PathKey = (u32, u32, PathKind, String, FunctionIndex, CallKind);
type ThreadKey = (ThreadKind, u32, u32, String);

/// Numbers in the sum, by keys that are the same in each part:
///
/// - functions: address and name;
/// - regions: name and occurrence (the second `tcp_rr` of one is the second `tcp_rr` of the other);
/// - threads: kind, ids, name and occurrence;
/// - paths: region, parent, and what distinguishes siblings.
#[derive(Default)]
pub(crate) struct MergeNumbering {
    symbols: KeyNumbers<(Address, String)>,
    regions: KeyNumbers<NthOfKey<String>>,
    threads: KeyNumbers<NthOfKey<ThreadKey>>,
    paths: KeyNumbers<PathKey>,
}

impl MergeNumbering {
    /// Returns the numbers of a table of symbols.
    pub fn symbols(&mut self, symbols: &[Symbol]) -> Result<Arc<[FunctionIndex]>> {
        let number = |row: &Symbol| self.symbols.of((row.address, row.name.clone()), "functions");
        symbols.iter().map(number).map(|number| number.map(FunctionIndex)).collect()
    }

    /// Returns the numbers of a part with these numbers of functions.
    pub fn part(
        &mut self,
        tables: &Tables,
        functions: Arc<[FunctionIndex]>,
        weight: u64,
    ) -> Result<MergePart> {
        let mut part = MergePart { weight, functions, ..MergePart::default() };
        let mut seen = HashMap::new();
        for row in &tables.regions {
            let key = (row.name.clone(), occurrence(&mut seen, row.name.as_str()));
            part.regions.push(self.regions.of(key, "regions")?);
        }
        let mut seen = HashMap::new();
        for row in &tables.threads {
            // A thread has a row for each region: its occurrence is that of its first row.
            if let Entry::Vacant(number) = part.threads.entry(row.thread) {
                let key = (row.kind, row.pid, row.tgid, row.comm.clone());
                let occurrence = occurrence(&mut seen, key.clone());
                number.insert(self.threads.of((key, occurrence), "threads")?);
            }
        }
        part.paths.reserve(tables.paths.len());
        for row in &tables.paths {
            let (region, function) = (part.region(row.region), part.function(row.function));
            // Parents come first, so a parent's new number is known.
            let key = (region, part.path(row.parent), row.kind, row.comm.clone(), function, row.how);
            part.paths.push(self.paths.of(key, "paths")?);
        }
        Ok(part)
    }

    /// Returns the numbers of everything that another sum numbers.
    pub fn append(&mut self, later: Self) -> Result<MergePart> {
        let mut part = MergePart { weight: 1, ..MergePart::default() };
        let functions = later.symbols.into_keys().map(|key| self.symbols.of(key, "functions"));
        part.functions = functions.map(|number| number.map(FunctionIndex)).collect::<Result<_>>()?;
        for key in later.regions.into_keys() {
            part.regions.push(self.regions.of(key, "regions")?);
        }
        for (own, key) in (0..).zip(later.threads.into_keys()) {
            part.threads.insert(own, self.threads.of(key, "threads")?);
        }
        for (region, parent, kind, comm, function, how) in later.paths.into_keys() {
            let (region, function) = (part.region(region), part.function(function));
            let key = (region, part.path(parent), kind, comm, function, how);
            part.paths.push(self.paths.of(key, "paths")?);
        }
        Ok(part)
    }
}

/// Returns how often `key` was seen before, and counts it.
fn occurrence<K: Hash + Eq>(seen: &mut HashMap<K, u32>, key: K) -> u32 {
    let count = seen.entry(key).or_default();
    *count += 1;
    *count - 1
}
