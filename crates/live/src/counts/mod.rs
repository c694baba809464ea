//! What the kernel counts anyway, beside samples: interrupts by vector, softirqs, times of CPUs.

mod interrupts;
mod stat;

pub use interrupts::{parse_interrupts, parse_softirqs};
pub use stat::parse_stat;

use kerntune_profile::Counted;
use std::collections::BTreeMap;
use std::fs;

/// What is counted: kind, name, source.
type Key = (&'static str, String, &'static str);

/// All counts at one moment. They are the whole machine's, of the CPUs that are watched where the kernel tells them apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Counts(BTreeMap<Key, u64>);

impl Counts {
    /// Reads them. A file that cannot be read is left out.
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
        Self(counts)
    }

    /// What was counted from `base` on; what was not is left out.
    pub fn since(&self, base: &Self) -> Vec<Counted> {
        let row = |(key, count): (&Key, &u64)| {
            let count = count.saturating_sub(base.0.get(key).copied().unwrap_or(0));
            let (kind, name, source) = key;
            Counted { kind: (*kind).into(), name: name.clone(), count, source: (*source).into() }
        };
        self.0.iter().map(row).filter(|row| row.count > 0).collect()
    }
}

/// ns in which CPUs were halted, among what was counted.
pub(crate) fn idle_ns(counted: &[Counted]) -> u64 {
    let of = |row: &&Counted| row.kind == "time" && matches!(row.name.as_str(), "idle" | "iowait");
    counted.iter().filter(of).map(|row| row.count).sum()
}
