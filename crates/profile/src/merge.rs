//! Adding up profiles of one kernel.
//!
//! Everything that is counted is summed, each profile times its weight; all in whole numbers, so
//! that the parts sum exactly to the total. What stands for the same thing in two profiles:
//! functions by address and name, regions by name and occurrence (the second `tcp_rr` of one is
//! the second `tcp_rr` of the other), threads by kind, ids, name and occurrence. Regions that only
//! a later profile has come last: [`Tables::within`] holds if all ran the same regions in order.

use crate::merge_cpus::CpuSum;
use crate::merge_data::DataSum;
use crate::merge_io::IoSum;
use crate::{
    Address, Block, CallArc, Carried, Counted, Edge, Error, FunctionIndex, FunctionTotals, HistogramBucket,
    IdleStats, Instructions, Manifest, ModelEvent, ModelEventStats, PathNode, PointStats, Profile,
    RegionStats, Result, Sampled, SwitchStats, Symbol, Tables, ThreadStats,
};
use kerntune_work::Key;
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// Adds up profiles of the same kernel, each times its weight; those of weight 0 are left out.
///
/// The manifest of the result names the parts among its sources; its `recorded` is the latest of
/// theirs. Extremes (`max_ns`, `min_ns`) are those of all parts.
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
    let mut sum = Sum::default();
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
        elapsed_ns: all().map(|(m, weight)| m.elapsed_ns * weight).sum(),
        busy_ns: all().map(|(m, weight)| m.busy_ns * weight).sum(),
        idle_ns: all().map(|(m, weight)| m.idle_ns * weight).sum(),
        events: all().fold(0, |sum, (m, _)| sum.saturating_add(m.events)),
        lost_events: all().fold(0, |sum, (m, _)| sum.saturating_add(m.lost_events)),
        health,
        capture: crate::Capture {
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

/// What was lost of those parts that were carried from another kernel.
fn carried(parts: &[(&Profile, u64)]) -> Option<Carried> {
    let all =
        || parts.iter().filter_map(|(profile, weight)| Some((profile.manifest.carried.as_ref()?, *weight)));
    let sum = |of: fn(&Carried) -> u64| {
        all().fold(0u64, |sum, (carried, weight)| sum.saturating_add(of(carried).saturating_mul(weight)))
    };
    let (first, _) = all().next()?;
    Some(Carried {
        profile: all().map(|(carried, _)| carried.profile.as_str()).collect::<Vec<_>>().join("+"),
        executed: sum(|carried| carried.executed),
        carried: sum(|carried| carried.carried),
        at_least_percent: all().map(|(carried, _)| carried.at_least_percent).min().unwrap_or_default(),
        kernel: first.kernel.clone(),
    })
}

/// How the sum was sampled, if any part was. A sample of the sum stands for the longest time that one of a part does,
/// times its weight: errors that are told of it are at least the true ones.
fn sampled(parts: &[(&Profile, u64)]) -> Option<Sampled> {
    let all =
        || parts.iter().filter_map(|(profile, weight)| Some((profile.manifest.sampled.as_ref()?, *weight)));
    let (first, _) = all().next()?;
    let words = |of: fn(&Sampled) -> Option<&str>| {
        let mut words: Vec<&str> = all().filter_map(|(sampled, _)| of(sampled)).collect();
        words.sort_unstable();
        words.dedup();
        (!words.is_empty()).then(|| words.join("; "))
    };
    Some(Sampled {
        source: words(|sampled| Some(&sampled.source)).unwrap_or_default(),
        samples: all().fold(0, |sum, (sampled, _)| sum.saturating_add(sampled.samples)),
        sample_ns: all().map(|(sampled, weight)| sampled.sample_ns * weight).max().unwrap_or_default(),
        cpus: all().map(|(sampled, _)| sampled.cpus).max().unwrap_or_default(),
        wall_ns: all().map(|(sampled, weight)| sampled.wall_ns * weight).sum(),
        period: words(|sampled| Some(&sampled.period)).unwrap_or_default(),
        bias: words(|sampled| sampled.bias.as_deref()),
        filter: words(|sampled| sampled.filter.as_deref()),
        // Of what only some parts counted the sum is no number of calls.
        calls: words(|sampled| sampled.calls.as_deref())
            .filter(|_| all().count() == parts.len() && all().all(|(sampled, _)| sampled.calls.is_some())),
        ..first.clone()
    })
}

/// What was counted beside the tables, each part times its weight.
fn counted(parts: &[(&Profile, u64)]) -> Vec<Counted> {
    let mut sums: BTreeMap<(&str, &str, &str), u64> = BTreeMap::new();
    for (profile, weight) in parts {
        for Counted { kind, name, count, source } in &profile.manifest.counted {
            let sum = sums.entry((kind, name, source)).or_default();
            *sum = sum.saturating_add(count.saturating_mul(*weight));
        }
    }
    let row = |((kind, name, source), count): ((&str, &str, &str), u64)| Counted {
        kind: kind.into(),
        name: name.into(),
        count,
        source: source.into(),
    };
    sums.into_iter().map(row).collect()
}

/// Gives the same number to the same key.
struct Numbering<K> {
    numbers: HashMap<K, u32>,
}

impl<K: Hash + Eq> Numbering<K> {
    /// The key's number, and whether it is new.
    fn of(&mut self, key: K, what: &'static str) -> Result<(u32, bool)> {
        let next = u32::try_from(self.numbers.len()).map_err(|_| Error::TooMany(what))?;
        let number = *self.numbers.entry(key).or_insert(next);
        Ok((number, number == next))
    }
}

impl<K> Default for Numbering<K> {
    fn default() -> Self {
        Self { numbers: HashMap::new() }
    }
}

type SymbolKey = (Address, String);
type Occurrence<K> = (K, u32);
/// Region, parent, and what tells a path from its siblings.
type PathKey = (u32, u32, crate::PathKind, String, FunctionIndex, crate::How);
type ThreadKey = (crate::ThreadKind, u32, u32, String);

#[derive(Default)]
struct Sum {
    symbols: Vec<Symbol>,
    symbol_numbers: Numbering<SymbolKey>,
    regions: Vec<RegionStats>,
    region_numbers: Numbering<Occurrence<String>>,
    thread_numbers: Numbering<Occurrence<ThreadKey>>,
    functions: BTreeMap<(u32, FunctionIndex), FunctionTotals>,
    arcs: BTreeMap<(u32, FunctionIndex, FunctionIndex, crate::How), CallArc>,
    threads: BTreeMap<(u32, u32), ThreadStats>,
    edges: BTreeMap<(Address, Address, crate::EdgeKind), u64>,
    blocks: BTreeMap<(Address, Address, u64, Instructions), u64>,
    histograms: BTreeMap<(u32, FunctionIndex, FunctionIndex, u32), (u64, crate::Nanoseconds)>,
    paths: Vec<PathNode>,
    path_numbers: Numbering<PathKey>,
    switches: BTreeMap<(u32, String, String, FunctionIndex, crate::SwitchKind), u64>,
    idles: BTreeMap<(u32, FunctionIndex, u32), (u64, crate::Nanoseconds)>,
    points: BTreeMap<(u32, String, FunctionIndex), u64>,
    model_events: BTreeMap<(u32, ModelEvent), (u64, u64)>,
    cpus: CpuSum,
    data: DataSum,
    io: IoSum,
}

impl Sum {
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
            totals.net_ns = totals.net_ns * weight;
            totals.ended_net_ns = totals.ended_net_ns * weight;
            totals.elapsed_ns = totals.elapsed_ns * weight;
            self.functions.entry(key).or_insert(FunctionTotals::none(key.1)).add(&totals);
        }
        for row in &part.arcs {
            let key = (region(row.region), function(row.caller), function(row.callee), row.how);
            let (region, caller, callee, how) = key;
            let elapsed_ns = crate::Nanoseconds::ZERO;
            let zero = CallArc { region, caller, callee, how, calls: 0, ended: 0, elapsed_ns };
            let sum = self.arcs.entry(key).or_insert(zero);
            sum.calls = sum.calls.saturating_add(times(row.calls));
            sum.ended = sum.ended.saturating_add(times(row.ended));
            sum.elapsed_ns += row.elapsed_ns * weight;
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
            let sum = self.histograms.entry(key).or_insert((0, row.example_ns));
            *sum = (sum.0.saturating_add(times(row.count)), sum.1.min(row.example_ns));
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
            *sum = (sum.0.saturating_add(times(row.count)), sum.1 + row.idle_ns * weight);
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
            // Parents come first: a parent's new number is known.
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
                net_ns: row.net_ns * weight,
                taken_branches: times(row.taken_branches),
                l1i_misses: times(row.l1i_misses),
                itlb_misses: times(row.itlb_misses),
                ..row.clone()
            };
            if new {
                self.paths.push(row);
            } else if let Some(sum) = self.paths.get_mut(path as usize) {
                let add = |a: &mut u64, b: u64| *a = a.saturating_add(b);
                sum.net_ns += row.net_ns;
                add(&mut sum.calls, row.calls);
                add(&mut sum.taken_branches, row.taken_branches);
                add(&mut sum.l1i_misses, row.l1i_misses);
                add(&mut sum.itlb_misses, row.itlb_misses);
            }
        }
        Ok(())
    }

    /// New numbers of a part's functions.
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

    /// New numbers of a part's regions.
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
        // A thread has a row per region: its occurrence is that of its first row.
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
            let zero = crate::Nanoseconds::ZERO;
            let none =
                ThreadStats { region, thread, net_ns: zero, user_ns: zero, switches_in: 0, ..row.clone() };
            let sum = self.threads.entry((region, thread)).or_insert(none);
            sum.net_ns += row.net_ns * weight;
            sum.user_ns += row.user_ns * weight;
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
                .map(|((region, caller, function, bucket), (count, example_ns))| HistogramBucket {
                    region,
                    caller,
                    function,
                    bucket,
                    count,
                    example_ns,
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
                .map(|((region, waker, bucket), (count, idle_ns))| IdleStats {
                    region,
                    waker,
                    bucket,
                    count,
                    idle_ns,
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

/// How often `key` was seen before.
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
        begin_ns: row.begin_ns,
        depth: row.depth,
        elapsed_ns: row.elapsed_ns * weight,
        busy_ns: row.busy_ns * weight,
        idle_ns: row.idle_ns * weight,
        user_ns: row.user_ns * weight,
        unattributed_ns: row.unattributed_ns * weight,
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
    sum.begin_ns = sum.begin_ns.min(row.begin_ns);
    sum.elapsed_ns += row.elapsed_ns;
    sum.busy_ns += row.busy_ns;
    sum.idle_ns += row.idle_ns;
    sum.user_ns += row.user_ns;
    sum.unattributed_ns += row.unattributed_ns;
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
