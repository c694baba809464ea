//! Options of a collector.

use crate::{Error, Result, TableBounds};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// Part of the machine to sample.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SamplingFilter {
    /// Processes to sample, with their threads and children; all if empty.
    pub processes: Vec<u32>,
    /// Cgroup to sample: its directory, or its name in `/proc/PID/cgroup`.
    pub cgroup: Option<PathBuf>,
    /// CPUs to sample; all online CPUs if empty.
    pub cpus: Vec<u32>,
}

impl fmt::Display for SamplingFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |numbers: &[u32]| numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        let mut parts = Vec::new();
        if !self.processes.is_empty() {
            parts.push(match &self.processes[..] {
                [one] => format!("process {one} and what it starts"),
                all => format!("processes {} and what they start", list(all)),
            });
        }
        if let Some(cgroup) = &self.cgroup {
            parts.push(format!("the cgroup {}", cgroup.display()));
        }
        if !self.cpus.is_empty() {
            parts.push(format!("CPUs {}", list(&self.cpus)));
        }
        f.write_str(&parts.join(", "))
    }
}

impl SamplingFilter {
    /// Returns true if everything is sampled.
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }

    /// Returns true if only some tasks are sampled. Idle time then belongs to none of them.
    pub fn is_of_tasks(&self) -> bool {
        !self.processes.is_empty() || self.cgroup.is_some()
    }
}

/// Calls to count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallCountOptions {
    /// Globs of functions to count; all functions if empty.
    pub only: Vec<String>,
    /// Globs of functions to leave out.
    pub except: Vec<String>,
    /// Module that counts the calls and is loaded if necessary, or the reason why there is none.
    pub module: Option<std::result::Result<PathBuf, String>>,
}

impl fmt::Display for CallCountOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.only[..] {
            [] => f.write_str("all functions")?,
            only if only == kerntune_kgmon::MACRO => f.write_str("the macro set")?,
            only => f.write_str(&only.join(" "))?,
        }
        match self.except.is_empty() {
            true => Ok(()),
            false => write!(f, " but {}", self.except.join(" ")),
        }
    }
}

/// Events to trace beside the samples: each of them is read, so that times are exact.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TraceOptions {
    /// Context switches and wake-ups, for time off the CPU.
    pub off_cpu: bool,
    /// Waits for locks.
    pub locks: bool,
    /// Entries and exits of system calls.
    pub system_calls: bool,
}

impl TraceOptions {
    /// Returns true if any events are traced.
    pub fn is_any(self) -> bool {
        self.off_cpu || self.locks || self.system_calls
    }
}

/// Options of a collector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectorOptions {
    /// Average number of samples per second and CPU.
    pub rate: u64,
    /// Part of the machine to sample.
    pub filter: SamplingFilter,
    /// Maximum sizes of the tables.
    pub bounds: TableBounds,
    /// True to sample the software clock even if the CPU counts cycles.
    pub software_clock: bool,
    /// Calls to count; `None` to count no calls.
    pub calls: Option<CallCountOptions>,
    /// Events to trace.
    pub trace: TraceOptions,
    /// True to ask the kernel for the cgroup of each sample.
    pub cgroups: bool,
    /// True to sample the CPU's last branches in place of times and calls.
    pub branches: bool,
    /// True to start when the single sampled process executes its program.
    pub on_exec: bool,
}

impl CollectorOptions {
    /// Returns true if call chains continue into user code.
    pub fn user_chains(&self) -> bool {
        self.bounds.user > 0
    }
}

impl Default for CollectorOptions {
    fn default() -> Self {
        Self {
            rate: 1000,
            filter: SamplingFilter::default(),
            bounds: TableBounds::default(),
            software_clock: false,
            calls: None,
            trace: TraceOptions::default(),
            cgroups: false,
            branches: false,
            on_exec: false,
        }
    }
}

/// Parses a list of CPUs in the kernel's format: `0-3,8`.
///
/// # Errors
/// [`Error::Filter`] if the text is not such a list.
pub fn cpu_list(text: &str) -> Result<Vec<u32>> {
    const MAX_CPUS: u32 = 65_536;
    let wrong = || Error::Filter(format!("`{}` is not a list of CPUs: write 0-3,8", text.trim()));
    let number =
        |text: &str| text.trim().parse::<u32>().ok().filter(|number| *number < MAX_CPUS).ok_or_else(wrong);
    let mut cpus = Vec::new();
    for part in text.trim().split(',') {
        match part.split_once('-') {
            Some((first, last)) => cpus.extend(number(first)?..=number(last)?),
            None => cpus.push(number(part)?),
        }
    }
    cpus.sort_unstable();
    cpus.dedup();
    if cpus.is_empty() {
        return Err(wrong());
    }
    Ok(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus() {
        assert_eq!(cpu_list("0-3,8\n").unwrap(), [0, 1, 2, 3, 8]);
        assert_eq!(cpu_list("5").unwrap(), [5]);
        for wrong in ["", "a", "1-", "-1", "3-1", "0-99999999"] {
            assert!(cpu_list(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_filter_says_what_it_leaves() {
        let filter = SamplingFilter { processes: vec![7, 9], cgroup: None, cpus: vec![1] };
        assert_eq!(filter.to_string(), "processes 7, 9 and what they start, CPUs 1");
        let one = SamplingFilter { processes: vec![7], ..SamplingFilter::default() };
        assert_eq!(one.to_string(), "process 7 and what it starts");
        assert!(!filter.is_all() && filter.is_of_tasks() && SamplingFilter::default().is_all());
    }
}
