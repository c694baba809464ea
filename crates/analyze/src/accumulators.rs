//! Everything that is counted. All of it is sums, extremes and firsts, so that what was counted apart
//! adds up to the same in any order.

use crate::accounts::Accounts;
use crate::hash::Mixed;
use crate::several::Several;
use crate::tree::{Tree, NONE};
use kerntune_profile::{bucket_of, Nanoseconds, SwitchKind};
use std::collections::HashMap;
use std::hash::Hash;

/// What is counted of a thread in a region.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ThreadAccount {
    /// On the CPU, user mode included.
    pub net: u64,
    pub user: u64,
    pub switches_in: u64,
}

impl ThreadAccount {
    fn add(&mut self, other: Self) {
        self.net = self.net.wrapping_add(other.net);
        self.user = self.user.wrapping_add(other.user);
        self.switches_in += other.switches_in;
    }
}

/// Times of a region without those within it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RegionAccount {
    /// All of them together.
    pub busy: u64,
    /// User mode outside of traced functions.
    pub user: u64,
    /// Kernel with no function open.
    pub unattributed: u64,
}

/// Region, name of the thread that had the CPU, of the one that got it, reason, kind.
pub(crate) type SwitchKey = (u32, u32, u32, u32, bool);

/// The accounts of all regions. The region after the last is what passed outside of all.
pub(crate) struct Accumulators {
    pub tree: Tree,
    pub accounts: Accounts,
    /// By region and thread.
    pub threads: HashMap<(u32, u32), ThreadAccount, Mixed>,
    pub regions: Vec<RegionAccount>,
    switches: HashMap<SwitchKey, u64, Mixed>,
    /// By region, waker and bucket: how many, and their time.
    idles: HashMap<(u32, u32, u32), (u64, u64), Mixed>,
    /// By region and point.
    points: HashMap<(u32, u32), u64, Mixed>,
    /// What several CPUs do; empty if there is only one.
    pub several: Several,
}

impl Accumulators {
    pub fn new(regions: usize, wide: bool) -> Self {
        Self {
            tree: Tree::new(wide),
            accounts: Accounts::default(),
            threads: HashMap::default(),
            regions: vec![RegionAccount::default(); regions + 1],
            switches: HashMap::default(),
            idles: HashMap::default(),
            points: HashMap::default(),
            several: Several::default(),
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

    pub fn add_idle(&mut self, region: u32, waker: u32, idle: Idle) {
        let sum = self.idles.entry((region, waker, idle.bucket)).or_default();
        (sum.0, sum.1) = (sum.0 + idle.count, sum.1.wrapping_add(idle.ns));
    }

    pub fn add_point(&mut self, region: u32, point: u32, count: u64) {
        *self.points.entry((region, point)).or_default() += count;
    }

    /// Adds what was counted elsewhere.
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
        self.several.merge(other.several);
    }

    /// Switches, idle periods and points in order; those maps are empty afterwards.
    pub fn take_rest(&mut self) -> Rest {
        Rest {
            switches: sorted(&mut self.switches),
            idles: sorted(&mut self.idles),
            points: sorted(&mut self.points),
        }
    }

    /// A sum that does not hold, in a region.
    pub fn imbalance(&self) -> Option<(u32, &'static str, u64, u64)> {
        let regions = self.regions.len();
        let [mut functions, mut threads, mut paths] = [(); 3].map(|()| vec![0u64; regions]);
        let put = |sums: &mut Vec<u64>, region: u32, ns: u64| {
            if let Some(sum) = sums.get_mut(region as usize) {
                *sum = sum.wrapping_add(ns);
            }
        };
        for ((region, _), _, net) in self.accounts.iter() {
            put(&mut functions, region, net);
        }
        for (&(region, _), account) in &self.threads {
            put(&mut threads, region, account.net);
        }
        for node in &self.tree.nodes {
            put(&mut paths, node.region, node.net);
        }
        let mut cpus = vec![0u64; regions];
        for (&(region, _), account) in &self.several.cpus {
            put(&mut cpus, region, account.busy);
        }
        for (region, account) in self.regions.iter().enumerate() {
            if !self.several.cpus.is_empty() && cpus[region] != account.busy {
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

/// What [`Accumulators::take_rest`] takes.
pub(crate) struct Rest {
    pub switches: Rows<SwitchKey, u64>,
    pub idles: Rows<(u32, u32, u32), (u64, u64)>,
    pub points: Rows<(u32, u32), u64>,
}

/// A map's entries in order.
pub(crate) type Rows<K, V> = Vec<(K, V)>;

pub(crate) fn sorted<K: Ord + Hash + Copy, V>(map: &mut HashMap<K, V, Mixed>) -> Rows<K, V> {
    let mut rows: Vec<(K, V)> = std::mem::take(map).into_iter().collect();
    rows.sort_unstable_by_key(|(key, _)| *key);
    rows
}

/// Idle periods of one bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Idle {
    pub bucket: u32,
    pub count: u64,
    pub ns: u64,
}

impl Idle {
    pub fn one(ns: u64) -> Self {
        Self { bucket: bucket_of(Nanoseconds(ns)), count: 1, ns }
    }
}

/// Idle periods of which it is not yet known what ends them, by region and bucket.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PendingIdles(Vec<(u32, Idle)>);

impl PendingIdles {
    pub fn add(&mut self, region: u32, idle: Idle) {
        match self.0.iter_mut().find(|(r, i)| (*r, i.bucket) == (region, idle.bucket)) {
            Some((_, sum)) => (sum.count, sum.ns) = (sum.count + idle.count, sum.ns.wrapping_add(idle.ns)),
            None => self.0.push((region, idle)),
        }
    }

    pub fn append(&mut self, other: Self) {
        other.0.into_iter().for_each(|(region, idle)| self.add(region, idle));
    }

    /// They end.
    pub fn settle(&mut self, waker: u32, sums: &mut Accumulators) {
        for (region, idle) in self.0.drain(..) {
            sums.add_idle(region, waker, idle);
        }
    }
}
