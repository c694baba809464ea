//! Disk and memory.

use crate::host::Host;
use crate::{Ability, Check, Group, Options};
use kerntune_work::mem_available;
use std::path::{Path, PathBuf};

const GIB: u64 = 1 << 30;
const MAIN_JOB: &[Ability] = &[Ability::Emulator, Ability::GccPgo];

/// A `tune`: the unpacked source (1.7 GiB), three kernels with their objects, recordings.
const DISK_WANTED: u64 = 10 * GIB;
const DISK_LEAST: u64 = 4 * GIB;
/// A guest of 1 GiB beside QEMU, or two compilers.
const MEMORY_WANTED: u64 = 3 * GIB;
const MEMORY_LEAST: u64 = 3 * GIB / 2;

pub(crate) fn examine(host: &dyn Host, options: &Options) -> Vec<Check> {
    vec![disk(host, &options.work_dir), memory(host)]
}

/// The nearest directory above `path` that is there already, and its free space.
fn free_space(host: &dyn Host, path: &Path) -> Option<(PathBuf, u64)> {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    path.ancestors().find_map(|place| Some((place.to_owned(), host.free_bytes(place).ok()?)))
}

fn disk(host: &dyn Host, work_dir: &Path) -> Check {
    let check = Check::of(Group::Room, "disk", "the work directory", MAIN_JOB);
    let fix = "free some space, or put the work directory elsewhere (--dir)";
    match free_space(host, work_dir) {
        None => check.limited("the free space is not known", fix),
        Some((place, free)) => {
            judge(check, free, DISK_LEAST, DISK_WANTED, &format!("free at {}", place.display()), fix)
        }
    }
}

fn memory(host: &dyn Host) -> Check {
    let check = Check::of(Group::Room, "memory", "compilers and guests", MAIN_JOB);
    let fix = "end other programs, or add memory";
    let available = host.text("/proc/meminfo").ok().and_then(|text| mem_available(&text));
    match available {
        None => check.limited("/proc/meminfo does not say", fix),
        Some(bytes) => judge(check, bytes, MEMORY_LEAST, MEMORY_WANTED, "available", fix),
    }
}

fn judge(check: Check, have: u64, least: u64, wanted: u64, words: &str, fix: &str) -> Check {
    let gib = |bytes: u64| format!("{:.1} GiB", bytes as f64 / GIB as f64);
    let found = format!("{} {words}", gib(have));
    if have >= wanted {
        check.ok(found)
    } else if have >= least {
        check.limited(format!("{found}, {} are recommended", gib(wanted)), fix)
    } else {
        check.missing(format!("{found}, at least {} are needed", gib(least)), fix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_host::TestHost;
    use crate::Status;

    #[test]
    fn free_space_in_three_steps() {
        let with = |free| disk(&TestHost::default().free(free), Path::new("/no/such/place"));
        assert_eq!(with(20 * GIB).status, Status::Ok);
        assert_eq!(with(5 * GIB).status, Status::Limited);
        let none = with(GIB / 2);
        assert_eq!(none.status, Status::Missing);
        assert!(none.found.starts_with("0.5 GiB free at "), "{}", none.found);
    }

    #[test]
    fn memory_of_a_real_machine() {
        let text = "MemTotal:       24684456 kB\nMemFree:        20267456 kB\nMemAvailable:   23920764 kB\n";
        assert_eq!(memory(&TestHost::default().file("/proc/meminfo", text)).status, Status::Ok);
    }
}
