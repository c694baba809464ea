//! Calls between functions of a profile without blocks and branches: counted calls, or sampled call
//! chains. Both are enough to order functions.

use crate::share::share;
use kerntune_kernel::Symbols;
use kerntune_profile::{source_name, CallKind, CountKind, FunctionIndex, Profile, Symbol};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Least share of the time that must be in functions with counted calls; below it the sampled call
/// chains know more. `live start --calls macro` counts few functions, `--calls all` nearly all.
pub(crate) const MIN_COUNTED: f64 = 0.5;

/// Weighted calls between the functions of the kernel's image, and between those of its modules.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CallCounts {
    /// [`CountKind::CallArcs`] or [`CountKind::CallChains`].
    pub kind: CountKind,
    /// Weight of each function: calls, or samples that have it on their stack.
    pub entries: BTreeMap<FunctionIndex, u64>,
    /// Weight of each pair of caller and callee, in the same unit.
    pub arcs: BTreeMap<(FunctionIndex, FunctionIndex), u64>,
    /// Weight of each function of a module that the kernel loaded.
    pub module_entries: BTreeMap<FunctionIndex, u64>,
    /// Weight of each pair of caller and callee of such modules.
    pub module_arcs: BTreeMap<(FunctionIndex, FunctionIndex), u64>,
    /// Share of the self time of the image's functions that have an entry, 0 to 1. `None` without
    /// times.
    pub coverage: Option<f64>,
    /// Weight of calls of modules and of user code, which are left out.
    pub outside: u64,
}

impl CallCounts {
    /// Returns the counts that show the most of the profile: counted calls, unless they cover little
    /// of the sampled time. `None` for a profile without any.
    pub fn best(profile: &Profile) -> Option<Self> {
        let kinds = profile.count_kinds();
        let of = |kind| kinds.contains(&kind).then(|| Self::of(profile, kind));
        let (counted, sampled) = (of(CountKind::CallArcs), of(CountKind::CallChains));
        match (counted, sampled) {
            (Some(counted), Some(sampled)) => {
                let enough = counted.coverage.is_none_or(|covered| covered >= MIN_COUNTED);
                Some(if enough || sampled.arcs.is_empty() { counted } else { sampled })
            }
            (counted, sampled) => counted.or(sampled),
        }
    }

    fn of(profile: &Profile, kind: CountKind) -> Self {
        let tables = &profile.tables;
        let symbol = |function: FunctionIndex| tables.symbols.get(function.known()?.0 as usize);
        let of_image = |function: FunctionIndex| symbol(function).is_some_and(is_of_image);
        let of_module =
            |function: FunctionIndex| symbol(function).is_some_and(|symbol| symbol.loaded_module().is_some());
        let samples = |ticks| match &profile.manifest.sampled {
            Some(sampled) => sampled.samples_in(ticks),
            None => 0,
        };
        let chains = kind == CountKind::CallChains;
        let (mut entries, mut arcs, mut outside) = (BTreeMap::new(), BTreeMap::new(), 0u64);
        let (mut module_entries, mut module_arcs) = (BTreeMap::new(), BTreeMap::new());
        for row in &tables.functions {
            let weight = if chains { samples(row.total_ticks) } else { row.calls };
            match of_image(row.function) {
                true => add(&mut entries, row.function, weight),
                false => outside = outside.saturating_add(weight),
            }
            if of_module(row.function) {
                add(&mut module_entries, row.function, weight);
            }
        }
        for row in &tables.arcs {
            // An interrupt has no caller: it comes anywhere.
            let is_call = !matches!(row.how, CallKind::Interrupt | CallKind::Exception);
            if !is_call || row.caller == row.callee {
                continue;
            }
            let weight = if chains { samples(row.total_ticks) } else { row.calls };
            if of_image(row.caller) && of_image(row.callee) {
                add(&mut arcs, (row.caller, row.callee), weight);
            } else if of_module(row.caller) && of_module(row.callee) {
                add(&mut module_arcs, (row.caller, row.callee), weight);
            }
        }
        entries.retain(|_, weight| *weight > 0);
        arcs.retain(|_, weight| *weight > 0);
        module_entries.retain(|_, weight| *weight > 0);
        module_arcs.retain(|_, weight| *weight > 0);
        // A sample without a chain tells nothing of calls.
        let linked: BTreeSet<FunctionIndex> = arcs.keys().flat_map(|(from, to)| [*from, *to]).collect();
        let knows = |function: &FunctionIndex| match chains {
            true => linked.contains(function),
            false => entries.contains_key(function),
        };
        let (mut all, mut covered) = (0u64, 0u64);
        for row in tables.functions.iter().filter(|row| of_image(row.function)) {
            let ticks = row.self_ticks.get();
            all = all.saturating_add(ticks);
            covered = covered.saturating_add(if knows(&row.function) { ticks } else { 0 });
        }
        let coverage = (all > 0).then(|| share(covered, all));
        Self { kind, entries, arcs, module_entries, module_arcs, coverage, outside }
    }

    /// Returns the weight of all entries.
    pub fn total(&self) -> u64 {
        self.entries.values().fold(0, |sum, weight| sum.saturating_add(*weight))
    }
}

fn add<K: Ord>(counts: &mut BTreeMap<K, u64>, key: K, weight: u64) {
    let sum = counts.entry(key).or_default();
    *sum = sum.saturating_add(weight);
}

fn is_of_image(symbol: &Symbol) -> bool {
    symbol.module.is_none() && !symbol.name.is_empty()
}

/// Places of a profile's functions in a kernel's function table.
#[derive(Debug)]
pub(crate) struct NamedFunctions<'a> {
    symbols: &'a [Symbol],
    table: &'a Symbols,
    /// Indices by exact name and alias.
    by_name: HashMap<&'a str, Vec<usize>>,
    /// Indices by name in the source, without cold parts.
    by_source_name: HashMap<&'a str, Vec<usize>>,
    same_kernel: bool,
}

impl<'a> NamedFunctions<'a> {
    /// `same_kernel` is true if the addresses of `symbols` are those of `table`.
    pub fn new(symbols: &'a [Symbol], table: &'a Symbols, same_kernel: bool) -> Self {
        let (mut by_name, mut by_source_name) = (HashMap::<_, Vec<_>>::new(), HashMap::<_, Vec<_>>::new());
        for (function, at) in table.functions().iter().zip(0..) {
            for name in function.aliases.iter().chain([&function.name]) {
                by_name.entry(name.as_str()).or_default().push(at);
            }
            if let (name, false) = source_name(&function.name) {
                by_source_name.entry(name).or_default().push(at);
            }
        }
        Self { symbols, table, by_name, by_source_name, same_kernel }
    }

    /// Returns the index in the kernel's table of a function of the profile: that of its name at its
    /// address in the same kernel, else that of its name, else of its name without the compiler's
    /// suffixes.
    /// Of namesakes it is the one of the same source file and size, as far as these are known.
    pub fn find(&self, function: FunctionIndex) -> Option<usize> {
        let symbol = self.symbols.get(function.known()?.0 as usize)?;
        if self.same_kernel {
            // A live profile may not know where the kernel was moved to (KASLR): the name decides.
            let at = self.table.lookup(symbol.address.get());
            let named = at
                .map(|at| &self.table.functions()[at])
                .filter(|here| here.name == symbol.name || here.aliases.contains(&symbol.name));
            if let (Some(at), Some(_)) = (at, named) {
                return Some(self.table.whole(at));
            }
        }
        let (name, cold) = source_name(&symbol.name);
        if cold {
            return None;
        }
        let named = self.by_name.get(symbol.name.as_str()).or_else(|| self.by_source_name.get(name))?;
        let unlike = |at: &&usize| {
            let here = &self.table.functions()[**at];
            let (one, two) = (here.file.as_deref().unwrap_or(""), symbol.file.as_deref().unwrap_or(""));
            let elsewhere = !(one.ends_with(two) || two.ends_with(one));
            (elsewhere, here.size.abs_diff(symbol.size))
        };
        named.iter().min_by_key(unlike).copied()
    }
}
