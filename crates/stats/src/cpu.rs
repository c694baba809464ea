//! CPU time of a guest while a row ran.

use serde::{Deserialize, Serialize};

/// CPU time, in seconds, that was used in one boot while a row ran, all iterations together.
///
/// Of User-Mode Linux it is that of the host's processes that are the guest; the host samples the
/// division into user and system time by its tick. Elsewhere init adds it up for the rows that are
/// steps: of processes that ended, to the microsecond, and of those that live on, in the kernel's ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuTime {
    /// Number of the build.
    pub build: u32,
    /// Number of the boot within the build.
    pub boot: u32,
    /// Wall-clock seconds of the row's step; for User-Mode Linux up to the beginning of the next one.
    pub seconds: f64,
    /// Seconds in the kernel that is timed.
    pub kernel: f64,
    /// Seconds in programs.
    pub programs: f64,
    /// Seconds in the host's kernel on behalf of the guest's kernel.
    pub host_for_kernel: f64,
    /// Seconds in the host's kernel on behalf of the guest's programs.
    pub host_for_programs: f64,
}

impl CpuTime {
    /// Adds up CPU times; build and boot of the sum are 0.
    pub fn sum(times: &[CpuTime]) -> Self {
        times.iter().fold(Self::default(), |sum, time| Self {
            seconds: sum.seconds + time.seconds,
            kernel: sum.kernel + time.kernel,
            programs: sum.programs + time.programs,
            host_for_kernel: sum.host_for_kernel + time.host_for_kernel,
            host_for_programs: sum.host_for_programs + time.host_for_programs,
            ..sum
        })
    }

    /// Returns the guest's CPU time, all parts together, in seconds.
    pub fn total(&self) -> f64 {
        self.kernel + self.programs + self.host_for_kernel + self.host_for_programs
    }

    /// Returns each part's share of the sum: guest kernel, guest programs, host for the kernel,
    /// host for programs. `None` if the sum is 0.
    pub fn shares(&self) -> Option<[f64; 4]> {
        let total = self.total();
        let parts = [self.kernel, self.programs, self.host_for_kernel, self.host_for_programs];
        (total > 0.0).then(|| parts.map(|part| part / total))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_those_of_all_boots_together() {
        let time = CpuTime {
            boot: 3,
            seconds: 4.0,
            kernel: 1.0,
            programs: 0.5,
            host_for_kernel: 0.25,
            host_for_programs: 0.25,
            ..CpuTime::default()
        };
        let sum = CpuTime::sum(&[time, CpuTime { kernel: 3.0, ..time }]);
        assert_eq!((sum.seconds, sum.total()), (8.0, 6.0));
        assert_eq!(time.shares(), Some([0.5, 0.25, 0.125, 0.125]));
        assert_eq!(sum.shares().map(|shares| shares[0]), Some(4.0 / 6.0));
        assert_eq!(CpuTime::default().shares(), None);
    }
}
