//! CPU time of a guest that is a process of the host, as the host counts it.
//!
//! A kernel for User-Mode Linux is one process, and each address space of its programs is another, a child of the first.
//! So the host knows whose time it was. Sums of user and system time are exact; how a process's time divides into the two
//! is sampled by the host's tick on most hosts, and told in hundredths of a second.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

/// What Linux on x86-64 and arm64 counts CPU time in for /proc, whatever its tick is (`USER_HZ`).
const TICKS_PER_SECOND: f64 = 100.0;

/// How often a look that met the end of a process is taken again.
const LOOKS: u32 = 5;

/// Seconds of the host's CPUs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CpuTimes {
    /// The kernel's process in user mode: code of the guest's kernel.
    pub kernel: f64,
    /// The processes of programs in user mode: code of the guest's programs, and the few instructions by which each of
    /// their processes hands over to the kernel's.
    pub programs: f64,
    /// The host's kernel at work for the kernel's process: switches to and from programs, their memory maps, timers.
    pub host_for_kernel: f64,
    /// The host's kernel at work for the processes of programs: signals that bring their system calls, waiting, page faults.
    pub host_for_programs: f64,
}

impl CpuTimes {
    /// All of it.
    pub fn total(&self) -> f64 {
        self.kernel + self.programs + self.host_for_kernel + self.host_for_programs
    }

    /// What was added since `earlier`; what the host's own rounding took back is nothing.
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

/// What the guest had taken when a phase began.
#[derive(Debug, Clone, PartialEq)]
pub struct Spent {
    /// As in [`Outcome::phases`](crate::Outcome::phases).
    pub phase: String,
    /// Wall seconds since the start of the run.
    pub seconds: f64,
    /// Of all its processes, those that are gone included.
    pub cpu: CpuTimes,
}

/// Of the kernel whose process is `root`, from what is mounted at `proc`. A process of a program that ends while this
/// looks is not to be missed, nor seen twice: then it looks again.
///
/// # Errors
/// The process is gone, or /proc has another form.
pub(crate) fn of_kernel(proc: &Path, root: u32) -> io::Result<CpuTimes> {
    let mut look = 0;
    loop {
        let before = of_process(proc, root)?;
        let all = processes(proc)?;
        let after = of_process(proc, root)?;
        look += 1;
        if look == LOOKS
            || (before.children_user, before.children_system) == (after.children_user, after.children_system)
        {
            return Ok(summed(root, &after, &all));
        }
    }
}

/// One process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Process {
    parent: u32,
    user: u64,
    system: u64,
    children_user: u64,
    children_system: u64,
}

fn processes(proc: &Path) -> io::Result<BTreeMap<u32, Process>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(proc)?.flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // One that has just ended has no file any more.
        if let Ok(process) = of_process(proc, id) {
            all.insert(id, process);
        }
    }
    Ok(all)
}

fn of_process(proc: &Path, id: u32) -> io::Result<Process> {
    let text = fs::read(proc.join(id.to_string()).join("stat"))?;
    let text = String::from_utf8_lossy(&text);
    parse(&text)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("/proc/{id}/stat: {text:?}")))
}

/// From the text of `/proc/PID/stat`; the name in its second field may hold anything.
fn parse(text: &str) -> Option<Process> {
    let (_, rest) = text.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some(Process {
        parent: fields.get(1)?.parse().ok()?,
        user: number(11)?,
        system: number(12)?,
        children_user: number(13)?,
        children_system: number(14)?,
    })
}

fn summed(root: u32, kernel: &Process, all: &BTreeMap<u32, Process>) -> CpuTimes {
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
        // Programs may call themselves anything.
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
