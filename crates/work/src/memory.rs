//! Available memory, and detection of errors caused by too little memory.

use std::error::Error as StdError;
use std::fs;
use std::io;
use std::path::Path;

/// Mount point of control groups (version 2).
const GROUPS: &str = "/sys/fs/cgroup";

/// Returns the bytes that programs can use without swapping: `MemAvailable` of `/proc/meminfo`, or
/// the lowest `memory.max` of this process's control groups, if less. `None` if `/proc` does not
/// show it.
pub fn available_memory() -> Option<u64> {
    let machine = mem_available(&fs::read_to_string("/proc/meminfo").ok()?)?;
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limit = group_limit(&groups, &|group| {
        let group = Path::new(GROUPS).join(group.strip_prefix('/').unwrap_or(group));
        fs::read_to_string(group.join("memory.max")).ok()
    });
    Some(limit.map_or(machine, |limit| limit.min(machine)))
}

/// Zstandard's message for a failed allocation; its errors have no kind.
const ZSTD_ALLOCATION: &str = "Allocation error : not enough memory";

/// Returns whether too little memory is among the causes of an error: of the system (`ENOMEM`), or
/// of Zstandard. A file that could not be read for this reason is not damaged.
pub fn is_out_of_memory(error: &(dyn StdError + 'static)) -> bool {
    let of_io = |io: &io::Error| {
        let inner = io.get_ref().is_some_and(|inner| is_out_of_memory(inner));
        inner || io.kind() == io::ErrorKind::OutOfMemory || io.to_string() == ZSTD_ALLOCATION
    };
    error.downcast_ref::<io::Error>().is_some_and(of_io) || error.source().is_some_and(is_out_of_memory)
}

/// Parses `MemAvailable` from the text of `/proc/meminfo`, in bytes.
pub fn mem_available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// Returns the lowest limit of the group in `/proc/self/cgroup` and its ancestors; `max` is no
/// limit.
fn group_limit(groups: &str, read: &dyn Fn(&str) -> Option<String>) -> Option<u64> {
    let own = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let all = Path::new(own).ancestors().filter_map(Path::to_str);
    all.filter_map(|group| read(group)?.trim().parse::<u64>().ok()).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_a_real_machine() {
        let text = "MemTotal:       24684456 kB\nMemFree:        20267456 kB\nMemAvailable:   23920764 kB\n";
        assert_eq!(mem_available(text), Some(23_920_764 * 1024));
        assert_eq!(mem_available("MemAvailable: much kB\n"), None);
        assert_eq!(mem_available("MemAvailable: 18446744073709551615 kB\n"), None);
        assert!(available_memory().is_some_and(|bytes| bytes > 1 << 20));
    }

    #[test]
    fn too_little_memory_is_found_below_other_errors() {
        let system = io::Error::from_raw_os_error(12);
        assert!(is_out_of_memory(&system));
        let zstd = || io::Error::other(ZSTD_ALLOCATION);
        assert!(is_out_of_memory(&zstd()));
        let error = crate::Error::Io { action: "read", path: "f".into(), source: zstd() };
        assert!(is_out_of_memory(&error) && is_out_of_memory(&io::Error::other(error)));
        assert!(!is_out_of_memory(&io::Error::other("Data corruption detected")));
        // The same words in a file name.
        assert!(!is_out_of_memory(&io::Error::other(format!("{ZSTD_ALLOCATION}.parquet: no such file"))));
    }

    #[test]
    fn the_narrowest_group_counts() {
        let limits = |group: &str| match group {
            "/system.slice/ci.service" => Some("max\n".to_owned()),
            "/system.slice" => Some("8589934592\n".to_owned()),
            "/" => None,
            _ => panic!("{group}"),
        };
        assert_eq!(group_limit("0::/system.slice/ci.service\n", &limits), Some(8 << 30));
        assert_eq!(group_limit("0::/\n", &|_| Some("1024".into())), Some(1024));
        // Version 1 alone.
        assert_eq!(group_limit("4:memory:/a\n", &limits), None);
    }
}
