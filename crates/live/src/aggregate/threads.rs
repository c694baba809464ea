//! Threads with their samples. Ended threads keep their row while there is room; then rows of one
//! name are joined.

use std::collections::HashMap;

/// Samples of one thread, or of several ended threads with the same name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SampledThread {
    /// Thread id; 0 for several threads.
    pub tid: u32,
    /// Process id; 0 for several threads.
    pub tgid: u32,
    /// Index of the name.
    pub comm: u32,
    /// Samples in user mode.
    pub user: u64,
    /// Samples in the kernel, without interrupts.
    pub kernel: u64,
    /// Index of its cgroup in [`super::CgroupTable`], or [`super::CgroupTable::UNKNOWN`].
    pub cgroup: u32,
    /// True if it may have been moved to another cgroup.
    may_have_moved: bool,
    gone: bool,
}

/// All threads.
#[derive(Debug, Clone)]
pub struct ThreadTable {
    rows: Vec<SampledThread>,
    /// Row index of each living thread.
    living: HashMap<u32, u32>,
    names: Vec<String>,
    numbers: HashMap<String, u32>,
    max: usize,
    max_names: usize,
    /// Samples of threads that found no room.
    pub crowded: u64,
}

/// Name of threads without a known name.
const NAMELESS: &str = "[unknown]";
/// Name that stands for all names without room.
const OTHERS: &str = "[other names]";
/// Memory per name with its entries in two tables, in bytes. Names in the kernel have at most 16
/// bytes.
const NAME_BYTES: usize = 160;

impl ThreadTable {
    /// Creates a table of at most `max` threads and `max_names` names.
    pub fn new(max: usize, max_names: usize) -> Self {
        let mut threads = Self {
            rows: Vec::with_capacity(max),
            living: HashMap::with_capacity(max),
            names: Vec::new(),
            numbers: HashMap::new(),
            max,
            max_names: max_names.max(2),
            crowded: 0,
        };
        threads.number(NAMELESS);
        threads.number(OTHERS);
        threads
    }

    /// Returns an upper bound for the table's memory, in bytes.
    pub fn bound(max: usize, max_names: usize) -> usize {
        let entries = max.saturating_mul(8).div_ceil(7).next_power_of_two();
        max.saturating_mul(size_of::<SampledThread>())
            .saturating_add(entries.saturating_mul(9))
            .saturating_add(max_names.saturating_mul(NAME_BYTES))
    }

    /// Returns the name with this index.
    pub fn name(&self, number: u32) -> &str {
        self.names.get(number as usize).map_or(NAMELESS, String::as_str)
    }

    /// Returns the index of a name, or of the name for all others if there is no room.
    pub fn number(&mut self, name: &str) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        if self.names.len() >= self.max_names {
            return 1;
        }
        let number = self.names.len() as u32;
        self.names.push(name.into());
        self.numbers.insert(name.into(), number);
        number
    }

    /// Handles a new name of a thread.
    pub fn named(&mut self, tid: u32, tgid: u32, name: &str) {
        let comm = self.number(name);
        if let Some(row) = self.row(tid, tgid) {
            row.comm = comm;
        }
    }

    /// Handles the start of a thread, which inherits its parent's name.
    pub fn forked(&mut self, tid: u32, tgid: u32, parent: u32) {
        let parent = self.living.get(&parent).and_then(|row| self.rows.get(*row as usize));
        let (comm, cgroup) = parent.map_or((0, 0), |row| (row.comm, row.cgroup));
        // The id may be reused before its end is reported.
        self.ended(tid);
        if let Some(row) = self.row(tid, tgid) {
            (row.comm, row.cgroup) = (comm, cgroup);
        }
    }

    /// Handles the end of a thread.
    pub fn ended(&mut self, tid: u32) {
        if let Some(row) = self.living.remove(&tid).and_then(|row| self.rows.get_mut(row as usize)) {
            row.gone = true;
        }
    }

    /// Returns true if the thread is known and alive.
    pub fn knows(&self, tid: u32) -> bool {
        self.living.contains_key(&tid)
    }

    /// Returns the name index of a living thread.
    pub fn comm_of(&self, tid: u32) -> Option<u32> {
        self.rows.get(*self.living.get(&tid)? as usize).map(|row| row.comm)
    }

    /// Returns the index of a living thread's cgroup; `None` if it has to be read.
    pub fn cgroup_of(&self, tid: u32) -> Option<u32> {
        let row = self.rows.get(*self.living.get(&tid)? as usize)?;
        Some(row.cgroup).filter(|cgroup| !row.may_have_moved && *cgroup != super::CgroupTable::UNKNOWN)
    }

    /// Sets the cgroup of a thread. A thread that moves to another cgroup gets another row. Without a
    /// cgroup ([`super::CgroupTable::NONE`]), it keeps the one that it had.
    pub fn set_cgroup(&mut self, tid: u32, tgid: u32, cgroup: u32) {
        let Some(row) = self.row(tid, tgid) else { return };
        row.may_have_moved = false;
        let is_known = row.cgroup != super::CgroupTable::UNKNOWN;
        if row.cgroup == cgroup || is_known && cgroup == super::CgroupTable::NONE {
            return;
        }
        if !is_known || row.user + row.kernel == 0 {
            row.cgroup = cgroup;
            return;
        }
        let comm = row.comm;
        self.ended(tid);
        if let Some(row) = self.row(tid, tgid) {
            (row.comm, row.cgroup) = (comm, cgroup);
        }
    }

    /// Marks the cgroup of a thread as one that has to be read again: it may have been moved.
    pub fn recheck_cgroup(&mut self, tid: u32) {
        if let Some(row) = self.living.get(&tid).and_then(|row| self.rows.get_mut(*row as usize)) {
            row.may_have_moved = true;
        }
    }

    /// Adds samples of a thread and returns its name index.
    pub fn add(&mut self, tid: u32, tgid: u32, user: u64, kernel: u64) -> u32 {
        match self.row(tid, tgid) {
            Some(row) => {
                row.user += user;
                row.kernel += kernel;
                row.comm
            }
            None => {
                self.crowded += user + kernel;
                1
            }
        }
    }

    fn row(&mut self, tid: u32, tgid: u32) -> Option<&mut SampledThread> {
        let at = match self.living.get(&tid) {
            Some(at) => *at,
            None => {
                if self.rows.len() >= self.max {
                    self.fold();
                }
                if self.rows.len() >= self.max {
                    return None;
                }
                let at = self.rows.len() as u32;
                self.rows.push(SampledThread { tid, tgid, ..SampledThread::default() });
                self.living.insert(tid, at);
                at
            }
        };
        self.rows.get_mut(at as usize)
    }

    /// Joins the rows of ended threads by name and cgroup.
    fn fold(&mut self) {
        let mut gone: HashMap<(u32, u32), (u64, u64)> = HashMap::new();
        let mut kept = Vec::with_capacity(self.max);
        self.living.clear();
        for row in self.rows.drain(..) {
            if row.gone {
                let sum = gone.entry((row.comm, row.cgroup)).or_default();
                *sum = (sum.0 + row.user, sum.1 + row.kernel);
            } else {
                self.living.insert(row.tid, kept.len() as u32);
                kept.push(row);
            }
        }
        let several = |((comm, cgroup), (user, kernel))| SampledThread {
            comm,
            cgroup,
            user,
            kernel,
            gone: true,
            ..SampledThread::default()
        };
        kept.extend(gone.into_iter().filter(|(_, (user, kernel))| user + kernel > 0).map(several));
        self.rows = kept;
    }

    /// Returns the rows with samples.
    pub fn rows(&self) -> impl Iterator<Item = &SampledThread> {
        self.rows.iter().filter(|row| row.user + row.kernel > 0)
    }

    /// Removes all samples and all ended threads.
    pub fn clear(&mut self) {
        for row in &mut self.rows {
            (row.user, row.kernel) = (0, 0);
        }
        self.fold();
        self.rows.retain(|row| !row.gone);
        self.crowded = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_inherited_and_the_dead_make_room() {
        let mut threads = ThreadTable::new(3, 4);
        threads.named(10, 10, "sh");
        threads.forked(11, 11, 10);
        assert_eq!(threads.add(11, 11, 1, 2), threads.number("sh"));
        threads.named(11, 11, "ls");
        threads.ended(11);
        threads.forked(12, 12, 10);
        threads.add(12, 12, 0, 5);
        threads.ended(12);
        threads.add(13, 13, 1, 0);
        threads.add(14, 14, 1, 0);
        let mut rows: Vec<_> =
            threads.rows().map(|r| (r.tid, threads.name(r.comm), r.user + r.kernel)).collect();
        rows.sort();
        // 10 has no samples. 11 and 12 have ended and made room for 13. There is no room for 14.
        assert_eq!(rows, [(0, "ls", 3), (0, "sh", 5)]);
        assert_eq!(threads.crowded, 2);
    }

    #[test]
    fn a_thread_that_moves_to_another_cgroup_has_two_rows() {
        let mut threads = ThreadTable::new(9, 4);
        threads.named(10, 10, "sh");
        threads.set_cgroup(10, 10, 3);
        threads.add(10, 10, 1, 0);
        threads.forked(11, 11, 10);
        assert_eq!(threads.cgroup_of(11), Some(3));
        threads.set_cgroup(10, 10, 4);
        threads.add(10, 10, 0, 7);
        threads.set_cgroup(11, 11, 4);
        threads.add(11, 11, 2, 0);
        threads.ended(11);
        let row = |row: &SampledThread| (row.tid, row.cgroup, row.user + row.kernel);
        assert_eq!(threads.rows().map(row).collect::<Vec<_>>(), [(10, 3, 1), (11, 4, 2), (10, 4, 7)]);
        threads.fold();
        let mut rows: Vec<_> = threads.rows().map(row).collect();
        rows.sort_unstable();
        assert_eq!(rows, [(0, 3, 1), (0, 4, 2), (10, 4, 7)]);
        threads.recheck_cgroup(10);
        assert_eq!(threads.cgroup_of(10), None);
        threads.set_cgroup(10, 10, crate::aggregate::CgroupTable::NONE);
        assert_eq!(threads.cgroup_of(10), Some(4));
    }

    #[test]
    fn there_is_a_last_name() {
        let mut threads = ThreadTable::new(9, 3);
        threads.named(1, 1, "a");
        threads.named(2, 2, "b");
        assert_eq!([threads.add(1, 1, 1, 0), threads.add(2, 2, 1, 0)], [2, 1]);
        assert_eq!(threads.name(1), "[other names]");
        threads.clear();
        assert_eq!((threads.rows().count(), threads.knows(1)), (0, true));
    }
}
