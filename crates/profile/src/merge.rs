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

use crate::merge_cpus::CpuSum;
use crate::merge_data::DataSum;
use crate::merge_io::IoSum;
use crate::{
    Address, Block, CallArc, CounterTotal, Edge, Error, FunctionIndex, FunctionTotals, HistogramBucket,
    IdleStats, Instructions, Manifest, ModelEvent, ModelEventStats, PathNode, PointStats, Profile,
    RegionStats, Result, SamplingSummary, SwitchStats, Symbol, Tables, ThreadStats, TransferSummary,
};
use kerntune_work::Key;
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// Merges profiles of the same kernel, each times its weight; skips those of weight 0.
///
/// The manifest of the result lists the parts among its sources; its `recorded` is the latest of
/// theirs. Extremes (`max_ticks`, `min_ticks`) are those of all parts.
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
    let mut sum = ProfileSum::default();
    for &(profile, weight) in &parts {
        sum.add(&profile.tables, weight)?;
    }
    Ok(Profile { manifest: manifest(&parts, &first.manifest), tables: sum.finish() })
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
    /// Returns the number of a key, and true if the key is new. `what` names the keys in an error.
    fn of(&mut self, key: K, what: &'static str) -> Result<(u32, bool)> {
        let next = u32::try_from(self.numbers.len()).map_err(|_| Error::TooMany(what))?;
        let number = *self.numbers.entry(key).or_insert(next);
        Ok((number, number == next))
    }
}

impl<K> Default for KeyNumbers<K> {
    fn default() -> Self {
        Self { numbers: HashMap::new() }
    }
}

type SymbolKey = (Address, String);
type NthOfKey<K> = (K, u32);
/// Region, parent, and everything that distinguishes a path from its siblings.
type PathKey = (u32, u32, crate::PathKind, String, FunctionIndex, crate::CallKind);
type ThreadKey = (crate::ThreadKind, u32, u32, String);

#[derive(Default)]
struct ProfileSum {
    symbols: Vec<Symbol>,
    symbol_numbers: KeyNumbers<SymbolKey>,
    regions: Vec<RegionStats>,
    region_numbers: KeyNumbers<NthOfKey<String>>,
    thread_numbers: KeyNumbers<NthOfKey<ThreadKey>>,
    functions: BTreeMap<(u32, FunctionIndex), FunctionTotals>,
    arcs: BTreeMap<(u32, FunctionIndex, FunctionIndex, crate::CallKind), CallArc>,
    threads: BTreeMap<(u32, u32), ThreadStats>,
    edges: BTreeMap<(Address, Address, crate::EdgeKind), u64>,
    blocks: BTreeMap<(Address, Address, u64, Instructions), u64>,
    histograms: BTreeMap<(u32, FunctionIndex, FunctionIndex, u32), (u64, crate::Ticks)>,
    paths: Vec<PathNode>,
    path_numbers: KeyNumbers<PathKey>,
    switches: BTreeMap<(u32, String, String, FunctionIndex, crate::SwitchKind), u64>,
    idles: BTreeMap<(u32, FunctionIndex, u32), (u64, crate::Ticks)>,
    points: BTreeMap<(u32, String, FunctionIndex), u64>,
    model_events: BTreeMap<(u32, ModelEvent), (u64, u64)>,
    cpus: CpuSum,
    data: DataSum,
    io: IoSum,
}

impl ProfileSum {
    fn add(&mut self, part: &Tables, weight: u64) -> Result<()> {
        let function_of = self.add_symbols(part)?;
        let region_of = self.add_regions(part, weight)?;
        let function = |old: FunctionIndex| function_of.get(old.0 as usize).copied().unwrap_or(old);
        let region = |old: u32| region_of.get(old as usize).copied().unwrap_or(old);
        let times = |count: u64| count.saturating_mul(weight);

        for row in &part.functions {
            let key = (region(row.region), function(row.function));
            let mut totals = FunctionTotals::from(row);
            (totals.calls, totals.ended) = (times(totals.calls), times(totals.ended));
            totals.self_ticks = totals.self_ticks * weight;
            totals.ended_self_ticks = totals.ended_self_ticks * weight;
            totals.total_ticks = totals.total_ticks * weight;
            self.functions.entry(key).or_insert(FunctionTotals::none(key.1)).add(&totals);
        }
        for row in &part.arcs {
            let key = (region(row.region), function(row.caller), function(row.callee), row.how);
            let (region, caller, callee, how) = key;
            let total_ticks = crate::Ticks::ZERO;
            let zero = CallArc { region, caller, callee, how, calls: 0, ended: 0, total_ticks };
            let sum = self.arcs.entry(key).or_insert(zero);
            sum.calls = sum.calls.saturating_add(times(row.calls));
            sum.ended = sum.ended.saturating_add(times(row.ended));
            sum.total_ticks += row.total_ticks * weight;
        }
        self.add_threads(part, weight, region)?;
        for row in &part.edges {
            let sum = self.edges.entry((row.source, row.target, row.kind)).or_default();
            *sum = sum.saturating_add(times(row.count));
        }
        for row in &part.blocks {
            let sum = self.blocks.entry((row.start, row.last, row.bytes, row.instructions)).or_default();
            *sum = sum.saturating_add(times(row.count));
        }
        for row in &part.histograms {
            let key = (region(row.region), function(row.caller), function(row.function), row.bucket);
            let sum = self.histograms.entry(key).or_insert((0, row.example_ticks));
            *sum = (sum.0.saturating_add(times(row.count)), sum.1.min(row.example_ticks));
        }
        self.add_paths(part, weight, region, function)?;
        for row in &part.switches {
            let key = (region(row.region), row.from.clone(), row.to.clone(), function(row.reason), row.kind);
            let sum = self.switches.entry(key).or_default();
            *sum = sum.saturating_add(times(row.count));
        }
        for row in &part.idles {
            let key = (region(row.region), function(row.waker), row.bucket);
            let sum = self.idles.entry(key).or_default();
            *sum = (sum.0.saturating_add(times(row.count)), sum.1 + row.idle_ticks * weight);
        }
        for row in &part.model_events {
            let sum = self.model_events.entry((region(row.region), row.event)).or_default();
            let add = |sum: u64, more: u64| sum.saturating_add(times(more));
            *sum = (add(sum.0, row.kernel), add(sum.1, row.user));
        }
        for row in &part.points {
            let key = (region(row.region), row.point.clone(), function(row.function));
            let sum = self.points.entry(key).or_default();
            *sum = sum.saturating_add(times(row.count));
        }
        self.cpus.add(part, weight, region, function);
        self.data.add(part, weight, region, function);
        self.io.add(part, weight, region);
        Ok(())
    }

    fn add_paths(
        &mut self,
        part: &Tables,
        weight: u64,
        region: impl Fn(u32) -> u32,
        function: impl Fn(FunctionIndex) -> FunctionIndex,
    ) -> Result<()> {
        let times = |count: u64| count.saturating_mul(weight);
        let mut path_of: Vec<u32> = Vec::with_capacity(part.paths.len());
        for row in &part.paths {
            // Parents come first, so a parent's new number is known.
            let parent = path_of.get(row.parent as usize).copied().unwrap_or(PathNode::ROOT);
            let (region, function) = (region(row.region), function(row.function));
            let key = (region, parent, row.kind, row.comm.clone(), function, row.how);
            let (path, new) = self.path_numbers.of(key, "paths")?;
            path_of.push(path);
            let row = PathNode {
                region,
                path,
                parent,
                function,
                calls: times(row.calls),
                self_ticks: row.self_ticks * weight,
                taken_branches: times(row.taken_branches),
                l1i_misses: times(row.l1i_misses),
                itlb_misses: times(row.itlb_misses),
                ..row.clone()
            };
            if new {
                self.paths.push(row);
            } else if let Some(sum) = self.paths.get_mut(path as usize) {
                let add = |a: &mut u64, b: u64| *a = a.saturating_add(b);
                sum.self_ticks += row.self_ticks;
                add(&mut sum.calls, row.calls);
                add(&mut sum.taken_branches, row.taken_branches);
                add(&mut sum.l1i_misses, row.l1i_misses);
                add(&mut sum.itlb_misses, row.itlb_misses);
            }
        }
        Ok(())
    }

    /// Adds the functions of a part and returns their new numbers.
    fn add_symbols(&mut self, part: &Tables) -> Result<Vec<FunctionIndex>> {
        let mut function_of = Vec::with_capacity(part.symbols.len());
        for symbol in &part.symbols {
            let (number, new) = self.symbol_numbers.of((symbol.address, symbol.name.clone()), "functions")?;
            let function = FunctionIndex(number);
            if new {
                self.symbols.push(Symbol { function, ..symbol.clone() });
            }
            function_of.push(function);
        }
        Ok(function_of)
    }

    /// Adds the regions of a part and returns their new numbers.
    fn add_regions(&mut self, part: &Tables, weight: u64) -> Result<Vec<u32>> {
        let mut seen: HashMap<&str, u32> = HashMap::new();
        let mut region_of = Vec::with_capacity(part.regions.len());
        for row in &part.regions {
            let key = (row.name.clone(), occurrence(&mut seen, row.name.as_str()));
            let (region, new) = self.region_numbers.of(key, "regions")?;
            let row = RegionStats { region, ..weighted(row, weight) };
            if new {
                self.regions.push(row);
            } else if let Some(sum) = self.regions.get_mut(region as usize) {
                add_region(sum, &row);
            }
            region_of.push(region);
        }
        Ok(region_of)
    }

    fn add_threads(&mut self, part: &Tables, weight: u64, region: impl Fn(u32) -> u32) -> Result<()> {
        let key = |row: &ThreadStats| (row.kind, row.pid, row.tgid, row.comm.clone());
        let mut seen = HashMap::new();
        // A thread has a row for each region: its occurrence is that of its first row.
        let mut numbers: HashMap<u32, u32> = HashMap::new();
        for row in &part.threads {
            let thread = match numbers.get(&row.thread) {
                Some(&number) => number,
                None => {
                    let occurrence = occurrence(&mut seen, key(row));
                    let (number, _) = self.thread_numbers.of((key(row), occurrence), "threads")?;
                    numbers.insert(row.thread, number);
                    number
                }
            };
            let region = region(row.region);
            let zero = crate::Ticks::ZERO;
            let none = ThreadStats {
                region,
                thread,
                self_ticks: zero,
                user_ticks: zero,
                switches_in: 0,
                ..row.clone()
            };
            let sum = self.threads.entry((region, thread)).or_insert(none);
            sum.self_ticks += row.self_ticks * weight;
            sum.user_ticks += row.user_ticks * weight;
            sum.switches_in = sum.switches_in.saturating_add(row.switches_in.saturating_mul(weight));
        }
        Ok(())
    }

    fn finish(self) -> Tables {
        let mut tables = Tables {
            functions: self.functions.into_iter().map(|((region, _), totals)| totals.row(region)).collect(),
            model_events: (self.model_events.into_iter())
                .map(|((region, event), (kernel, user))| ModelEventStats { region, event, kernel, user })
                .collect(),
            symbols: self.symbols,
            arcs: self.arcs.into_values().collect(),
            threads: self.threads.into_values().collect(),
            regions: self.regions,
            edges: (self.edges.into_iter())
                .map(|((source, target, kind), count)| Edge { source, target, count, kind })
                .collect(),
            blocks: (self.blocks.into_iter())
                .map(|((start, last, bytes, instructions), count)| Block {
                    start,
                    last,
                    count,
                    instructions,
                    bytes,
                })
                .collect(),
            histograms: (self.histograms.into_iter())
                .map(|((region, caller, function, bucket), (count, example_ticks))| HistogramBucket {
                    region,
                    caller,
                    function,
                    bucket,
                    count,
                    example_ticks,
                })
                .collect(),
            paths: self.paths,
            switches: (self.switches.into_iter())
                .map(|((region, from, to, reason, kind), count)| SwitchStats {
                    region,
                    from,
                    to,
                    reason,
                    kind,
                    count,
                })
                .collect(),
            idles: (self.idles.into_iter())
                .map(|((region, waker, bucket), (count, idle_ticks))| IdleStats {
                    region,
                    waker,
                    bucket,
                    count,
                    idle_ticks,
                })
                .collect(),
            points: (self.points.into_iter())
                .map(|((region, point, function), count)| PointStats { region, point, function, count })
                .collect(),
            ..Tables::default()
        };
        self.cpus.finish(&mut tables);
        self.data.finish(&mut tables);
        self.io.finish(&mut tables);
        tables
    }
}

/// Returns how often `key` was seen before, and counts it.
fn occurrence<K: Hash + Eq>(seen: &mut HashMap<K, u32>, key: K) -> u32 {
    let count = seen.entry(key).or_default();
    *count += 1;
    *count - 1
}

fn weighted(row: &RegionStats, weight: u64) -> RegionStats {
    let times = |count: u64| count.saturating_mul(weight);
    RegionStats {
        region: row.region,
        name: row.name.clone(),
        begin_ticks: row.begin_ticks,
        depth: row.depth,
        elapsed_ticks: row.elapsed_ticks * weight,
        busy_ticks: row.busy_ticks * weight,
        idle_ticks: row.idle_ticks * weight,
        user_ticks: row.user_ticks * weight,
        unattributed_ticks: row.unattributed_ticks * weight,
        operations: times(row.operations),
        kernel_instructions: row.kernel_instructions * weight,
        user_instructions: row.user_instructions * weight,
        kernel_taken_branches: times(row.kernel_taken_branches),
        user_taken_branches: times(row.user_taken_branches),
        kernel_l1i_misses: times(row.kernel_l1i_misses),
        user_l1i_misses: times(row.user_l1i_misses),
        kernel_itlb_misses: times(row.kernel_itlb_misses),
        user_itlb_misses: times(row.user_itlb_misses),
    }
}

fn add_region(sum: &mut RegionStats, row: &RegionStats) {
    let add = |a: &mut u64, b: u64| *a = a.saturating_add(b);
    sum.begin_ticks = sum.begin_ticks.min(row.begin_ticks);
    sum.elapsed_ticks += row.elapsed_ticks;
    sum.busy_ticks += row.busy_ticks;
    sum.idle_ticks += row.idle_ticks;
    sum.user_ticks += row.user_ticks;
    sum.unattributed_ticks += row.unattributed_ticks;
    add(&mut sum.operations, row.operations);
    sum.kernel_instructions += row.kernel_instructions;
    sum.user_instructions += row.user_instructions;
    add(&mut sum.kernel_taken_branches, row.kernel_taken_branches);
    add(&mut sum.user_taken_branches, row.user_taken_branches);
    add(&mut sum.kernel_l1i_misses, row.kernel_l1i_misses);
    add(&mut sum.user_l1i_misses, row.user_l1i_misses);
    add(&mut sum.kernel_itlb_misses, row.kernel_itlb_misses);
    add(&mut sum.user_itlb_misses, row.user_itlb_misses);
}
