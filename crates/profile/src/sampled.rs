//! Sampling and counters of a profile, as its manifest states them.

use crate::Ticks;
use serde::{Deserialize, Serialize};

/// Method of sampling. Every sample stands for the same time, so the number of samples behind any
/// time of the profile, and its error, can be computed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SamplingSummary {
    /// Source of the samples, for example `perf: cpu-clock`.
    pub source: String,
    /// Number of kept samples.
    pub samples: u64,
    /// Time that one sample stands for.
    pub sample_ns: Ticks,
    /// Number of sampled CPUs. The profile's elapsed time is the sum over all of them.
    pub cpus: u64,
    /// Wall-clock time from start to dump.
    pub wall_ns: Ticks,
    /// Sentence on how the moments of samples were chosen.
    pub period: String,
    /// Sentence on code that is charged with more or less than its time; `None` if none is known.
    pub bias: Option<String>,
    /// Restriction of the sampled code or CPUs, for a reader; `None` for the whole machine.
    pub filter: Option<String>,
    /// Counter of calls and its functions, for example `kgmon: calls of all functions`. For a
    /// function that was not selected, a count of 0 means nothing. `None` if no calls were counted.
    pub calls: Option<String>,
    /// Upper bound of the collector's memory, in bytes.
    pub bound_bytes: u64,
}

impl SamplingSummary {
    /// Returns the number of samples behind a time of the profile.
    pub fn samples_in(&self, time: Ticks) -> u64 {
        time.get().checked_div(self.sample_ns.get()).unwrap_or(0)
    }

    /// Returns the standard error of a sampled time: √n samples for a time of n samples. A time
    /// without samples gets the error of one.
    pub fn error(&self, time: Ticks) -> Ticks {
        let samples = time.get() as f64 / self.sample_ns.get().max(1) as f64;
        Ticks((samples.max(1.0).sqrt() * self.sample_ns.get() as f64).round() as u64)
    }
}

/// Total of a counter that was read while the profile was taken.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CounterTotal {
    /// Kind of counter: `interrupt`, `softirq`, `switch`, `syscall`, `time`.
    pub kind: String,
    /// Name of the counter in its source.
    pub name: String,
    /// Counted events; nanoseconds for `time`.
    pub count: u64,
    /// Source of the counter, for example `/proc/interrupts`.
    pub source: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_of_n_samples_is_that_of_their_root() {
        let sampled = SamplingSummary {
            source: "perf: cpu-clock".into(),
            samples: 10_000,
            sample_ns: Ticks(1_000_000),
            cpus: 2,
            wall_ns: Ticks(5_000_000_000),
            period: String::new(),
            bias: None,
            filter: None,
            calls: None,
            bound_bytes: 0,
        };
        assert_eq!(sampled.samples_in(Ticks(400_000_000)), 400);
        assert_eq!(sampled.error(Ticks(400_000_000)), Ticks(20_000_000));
        assert_eq!(sampled.error(Ticks::ZERO), Ticks(1_000_000));
        let none = SamplingSummary { sample_ns: Ticks::ZERO, ..sampled };
        assert_eq!((none.samples_in(Ticks(5)), none.error(Ticks(5))), (0, Ticks(0)));
    }
}
