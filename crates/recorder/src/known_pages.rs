//! Recently accessed pages of one CPU: what an access found out about its page, so that the next
//! ones need not ask QEMU, the page tables and the footprint again.
//!
//! An entry is valid as long as the guest's translation, the TLB's way, the page's size and the
//! open regions are the same. Whoever changes one of them removes the entries.

use kerntune_isa::{GuestIsa, Isa};
use kerntune_layout::CacheWays;

/// Number of no line and no page.
pub(crate) const NO_NUMBER: u64 = u64::MAX;
/// log2 of the smallest page in bytes.
pub(crate) const PAGE_SHIFT: u32 = 12;
/// log2 of the line size in bytes for which pages are kept.
pub(crate) const LINE_SHIFT: u32 = 6;
/// Lines of a page.
pub(crate) const LINES: u64 = 1 << (PAGE_SHIFT - LINE_SHIFT);
/// Entries for each half of the address space.
const HALF: usize = 256;

/// Results of the last accesses to a page of 4 KiB.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub(crate) struct KnownPage {
    /// Number of its first physical line.
    pub first_line: u64,
    /// Way of the first-level TLBs that holds its translation.
    pub tlb: u32,
    /// Footprint number and kind.
    pub touched: (u32, u8),
    /// Last known way of the L1D of each line whose footprint is marked.
    l1d: [u16; LINES as usize],
}

/// Pages by virtual number, one for each remainder in each half of the address space.
pub(crate) struct KnownPages {
    /// Page number of each entry for reads, and for writes.
    keys: [[u64; 2]; 2 * HALF],
    pages: [KnownPage; 2 * HALF],
}

const NO_KEYS: [u64; 2] = [NO_NUMBER; 2];

impl KnownPage {
    /// Creates a page without known lines.
    pub fn new(first_line: u64, tlb: u32, touched: (u32, u8)) -> Self {
        Self { first_line, tlb, touched, l1d: [CacheWays::UNKNOWN as u16; LINES as usize] }
    }

    /// Returns the physical number of the line at a virtual address of the page, and its ways.
    #[inline]
    pub fn line(&self, address: u64) -> (u64, CacheWays) {
        let at = (address >> LINE_SHIFT) % LINES;
        (self.first_line + at, CacheWays { tlb: self.tlb, l1d: self.l1d[at as usize].into() })
    }

    /// Remembers the way of the line at an address.
    pub fn set_way(&mut self, address: u64, way: u32) {
        self.l1d[((address >> LINE_SHIFT) % LINES) as usize] =
            u16::try_from(way).unwrap_or(CacheWays::UNKNOWN as u16);
    }
}

impl KnownPages {
    pub fn new() -> Self {
        let page = KnownPage::new(0, CacheWays::UNKNOWN, (0, 0));
        Self { keys: [NO_KEYS; 2 * HALF], pages: [page; 2 * HALF] }
    }

    #[inline]
    fn place(address: u64) -> usize {
        (address >> PAGE_SHIFT) as usize % HALF + HALF * usize::from(GuestIsa::is_kernel(address))
    }

    /// Returns the page at an address if this kind of access to it is known.
    #[inline]
    pub fn get(&self, address: u64, store: bool) -> Option<&KnownPage> {
        let place = Self::place(address);
        (self.keys[place][usize::from(store)] == address >> PAGE_SHIFT).then(|| &self.pages[place])
    }

    /// Returns the page at an address if any kind of access to it is known.
    pub fn find(&mut self, address: u64) -> Option<&mut KnownPage> {
        let place = Self::place(address);
        self.keys[place].contains(&(address >> PAGE_SHIFT)).then(|| &mut self.pages[place])
    }

    /// Adds the page at an address, known from an access of this kind.
    pub fn insert(&mut self, address: u64, store: bool, page: KnownPage) {
        let place = Self::place(address);
        self.keys[place] = NO_KEYS;
        self.keys[place][usize::from(store)] = address >> PAGE_SHIFT;
        self.pages[place] = page;
    }

    /// Adds another kind of access to the page at an address, which has this physical line. A page
    /// that has another one for it is removed.
    pub fn extend(&mut self, address: u64, store: bool, line: u64) {
        let place = Self::place(address);
        match self.find(address).map(|page| page.line(address).0 == line) {
            Some(true) => self.keys[place][usize::from(store)] = address >> PAGE_SHIFT,
            Some(false) => self.keys[place] = NO_KEYS,
            None => {}
        }
    }

    /// Removes pages whose translation was in a way of the TLB that another one is in now.
    #[cold]
    pub fn remove_way(&mut self, tlb: u32) {
        for (keys, page) in self.keys.iter_mut().zip(self.pages.iter()) {
            if page.tlb == tlb {
                *keys = NO_KEYS;
            }
        }
    }

    /// Removes the pages of the user half.
    pub fn clear_user(&mut self) {
        self.keys[..HALF].fill(NO_KEYS);
    }

    /// Removes all pages.
    pub fn clear(&mut self) {
        self.keys.fill(NO_KEYS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: u64 = 0xffff_8880_0012_3000;
    const USER: u64 = 0x7f00_0012_3000;

    fn page(first_line: u64, tlb: u32) -> KnownPage {
        KnownPage::new(first_line, tlb, (4, 1))
    }

    #[test]
    fn a_page_is_known_for_the_accesses_that_were_made() {
        let mut pages = KnownPages::new();
        assert!(pages.get(KERNEL, false).is_none());
        pages.insert(KERNEL, false, page(0x40, 3));
        pages.insert(USER, true, page(0x80, 4));
        let (line, ways) = pages.get(KERNEL + 0xfc7, false).unwrap().line(KERNEL + 0xfc7);
        assert_eq!((line, ways), (0x7f, CacheWays { tlb: 3, l1d: CacheWays::UNKNOWN }));
        pages.find(KERNEL).unwrap().set_way(KERNEL + 0xfc0, 9);
        pages.find(KERNEL).unwrap().set_way(KERNEL, 1 << 16);
        assert_eq!(pages.get(KERNEL, false).unwrap().line(KERNEL + 0xfff).1.l1d, 9);
        assert_eq!(pages.get(KERNEL, false).unwrap().line(KERNEL).1.l1d, CacheWays::UNKNOWN);
        assert!(pages.get(KERNEL, true).is_none() && pages.get(USER, false).is_none());
        // A write to the same physical page, and a read of another one.
        pages.extend(KERNEL + 0x47, true, 0x41);
        assert!(pages.get(KERNEL, true).is_some());
        pages.extend(USER, false, 0x81);
        assert!(pages.find(USER).is_none());
        pages.extend(USER, false, 0x81);
        assert!(pages.find(USER).is_none());
        // Another page in the same place.
        pages.insert(KERNEL + ((HALF as u64) << PAGE_SHIFT), false, page(0xc0, 3));
        assert!(pages.find(KERNEL).is_none());
    }

    #[test]
    fn pages_are_removed_by_way_and_half() {
        let mut pages = KnownPages::new();
        let next = 1 << PAGE_SHIFT;
        for (address, tlb) in [(KERNEL, 3), (KERNEL + next, 4), (USER, 3), (USER + next, 4)] {
            pages.insert(address, true, page(0, tlb));
        }
        pages.remove_way(3);
        assert!(pages.find(KERNEL).is_none() && pages.find(USER).is_none());
        assert!(pages.find(KERNEL + next).is_some() && pages.find(USER + next).is_some());
        pages.clear_user();
        assert!(pages.find(KERNEL + next).is_some() && pages.find(USER + next).is_none());
        pages.clear();
        assert!(pages.find(KERNEL + next).is_none());
    }
}
