//! Footprint of regions: touched pages and lines, and accesses by page size (`record --data`).
//!
//! A page is identified by process (or kernel) and virtual address; a page that two processes map
//! counts twice. Touched lines are kept for each combination of open regions, by name, and summed
//! by region name at the end. Memory grows with newly touched pages, not with accesses.

use kerntune_isa::{GuestIsa, Isa};
use kerntune_trace::data::{FootprintRow as Row, PageAccesses};
use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};
use std::collections::{BTreeMap, BTreeSet};

/// log2 of the smallest page size in bytes.
const SMALL: u8 = 12;
/// log2 of the page sizes: 4 KiB, 2 MiB, 1 GiB.
const SHIFTS: [u8; 3] = [SMALL, 21, 30];
/// Number of kinds: kernel memory by page size, then user memory by page size.
const KINDS: usize = 2 * SHIFTS.len();
/// Number of no page.
pub(crate) const NO_PAGE: u32 = u32::MAX;

/// 4 KiB of memory, with the size of the page that contains it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TouchedPage {
    /// Virtual address divided by 4 KiB.
    pub number: u64,
    /// Process id; 0 for the kernel.
    pub process: u64,
    /// log2 of the page size in bytes.
    pub shift: u8,
}

impl TouchedPage {
    fn is_user(self) -> bool {
        !GuestIsa::is_kernel(self.number << SMALL)
    }

    /// Returns the index of the page's kind, below [`KINDS`].
    pub fn kind(self) -> u8 {
        let size = SHIFTS.iter().position(|shift| *shift == self.shift).unwrap_or(0);
        (usize::from(self.is_user()) * SHIFTS.len() + size) as u8
    }
}

/// Memory touched while regions of these names were open.
#[derive(Default)]
struct TouchedSet {
    names: Vec<String>,
    numbers: HashMap<TouchedPage, u32>,
    /// Touched lines of each page, one bit per line.
    lines: Vec<u128>,
}

type KindCounts = [[u64; 2]; KINDS];

/// Touched memory and access counts.
pub(crate) struct FootprintTracker {
    line_shift: u32,
    sets: Vec<TouchedSet>,
    current: usize,
    region: Option<u32>,
    counts: KindCounts,
    regions: BTreeMap<u32, KindCounts>,
}

impl FootprintTracker {
    /// Creates an empty footprint.
    pub fn new(line_shift: u32) -> Self {
        Self {
            line_shift,
            sets: vec![TouchedSet::default()],
            current: 0,
            region: None,
            counts: KindCounts::default(),
            regions: BTreeMap::new(),
        }
    }

    /// Changes the open regions; accesses count in the innermost one.
    #[cold]
    pub fn opens(&mut self, region: Option<u32>, names: &[&str]) {
        let counts = std::mem::take(&mut self.counts);
        if let Some(region) = self.region.filter(|_| counts != KindCounts::default()) {
            let sums = self.regions.entry(region).or_default();
            sums.iter_mut().flatten().zip(counts.iter().flatten()).for_each(|(sum, more)| *sum += more);
        }
        self.region = region;
        let known = self.sets.iter().position(|set| set.names.iter().eq(names.iter()));
        self.current = known.unwrap_or_else(|| {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            self.sets.push(TouchedSet { names, ..TouchedSet::default() });
            self.sets.len() - 1
        });
    }

    /// Returns the number of a page that has been touched.
    pub fn number(&self, page: TouchedPage) -> Option<u32> {
        self.sets[self.current].numbers.get(&page).copied()
    }

    /// Returns the number of a page, which may be a new one.
    pub fn add(&mut self, page: TouchedPage) -> u32 {
        let set = &mut self.sets[self.current];
        let next = set.lines.len() as u32;
        let number = *set.numbers.entry(page).or_insert(next);
        if number == next {
            set.lines.push(0);
        }
        number
    }

    /// Marks a line of a page as touched.
    #[inline]
    pub fn touch(&mut self, number: u32, address: u64) {
        if let Some(lines) = self.sets[self.current].lines.get_mut(number as usize) {
            *lines |= 1 << ((address & 0xfff) >> self.line_shift);
        }
    }

    /// Counts reads and writes of pages of this kind.
    pub fn count(&mut self, kind: usize, counts: [u64; 2]) {
        if let Some(sums) = self.counts.get_mut(kind) {
            sums.iter_mut().zip(counts).for_each(|(sum, more)| *sum += more);
        }
    }

    /// Returns the accesses by region, and the footprints of each region name and of all regions.
    pub fn finish(&mut self) -> (Vec<PageAccesses>, Vec<Row>) {
        self.opens(None, &[]);
        let mut accesses = Vec::new();
        for (region, counts) in std::mem::take(&mut self.regions) {
            for (kind, [loads, stores]) in
                counts.into_iter().enumerate().filter(|(_, counts)| *counts != [0; 2])
            {
                let (user, page_bytes) = (kind >= SHIFTS.len(), 1 << SHIFTS[kind % SHIFTS.len()]);
                accesses.push(PageAccesses { region, user, page_bytes, loads, stores });
            }
        }
        let names: BTreeSet<Option<&str>> = self
            .sets
            .iter()
            .flat_map(|set| set.names.iter().map(|name| Some(name.as_str())))
            .chain([None])
            .collect();
        let mut rows = Vec::new();
        for name in names {
            let meant = |set: &&TouchedSet| name.is_none_or(|name| set.names.iter().any(|open| open == name));
            let mut all: HashMap<TouchedPage, u128> = HashMap::default();
            for set in self.sets.iter().filter(meant) {
                for (page, number) in &set.numbers {
                    *all.entry(*page).or_default() |= set.lines.get(*number as usize).copied().unwrap_or(0);
                }
            }
            let mut kinds: BTreeMap<u8, (HashSet<(u64, u64)>, u64)> = BTreeMap::new();
            for (page, lines) in all {
                let (pages, sum) = kinds.entry(page.kind()).or_default();
                pages.insert((page.number >> (page.shift - SMALL), page.process));
                *sum += u64::from(lines.count_ones());
            }
            for (kind, (pages, lines)) in kinds {
                let kind = usize::from(kind);
                rows.push(Row {
                    region: name.map(str::to_owned),
                    user: kind >= SHIFTS.len(),
                    page_bytes: 1 << SHIFTS[kind % SHIFTS.len()],
                    pages: pages.len() as u64,
                    lines,
                });
            }
        }
        (accesses, rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_touched_in_several_regions_is_touched_once() {
        let mut of = FootprintTracker::new(6);
        let page = |number, process, shift| TouchedPage { number, process, shift };
        let touch = |of: &mut FootprintTracker, page: TouchedPage, address: u64, store: bool| {
            let number = of.number(page).unwrap_or_else(|| of.add(page));
            of.touch(number, address);
            of.count(page.kind().into(), [!store, store].map(u64::from));
        };
        let kernel = 0xffff_8880_0000_0000 >> 12;
        of.opens(Some(0), &["a"]);
        touch(&mut of, page(5, 40, 12), 0x0, false);
        touch(&mut of, page(5, 40, 12), 0xfff, false);
        touch(&mut of, page(5, 41, 12), 0x40, true);
        of.opens(Some(1), &["a", "b"]);
        touch(&mut of, page(5, 40, 12), 0x3f, true);
        touch(&mut of, page(0x200, 40, 21), 0x1000, false);
        touch(&mut of, page(0x201, 40, 21), 0x1000, false);
        of.opens(Some(2), &["b"]);
        touch(&mut of, page(0x400, 40, 21), 0x1000, false);
        touch(&mut of, page(kernel, 0, 30), 0x1000, false);
        of.opens(None, &[]);
        let (accesses, rows) = of.finish();
        let accesses: Vec<_> = accesses
            .iter()
            .map(|row| (row.region, row.user, row.page_bytes, row.loads, row.stores))
            .collect();
        let (huge, giant) = (2 << 20, 1 << 30);
        assert_eq!(
            accesses,
            [
                (0, true, 4096, 2, 1),
                (1, true, 4096, 0, 1),
                (1, true, huge, 2, 0),
                (2, false, giant, 1, 0),
                (2, true, huge, 1, 0)
            ]
        );
        let rows: Vec<_> = rows
            .iter()
            .map(|row| {
                (row.region.as_deref().unwrap_or("all"), row.user, row.page_bytes, row.pages, row.lines)
            })
            .collect();
        assert_eq!(
            rows,
            [
                ("all", false, giant, 1, 1),
                ("all", true, 4096, 2, 3),
                ("all", true, huge, 2, 3),
                ("a", true, 4096, 2, 3),
                ("a", true, huge, 1, 2),
                ("b", false, giant, 1, 1),
                ("b", true, 4096, 1, 1),
                ("b", true, huge, 2, 3),
            ]
        );
    }
}
