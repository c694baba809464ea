//! What accesses to data miss, and what they access (`record --data`).
//!
//! The caches go along from the first instruction on, so that they are as warm as they would be; what they miss is
//! counted in regions. Only a miss asks who accesses what: it reads the kernel's own notes on the page. Accesses that the
//! CPU makes by itself (page tables, what an interrupt pushes) are not seen.

use crate::recorder::Recorder;
use crate::Failure;
use kerntune_isa::{AddressSpace, Cpu, Guest, Isa};
use kerntune_layout::{DataCaches, DataConfig, DataCounts};
use kerntune_trace::data::{
    Accesses, DataFile, DataSpec, Misses, PathMisses, Place, PlaceKind, PlaceMisses, RegionAccesses,
    SharedLine, SharedPiece, SlabCache, SlabMark, SlabSpec, PIECE_BYTES,
};
use kerntune_trace::VERSION;
use std::collections::{BTreeMap, HashMap};

/// No line and no page has this number.
const NONE: u64 = u64::MAX;
const PAGE_SHIFT: u32 = 12;
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
struct Core {
    /// The line that was touched last, by its virtual number, and whether it may be written without further ado.
    line: (u64, bool),
    /// Its number in physical memory, if it may be a shared one.
    shared: Option<u64>,
    /// The page that was touched last, by its virtual number.
    page: u64,
    /// Physical address of the page table.
    table: u64,
}

const NOWHERE: Core = Core { line: (NONE, false), shared: None, page: NONE, table: 0 };

/// Caches, and what was counted.
pub struct Data {
    caches: DataCaches,
    spec: DataSpec,
    space: Option<AddressSpace>,
    cores: Vec<Core>,
    /// Whether 2 MiB of the kernel's addresses are a large page, as far as is known.
    large: HashMap<u64, bool>,
    slabs: HashMap<u64, u32>,
    regions: BTreeMap<u32, [DataCounts; 2]>,
    paths: Vec<Vec<u32>>,
    path_numbers: HashMap<u64, u32>,
    by_path: HashMap<(u32, u32), DataCounts>,
    by_place: HashMap<(u32, Option<u32>, Place), DataCounts>,
    filter: Vec<u64>,
    shared: HashMap<u64, BTreeMap<(u32, u32, u32), SharedPiece>>,
    names: Vec<SlabCache>,
}

impl Data {
    /// Caches of these sizes for so many CPUs.
    pub fn new(config: &DataConfig, line_bytes: u64, spec: DataSpec, cpus: usize) -> Self {
        Self {
            caches: DataCaches::new(config, line_bytes, cpus),
            spec,
            space: None,
            cores: vec![NOWHERE; cpus],
            large: HashMap::new(),
            slabs: HashMap::new(),
            regions: BTreeMap::new(),
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

    fn filter_place(line: u64) -> (usize, u64) {
        let hash = (line.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - FILTER_BITS)) as usize;
        (hash / 64, 1 << (hash % 64))
    }

    fn may_be_shared(&self, line: u64) -> bool {
        let (word, bit) = Self::filter_place(line);
        self.filter[word] & bit != 0
    }

    /// Looks up the translation of an address.
    fn translate(
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
        // Of user code, too: which process's it is does not matter for what is put right when it is missed.
        let key = address >> 21 ^ salt << 40;
        let table = self.cores[core].table;
        let known = self.large.entry(key);
        let known = *known.or_insert_with(|| Guest::is_large_page(&space, table, address, cpu));
        let before = *counts;
        self.caches.translate(core, address, salt, known, counts);
        if counts.dtlb_misses == before.dtlb_misses {
            return;
        }
        let large = Guest::is_large_page(&space, table, address, cpu);
        if large != known {
            // It was, and is not any more, or the other way round.
            self.large.insert(key, large);
            *counts = before;
            self.caches.translate(core, address, salt, large, counts);
        }
    }

    /// What lies at a kernel address.
    fn place(&mut self, address: u64, task: u64, per_cpu: &[u64], cpu: &mut dyn Cpu) -> Place {
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
    fn path(&mut self, functions: impl Iterator<Item = u32> + Clone) -> u32 {
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

    /// The file's contents.
    pub fn finish(&mut self) -> DataFile {
        let by_path: BTreeMap<_, _> = std::mem::take(&mut self.by_path).into_iter().collect();
        let by_place: BTreeMap<_, _> = std::mem::take(&mut self.by_place).into_iter().collect();
        let mut shared: BTreeMap<(u32, u64), Vec<SharedPiece>> = BTreeMap::new();
        for (line, pieces) in std::mem::take(&mut self.shared) {
            for ((region, ..), piece) in pieces {
                shared.entry((region, line)).or_default().push(piece);
            }
        }
        DataFile {
            version: VERSION,
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
fn moved(place: Place, bytes: i64) -> Place {
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

impl Recorder {
    /// An instruction has read or written memory; `physical` says where that is, if it is memory.
    ///
    /// # Errors
    /// None yet; callbacks have one form.
    #[inline]
    pub fn on_data(
        &mut self,
        access: Access,
        physical: impl FnOnce() -> Option<u64>,
        cpu: &mut dyn Cpu,
    ) -> Result<(), Failure> {
        let Some(data) = &mut self.data else { return Ok(()) };
        let at = self.cpus.current();
        let shift = data.caches.line_shift();
        let (first, last) =
            (access.address >> shift, access.address.wrapping_add(access.bytes.saturating_sub(1)) >> shift);
        let core = &data.cores[at];
        let same = first == core.line.0 && last == first && (core.line.1 || !access.store);
        if same && (core.shared.is_none() || !self.recording) {
            if self.recording {
                self.count_access(&access, DataCounts::default());
            }
            return Ok(());
        }
        let Some(physical) = physical() else { return Ok(()) };
        self.touch(access, first, physical, cpu);
        // The rest of an access across the end of a line. Where the next page is in memory is not known.
        if last != first && last << shift >> PAGE_SHIFT == access.address >> PAGE_SHIFT {
            let address = last << shift;
            let bytes = access.bytes - (address - access.address);
            let physical = physical + (address - access.address);
            self.touch(Access { address, bytes, ..access }, last, physical, cpu);
        }
        Ok(())
    }

    /// Accesses part of one line.
    fn touch(&mut self, access: Access, virtual_line: u64, physical: u64, cpu: &mut dyn Cpu) {
        let Some(data) = &mut self.data else { return };
        let at = self.cpus.current();
        let line = physical >> data.caches.line_shift();
        let mut counts = DataCounts::default();
        let page = access.address >> PAGE_SHIFT;
        if data.cores[at].page != page {
            let process = u64::from(self.threads.running().thread.tgid);
            data.translate(at, access.address, process, &mut counts, cpu);
            data.cores[at].page = page;
        }
        data.caches.touch(at, line, access.store, &mut counts);
        let may_be_shared = data.may_be_shared(line);
        let is_ours = access.store || (data.cores[at].line == (virtual_line, true));
        data.cores[at].line = (virtual_line, is_ours);
        data.cores[at].shared = may_be_shared.then_some(line);
        if !self.recording {
            return;
        }
        self.count_access(&access, counts);
        if counts.is_miss() || may_be_shared {
            self.attribute(&access, physical, &counts, cpu);
        }
    }

    #[inline]
    fn count_access(&mut self, access: &Access, counts: DataCounts) {
        let (Some(data), Some(region)) = (&mut self.data, self.regions.open().last()) else { return };
        let modes = data.regions.entry(region).or_default();
        let sum = &mut modes[usize::from(!Guest::is_kernel(access.code))];
        *sum += DataCounts { loads: u64::from(!access.store), stores: u64::from(access.store), ..counts };
    }

    /// Notes who missed what where.
    fn attribute(&mut self, access: &Access, physical: u64, counts: &DataCounts, cpu: &mut dyn Cpu) {
        let (Some(data), Some(region)) = (&mut self.data, self.regions.open().last()) else { return };
        let at = self.cpus.current() as u32;
        let line = physical >> data.caches.line_shift();
        let bytes = 1 << data.caches.line_shift();
        let from = physical % bytes / PIECE_BYTES * PIECE_BYTES;
        let pieces =
            (from..(physical % bytes + access.bytes.max(1)).min(bytes)).step_by(PIECE_BYTES as usize);
        if !counts.is_miss() {
            // It is told once what a piece is, and then only counted.
            let Some(shared) = data.shared.get_mut(&line) else { return };
            let known = |piece: u64| shared.contains_key(&(region, piece as u32, at));
            if pieces.clone().all(known) {
                for piece in pieces {
                    if let Some(piece) = shared.get_mut(&(region, piece as u32, at)) {
                        piece.loads += u64::from(!access.store);
                        piece.stores += u64::from(access.store);
                    }
                }
                return;
            }
        }
        let stack = self.threads.running();
        let place = data.place(access.address, stack.thread.task, &self.per_cpu.1, cpu);
        if counts.is_miss() {
            let functions = &self.planner.functions;
            let function = Guest::is_kernel(access.code).then(|| functions.containing(access.code));
            let path = data.path(stack.frames.iter().map(|(function, _)| *function));
            *data.by_path.entry((region, path)).or_default() += *counts;
            *data.by_place.entry((region, function, place)).or_default() += *counts;
        }
        if counts.transfers > 0 {
            let (word, bit) = Data::filter_place(line);
            data.filter[word] |= bit;
            data.shared.entry(line).or_default();
            data.cores[at as usize].shared = Some(line);
        }
        let Some(shared) = data.shared.get_mut(&line) else { return };
        let start = physical % bytes;
        for (number, piece) in pieces.enumerate() {
            let entry = shared.entry((region, piece as u32, at)).or_insert(SharedPiece {
                at: piece as u32,
                cpu: at,
                place: moved(place, piece as i64 - start as i64),
                loads: 0,
                stores: 0,
                transfers: 0,
            });
            entry.loads += u64::from(!access.store);
            entry.stores += u64::from(access.store);
            entry.transfers += if number == 0 { counts.transfers } else { 0 };
        }
    }

    /// The page table may be another one from here on.
    pub(crate) fn look_at_page_table(&mut self, cpu: &mut dyn Cpu) {
        if let Some(data) = &mut self.data {
            let core = &mut data.cores[self.cpus.current()];
            core.table = Guest::page_table(cpu);
            core.page = NONE;
            if data.space.is_none() && core.table != 0 {
                data.space = Some(Guest::address_space(cpu));
            }
        }
    }
}
