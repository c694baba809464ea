//! Checks of disk space and memory.

use crate::host::ProbeHost;
use crate::{Ability, CheckGroup, ExamineOptions, HostCheck};
use kerntune_work::mem_available;
use std::path::{Path, PathBuf};

const GIB: u64 = 1 << 30;
const MAIN_JOB: &[Ability] = &[Ability::Emulator, Ability::GccPgo];

/// Disk space for a `tune`: the unpacked source (1.7 GiB), three kernels with their objects,
/// recordings.
const DISK_WANTED: u64 = 10 * GIB;
const DISK_LEAST: u64 = 4 * GIB;
/// Memory for a guest of 1 GiB beside QEMU, or for two compilers.
const MEMORY_WANTED: u64 = 3 * GIB;
const MEMORY_LEAST: u64 = 3 * GIB / 2;

pub(crate) fn examine(host: &dyn ProbeHost, options: &ExamineOptions) -> Vec<HostCheck> {
    vec![disk(host, &options.work_dir), memory(host)]
}

/// Returns the nearest existing directory at or above `path`, and its free space.
fn free_space(host: &dyn ProbeHost, path: &Path) -> Option<(PathBuf, u64)> {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    path.ancestors().find_map(|place| Some((place.to_owned(), host.free_bytes(place).ok()?)))
}

fn disk(host: &dyn ProbeHost, work_dir: &Path) -> HostCheck {
    let check = HostCheck::of(CheckGroup::Room, "disk", "the work directory", MAIN_JOB);
    let fix = "free some space, or put the work directory elsewhere (--dir)";
    match free_space(host, work_dir) {
        None => check.limited("the free space is not known", fix),
        Some((place, free)) => {
            judge(check, free, DISK_LEAST, DISK_WANTED, &format!("free at {}", place.display()), fix)
        }
    }
}

fn memory(host: &dyn ProbeHost) -> HostCheck {
    let check = HostCheck::of(CheckGroup::Room, "memory", "compilers and guests", MAIN_JOB);
    let fix = "end other programs, or add memory";
    let available = host.text("/proc/meminfo").ok().and_then(|text| mem_available(&text));
    match available {
        None => check.limited("/proc/meminfo does not say", fix),
        Some(bytes) => judge(check, bytes, MEMORY_LEAST, MEMORY_WANTED, "available", fix),
    }
}

fn judge(check: HostCheck, have: u64, min: u64, wanted: u64, words: &str, fix: &str) -> HostCheck {
    let gib = |bytes: u64| format!("{:.1} GiB", bytes as f64 / GIB as f64);
    let found = format!("{} {words}", gib(have));
    if have >= wanted {
        check.ok(found)
    } else if have >= min {
        check.limited(format!("{found}, {} are recommended", gib(wanted)), fix)
    } else {
        check.missing(format!("{found}, at least {} are needed", gib(min)), fix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_host::TestHost;
    use crate::CheckStatus;

    #[test]
    fn free_space_in_three_steps() {
        let with = |free| disk(&TestHost::default().free(free), Path::new("/no/such/place"));
        assert_eq!(with(20 * GIB).status, CheckStatus::Ok);
        assert_eq!(with(5 * GIB).status, CheckStatus::Limited);
        let none = with(GIB / 2);
        assert_eq!(none.status, CheckStatus::Missing);
        assert!(none.found.starts_with("0.5 GiB free at "), "{}", none.found);
    }

    #[test]
    fn memory_of_a_real_machine() {
        let text = "MemTotal:       24684456 kB\nMemFree:        20267456 kB\nMemAvailable:   23920764 kB\n";
        assert_eq!(memory(&TestHost::default().file("/proc/meminfo", text)).status, CheckStatus::Ok);
    }
}
