//! Data accesses: passes each one through the caches and attributes its misses.

use crate::data::{DataAccess, DataTracker};
use crate::known_pages::{KnownPage, LINES, LINE_SHIFT, NO_NUMBER, PAGE_SHIFT};
use crate::locations::moved;
use crate::recorder::Recorder;
use crate::shared_lines::LinePieces;
use crate::Failure;
use kerntune_isa::{ForgottenTranslations, GuestIsa, Isa, StoppedCpu};
use kerntune_layout::DataCounts;
use kerntune_trace::data::{SharedPiece, PIECE_BYTES};

impl Recorder {
    /// Handles a read or write of memory by an instruction. `physical` returns the physical
    /// address, or `None` for a device.
    ///
    /// # Errors
    /// None at present; all callbacks have the same signature.
    #[inline]
    pub fn on_data(
        &mut self,
        access: DataAccess,
        physical: impl FnOnce() -> Option<u64>,
        cpu: &mut dyn StoppedCpu,
    ) -> Result<(), Failure> {
        let Some(data) = &mut self.data else { return Ok(()) };
        if !data.repeat(access.address, access.bytes, access.store, !GuestIsa::is_kernel(access.code)) {
            self.on_other_data(access, physical, cpu);
        }
        Ok(())
    }

    /// Handles an access that [`DataTracker::repeat`] does not.
    pub(crate) fn on_other_data(
        &mut self,
        access: DataAccess,
        physical: impl FnOnce() -> Option<u64>,
        cpu: &mut dyn StoppedCpu,
    ) {
        let Some(data) = &mut self.data else { return };
        if self.recording && self.cpus.count() > 1 && data.repeat_shared(&access) {
            return;
        }
        let shift = data.caches.line_shift();
        let (first, last) =
            (access.address >> shift, access.address.wrapping_add(access.bytes.saturating_sub(1)) >> shift);
        let core = &mut *data.core;
        let is_shared = self.recording && core.shared == first;
        if first == core.line && last == first && (self.cpus.count() == 1 || !(access.store || is_shared)) {
            core.keep_last_page();
            let kind = core.touched.1;
            if core.pages.get(access.address, access.store).is_none() {
                if let Some(physical) = physical() {
                    core.pages.extend(access.address, access.store, physical >> shift);
                }
            }
            data.count(&access, kind, &DataCounts::default());
            return;
        }
        let known = core.pages.get(access.address, access.store).map(|page| page.line(access.address).0);
        let known = known.map(|line| line << shift | access.address & ((1 << shift) - 1));
        let Some(physical) = known.or_else(physical) else { return };
        self.touch(access, first, physical, cpu);
        if self.recording && last << shift >> PAGE_SHIFT != access.address >> PAGE_SHIFT {
            self.reach(last << shift, cpu);
        }
        // The rest of an access across the end of a line. In the next page its physical address is
        // unknown.
        if last != first && last << shift >> PAGE_SHIFT == access.address >> PAGE_SHIFT {
            let address = last << shift;
            let bytes = access.bytes - (address - access.address);
            let physical = physical + (address - access.address);
            self.touch(DataAccess { address, bytes, ..access }, last, physical, cpu);
        }
    }

    /// Marks the second page of an access that crosses a page boundary as touched.
    #[cold]
    fn reach(&mut self, address: u64, cpu: &mut dyn StoppedCpu) {
        let Some(data) = &mut self.data else { return };
        let process = u64::from(self.threads.running().thread.tgid);
        let (number, _) = data.page(address, process, cpu);
        data.footprint.touch(number, address);
    }

    /// Handles a change of the open regions.
    pub(crate) fn regions_change(&mut self) {
        let Some(data) = &mut self.data else { return };
        let regions = self.regions.open().filter_map(|region| self.regions.list.get(region as usize));
        let names: Vec<&str> = regions.map(|region| region.name.as_str()).collect();
        data.open_regions(self.regions.open().last(), &names);
    }

    /// Accesses a part of one line.
    fn touch(&mut self, access: DataAccess, virtual_line: u64, physical: u64, cpu: &mut dyn StoppedCpu) {
        let Some(data) = &mut self.data else { return };
        let at = self.cpus.current();
        let line = physical >> data.caches.line_shift();
        let mut counts = DataCounts::default();
        let page = access.address >> PAGE_SHIFT;
        let core = &mut *data.core;
        core.keep_last_page();
        core.pages.extend(access.address, access.store, line);
        if core.page != page {
            let process = u64::from(self.threads.running().thread.tgid);
            data.change_page(&access, line, process, self.recording, &mut counts, cpu);
        }
        let way = data.caches.touch(at, line, access.store, &mut counts);
        let is_shared = self.cpus.count() > 1 && data.caches.is_watched(line);
        let core = &mut *data.core;
        core.line = virtual_line;
        core.shared = if is_shared { virtual_line } else { NO_NUMBER };
        if let Some(page) = core.pages.find(access.address) {
            page.set_way(access.address, way);
        }
        if !self.recording {
            return;
        }
        let (number, kind) = core.touched;
        data.footprint.touch(number, access.address);
        data.count(&access, kind, &counts);
        if counts.is_miss() || is_shared {
            self.attribute(&access, physical, &counts, cpu);
        }
    }

    /// Counts a miss by path and location, and an access to a shared line by piece.
    fn attribute(
        &mut self,
        access: &DataAccess,
        physical: u64,
        counts: &DataCounts,
        cpu: &mut dyn StoppedCpu,
    ) {
        let (Some(data), Some(region)) = (&mut self.data, self.regions.open().last()) else { return };
        let at = self.cpus.current() as u32;
        let line = physical >> data.caches.line_shift();
        let bytes = 1 << data.caches.line_shift();
        let from = physical % bytes / PIECE_BYTES * PIECE_BYTES;
        let pieces =
            (from..(physical % bytes + access.bytes.max(1)).min(bytes)).step_by(PIECE_BYTES as usize);
        if !counts.is_miss() {
            // A piece is described once; later accesses are only counted.
            let Some(shared) = data.shared.get_mut(&line) else { return };
            let known = |piece: u64| shared.contains_key(&(region, piece as u32, at));
            if pieces.clone().all(known) {
                data.learn_pieces(line, LinePieces::of(access.address, access.bytes));
                let Some(shared) = data.shared.get_mut(&line) else { return };
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
            let function = GuestIsa::is_kernel(access.code).then(|| data.function(access.code, functions));
            let path = data.path(stack.frames.iter().map(|(function, _)| *function));
            *data.by_path.entry((region, path)).or_default() += *counts;
            *data.by_place.entry((region, function, place)).or_default() += *counts;
        }
        if counts.transfers > 0 {
            data.caches.watch(line);
            data.shared.entry(line).or_default();
            data.core.shared = access.address >> data.caches.line_shift();
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
        data.learn_pieces(line, LinePieces::of(access.address, access.bytes));
    }

    /// Reads the page table register, which may have changed.
    pub(crate) fn look_at_page_table(&mut self, cpu: &mut dyn StoppedCpu) {
        if let Some(data) = &mut self.data {
            let table = GuestIsa::page_table(cpu);
            let core = &mut *data.core;
            core.keep_last_page();
            core.page = NO_NUMBER;
            let changes = std::mem::replace(&mut core.table, table) != table;
            if data.space.is_none() && table != 0 {
                data.space = Some(GuestIsa::address_space(cpu));
            }
            if changes {
                data.forget_translations(ForgottenTranslations::User);
            }
        }
    }

    /// Handles an instruction that makes the CPU forget translations, or a change of the process.
    pub(crate) fn on_forget(&mut self, part: ForgottenTranslations) {
        if let Some(data) = &mut self.data {
            data.forget_translations(part);
        }
    }
}

impl DataTracker {
    /// Counts an access to a page of this kind, with its misses.
    fn count(&mut self, access: &DataAccess, kind: u8, counts: &DataCounts) {
        let user = !GuestIsa::is_kernel(access.code);
        self.tally.count(user, kind, access.store);
        if counts.is_miss() {
            self.missed[usize::from(user)] += *counts;
        }
    }

    /// Goes on to the page of an access, which has this physical line.
    fn change_page(
        &mut self,
        access: &DataAccess,
        line: u64,
        process: u64,
        recording: bool,
        counts: &mut DataCounts,
        cpu: &mut dyn StoppedCpu,
    ) {
        let address = access.address;
        let core = &mut *self.core;
        if let Some(&mut KnownPage { tlb, touched, .. }) = core.pages.find(address) {
            (core.page, core.touched) = (address >> PAGE_SHIFT, touched);
            self.caches.translate_again(self.executing, tlb);
            return;
        }
        let way = self.translate(address, process, counts, cpu);
        let resized = self.resized;
        self.core.page = address >> PAGE_SHIFT;
        if recording {
            self.core.touched = self.page(address, process, cpu);
        }
        let core = &mut *self.core;
        // The first page table of a CPU is another one.
        let may_be_known =
            core.table != 0 && self.caches.line_shift() == LINE_SHIFT && self.resized == resized;
        if let Some(tlb) = way.filter(|_| may_be_known) {
            let first_line = line - (address >> LINE_SHIFT) % LINES;
            core.pages.insert(address, access.store, KnownPage::new(first_line, tlb, core.touched));
        }
    }
}
