//! What accesses to data miss, and what they access (`record --data`).
//!
//! The caches go along from the first instruction on, so that they are as warm as they would be; what they miss is
//! counted in regions. Only a miss asks who accesses what: it reads the kernel's own notes on the page. Accesses that the
//! CPU makes by itself (page tables, what an interrupt pushes) are not seen.

use crate::footprint::{Footprint, Page, NOTHING};
use kerntune_isa::{AddressSpace, Cpu, Guest, Isa};
use kerntune_layout::{DataCaches, DataConfig, DataCounts};
use kerntune_trace::data::{
    Accesses, DataFile, DataSpec, Misses, PathMisses, Place, PlaceKind, PlaceMisses, RegionAccesses,
    SharedLine, SharedPiece, SlabCache, SlabMark, SlabSpec,
};
use kerntune_trace::VERSION;
use std::collections::{BTreeMap, HashMap};

/// No line and no page has this number.
pub(crate) const NONE: u64 = u64::MAX;
pub(crate) const PAGE_SHIFT: u32 = 12;
/// The same of the smallest page.
const SMALL: u8 = PAGE_SHIFT as u8;
/// Bytes of a thread's stack at most (`THREAD_SIZE`).
const STACK_BYTES: u64 = 16 << 10;
/// Bits of the filter that says which lines may be shared.
const FILTER_BITS: u32 = 16;

/// One access to memory.
#[derive(Debug, Clone, Copy)]
pub struct Access {
    /// The instruction.
    pub code: u64,
    /// The virtual address.
    pub address: u64,
    /// Bytes.
    pub bytes: u64,
    /// Whether it writes.
    pub store: bool,
}

/// What belongs to one CPU.
#[derive(Clone, Copy)]
pub(crate) struct Core {
    /// The line that was touched last, by its virtual number, and whether it may be written without further ado.
    pub(crate) line: (u64, bool),
    /// Its number in physical memory, if it may be a shared one.
    pub(crate) shared: Option<u64>,
    /// The page that was touched last, by its virtual number.
    pub(crate) page: u64,
    /// The number and the kind of that page among those that are touched.
    pub(crate) touched: (u32, u8),
    /// Physical address of the page table.
    pub(crate) table: u64,
}

pub(crate) const NOWHERE: Core =
    Core { line: (NONE, false), shared: None, page: NONE, touched: (NOTHING, u8::MAX), table: 0 };

/// Caches, and what was counted.
pub struct Data {
    pub(crate) caches: DataCaches,
    pub(crate) spec: DataSpec,
    pub(crate) space: Option<AddressSpace>,
    pub(crate) cores: Vec<Core>,
    /// log2 of the bytes of pages, by 2 MiB of addresses, as far as is known.
    pub(crate) sizes: HashMap<u64, u8>,
    pub(crate) footprint: Footprint,
    pub(crate) slabs: HashMap<u64, u32>,
    pub(crate) regions: BTreeMap<u32, [DataCounts; 2]>,
    /// What was counted lately, in this region; not in `regions` yet.
    pub(crate) counted: (u32, [DataCounts; 2]),
    pub(crate) paths: Vec<Vec<u32>>,
    pub(crate) path_numbers: HashMap<u64, u32>,
    pub(crate) by_path: HashMap<(u32, u32), DataCounts>,
    pub(crate) by_place: HashMap<(u32, Option<u32>, Place), DataCounts>,
    pub(crate) filter: Vec<u64>,
    pub(crate) shared: HashMap<u64, BTreeMap<(u32, u32, u32), SharedPiece>>,
    pub(crate) names: Vec<SlabCache>,
}

impl Data {
    /// Caches of these sizes for so many CPUs.
    pub fn new(config: &DataConfig, line_bytes: u64, spec: DataSpec, cpus: usize) -> Self {
        Self {
            caches: DataCaches::new(config, line_bytes, cpus),
            spec,
            space: None,
            cores: vec![NOWHERE; cpus],
            sizes: HashMap::new(),
            footprint: Footprint::new(line_bytes.trailing_zeros()),
            slabs: HashMap::new(),
            regions: BTreeMap::new(),
            counted: (0, [DataCounts::default(); 2]),
            paths: Vec::new(),
            path_numbers: HashMap::new(),
            by_path: HashMap::new(),
            by_place: HashMap::new(),
            filter: vec![0; 1 << (FILTER_BITS - 6)],
            shared: HashMap::new(),
            names: Vec::new(),
        }
    }

    /// The L1I of a CPU misses a line.
    pub fn code(&mut self, cpu: usize, line: u64, salt: u64) {
        self.caches.code(cpu, line, salt);
    }

    /// Another CPU executes from here on: who knows what happened to its lines.
    pub fn turn(&mut self, cpu: usize) {
        let Core { line, shared, .. } = &mut self.cores[cpu];
        (*line, *shared) = ((NONE, false), None);
    }

    pub(crate) fn filter_place(line: u64) -> (usize, u64) {
        let hash = (line.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - FILTER_BITS)) as usize;
        (hash / 64, 1 << (hash % 64))
    }

    pub(crate) fn may_be_shared(&self, line: u64) -> bool {
        let (word, bit) = Self::filter_place(line);
        self.filter[word] & bit != 0
    }

    /// Looks up the translation of an address.
    pub(crate) fn translate(
        &mut self,
        core: usize,
        address: u64,
        process: u64,
        counts: &mut DataCounts,
        cpu: &mut dyn Cpu,
    ) {
        let Some(space) = self.space else { return };
        let is_kernel = Guest::is_kernel(address);
        let salt = if is_kernel { 0 } else { process };
        let key = size_key(address, salt);
        let table = self.cores[core].table;
        let known = self.sizes.entry(key);
        let known = *known.or_insert_with(|| Guest::page_shift(&space, table, address, cpu)) > SMALL;
        let before = *counts;
        self.caches.translate(core, address, salt, known, counts);
        if counts.dtlb_misses == before.dtlb_misses {
            return;
        }
        let shift = Guest::page_shift(&space, table, address, cpu);
        let large = shift > SMALL;
        if large != known {
            // It was, and is not any more, or the other way round.
            self.sizes.insert(key, shift);
            *counts = before;
            self.caches.translate(core, address, salt, large, counts);
        }
    }

    /// The number and the kind of the page that an address is in, among those that are touched.
    pub(crate) fn page(&mut self, core: usize, address: u64, process: u64, cpu: &mut dyn Cpu) -> (u32, u8) {
        let Some(space) = self.space else { return (NOTHING, u8::MAX) };
        let process = if Guest::is_kernel(address) { 0 } else { process };
        let (key, table) = (size_key(address, process), self.cores[core].table);
        let known = self.sizes.entry(key);
        let shift = *known.or_insert_with(|| Guest::page_shift(&space, table, address, cpu));
        let page = Page { number: address >> PAGE_SHIFT, process, shift };
        if let Some(number) = self.footprint.number(page) {
            return (number, page.kind());
        }
        // It may have become a page of another size since somebody looked.
        let shift = Guest::page_shift(&space, table, address, cpu);
        self.sizes.insert(key, shift);
        let page = Page { shift, ..page };
        (self.footprint.add(page), page.kind())
    }

    /// What lies at a kernel address.
    pub(crate) fn place(&mut self, address: u64, task: u64, per_cpu: &[u64], cpu: &mut dyn Cpu) -> Place {
        let other = |kind| Place { kind, object: 0, offset: 0 };
        let Some(space) = self.space.filter(|_| Guest::is_kernel(address)) else {
            return other(PlaceKind::User);
        };
        let within = |(from, to): (u64, u64)| (from..to).contains(&address);
        if within(space.image) {
            return Place { object: address, ..other(PlaceKind::Image) };
        }
        let in_image = per_cpu.iter().map(|offset| address.wrapping_sub(*offset));
        let (start, end) = self.spec.per_cpu;
        if let Some(object) = in_image.into_iter().find(|at| (start..end).contains(at)) {
            return Place { object, ..other(PlaceKind::PerCpu) };
        }
        if let Some(slab) = self.spec.slab {
            let stack = read(cpu, task.wrapping_add(slab.stack.into()));
            if stack.is_some_and(|stack| address.wrapping_sub(stack) < STACK_BYTES) {
                return other(PlaceKind::Stack);
            }
            if within(space.page_structs) {
                let offset = (address - space.page_structs.0) % u64::from(slab.page_bytes.max(1));
                return Place { offset: offset as u32, ..other(PlaceKind::Page) };
            }
            if within(space.direct) {
                let object = self.slab_object(&space, &slab, address, cpu);
                return object.unwrap_or(other(PlaceKind::Memory));
            }
        }
        match () {
            () if within(space.page_structs) => other(PlaceKind::Page),
            () if within(space.direct) => other(PlaceKind::Memory),
            () if within(space.mapped) || within(space.modules) => other(PlaceKind::Mapped),
            () => other(PlaceKind::Other),
        }
    }

    /// The slab object at an address of the direct map, by what `struct page` and `struct slab` say of it.
    fn slab_object(
        &mut self,
        space: &AddressSpace,
        slab: &SlabSpec,
        address: u64,
        cpu: &mut dyn Cpu,
    ) -> Option<Place> {
        let bytes = u64::from(slab.page_bytes);
        let mut number = (address - space.direct.0) >> PAGE_SHIFT;
        let page = |number: u64| space.page_structs.0 + number * bytes;
        // A page that is not the first of several says which is (`compound_head`).
        let head = read(cpu, page(number) + 8)?;
        if head & 1 == 1 {
            number = (head - 1).checked_sub(space.page_structs.0)? / bytes.max(1);
        }
        let is_slab = match slab.mark {
            SlabMark::Type { offset, value } => {
                read(cpu, page(number) + u64::from(offset))? as u32 >> 24 == u32::from(value)
            }
            SlabMark::Flag(bit) => read(cpu, page(number))? >> (bit & 63) & 1 == 1,
        };
        if !is_slab {
            return None;
        }
        let cache = read(cpu, page(number) + u64::from(slab.cache))?;
        let size = read(cpu, cache.wrapping_add(slab.size.into()))? as u32;
        let from = space.direct.0 + (number << PAGE_SHIFT);
        let object = u64::from(self.cache(cache, slab, cpu)?);
        let offset = address.checked_sub(from)?.checked_rem(size.into())? as u32;
        Some(Place { kind: PlaceKind::Slab, object, offset })
    }

    /// The number of a slab cache.
    fn cache(&mut self, cache: u64, slab: &SlabSpec, cpu: &mut dyn Cpu) -> Option<u32> {
        if let Some(number) = self.slabs.get(&cache) {
            return Some(*number);
        }
        let name = read(cpu, cache.wrapping_add(slab.name.into()))?;
        let object_bytes = read(cpu, cache.wrapping_add(slab.object_size.into()))? as u32;
        let mut text = Vec::new();
        let mut byte = [0];
        while text.len() < 64 && cpu.read(name.wrapping_add(text.len() as u64), &mut byte) && byte[0] != 0 {
            text.push(byte[0]);
        }
        let number = self.names.len() as u32;
        let users = read(cpu, cache.wrapping_add(slab.refcount.into()))? as u32 as i32;
        let name = String::from_utf8_lossy(&text).into_owned();
        self.names.push(SlabCache { name, object_bytes, merged: users > 1 });
        self.slabs.insert(cache, number);
        Some(number)
    }

    /// The number of the path that these functions are.
    pub(crate) fn path(&mut self, functions: impl Iterator<Item = u32> + Clone) -> u32 {
        let mut hash = functions.clone().fold(0xcbf2_9ce4_8422_2325, |hash: u64, function| {
            (hash ^ u64::from(function)).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23)
        });
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

    /// Counts go to another region from here on.
    #[cold]
    pub(crate) fn put_away(&mut self, next: u32) {
        let (region, counts) = std::mem::replace(&mut self.counted, (next, Default::default()));
        if counts != [DataCounts::default(); 2] {
            let sums = self.regions.entry(region).or_default();
            sums.iter_mut().zip(counts).for_each(|(sum, more)| *sum += more);
        }
    }

    /// The file's contents.
    pub fn finish(&mut self) -> DataFile {
        self.put_away(0);
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
                .map(|((region, function, place), counts)| PlaceMisses {
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

/// What stands for 2 MiB of a process's addresses. Two that share one do not matter, as what is wrong is put right.
fn size_key(address: u64, process: u64) -> u64 {
    address >> 21 ^ process << 40
}

fn misses(counts: &DataCounts) -> Misses {
    Misses {
        l1d: counts.l1d_misses,
        stores: counts.l1d_store_misses,
        l2: counts.l2_misses,
        l3: counts.l3_misses,
        transfers: counts.transfers,
        dtlb: counts.dtlb_misses,
        walks: counts.walks,
    }
}

fn accesses(counts: &DataCounts) -> Accesses {
    Accesses { loads: counts.loads, stores: counts.stores, misses: misses(counts) }
}

/// What lies so many bytes further.
pub(crate) fn moved(place: Place, bytes: i64) -> Place {
    match place.kind {
        PlaceKind::Image | PlaceKind::PerCpu => {
            Place { object: place.object.wrapping_add_signed(bytes), ..place }
        }
        PlaceKind::Slab | PlaceKind::Page => {
            Place { offset: place.offset.saturating_add_signed(bytes as i32), ..place }
        }
        _ => place,
    }
}

/// 8 bytes of the guest's memory.
fn read(cpu: &mut dyn Cpu, address: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    cpu.read(address, &mut bytes).then(|| u64::from_le_bytes(bytes))
}
