//! Data accesses: passes each one through the caches and attributes its misses.

use crate::data::{moved, CoreState, DataAccess, DataTracker, NO_ACCESS, NO_NUMBER, PAGE_SHIFT};
use crate::recorder::Recorder;
use crate::Failure;
use kerntune_isa::{GuestIsa, Isa, StoppedCpu};
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
        Ok(())
    }

    /// Marks the second page of an access that crosses a page boundary as touched.
    #[cold]
    fn reach(&mut self, address: u64, cpu: &mut dyn StoppedCpu) {
        let Some(data) = &mut self.data else { return };
        let process = u64::from(self.threads.running().thread.tgid);
        let (number, _) = data.page(self.cpus.current(), address, process, cpu);
        data.footprint.touch(number, address);
    }

    /// Handles a change of the open regions.
    pub(crate) fn regions_change(&mut self) {
        let Some(data) = &mut self.data else { return };
        let regions = self.regions.open().filter_map(|region| self.regions.list.get(region as usize));
        let names: Vec<&str> = regions.map(|region| region.name.as_str()).collect();
        data.footprint.opens(self.regions.open().last(), &names);
        // Forget the last accesses, so that the next ones touch the footprint of the new regions.
        // Caches and TLBs do not change, since these accesses were their most recent ones.
        for core in &mut data.cores {
            *core = CoreState { table: core.table, ..NO_ACCESS };
        }
    }

    /// Accesses a part of one line.
    fn touch(&mut self, access: DataAccess, virtual_line: u64, physical: u64, cpu: &mut dyn StoppedCpu) {
        let Some(data) = &mut self.data else { return };
        let at = self.cpus.current();
        let line = physical >> data.caches.line_shift();
        let mut counts = DataCounts::default();
        let page = access.address >> PAGE_SHIFT;
        if data.cores[at].page != page {
            let process = u64::from(self.threads.running().thread.tgid);
            data.translate(at, access.address, process, &mut counts, cpu);
            data.cores[at].page = page;
            if self.recording {
                data.cores[at].touched = data.page(at, access.address, process, cpu);
            }
        }
        data.caches.touch(at, line, access.store, &mut counts);
        let may_be_shared = data.may_be_shared(line);
        let is_ours = access.store || (data.cores[at].line == (virtual_line, true));
        data.cores[at].line = (virtual_line, is_ours);
        data.cores[at].shared = may_be_shared.then_some(line);
        if !self.recording {
            return;
        }
        data.footprint.touch(data.cores[at].touched.0, access.address);
        self.count_access(&access, counts);
        if counts.is_miss() || may_be_shared {
            self.attribute(&access, physical, &counts, cpu);
        }
    }

    #[inline]
    fn count_access(&mut self, access: &DataAccess, counts: DataCounts) {
        let (Some(data), Some(region)) = (&mut self.data, self.regions.open().last()) else { return };
        if data.counted.0 != region {
            data.flush_counts(region);
        }
        data.footprint.count(data.cores[self.cpus.current()].touched.1, access.store);
        let sum = &mut data.counted.1[usize::from(!GuestIsa::is_kernel(access.code))];
        *sum += DataCounts { loads: u64::from(!access.store), stores: u64::from(access.store), ..counts };
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
            let function = GuestIsa::is_kernel(access.code).then(|| functions.containing(access.code));
            let path = data.path(stack.frames.iter().map(|(function, _)| *function));
            *data.by_path.entry((region, path)).or_default() += *counts;
            *data.by_place.entry((region, function, place)).or_default() += *counts;
        }
        if counts.transfers > 0 {
            let (word, bit) = DataTracker::filter_place(line);
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

    /// Reads the page table register, which may have changed.
    pub(crate) fn look_at_page_table(&mut self, cpu: &mut dyn StoppedCpu) {
        if let Some(data) = &mut self.data {
            let core = &mut data.cores[self.cpus.current()];
            core.table = GuestIsa::page_table(cpu);
            core.page = NO_NUMBER;
            if data.space.is_none() && core.table != 0 {
                data.space = Some(GuestIsa::address_space(cpu));
            }
        }
    }
}
