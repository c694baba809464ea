//! Cgroups of threads: their paths, and the kernel's ids of them.

use rustc_hash::FxHashMap;
use std::collections::HashMap;

/// Names of cgroups, by index and by the kernel's id.
#[derive(Debug, Clone)]
pub struct CgroupTable {
    names: Vec<String>,
    numbers: HashMap<String, u32>,
    ids: FxHashMap<u64, u32>,
    max: usize,
}

/// Longest path of a cgroup that is kept, in bytes.
const MAX_PATH: usize = 512;
/// Most memory of a cgroup: its path twice, and its entries in three tables, in bytes.
const CGROUP_BYTES: usize = 2 * MAX_PATH + 192;

impl CgroupTable {
    /// Index of an unknown cgroup.
    pub const UNKNOWN: u32 = 0;
    /// Index of the cgroup of threads that ended before it could be read, or had no room.
    pub const NONE: u32 = 1;

    /// Creates a table of at most `max` cgroups.
    pub fn new(max: usize) -> Self {
        let names = vec![String::new(); 2];
        Self { names, numbers: HashMap::new(), ids: FxHashMap::default(), max: max.max(2) }
    }

    /// Returns an upper bound for the table's memory, in bytes.
    pub fn bound(max: usize) -> usize {
        max.saturating_mul(CGROUP_BYTES)
    }

    /// Returns the path of a cgroup; empty if unknown.
    pub fn name(&self, number: u32) -> &str {
        self.names.get(number as usize).map_or("", String::as_str)
    }

    /// Returns the index of a path, or [`NONE`](Self::NONE) if there is no room.
    pub fn number(&mut self, path: &str) -> u32 {
        if let Some(number) = self.numbers.get(path) {
            return *number;
        }
        if self.names.len() >= self.max || path.len() > MAX_PATH || path.is_empty() {
            return Self::NONE;
        }
        let number = self.names.len() as u32;
        self.names.push(path.into());
        self.numbers.insert(path.into(), number);
        number
    }

    /// Handles a cgroup with the kernel's id.
    pub fn identified(&mut self, id: u64, path: &str) {
        let number = self.number(path);
        if self.ids.len() < self.max || self.ids.contains_key(&id) {
            self.ids.insert(id, number);
        }
    }

    /// Returns the index of the cgroup with the kernel's id; `None` if it is unknown.
    pub fn by_id(&self, id: u64) -> Option<u32> {
        self.ids.get(&id).copied().filter(|number| *number > Self::NONE)
    }

    /// Checks whether a cgroup is the root of its hierarchy.
    pub fn is_root(&self, number: u32) -> bool {
        self.name(number) == "/"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cgroups_have_ids_and_a_bound() {
        let mut cgroups = CgroupTable::new(4);
        cgroups.identified(7, "/");
        cgroups.identified(8, "/system.slice/a.service");
        assert_eq!((cgroups.by_id(7), cgroups.by_id(9)), (Some(2), None));
        assert!(cgroups.is_root(2) && !cgroups.is_root(3));
        assert_eq!(cgroups.name(3), "/system.slice/a.service");
        assert_eq!(cgroups.number("/system.slice/a.service"), 3);
        assert_eq!([cgroups.number("/more"), cgroups.number("")], [CgroupTable::NONE; 2]);
        cgroups.identified(9, "/more");
        assert_eq!((cgroups.by_id(9), cgroups.name(CgroupTable::NONE)), (None, ""));
    }
}
