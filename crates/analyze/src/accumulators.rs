//! All counters of an analysis. They are sums, extremes and firsts, so that parts that were counted
//! separately merge to the same result in any order.

use crate::accounts::ArcAccounts;
use crate::hash::BuildIntegerHasher;
use crate::multi_cpu::MultiCpuCounts;
use crate::tree::{PathTree, NONE};
use kerntune_profile::{bucket_of, SwitchKind, Ticks};
use std::collections::HashMap;
use std::hash::Hash;

/// Counters of a thread in a region.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ThreadAccount {
    /// Time on a CPU, user mode included.
    pub self_time: u64,
    pub user: u64,
    pub switches_in: u64,
}

impl ThreadAccount {
    fn add(&mut self, other: Self) {
        self.self_time = self.self_time.wrapping_add(other.self_time);
        self.user = self.user.wrapping_add(other.user);
        self.switches_in += other.switches_in;
    }
}

/// Times of a region, without the regions inside it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RegionAccount {
    /// All busy time.
    pub busy: u64,
    /// User mode outside of traced functions.
    pub user: u64,
    /// Kernel mode with no function open.
    pub unattributed: u64,
}

/// Region, names of the thread that lost the CPU and of the one that got it, reason, and whether it
/// was preempted.
pub(crate) type SwitchKey = (u32, u32, u32, u32, bool);

/// The counters of all regions. The number after the last region stands for time outside of all
/// regions.
pub(crate) struct Accumulators {
    pub tree: PathTree,
    pub accounts: ArcAccounts,
    /// Key: region and thread.
    pub threads: HashMap<(u32, u32), ThreadAccount, BuildIntegerHasher>,
    pub regions: Vec<RegionAccount>,
    switches: HashMap<SwitchKey, u64, BuildIntegerHasher>,
    /// Key: region, waker and bucket. Value: number of idle periods, and their time.
    idles: HashMap<(u32, u32, u32), (u64, u64), BuildIntegerHasher>,
    /// Key: region and point.
    points: HashMap<(u32, u32), u64, BuildIntegerHasher>,
    /// Empty with one CPU.
    pub multi_cpu: MultiCpuCounts,
}

impl Accumulators {
    pub fn new(regions: usize, wide: bool) -> Self {
        Self {
            tree: PathTree::new(wide),
            accounts: ArcAccounts::default(),
            threads: HashMap::default(),
            regions: vec![RegionAccount::default(); regions + 1],
            switches: HashMap::default(),
            idles: HashMap::default(),
            points: HashMap::default(),
            multi_cpu: MultiCpuCounts::default(),
        }
    }

    pub fn add_thread(&mut self, region: u32, thread: u32, account: ThreadAccount) {
        if account != ThreadAccount::default() {
            self.threads.entry((region, thread)).or_default().add(account);
        }
    }

    pub fn count_switch(&mut self, region: u32, from: u32, to: u32, reason: u32, kind: SwitchKind) {
        let key = (region, from, to, reason, kind == SwitchKind::Preempted);
        *self.switches.entry(key).or_default() += 1;
    }

    pub fn add_idle(&mut self, region: u32, waker: u32, idle: IdlePeriods) {
        let sum = self.idles.entry((region, waker, idle.bucket)).or_default();
        (sum.0, sum.1) = (sum.0 + idle.count, sum.1.wrapping_add(idle.ns));
    }

    pub fn add_point(&mut self, region: u32, point: u32, count: u64) {
        *self.points.entry((region, point)).or_default() += count;
    }

    /// Adds other counters.
    pub fn merge(&mut self, other: Self) {
        let accounts = self.accounts.merge(other.accounts);
        self.tree.merge(&other.tree, |account| accounts.get(account as usize).copied().unwrap_or(NONE));
        for (key, account) in other.threads {
            self.threads.entry(key).or_default().add(account);
        }
        for (sum, region) in self.regions.iter_mut().zip(other.regions) {
            sum.busy = sum.busy.wrapping_add(region.busy);
            sum.user = sum.user.wrapping_add(region.user);
            sum.unattributed = sum.unattributed.wrapping_add(region.unattributed);
        }
        for (key, count) in other.switches {
            *self.switches.entry(key).or_default() += count;
        }
        for (key, (count, ns)) in other.idles {
            let sum = self.idles.entry(key).or_default();
            (sum.0, sum.1) = (sum.0 + count, sum.1.wrapping_add(ns));
        }
        for (key, count) in other.points {
            *self.points.entry(key).or_default() += count;
        }
        self.multi_cpu.merge(other.multi_cpu);
    }

    /// Takes switches, idle periods and points out, sorted.
    pub fn take_sorted_counts(&mut self) -> SortedCounts {
        SortedCounts {
            switches: sorted(&mut self.switches),
            idles: sorted(&mut self.idles),
            points: sorted(&mut self.points),
        }
    }

    /// Returns a sum that does not equal its region's busy time: region, name, sum, busy time.
    pub fn imbalance(&self) -> Option<(u32, &'static str, u64, u64)> {
        let regions = self.regions.len();
        let [mut functions, mut threads, mut paths] = [(); 3].map(|()| vec![0u64; regions]);
        let put = |sums: &mut Vec<u64>, region: u32, ns: u64| {
            if let Some(sum) = sums.get_mut(region as usize) {
                *sum = sum.wrapping_add(ns);
            }
        };
        for ((region, _), _, self_time) in self.accounts.iter() {
            put(&mut functions, region, self_time);
        }
        for (&(region, _), account) in &self.threads {
            put(&mut threads, region, account.self_time);
        }
        for node in &self.tree.nodes {
            put(&mut paths, node.region, node.self_time);
        }
        let mut cpus = vec![0u64; regions];
        for (&(region, _), account) in &self.multi_cpu.cpus {
            put(&mut cpus, region, account.busy);
        }
        for (region, account) in self.regions.iter().enumerate() {
            if !self.multi_cpu.cpus.is_empty() && cpus[region] != account.busy {
                return Some((region as u32, "CPUs", cpus[region], account.busy));
            }
            let functions = functions[region].wrapping_add(account.user).wrapping_add(account.unattributed);
            for (what, sum) in
                [("functions", functions), ("threads", threads[region]), ("paths", paths[region])]
            {
                if sum != account.busy {
                    return Some((region as u32, what, sum, account.busy));
                }
            }
        }
        None
    }
}

/// Result of [`Accumulators::take_sorted_counts`].
pub(crate) struct SortedCounts {
    pub switches: SortedRows<SwitchKey, u64>,
    pub idles: SortedRows<(u32, u32, u32), (u64, u64)>,
    pub points: SortedRows<(u32, u32), u64>,
}

/// Entries of a map, sorted by key.
pub(crate) type SortedRows<K, V> = Vec<(K, V)>;

pub(crate) fn sorted<K: Ord + Hash + Copy, V>(
    map: &mut HashMap<K, V, BuildIntegerHasher>,
) -> SortedRows<K, V> {
    let mut rows: Vec<(K, V)> = std::mem::take(map).into_iter().collect();
    rows.sort_unstable_by_key(|(key, _)| *key);
    rows
}

/// Idle periods whose lengths are in one bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IdlePeriods {
    pub bucket: u32,
    pub count: u64,
    pub ns: u64,
}

impl IdlePeriods {
    pub fn single(ns: u64) -> Self {
        Self { bucket: bucket_of(Ticks(ns)), count: 1, ns }
    }
}

/// Idle periods whose waker is not known yet, by region and bucket.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PendingIdles(Vec<(u32, IdlePeriods)>);

impl PendingIdles {
    pub fn add(&mut self, region: u32, idle: IdlePeriods) {
        match self.0.iter_mut().find(|(r, i)| (*r, i.bucket) == (region, idle.bucket)) {
            Some((_, sum)) => (sum.count, sum.ns) = (sum.count + idle.count, sum.ns.wrapping_add(idle.ns)),
            None => self.0.push((region, idle)),
        }
    }

    pub fn append(&mut self, other: Self) {
        other.0.into_iter().for_each(|(region, idle)| self.add(region, idle));
    }

    /// Counts all pending periods as ended by `waker`.
    pub fn settle(&mut self, waker: u32, sums: &mut Accumulators) {
        for (region, idle) in self.0.drain(..) {
            sums.add_idle(region, waker, idle);
        }
    }
}
