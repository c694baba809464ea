//! What is counted, and where it is kept.
//!
//! [`Ledger`] is for the region that is current: dense, indexed by function, fast. When the
//! current region changes, its entries go to [`Books`]: sparse, by region, and only as large as
//! the rows of the profile.

use crate::arcs::{ArcKey, ArcTable};
use kerntune_profile::{bucket_of, Nanoseconds, BUCKETS};
use std::collections::BTreeMap;

/// What is counted of a function.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FunctionAccount {
    pub calls: u64,
    pub net: u64,
    pub elapsed: u64,
    pub max: u64,
    pub min: u64,
    /// Whether it is in [`Ledger::touched`].
    listed: bool,
    /// Its row in [`Histograms`], plus one.
    histogram: u32,
}

const NOTHING: FunctionAccount =
    FunctionAccount { calls: 0, net: 0, elapsed: 0, max: 0, min: u64::MAX, listed: false, histogram: 0 };

/// What is counted of a thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ThreadAccount {
    /// On the CPU, user mode included.
    pub net: u64,
    pub user: u64,
    pub switches_in: u64,
}

/// Times of a region without those within it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RegionAccount {
    pub user: u64,
    pub unattributed: u64,
}

/// The accounts of the current region.
pub(crate) struct Ledger {
    functions: Vec<FunctionAccount>,
    touched: Vec<u32>,
    arcs: ArcTable,
    pub threads: Vec<ThreadAccount>,
    /// Kernel time with an empty stack.
    pub unattributed: u64,
    histograms: Histograms,
}

impl Ledger {
    pub fn new(functions: usize, threads: usize) -> Self {
        Self {
            functions: vec![NOTHING; functions],
            touched: Vec::new(),
            arcs: ArcTable::new(),
            threads: vec![ThreadAccount::default(); threads],
            unattributed: 0,
            histograms: Histograms::default(),
        }
    }

    /// Net time of a function, whether or not its call counts.
    #[inline]
    pub fn add_net(&mut self, function: u32, net: u64) {
        if net != 0 {
            account(&mut self.functions, &mut self.touched, function).net += net;
        }
    }

    /// A call that ended. `uncredited` is the part of `net` that [`Self::add_net`] has not seen.
    #[inline]
    pub fn add_call(&mut self, function: u32, arc: ArcKey, uncredited: u64, net: u64, elapsed: u64) {
        let account = account(&mut self.functions, &mut self.touched, function);
        account.calls += 1;
        account.net += uncredited;
        // Recursion can count the same time many times over.
        account.elapsed = account.elapsed.saturating_add(elapsed);
        account.max = account.max.max(net);
        account.min = account.min.min(net);
        if account.histogram == 0 {
            account.histogram = self.histograms.add(function);
        }
        let histogram = account.histogram;
        self.histograms.count(histogram, net);
        self.arcs.count(arc, elapsed);
    }

    /// Moves everything to a region's books, or nowhere. Open frames' times must be in.
    pub fn close(&mut self, region: Option<u32>, books: &mut Books) {
        for function in self.touched.drain(..) {
            let account = &mut self.functions[function as usize];
            let empty = FunctionAccount { histogram: account.histogram, ..NOTHING };
            let account = std::mem::replace(account, empty);
            if let Some(region) = region {
                books.functions.entry((region, function)).or_insert(NOTHING).add(&account);
            }
        }
        for arc in self.arcs.drain() {
            if let Some(region) = region {
                let sum = books.arcs.entry((region, arc.key)).or_default();
                sum.0 += arc.calls;
                sum.1 = sum.1.saturating_add(arc.elapsed);
            }
        }
        let mut user = 0;
        for (thread, account) in self.threads.iter_mut().enumerate() {
            let account = std::mem::take(account);
            user += account.user;
            if let Some(region) = region.filter(|_| account != ThreadAccount::default()) {
                let sum = books.threads.entry((region, thread as u32)).or_default();
                sum.net += account.net;
                sum.user += account.user;
                sum.switches_in += account.switches_in;
            }
        }
        let unattributed = std::mem::take(&mut self.unattributed);
        if let Some(region) = region.and_then(|region| books.regions.get_mut(region as usize)) {
            region.user += user;
            region.unattributed += unattributed;
        }
    }

    /// The histograms, of all regions together.
    pub fn into_histograms(self) -> Histograms {
        self.histograms
    }
}

/// A function's account, which from now on is one of the touched.
#[inline]
fn account<'a>(
    functions: &'a mut [FunctionAccount],
    touched: &mut Vec<u32>,
    function: u32,
) -> &'a mut FunctionAccount {
    let account = &mut functions[function as usize];
    if !account.listed {
        account.listed = true;
        touched.push(function);
    }
    account
}

impl FunctionAccount {
    fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.net += other.net;
        self.elapsed = self.elapsed.saturating_add(other.elapsed);
        self.max = self.max.max(other.max);
        self.min = self.min.min(other.min);
    }
}

/// The accounts of all regions.
#[derive(Default)]
pub(crate) struct Books {
    /// By region and function.
    pub functions: BTreeMap<(u32, u32), FunctionAccount>,
    /// By region and arc: calls and elapsed time.
    pub arcs: BTreeMap<(u32, ArcKey), (u64, u64)>,
    /// By region and thread.
    pub threads: BTreeMap<(u32, u32), ThreadAccount>,
    /// By region.
    pub regions: Vec<RegionAccount>,
}

/// Histograms of net time for the functions that were called.
#[derive(Default)]
pub(crate) struct Histograms {
    rows: Vec<(u32, [u64; BUCKETS as usize])>,
}

impl Histograms {
    /// Adds a function; returns its row, plus one.
    #[cold]
    fn add(&mut self, function: u32) -> u32 {
        self.rows.push((function, [0; BUCKETS as usize]));
        self.rows.len() as u32
    }

    #[inline]
    fn count(&mut self, row: u32, net: u64) {
        self.rows[row as usize - 1].1[bucket_of(Nanoseconds(net)) as usize] += 1;
    }

    /// Function, bucket and count of all that is not empty, in order.
    pub fn into_rows(mut self) -> impl Iterator<Item = (u32, u32, u64)> {
        self.rows.sort_unstable_by_key(|(function, _)| *function);
        self.rows.into_iter().flat_map(|(function, buckets)| {
            let counted = buckets.into_iter().enumerate().filter(|(_, count)| *count > 0);
            counted.map(move |(bucket, count)| (function, bucket as u32, count))
        })
    }
}
