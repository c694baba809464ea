//! What is to be watched, and how.

use crate::{Bounds, Error, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// What of the machine is watched.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filter {
    /// Only these processes, with all threads and children that they start.
    pub processes: Vec<u32>,
    /// Only this cgroup: its directory, or its name in `/proc/PID/cgroup`.
    pub cgroup: Option<PathBuf>,
    /// Only these CPUs; all that are online if empty.
    pub cpus: Vec<u32>,
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |numbers: &[u32]| numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        let mut parts = Vec::new();
        if !self.processes.is_empty() {
            parts.push(format!("processes {} and what they start", list(&self.processes)));
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

impl Filter {
    /// Whether everything is watched.
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }

    /// Whether only some tasks are: idle time is then nobody's.
    pub fn is_of_tasks(&self) -> bool {
        !self.processes.is_empty() || self.cgroup.is_some()
    }
}

/// Which calls are counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallCounts {
    /// Globs of the functions whose calls are counted; all functions if empty.
    pub only: Vec<String>,
    /// Globs of functions whose calls are not.
    pub except: Vec<String>,
    /// The module that counts them, to be loaded if it is not; or why there is none.
    pub module: Option<std::result::Result<PathBuf, String>>,
}

impl fmt::Display for CallCounts {
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

/// How the kernel is watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Samples per second and CPU, on average.
    pub rate: u64,
    /// What is watched.
    pub filter: Filter,
    /// Sizes of tables.
    pub bounds: Bounds,
    /// Use the software clock even where the CPU counts cycles.
    pub software_clock: bool,
    /// Calls to count; none if this is `None`.
    pub calls: Option<CallCounts>,
    /// Begin when the (one) process that is watched starts its program.
    pub on_exec: bool,
}

impl Options {
    /// Whether call chains go on into programs.
    pub fn user_chains(&self) -> bool {
        self.bounds.user > 0
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            rate: 1000,
            filter: Filter::default(),
            bounds: Bounds::default(),
            software_clock: false,
            calls: None,
            on_exec: false,
        }
    }
}

/// Numbers of CPUs as the kernel lists them: `0-3,8`.
///
/// # Errors
/// [`Error::Filter`] for what is no such list.
pub fn cpu_list(text: &str) -> Result<Vec<u32>> {
    const MOST: u32 = 65_536;
    let wrong = || Error::Filter(format!("`{}` is not a list of CPUs: write 0-3,8", text.trim()));
    let number =
        |text: &str| text.trim().parse::<u32>().ok().filter(|number| *number < MOST).ok_or_else(wrong);
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
        let filter = Filter { processes: vec![7, 9], cgroup: None, cpus: vec![1] };
        assert_eq!(filter.to_string(), "processes 7, 9 and what they start, CPUs 1");
        assert!(!filter.is_all() && filter.is_of_tasks() && Filter::default().is_all());
    }
}
