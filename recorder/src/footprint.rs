//! Pages and lines of memory that regions touch, and how many accesses go to pages of which size (`record --data`).
//!
//! A page is a process's (or the kernel's) by its virtual address; one that two processes map is two. What is touched is
//! kept for each list of open regions by name, so that it is known of each name and of all what was touched in any of its
//! regions. Memory grows with pages that were not touched before, not with accesses.

use kerntune_isa::{Guest, Isa};
use kerntune_trace::data::{Footprint as Row, PageAccesses};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// log2 of the smallest page's bytes.
const SMALL: u8 = 12;
/// Sizes of pages: 4 KiB, 2 MiB, 1 GiB, by log2.
const SHIFTS: [u8; 3] = [SMALL, 21, 30];
/// Kernel memory by size of page, and user memory.
const KINDS: usize = 2 * SHIFTS.len();
/// No page.
pub(crate) const NOTHING: u32 = u32::MAX;

/// 4 KiB of memory, and what size of page it is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Page {
    /// Of 4 KiB each.
    pub number: u64,
    /// 0 for the kernel's.
    pub process: u64,
    /// log2 of the page's bytes.
    pub shift: u8,
}

impl Page {
    fn is_user(self) -> bool {
        !Guest::is_kernel(self.number << SMALL)
    }

    /// Which of [`KINDS`].
    pub fn kind(self) -> u8 {
        let size = SHIFTS.iter().position(|shift| *shift == self.shift).unwrap_or(0);
        (usize::from(self.is_user()) * SHIFTS.len() + size) as u8
    }
}

/// What is touched while regions of these names are open.
#[derive(Default)]
struct Touched {
    names: Vec<String>,
    numbers: HashMap<Page, u32>,
    /// A bit for each line.
    lines: Vec<u128>,
}

type Counts = [[u64; 2]; KINDS];

/// What was touched.
pub(crate) struct Footprint {
    line_shift: u32,
    sets: Vec<Touched>,
    current: usize,
    region: Option<u32>,
    counts: Counts,
    regions: BTreeMap<u32, Counts>,
}

impl Footprint {
    /// Nothing yet.
    pub fn new(line_shift: u32) -> Self {
        Self {
            line_shift,
            sets: vec![Touched::default()],
            current: 0,
            region: None,
            counts: Counts::default(),
            regions: BTreeMap::new(),
        }
    }

    /// These regions are open from here on; accesses count in the innermost.
    #[cold]
    pub fn opens(&mut self, region: Option<u32>, names: &[&str]) {
        let counts = std::mem::take(&mut self.counts);
        if let Some(region) = self.region.filter(|_| counts != Counts::default()) {
            let sums = self.regions.entry(region).or_default();
            sums.iter_mut().flatten().zip(counts.iter().flatten()).for_each(|(sum, more)| *sum += more);
        }
        self.region = region;
        let known = self.sets.iter().position(|set| set.names.iter().eq(names.iter()));
        self.current = known.unwrap_or_else(|| {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            self.sets.push(Touched { names, ..Touched::default() });
            self.sets.len() - 1
        });
    }

    /// The number of a page that was touched already.
    pub fn number(&self, page: Page) -> Option<u32> {
        self.sets[self.current].numbers.get(&page).copied()
    }

    /// The number of a page, which may be a new one.
    pub fn add(&mut self, page: Page) -> u32 {
        let set = &mut self.sets[self.current];
        let next = set.lines.len() as u32;
        let number = *set.numbers.entry(page).or_insert(next);
        if number == next {
            set.lines.push(0);
        }
        number
    }

    /// A line of a page is touched.
    #[inline]
    pub fn touch(&mut self, number: u32, address: u64) {
        if let Some(lines) = self.sets[self.current].lines.get_mut(number as usize) {
            *lines |= 1 << ((address & 0xfff) >> self.line_shift);
        }
    }

    /// A page of this kind is read or written.
    #[inline]
    pub fn count(&mut self, kind: u8, store: bool) {
        if let Some(counts) = self.counts.get_mut(usize::from(kind)) {
            counts[usize::from(store)] += 1;
        }
    }

    /// Accesses by region, and what was touched by name of region and in all of them.
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
            let meant = |set: &&Touched| name.is_none_or(|name| set.names.iter().any(|open| open == name));
            let mut all: HashMap<Page, u128> = HashMap::new();
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
        let mut of = Footprint::new(6);
        let page = |number, process, shift| Page { number, process, shift };
        let touch = |of: &mut Footprint, page: Page, address: u64, store: bool| {
            let number = of.number(page).unwrap_or_else(|| of.add(page));
            of.touch(number, address);
            of.count(page.kind(), store);
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
