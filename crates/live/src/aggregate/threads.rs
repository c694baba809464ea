//! Whose samples they are. Threads come and go: those that are gone keep their own row as long as there is room, and
//! then one with all others of their name.

use std::collections::HashMap;

/// Samples of one thread, or of several that are gone and had one name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Thread {
    /// Thread id; 0 where it is several.
    pub tid: u32,
    /// Process id; 0 where it is several.
    pub tgid: u32,
    /// Number of its name.
    pub comm: u32,
    /// Samples in user mode.
    pub user: u64,
    /// Samples in the kernel, without interrupts.
    pub kernel: u64,
    gone: bool,
}

/// All of them.
#[derive(Debug, Clone)]
pub struct Threads {
    rows: Vec<Thread>,
    /// Row of each thread that lives.
    living: HashMap<u32, u32>,
    names: Vec<String>,
    numbers: HashMap<String, u32>,
    most: usize,
    most_names: usize,
    /// Samples of threads that had no room of their own.
    pub crowded: u64,
}

/// The name of what has none.
const NAMELESS: &str = "[unknown]";
/// The name of all that there was no room for.
const OTHERS: &str = "[other names]";
/// Bytes of a name, with its place in two tables: the kernel's names have 16 at most.
const NAME_BYTES: usize = 160;

impl Threads {
    /// One that never has more than `most` threads and `most_names` names.
    pub fn new(most: usize, most_names: usize) -> Self {
        let mut threads = Self {
            rows: Vec::with_capacity(most),
            living: HashMap::with_capacity(most),
            names: Vec::new(),
            numbers: HashMap::new(),
            most,
            most_names: most_names.max(2),
            crowded: 0,
        };
        threads.number(NAMELESS);
        threads.number(OTHERS);
        threads
    }

    /// Bytes that one takes at most.
    pub fn bound(most: usize, most_names: usize) -> usize {
        let entries = most.saturating_mul(8).div_ceil(7).next_power_of_two();
        most.saturating_mul(size_of::<Thread>())
            .saturating_add(entries.saturating_mul(9))
            .saturating_add(most_names.saturating_mul(NAME_BYTES))
    }

    /// Name of a number.
    pub fn name(&self, number: u32) -> &str {
        self.names.get(number as usize).map_or(NAMELESS, String::as_str)
    }

    /// Number of a name; that of all others if there is no room for it.
    pub fn number(&mut self, name: &str) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        if self.names.len() >= self.most_names {
            return 1;
        }
        let number = self.names.len() as u32;
        self.names.push(name.into());
        self.numbers.insert(name.into(), number);
        number
    }

    /// A thread got a name.
    pub fn named(&mut self, tid: u32, tgid: u32, name: &str) {
        let comm = self.number(name);
        if let Some(row) = self.row(tid, tgid) {
            row.comm = comm;
        }
    }

    /// A thread began, with the name of the one that made it.
    pub fn forked(&mut self, tid: u32, tgid: u32, parent: u32) {
        let comm =
            self.living.get(&parent).and_then(|row| self.rows.get(*row as usize)).map_or(0, |row| row.comm);
        // A number may be given again before its end was told.
        self.ended(tid);
        if let Some(row) = self.row(tid, tgid) {
            row.comm = comm;
        }
    }

    /// A thread ended.
    pub fn ended(&mut self, tid: u32) {
        if let Some(row) = self.living.remove(&tid).and_then(|row| self.rows.get_mut(row as usize)) {
            row.gone = true;
        }
    }

    /// Whether a name of the thread is known.
    pub fn knows(&self, tid: u32) -> bool {
        self.living.contains_key(&tid)
    }

    /// Number of the name of a thread that lives.
    pub fn comm_of(&self, tid: u32) -> Option<u32> {
        self.rows.get(*self.living.get(&tid)? as usize).map(|row| row.comm)
    }

    /// Counts a thread's samples; number of its name.
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

    fn row(&mut self, tid: u32, tgid: u32) -> Option<&mut Thread> {
        let at = match self.living.get(&tid) {
            Some(at) => *at,
            None => {
                if self.rows.len() >= self.most {
                    self.fold();
                }
                if self.rows.len() >= self.most {
                    return None;
                }
                let at = self.rows.len() as u32;
                self.rows.push(Thread { tid, tgid, ..Thread::default() });
                self.living.insert(tid, at);
                at
            }
        };
        self.rows.get_mut(at as usize)
    }

    /// Puts threads that are gone into one row for each name.
    fn fold(&mut self) {
        let mut gone: HashMap<u32, (u64, u64)> = HashMap::new();
        let mut kept = Vec::with_capacity(self.most);
        self.living.clear();
        for row in self.rows.drain(..) {
            if row.gone {
                let sum = gone.entry(row.comm).or_default();
                *sum = (sum.0 + row.user, sum.1 + row.kernel);
            } else {
                self.living.insert(row.tid, kept.len() as u32);
                kept.push(row);
            }
        }
        let several = |(comm, (user, kernel))| Thread { comm, user, kernel, gone: true, ..Thread::default() };
        kept.extend(gone.into_iter().filter(|(_, (user, kernel))| user + kernel > 0).map(several));
        self.rows = kept;
    }

    /// Those with samples.
    pub fn rows(&self) -> impl Iterator<Item = &Thread> {
        self.rows.iter().filter(|row| row.user + row.kernel > 0)
    }

    /// Forgets all samples, and who is gone.
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
        let mut threads = Threads::new(3, 4);
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
        // 10 has no samples, 11 and 12 are gone: they have made room for 13; for 14 there is none.
        assert_eq!(rows, [(0, "ls", 3), (0, "sh", 5)]);
        assert_eq!(threads.crowded, 2);
    }

    #[test]
    fn there_is_a_last_name() {
        let mut threads = Threads::new(9, 3);
        threads.named(1, 1, "a");
        threads.named(2, 2, "b");
        assert_eq!([threads.add(1, 1, 1, 0), threads.add(2, 2, 1, 0)], [2, 1]);
        assert_eq!(threads.name(1), "[other names]");
        threads.clear();
        assert_eq!((threads.rows().count(), threads.knows(1)), (0, true));
    }
}
