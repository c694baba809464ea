//! Pins timed programs to one CPU of the host.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Returns the last CPU that this process may use; the first one has most of a host's interrupts.
pub fn last_cpu() -> Option<u32> {
    last_allowed(&fs::read_to_string("/proc/self/status").ok()?)
}

/// Parses the text of `/proc/PID/status`.
fn last_allowed(status: &str) -> Option<u32> {
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    list.trim().rsplit([',', '-']).next()?.parse().ok()
}

/// Command for a program, with its children pinned to a CPU if one is given.
pub(crate) fn program(cpu: Option<u32>, program: &Path) -> Command {
    let Some(cpu) = cpu else { return Command::new(program) };
    let mut command = Command::new("taskset");
    command.arg("-c").arg(cpu.to_string()).arg(program);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_cpu_is_the_last_of_the_list() {
        let last = |list| last_allowed(&format!("Name:\tx\nCpus_allowed_list:\t{list}\n"));
        assert_eq!((last("0-1"), last("0,2-7,9"), last("4"), last("")), (Some(1), Some(9), Some(4), None));
        assert!(last_cpu().is_some());
    }
}
