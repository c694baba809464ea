//! Data cache model and attribution of its misses (`record --data`).
//!
//! The caches are fed from the first instruction on, so that they are warm when a region begins.
//! Misses are counted only in regions. Only a miss looks for the accessed object, which means
//! reading the kernel's page descriptors. Accesses that the CPU makes by itself (page walks,
//! interrupt frames) are not seen.

use crate::footprint::{FootprintTracker, TouchedPage, NO_PAGE};
use crate::functions::TracedFunctions;
use crate::known_pages::{KnownPages, LINE_SHIFT, NO_NUMBER, PAGE_SHIFT};
use crate::shared_lines::{LinePieces, RecentLine, RecentLines};
use crate::tally::AccessTally;
use kerntune_isa::{AddressSpace, ForgottenTranslations, GuestIsa, Isa, StoppedCpu};
use kerntune_layout::{DataCaches, DataConfig, DataCounts};
use kerntune_trace::data::{
    AccessCounts, DataFile, DataLocation, DataSpec, LocationMisses, MissCounts, PathMisses, RegionAccesses,
    SharedLine, SharedPiece, SlabCache,
};
use kerntune_trace::VERSION;
use rustc_hash::FxHashMap as HashMap;
use std::collections::BTreeMap;

/// log2 of the smallest page, in the type of [`CoreState::touched`].
const SMALL: u8 = PAGE_SHIFT as u8;

/// log2 of the number of instructions whose function is remembered.
const RECENT_BITS: u32 = 11;

/// Memory access of an instruction.
#[derive(Debug, Clone, Copy)]
pub struct DataAccess {
    /// Address of the instruction.
    pub code: u64,
    /// Virtual address of the data.
    pub address: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// True for a write.
    pub store: bool,
}

/// Last access of one CPU, which short-cuts repeated accesses, and its recent pages.
pub(crate) struct CoreState {
    /// Virtual number of the last line.
    pub(crate) line: u64,
    /// Virtual number of the last line if accesses to it are attributed.
    pub(crate) shared: u64,
    /// Virtual number of the last page.
    pub(crate) page: u64,
    /// Footprint number and kind of the last page, unless `pages` has it.
    pub(crate) touched: (u32, u8),
    /// Physical address of the page table.
    pub(crate) table: u64,
    pub(crate) pages: KnownPages,
    shared_lines: RecentLines,
}

impl CoreState {
    fn new() -> Self {
        Self {
            line: NO_NUMBER,
            shared: NO_NUMBER,
            page: NO_NUMBER,
            touched: NO_TOUCH,
            table: 0,
            pages: KnownPages::new(),
            shared_lines: RecentLines::new(),
        }
    }

    /// Forgets the last access and all pages.
    pub(crate) fn forget(&mut self) {
        (self.line, self.shared, self.page, self.touched) = (NO_NUMBER, NO_NUMBER, NO_NUMBER, NO_TOUCH);
        self.pages.clear();
    }

    /// Keeps what `pages` knows about the last page, since that page may be removed from them.
    pub(crate) fn keep_last_page(&mut self) {
        if self.page == NO_NUMBER {
            return;
        }
        if let Some(page) = self.pages.find(self.page << PAGE_SHIFT) {
            self.touched = page.touched;
        }
    }
}

/// Footprint number and kind of no page.
const NO_TOUCH: (u32, u8) = (NO_PAGE, u8::MAX);

/// Pieces of lines that CPUs have taken from each other, by physical line, and by region, offset and
/// CPU.
type SharedLines = HashMap<u64, BTreeMap<(u32, u32, u32), SharedPiece>>;

/// Data caches and their counts.
pub struct DataTracker {
    pub(crate) caches: DataCaches,
    pub(crate) spec: DataSpec,
    pub(crate) space: Option<AddressSpace>,
    /// State of the executing CPU.
    pub(crate) core: Box<CoreState>,
    /// Number of the executing CPU.
    pub(crate) executing: usize,
    /// States of the other CPUs.
    waiting: Vec<Option<Box<CoreState>>>,
    /// Known page sizes as log2 of bytes, by 2-MiB range of addresses.
    pub(crate) sizes: HashMap<u64, u8>,
    /// Number of times that a known page size turned out to be another one.
    pub(crate) resized: u64,
    pub(crate) footprint: FootprintTracker,
    pub(crate) slabs: HashMap<u64, u32>,
    pub(crate) regions: BTreeMap<u32, [DataCounts; 2]>,
    /// Innermost open region.
    region: Option<u32>,
    /// Accesses not yet added to `region`.
    pub(crate) tally: AccessTally,
    /// Misses not yet added to `region`.
    pub(crate) missed: [DataCounts; 2],
    /// Functions of instructions that missed recently, with the address, by its remainder.
    functions: Box<[(u64, u32); 1 << RECENT_BITS]>,
    pub(crate) paths: Vec<Vec<u32>>,
    pub(crate) path_numbers: HashMap<u64, u32>,
    pub(crate) by_path: HashMap<(u32, u32), DataCounts>,
    pub(crate) by_place: HashMap<(u32, Option<u32>, DataLocation), DataCounts>,
    pub(crate) shared: SharedLines,
    pub(crate) names: Vec<SlabCache>,
}

impl DataTracker {
    /// Creates empty caches for this number of CPUs.
    pub fn new(config: &DataConfig, line_bytes: u64, spec: DataSpec, cpus: usize) -> Self {
        Self {
            caches: DataCaches::new(config, line_bytes, cpus),
            spec,
            space: None,
            core: Box::new(CoreState::new()),
            executing: 0,
            waiting: (0..cpus).map(|cpu| (cpu > 0).then(|| Box::new(CoreState::new()))).collect(),
            sizes: HashMap::default(),
            resized: 0,
            footprint: FootprintTracker::new(line_bytes.trailing_zeros()),
            slabs: HashMap::default(),
            regions: BTreeMap::new(),
            region: None,
            tally: AccessTally::default(),
            missed: Default::default(),
            functions: Box::new([(0, 0); 1 << RECENT_BITS]),
            paths: Vec::new(),
            path_numbers: HashMap::default(),
            by_path: HashMap::default(),
            by_place: HashMap::default(),
            shared: HashMap::default(),
            names: Vec::new(),
        }
    }

    /// Allocates a line of code that a CPU's L1I missed.
    pub fn code(&mut self, cpu: usize, line: u64, salt: u64) {
        self.caches.code(cpu, line, salt);
    }

    /// Handles a change of the executing CPU: other CPUs may have changed the state of its last
    /// line.
    pub fn turn(&mut self, cpu: usize) {
        if let Some(core) = self.waiting[cpu].take() {
            self.waiting[self.executing] = Some(std::mem::replace(&mut self.core, core));
            self.executing = cpu;
        }
        (self.core.line, self.core.shared) = (NO_NUMBER, NO_NUMBER);
    }

    /// Counts an access by user or kernel code that hits the L1D and the first-level TLB and changes
    /// nothing but the order of use. Otherwise does nothing and returns false.
    #[inline]
    pub fn repeat(&mut self, address: u64, bytes: u64, store: bool, user: bool) -> bool {
        let Some(page) = self.core.pages.get(address, store) else { return false };
        if crosses_line(address, bytes) {
            return false;
        }
        let (line, ways) = page.line(address);
        let kind = page.touched.1;
        if !self.caches.repeat(self.executing, line, store, ways, false) {
            return false;
        }
        (self.core.line, self.core.page) = (address >> LINE_SHIFT, address >> PAGE_SHIFT);
        self.tally.count(user, kind, store);
        true
    }

    /// Works like [`Self::repeat`] for a line that CPUs have taken from each other, in a region.
    pub fn repeat_shared(&mut self, access: &DataAccess) -> bool {
        let &DataAccess { address, bytes, store, .. } = access;
        let Some(page) = self.core.pages.get(address, store) else { return false };
        if crosses_line(address, bytes) {
            return false;
        }
        let ((line, ways), kind) = (page.line(address), page.touched.1);
        let pieces = LinePieces::of(address, bytes);
        let Some(recent) = self.core.shared_lines.find(line, pieces) else { return false };
        if !self.caches.repeat(self.executing, line, store, ways, true) {
            return false;
        }
        recent.count(pieces, store);
        let line = address >> LINE_SHIFT;
        (self.core.line, self.core.shared, self.core.page) = (line, line, address >> PAGE_SHIFT);
        self.tally.count(!GuestIsa::is_kernel(access.code), kind, store);
        true
    }

    /// Remembers that these pieces of a shared line have been described in the open region.
    pub(crate) fn learn_pieces(&mut self, line: u64, pieces: LinePieces) {
        if self.caches.line_shift() == LINE_SHIFT {
            let old = self.core.shared_lines.learn(line, pieces);
            if let Some((old, region)) = old.zip(self.region) {
                add_pieces(&mut self.shared, &old, region, self.executing);
            }
        }
    }

    /// Adds recent accesses to shared lines to the open region, and forgets them.
    fn flush_pieces(&mut self) {
        let Some(region) = self.region else { return };
        let waiting = self.waiting.iter_mut().enumerate();
        let waiting = waiting.filter_map(|(cpu, core)| Some((cpu, core.as_mut()?)));
        for (cpu, core) in waiting.chain([(self.executing, &mut self.core)]) {
            for line in core.shared_lines.take() {
                add_pieces(&mut self.shared, &line, region, cpu);
            }
        }
    }

    fn cores(&mut self) -> impl Iterator<Item = &mut CoreState> {
        self.waiting.iter_mut().flatten().chain([&mut self.core]).map(|core| &mut **core)
    }

    /// Forgets translations of the executing CPU, which may have changed.
    pub(crate) fn forget_translations(&mut self, part: ForgottenTranslations) {
        self.core.keep_last_page();
        match part {
            ForgottenTranslations::User => self.core.pages.clear_user(),
            ForgottenTranslations::All => self.core.pages.clear(),
        }
    }

    /// Sets the size of the pages in a 2-MiB range, which may have been another one.
    fn set_size(&mut self, key: u64, shift: u8) {
        if self.sizes.insert(key, shift).is_some_and(|before| before != shift) {
            self.resized += 1;
            for core in self.cores() {
                core.keep_last_page();
                core.pages.clear();
            }
        }
    }

    /// Looks up the translation of an address. Returns the way of the first-level TLBs that holds it
    /// now; `None` before the kernel's address space is known.
    pub(crate) fn translate(
        &mut self,
        address: u64,
        process: u64,
        counts: &mut DataCounts,
        cpu: &mut dyn StoppedCpu,
    ) -> Option<u32> {
        let space = self.space?;
        let is_kernel = GuestIsa::is_kernel(address);
        let salt = if is_kernel { 0 } else { process };
        let key = size_key(address, salt);
        let table = self.core.table;
        let known = self.sizes.entry(key);
        let known = *known.or_insert_with(|| GuestIsa::page_shift(&space, table, address, cpu)) > SMALL;
        let before = *counts;
        let mut way = self.caches.translate(self.executing, address, salt, known, counts);
        if counts.dtlb_misses == before.dtlb_misses {
            return Some(way);
        }
        self.core.pages.remove_way(way);
        let shift = GuestIsa::page_shift(&space, table, address, cpu);
        let large = shift > SMALL;
        if large != known {
            // The page size has changed since the last lookup.
            self.set_size(key, shift);
            *counts = before;
            way = self.caches.translate(self.executing, address, salt, large, counts);
            self.core.pages.remove_way(way);
        }
        Some(way)
    }

    /// Returns footprint number and kind of the page that contains an address.
    pub(crate) fn page(&mut self, address: u64, process: u64, cpu: &mut dyn StoppedCpu) -> (u32, u8) {
        let Some(space) = self.space else { return (NO_PAGE, u8::MAX) };
        let process = if GuestIsa::is_kernel(address) { 0 } else { process };
        let (key, table) = (size_key(address, process), self.core.table);
        let known = self.sizes.entry(key);
        let shift = *known.or_insert_with(|| GuestIsa::page_shift(&space, table, address, cpu));
        let page = TouchedPage { number: address >> PAGE_SHIFT, process, shift };
        if let Some(number) = self.footprint.number(page) {
            return (number, page.kind());
        }
        // The page size may have changed since the last lookup.
        let shift = GuestIsa::page_shift(&space, table, address, cpu);
        self.set_size(key, shift);
        let page = TouchedPage { shift, ..page };
        (self.footprint.add(page), page.kind())
    }

    /// Returns the function that contains the instruction at an address.
    pub(crate) fn function(&mut self, code: u64, functions: &TracedFunctions) -> u32 {
        // Only functions of the image stay where they are.
        if !functions.image_covers(code) {
            return functions.containing(code);
        }
        let recent = &mut self.functions[(code ^ code >> RECENT_BITS) as usize % (1 << RECENT_BITS)];
        if recent.0 != code {
            *recent = (code, functions.containing(code));
        }
        recent.1
    }

    /// Returns the number of a call path, which may be a new one.
    pub(crate) fn path(&mut self, functions: impl Iterator<Item = u32> + Clone) -> u32 {
        let mut hash = path_hash(functions.clone());
        loop {
            match self.path_numbers.get(&hash) {
                None => {
                    let number = self.paths.len() as u32;
                    self.paths.push(functions.collect());
                    self.path_numbers.insert(hash, number);
                    return number;
                }
                Some(&number) if self.paths[number as usize].iter().copied().eq(functions.clone()) => {
                    return number;
                }
                Some(_) => hash = hash.wrapping_add(1),
            }
        }
    }

    /// Handles a change of the open regions: their names, outermost first, and the innermost.
    pub(crate) fn open_regions(&mut self, region: Option<u32>, names: &[&str]) {
        self.flush_counts();
        self.flush_pieces();
        self.footprint.opens(region, names);
        self.region = region;
        // Forget the last accesses, so that the next ones touch the footprint of the new regions.
        // Caches and TLBs do not change, since these accesses were their most recent ones.
        self.cores().for_each(CoreState::forget);
    }

    /// Adds the recent counts to their region. Those outside of all regions are dropped.
    fn flush_counts(&mut self) {
        let tally = std::mem::take(&mut self.tally);
        let mut counts = std::mem::take(&mut self.missed);
        let Some(region) = self.region else { return };
        tally.by_kind().for_each(|(kind, counts)| self.footprint.count(kind, counts));
        counts.iter_mut().zip(tally.by_mode()).for_each(|(sum, more)| *sum += more);
        if counts != [DataCounts::default(); 2] {
            let sums = self.regions.entry(region).or_default();
            sums.iter_mut().zip(counts).for_each(|(sum, more)| *sum += more);
        }
    }

    /// Builds the contents of `data.json`.
    pub fn finish(&mut self) -> DataFile {
        self.flush_counts();
        self.flush_pieces();
        let by_path: BTreeMap<_, _> = std::mem::take(&mut self.by_path).into_iter().collect();
        let by_place: BTreeMap<_, _> = std::mem::take(&mut self.by_place).into_iter().collect();
        let mut shared: BTreeMap<(u32, u64), Vec<SharedPiece>> = BTreeMap::new();
        for (line, pieces) in std::mem::take(&mut self.shared) {
            for ((region, ..), piece) in pieces {
                shared.entry((region, line)).or_default().push(piece);
            }
        }
        let (pages, footprints) = self.footprint.finish();
        DataFile {
            version: VERSION,
            pages,
            footprints,
            caches: std::mem::take(&mut self.names),
            paths: std::mem::take(&mut self.paths),
            regions: std::mem::take(&mut self.regions)
                .into_iter()
                .map(|(region, [kernel, user])| RegionAccesses {
                    region,
                    kernel: accesses(&kernel),
                    user: accesses(&user),
                })
                .collect(),
            by_path: by_path
                .into_iter()
                .map(|((region, path), counts)| PathMisses { region, path, misses: misses(&counts) })
                .collect(),
            by_place: by_place
                .into_iter()
                .map(|((region, function, place), counts)| LocationMisses {
                    region,
                    function,
                    place,
                    misses: misses(&counts),
                })
                .collect(),
            shared: shared
                .into_iter()
                .map(|((region, line), pieces)| SharedLine {
                    region,
                    line: line << self.caches.line_shift(),
                    pieces,
                })
                .collect(),
        }
    }
}

/// Returns a hash of a call path, computed in four lanes that do not wait for each other.
fn path_hash(mut functions: impl Iterator<Item = u32>) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut lanes = [1u64, 2, 3, 4];
    loop {
        for (at, lane) in lanes.iter_mut().enumerate() {
            let Some(function) = functions.next() else {
                let sum = lanes.iter().fold(at as u64, |sum, lane| (sum ^ lane).wrapping_mul(FACTOR));
                return sum ^ sum >> 32;
            };
            *lane = (lane.rotate_left(23) ^ u64::from(function)).wrapping_mul(FACTOR);
        }
    }
}

/// Returns true if an access of so many bytes goes on in the next line.
#[inline]
fn crosses_line(address: u64, bytes: u64) -> bool {
    const LINE_BYTES: u64 = 1 << LINE_SHIFT;
    address % LINE_BYTES + bytes > LINE_BYTES
}

/// Adds a CPU's recent accesses to a shared line to a region.
fn add_pieces(shared: &mut SharedLines, line: &RecentLine, region: u32, cpu: usize) {
    let Some(pieces) = shared.get_mut(&line.number()) else { return };
    for (number, [loads, stores]) in line.counts() {
        if let Some(piece) = pieces.get_mut(&(region, number, cpu as u32)) {
            piece.loads += loads;
            piece.stores += stores;
        }
    }
}

/// Returns the key of a 2-MiB range in a process. A collision is harmless, because a wrong page
/// size is detected.
fn size_key(address: u64, process: u64) -> u64 {
    address >> 21 ^ process << 40
}

fn misses(counts: &DataCounts) -> MissCounts {
    MissCounts {
        l1d: counts.l1d_misses,
        stores: counts.l1d_store_misses,
        l2: counts.l2_misses,
        l3: counts.l3_misses,
        transfers: counts.transfers,
        dtlb: counts.dtlb_misses,
        walks: counts.walks,
    }
}

fn accesses(counts: &DataCounts) -> AccessCounts {
    AccessCounts { loads: counts.loads, stores: counts.stores, misses: misses(counts) }
}
