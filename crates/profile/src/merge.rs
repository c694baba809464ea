//! Merging of profiles of one kernel.
//!
//! Every count is multiplied by the weight of its profile and summed in whole numbers, so the parts
//! add up exactly to the total. Rows of two profiles match by these keys:
//!
//! - functions: address and name;
//! - regions: name and occurrence (the second `tcp_rr` of one is the second `tcp_rr` of the other);
//! - threads: kind, ids, name and occurrence.
//!
//! Regions that only a later profile has come last: [`Tables::within`] holds if all ran the same
//! regions in order.

use crate::rules::MergePart;
use crate::{
    Address, CounterTotal, Error, FunctionIndex, Manifest, Profile, Result, SamplingSummary, Tables,
    TransferSummary,
};
use kerntune_work::Key;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// Merges profiles of the same kernel, each times its weight; skips those of weight 0.
///
/// The manifest of the result lists the parts among its sources; its `recorded` is the latest of
/// theirs. Extremes (`max_ticks`, `min_ticks`) are those of all parts. Footprints are those of a
/// single profile, and TLBs those that all parts have in common.
pub fn merge(parts: &[(&Profile, u64)]) -> Result<Profile> {
    let parts: Vec<(&Profile, u64)> = parts.iter().copied().filter(|&(_, weight)| weight > 0).collect();
    let &[(first, _), ..] = parts.as_slice() else { return Err(Error::NothingToMerge) };
    for &(other, _) in &parts {
        let (a, b) = (&first.manifest, &other.manifest);
        if a.kernel.id != b.kernel.id {
            return Err(Error::DifferentKernels {
                first: a.id.clone(),
                second: b.id.clone(),
                first_kernel: a.kernel.id.clone(),
                second_kernel: b.kernel.id.clone(),
            });
        }
    }
    let one = |is_sampled: bool| {
        let mut all = parts.iter().map(|(profile, _)| &profile.manifest);
        all.find(|manifest| manifest.sampled.is_some() == is_sampled).map(|manifest| manifest.id.clone())
    };
    if let (Some(sampled), Some(measured)) = (one(true), one(false)) {
        return Err(Error::SampledAndMeasured { sampled, measured });
    }
    let (mut numbering, mut tables) = (Numbering::default(), Tables::default());
    for &(profile, weight) in &parts {
        let part = numbering.part(&profile.tables, weight)?;
        tables.add(&profile.tables, &part);
    }
    tables.footprints = match parts[..] {
        [(only, 1)] => only.tables.footprints.clone(),
        _ => Vec::new(),
    };
    let tlbs = &first.tables.data_tlbs;
    let common = parts.iter().all(|(profile, _)| profile.tables.data_tlbs == *tlbs);
    tables.data_tlbs = if common { tlbs.clone() } else { Vec::new() };
    Ok(Profile { manifest: manifest(&parts, &first.manifest), tables })
}

fn manifest(parts: &[(&Profile, u64)], first: &Manifest) -> Manifest {
    let all = || parts.iter().map(|(profile, weight)| (&profile.manifest, *weight));
    let words = |of: fn(&Manifest) -> &str| {
        let mut words: Vec<&str> = all().map(|(m, _)| of(m)).collect();
        words.sort_unstable();
        words.dedup();
        words.join("+")
    };
    let mut id = Key::new("merged-profile/2", crate::CODE);
    let mut health: BTreeMap<String, u64> = BTreeMap::new();
    for (part, weight) in all() {
        id = id.field(&part.id, weight.to_le_bytes());
        for (name, count) in &part.health {
            let sum = health.entry(name.clone()).or_default();
            *sum = sum.saturating_add(*count);
        }
    }
    Manifest {
        id: id.id(),
        workload: words(|m| &m.workload),
        machine: words(|m| &m.machine),
        model: all().all(|(m, _)| m.model == first.model).then(|| first.model.clone()).flatten(),
        recorded: all().map(|(m, _)| m.recorded.clone()).max().unwrap_or_default(),
        elapsed_ticks: all().map(|(m, weight)| m.elapsed_ticks * weight).sum(),
        busy_ticks: all().map(|(m, weight)| m.busy_ticks * weight).sum(),
        idle_ticks: all().map(|(m, weight)| m.idle_ticks * weight).sum(),
        events: all().fold(0, |sum, (m, _)| sum.saturating_add(m.events)),
        lost_events: all().fold(0, |sum, (m, _)| sum.saturating_add(m.lost_events)),
        health,
        capture: crate::CaptureSummary {
            functions: all().any(|(m, _)| m.capture.functions),
            edges: all().any(|(m, _)| m.capture.edges),
            instructions: all().any(|(m, _)| m.capture.instructions),
            model: all().any(|(m, _)| m.capture.model),
            weights: all().any(|(m, _)| m.capture.weights),
            data: all().any(|(m, _)| m.capture.data),
            requests: all().all(|(m, _)| m.capture.requests),
            packets: all().all(|(m, _)| m.capture.packets),
        },
        exact: all().all(|(m, _)| m.exact),
        sources: all().map(|(m, weight)| format!("profile {} × {weight}", m.id)).collect(),
        carried: carried(parts),
        sampled: sampled(parts),
        counted: counted(parts),
        // The state of one machine says nothing of another.
        host: None,
        tables: BTreeMap::new(),
        ..first.clone()
    }
}

/// Sums the losses of the parts that were transferred from another kernel.
fn carried(parts: &[(&Profile, u64)]) -> Option<TransferSummary> {
    let all =
        || parts.iter().filter_map(|(profile, weight)| Some((profile.manifest.carried.as_ref()?, *weight)));
    let sum = |of: fn(&TransferSummary) -> u64| {
        all().fold(0u64, |sum, (carried, weight)| sum.saturating_add(of(carried).saturating_mul(weight)))
    };
    let (first, _) = all().next()?;
    Some(TransferSummary {
        profile: all().map(|(carried, _)| carried.profile.as_str()).collect::<Vec<_>>().join("+"),
        executed: sum(|carried| carried.executed),
        carried: sum(|carried| carried.carried),
        at_least_percent: all().map(|(carried, _)| carried.at_least_percent).min().unwrap_or_default(),
        kernel: first.kernel.clone(),
    })
}

/// Merges the sampling of the parts; `None` if no part was sampled. A sample of the sum stands for
/// the longest sample of a part times its weight, so reported errors are upper bounds.
fn sampled(parts: &[(&Profile, u64)]) -> Option<SamplingSummary> {
    let all =
        || parts.iter().filter_map(|(profile, weight)| Some((profile.manifest.sampled.as_ref()?, *weight)));
    let (first, _) = all().next()?;
    let words = |of: fn(&SamplingSummary) -> Option<&str>| {
        let mut words: Vec<&str> = all().filter_map(|(sampled, _)| of(sampled)).collect();
        words.sort_unstable();
        words.dedup();
        (!words.is_empty()).then(|| words.join("; "))
    };
    Some(SamplingSummary {
        source: words(|sampled| Some(&sampled.source)).unwrap_or_default(),
        samples: all().fold(0, |sum, (sampled, _)| sum.saturating_add(sampled.samples)),
        sample_ns: all().map(|(sampled, weight)| sampled.sample_ns * weight).max().unwrap_or_default(),
        cpus: all().map(|(sampled, _)| sampled.cpus).max().unwrap_or_default(),
        wall_ns: all().map(|(sampled, weight)| sampled.wall_ns * weight).sum(),
        period: words(|sampled| Some(&sampled.period)).unwrap_or_default(),
        bias: words(|sampled| sampled.bias.as_deref()),
        filter: words(|sampled| sampled.filter.as_deref()),
        // Where only some parts counted calls, the sum is no number of calls.
        calls: words(|sampled| sampled.calls.as_deref())
            .filter(|_| all().count() == parts.len() && all().all(|(sampled, _)| sampled.calls.is_some())),
        ..first.clone()
    })
}

/// Sums the counters beside the tables, each part times its weight.
fn counted(parts: &[(&Profile, u64)]) -> Vec<CounterTotal> {
    let mut sums: BTreeMap<(&str, &str, &str), u64> = BTreeMap::new();
    for (profile, weight) in parts {
        for CounterTotal { kind, name, count, source } in &profile.manifest.counted {
            let sum = sums.entry((kind, name, source)).or_default();
            *sum = sum.saturating_add(count.saturating_mul(*weight));
        }
    }
    let row = |((kind, name, source), count): ((&str, &str, &str), u64)| CounterTotal {
        kind: kind.into(),
        name: name.into(),
        count,
        source: source.into(),
    };
    sums.into_iter().map(row).collect()
}

/// Numbering of keys in order of their first use.
struct KeyNumbers<K> {
    numbers: HashMap<K, u32>,
}

impl<K: Hash + Eq> KeyNumbers<K> {
    /// Returns the number of a key. `what` names the keys in an error.
    fn of(&mut self, key: K, what: &'static str) -> Result<u32> {
        let next = u32::try_from(self.numbers.len()).map_err(|_| Error::TooMany(what))?;
        Ok(*self.numbers.entry(key).or_insert(next))
    }
}

impl<K> Default for KeyNumbers<K> {
    fn default() -> Self {
        Self { numbers: HashMap::new() }
    }
}

type NthOfKey<K> = (K, u32);
/// Region, parent, and everything that distinguishes a path from its siblings.
type PathKey = (u32, u32, crate::PathKind, String, FunctionIndex, crate::CallKind);
type ThreadKey = (crate::ThreadKind, u32, u32, String);

/// Numbers in the sum of everything that profiles number, by keys that are the same in each.
#[derive(Default)]
struct Numbering {
    symbols: KeyNumbers<(Address, String)>,
    regions: KeyNumbers<NthOfKey<String>>,
    threads: KeyNumbers<NthOfKey<ThreadKey>>,
    paths: KeyNumbers<PathKey>,
}

impl Numbering {
    fn part(&mut self, tables: &Tables, weight: u64) -> Result<MergePart> {
        let mut part = MergePart { weight, ..MergePart::default() };
        for row in &tables.symbols {
            let number = self.symbols.of((row.address, row.name.clone()), "functions")?;
            part.functions.push(FunctionIndex(number));
        }
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
        for row in &tables.paths {
            let (region, function) = (part.region(row.region), part.function(row.function));
            // Parents come first, so a parent's new number is known.
            let key = (region, part.path(row.parent), row.kind, row.comm.clone(), function, row.how);
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
