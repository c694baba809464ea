//! What a profile says of itself if its times were sampled.

use crate::Nanoseconds;
use serde::{Deserialize, Serialize};

/// How times were sampled. Each sample stands for the same time, so that the number of samples behind any time of
/// the profile, and with it its error, can be told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sampled {
    /// Who took the samples, for example `perf: cpu-clock`.
    pub source: String,
    /// Samples that were kept.
    pub samples: u64,
    /// Time that a sample stands for.
    pub sample_ns: Nanoseconds,
    /// CPUs that were watched. The profile's elapsed time is that of all of them together.
    pub cpus: u64,
    /// Time on the wall from start to dump.
    pub wall_ns: Nanoseconds,
    /// How the moments of the samples were chosen, in a sentence.
    pub period: String,
    /// Which code is charged with more or less than its time, in a sentence; none if nothing is known to be.
    pub bias: Option<String>,
    /// What was watched, if not the whole machine, in words.
    pub filter: Option<String>,
    /// Who counted calls, and of which functions, for example `kgmon: calls of all functions`. A count of 0 says nothing
    /// of a function that was not chosen, and without this of none.
    pub calls: Option<String>,
    /// Memory that the collector may take at most, in bytes.
    pub bound_bytes: u64,
}

impl Sampled {
    /// How many samples are behind a time of the profile.
    pub fn samples_in(&self, time: Nanoseconds) -> u64 {
        time.get().checked_div(self.sample_ns.get()).unwrap_or(0)
    }

    /// The standard error of a sampled time: that of n samples is √n samples. A time without samples has at most the
    /// error of one.
    pub fn error(&self, time: Nanoseconds) -> Nanoseconds {
        let samples = time.get() as f64 / self.sample_ns.get().max(1) as f64;
        Nanoseconds((samples.max(1.0).sqrt() * self.sample_ns.get() as f64).round() as u64)
    }
}

/// Something that was counted while the profile was taken.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Counted {
    /// What kind of thing: `interrupt`, `softirq`, `switch`, `syscall`, `time`.
    pub kind: String,
    /// Which of them, as its source calls it.
    pub name: String,
    /// How often; nanoseconds for `time`.
    pub count: u64,
    /// Who counted, for example `/proc/interrupts`.
    pub source: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_of_n_samples_is_that_of_their_root() {
        let sampled = Sampled {
            source: "perf: cpu-clock".into(),
            samples: 10_000,
            sample_ns: Nanoseconds(1_000_000),
            cpus: 2,
            wall_ns: Nanoseconds(5_000_000_000),
            period: String::new(),
            bias: None,
            filter: None,
            calls: None,
            bound_bytes: 0,
        };
        assert_eq!(sampled.samples_in(Nanoseconds(400_000_000)), 400);
        assert_eq!(sampled.error(Nanoseconds(400_000_000)), Nanoseconds(20_000_000));
        assert_eq!(sampled.error(Nanoseconds::ZERO), Nanoseconds(1_000_000));
        let none = Sampled { sample_ns: Nanoseconds::ZERO, ..sampled };
        assert_eq!((none.samples_in(Nanoseconds(5)), none.error(Nanoseconds(5))), (0, Nanoseconds(0)));
    }
}
