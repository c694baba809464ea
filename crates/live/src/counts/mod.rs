//! Counters that the kernel keeps anyway: interrupts by vector, softirqs, CPU times.

mod interrupts;
mod stat;
mod vmstat;

pub use interrupts::{parse_interrupts, parse_softirqs};
pub use stat::parse_stat;
pub use vmstat::parse_vmstat;

use kerntune_profile::CounterTotal;
use std::collections::BTreeMap;
use std::fs;

/// Key of a counter: kind, name, source.
type CounterKey = (&'static str, String, &'static str);

/// All counters at one moment. They cover the whole machine, or the sampled CPUs if the kernel
/// separates CPUs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ProcCounters(BTreeMap<CounterKey, u64>);

impl ProcCounters {
    /// Reads the counters; unreadable files are skipped.
    pub fn now(cpus: &[u32]) -> Self {
        let mut counts = BTreeMap::new();
        let mut put = |kind, source, rows: Vec<(String, u64)>| {
            rows.into_iter().for_each(|(name, count)| {
                counts.insert((kind, name, source), count);
            });
        };
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        put("interrupt", "/proc/interrupts", parse_interrupts(&read("/proc/interrupts"), cpus));
        put("softirq", "/proc/softirqs", parse_softirqs(&read("/proc/softirqs"), cpus));
        let stat = parse_stat(&read("/proc/stat"), cpus);
        put("time", "/proc/stat", stat.times);
        put("process", "/proc/stat", stat.counts);
        put("fault", "/proc/vmstat", parse_vmstat(&read("/proc/vmstat")));
        Self(counts)
    }

    /// Returns the increases since `base`, without those that are 0.
    pub fn since(&self, base: &Self) -> Vec<CounterTotal> {
        let row = |(key, count): (&CounterKey, &u64)| {
            let count = count.saturating_sub(base.0.get(key).copied().unwrap_or(0));
            let (kind, name, source) = key;
            CounterTotal { kind: (*kind).into(), name: name.clone(), count, source: (*source).into() }
        };
        self.0.iter().map(row).filter(|row| row.count > 0).collect()
    }
}

/// Returns the halted time among the counters, in ns.
pub(crate) fn idle_ns(counted: &[CounterTotal]) -> u64 {
    let of = |row: &&CounterTotal| row.kind == "time" && matches!(row.name.as_str(), "idle" | "iowait");
    counted.iter().filter(of).map(|row| row.count).sum()
}
