//! Attributes of a command's process in the guest: user, limits of resources, file mode mask.

use kerntune_work::{IoContext, Result};
use rustix::process::{getrlimit, Resource};
use std::fs;

/// Resources with the kernel's number of each. The limit of CPU time is left out: a guest has its
/// own time.
const RESOURCES: [(u32, Resource); 10] = [
    (1, Resource::Fsize),
    (2, Resource::Data),
    (3, Resource::Stack),
    (4, Resource::Core),
    (6, Resource::Nproc),
    (7, Resource::Nofile),
    (8, Resource::Memlock),
    (9, Resource::As),
    (11, Resource::Sigpending),
    (12, Resource::Msgqueue),
];

/// Number of open files, and its largest value unless `fs.nr_open` is changed.
const NOFILE: u32 = 7;
const NOFILE_MAX: u64 = 1 << 20;

/// User and groups of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessUser {
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
    /// Supplementary groups.
    pub groups: Vec<u32>,
}

impl ProcessUser {
    /// Returns the ids in the order user, group, supplementary groups.
    pub fn ids(&self) -> impl Iterator<Item = u32> + '_ {
        [self.uid, self.gid].into_iter().chain(self.groups.iter().copied())
    }
}

/// A limit of a resource; `u64::MAX` stands for none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceLimit {
    /// Number of the kernel (`RLIMIT_NOFILE`).
    pub resource: u32,
    /// Limit now.
    pub soft: u64,
    /// Largest limit that the process may give itself.
    pub hard: u64,
}

/// Attributes that init gives a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessAttributes {
    /// User and groups.
    pub user: ProcessUser,
    /// Limits, in the order of their numbers.
    pub limits: Vec<ResourceLimit>,
    /// Mask of modes of new files.
    pub umask: u32,
}

impl ProcessAttributes {
    /// Reads those of this process.
    ///
    /// # Errors
    /// /proc is not there.
    pub fn of_caller() -> Result<Self> {
        let status = "/proc/self/status";
        let text = fs::read_to_string(status).at("read", status)?;
        Ok(Self { limits: limits(), ..Self::parse(&text) })
    }

    fn parse(status: &str) -> Self {
        let words = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.unwrap_or("").split_whitespace()
        };
        let id = |name: &str| words(name).next().and_then(|word| word.parse().ok()).unwrap_or(0);
        let groups = words("Groups").filter_map(|word| word.parse().ok()).collect();
        let user = ProcessUser { uid: id("Uid"), gid: id("Gid"), groups };
        let umask = words("Umask").next().and_then(|word| u32::from_str_radix(word, 8).ok());
        Self { user, limits: Vec::new(), umask: umask.unwrap_or(0o022) }
    }
}

fn limits() -> Vec<ResourceLimit> {
    let of = |(number, resource)| {
        let limit = getrlimit(resource);
        let most = if number == NOFILE { NOFILE_MAX } else { u64::MAX };
        let bounded = |value: Option<u64>| value.unwrap_or(u64::MAX).min(most);
        ResourceLimit { resource: number, soft: bounded(limit.current), hard: bounded(limit.maximum) }
    };
    RESOURCES.map(of).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_of_a_process_is_read() {
        let text =
            "Name:\tx\nUmask:\t0027\nUid:\t0\t0\t0\t0\nGid:\t7\t7\t7\t7\nGroups:\t0 27 \nThreads:\t1\n";
        let found = ProcessAttributes::parse(text);
        assert_eq!(found.user, ProcessUser { uid: 0, gid: 7, groups: vec![0, 27] });
        assert_eq!(found.umask, 0o027);
        assert_eq!(found.user.ids().collect::<Vec<_>>(), [0, 7, 0, 27]);
        assert_eq!(ProcessAttributes::parse("").umask, 0o022);
    }

    #[test]
    fn limits_are_those_of_this_process() {
        let text = fs::read_to_string("/proc/self/limits").unwrap();
        let line = text.lines().find(|line| line.starts_with("Max stack size")).unwrap();
        let word = line.split_whitespace().nth(3).unwrap();
        let found = ProcessAttributes::of_caller().unwrap().limits;
        let stack = found.iter().find(|limit| limit.resource == 3).unwrap();
        assert_eq!(stack.soft, word.parse().unwrap_or(u64::MAX));
        assert!(found.iter().all(|limit| limit.resource != NOFILE || limit.hard <= NOFILE_MAX));
    }
}
