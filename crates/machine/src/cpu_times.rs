//! CPU time of a guest that is a process of the host, as the host accounts it.
//!
//! A kernel for User-Mode Linux is one process, and each address space of its programs is a child
//! process, so the host knows whose time it was. Sums of user and system time are exact. Most hosts
//! sample by their tick how a process's time divides into the two; the unit is a hundredth of a
//! second.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

/// Unit of CPU time in /proc on x86-64 and arm64, whatever the kernel's tick is (`USER_HZ`).
const TICKS_PER_SECOND: f64 = 100.0;

/// Attempts at a snapshot during which no process ends.
const MAX_SNAPSHOTS: u32 = 5;

/// CPU time on the host, in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CpuTimes {
    /// The kernel's process in user mode: code of the guest's kernel.
    pub kernel: f64,
    /// The programs' processes in user mode: code of the guest's programs, and the few instructions
    /// by which each process hands over to the kernel's.
    pub programs: f64,
    /// The host's kernel on behalf of the kernel's process: switches to and from programs, their
    /// memory maps, timers.
    pub host_for_kernel: f64,
    /// The host's kernel on behalf of the programs' processes: signals that deliver their system
    /// calls, waiting, page faults.
    pub host_for_programs: f64,
}

impl CpuTimes {
    /// Returns the sum of all four.
    pub fn total(&self) -> f64 {
        self.kernel + self.programs + self.host_for_kernel + self.host_for_programs
    }

    /// Returns the time since `earlier`; negative differences, from the host's rounding, count as
    /// 0.
    pub fn since(&self, earlier: &Self) -> Self {
        let between = |now: f64, then: f64| (now - then).max(0.0);
        Self {
            kernel: between(self.kernel, earlier.kernel),
            programs: between(self.programs, earlier.programs),
            host_for_kernel: between(self.host_for_kernel, earlier.host_for_kernel),
            host_for_programs: between(self.host_for_programs, earlier.host_for_programs),
        }
    }
}

/// CPU time that the guest had used when a phase began.
#[derive(Debug, Clone, PartialEq)]
pub struct PhaseCpuTimes {
    /// Name as in [`RunOutcome::phases`](crate::RunOutcome::phases).
    pub phase: String,
    /// Wall seconds since the start of the run.
    pub seconds: f64,
    /// CPU time of all its processes, including those that have ended.
    pub cpu: CpuTimes,
}

/// Returns the CPU time of the kernel whose process is `root`; `proc` is where procfs is mounted.
/// Repeats the snapshot if a process ended meanwhile, which would be missed or counted twice.
///
/// # Errors
/// The process is gone, or /proc has an unknown format.
pub(crate) fn of_kernel(proc: &Path, root: u32) -> io::Result<CpuTimes> {
    let mut snapshots = 0;
    loop {
        let before = of_process(proc, root)?;
        let all = processes(proc)?;
        let after = of_process(proc, root)?;
        snapshots += 1;
        if snapshots == MAX_SNAPSHOTS
            || (before.children_user, before.children_system) == (after.children_user, after.children_system)
        {
            return Ok(sum_times(root, &after, &all));
        }
    }
}

/// CPU time of a process and of its ended children, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ProcessTimes {
    parent: u32,
    user: u64,
    system: u64,
    children_user: u64,
    children_system: u64,
}

fn processes(proc: &Path) -> io::Result<BTreeMap<u32, ProcessTimes>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(proc)?.flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // The process may have ended since.
        if let Ok(process) = of_process(proc, id) {
            all.insert(id, process);
        }
    }
    Ok(all)
}

fn of_process(proc: &Path, id: u32) -> io::Result<ProcessTimes> {
    let text = fs::read(proc.join(id.to_string()).join("stat"))?;
    let text = String::from_utf8_lossy(&text);
    parse(&text)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("/proc/{id}/stat: {text:?}")))
}

/// Parses `/proc/PID/stat`, whose second field may contain any bytes.
fn parse(text: &str) -> Option<ProcessTimes> {
    let (_, rest) = text.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some(ProcessTimes {
        parent: fields.get(1)?.parse().ok()?,
        user: number(11)?,
        system: number(12)?,
        children_user: number(13)?,
        children_system: number(14)?,
    })
}

fn sum_times(root: u32, kernel: &ProcessTimes, all: &BTreeMap<u32, ProcessTimes>) -> CpuTimes {
    let (mut of_programs, mut to_do) = (BTreeSet::new(), vec![root]);
    while let Some(parent) = to_do.pop() {
        let children = all.iter().filter(|(_, process)| process.parent == parent).map(|(id, _)| *id);
        to_do.extend(children.filter(|id| *id != root && of_programs.insert(*id)).collect::<Vec<_>>());
    }
    let (mut user, mut system) = (kernel.children_user, kernel.children_system);
    for process in of_programs.iter().filter_map(|id| all.get(id)) {
        user += process.user + process.children_user;
        system += process.system + process.children_system;
    }
    let seconds = |ticks: u64| ticks as f64 / TICKS_PER_SECOND;
    CpuTimes {
        kernel: seconds(kernel.user),
        programs: seconds(user),
        host_for_kernel: seconds(kernel.system),
        host_for_programs: seconds(system),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(proc: &Path, id: u32, name: &str, parent: u32, times: [u64; 4]) {
        let directory = proc.join(id.to_string());
        fs::create_dir_all(&directory).unwrap();
        let [user, system, children_user, children_system] = times;
        let text = format!(
            "{id} ({name}) S {parent} 7 7 0 -1 4194304 1 2 3 4 {user} {system} {children_user} {children_system} 20 0 1 0 9\n"
        );
        fs::write(directory.join("stat"), text).unwrap();
    }

    #[test]
    fn the_kernels_process_and_those_below_it_are_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let proc = dir.path();
        write(proc, 1, "init", 0, [1000, 1000, 1000, 1000]);
        write(proc, 50, "vmlinux", 1, [300, 100, 20, 10]);
        // Programs may have any name.
        write(proc, 51, "a) S 1 (b", 50, [40, 30, 0, 0]);
        write(proc, 52, "stub", 51, [1, 2, 3, 4]);
        write(proc, 60, "other", 1, [500, 500, 0, 0]);
        fs::create_dir(proc.join("self")).unwrap();
        fs::create_dir(proc.join("99")).unwrap();
        let times = of_kernel(proc, 50).unwrap();
        let expected =
            CpuTimes { kernel: 3.0, programs: 0.64, host_for_kernel: 1.0, host_for_programs: 0.46 };
        assert_eq!(times, expected);
        assert!((times.total() - 5.1).abs() < 1e-9);
        of_kernel(proc, 77).unwrap_err();
    }

    #[test]
    fn what_is_no_stat_is_no_time() {
        for bad in ["", "1 (x", "1 (x) S", "1 (x) S 2 3 4 5 6 7 8 9 10 11 12 -4 5 6 7", "1 (x) S a b c"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
        let ourselves = of_kernel(Path::new("/proc"), std::process::id()).unwrap();
        assert!(ourselves.kernel >= 0.0);
    }

    #[test]
    fn differences_are_never_below_nothing() {
        let then = CpuTimes { kernel: 2.0, programs: 1.0, ..CpuTimes::default() };
        let now = CpuTimes { kernel: 2.5, programs: 0.99, ..CpuTimes::default() };
        assert_eq!(now.since(&then), CpuTimes { kernel: 0.5, ..CpuTimes::default() });
    }
}
