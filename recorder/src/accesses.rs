//! Each access to data: through the caches, and where it is missed to whom it is counted.

use crate::data::{moved, Access, Core, Data, NONE, NOWHERE, PAGE_SHIFT};
use crate::recorder::Recorder;
use crate::Failure;
use kerntune_isa::{Cpu, Guest, Isa};
use kerntune_layout::DataCounts;
use kerntune_trace::data::{SharedPiece, PIECE_BYTES};

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
        if self.recording && last << shift >> PAGE_SHIFT != access.address >> PAGE_SHIFT {
            self.reach(last << shift, cpu);
        }
        // The rest of an access across the end of a line. Where the next page is in memory is not known.
        if last != first && last << shift >> PAGE_SHIFT == access.address >> PAGE_SHIFT {
            let address = last << shift;
            let bytes = access.bytes - (address - access.address);
            let physical = physical + (address - access.address);
            self.touch(Access { address, bytes, ..access }, last, physical, cpu);
        }
        Ok(())
    }

    /// Notes the page after that of an access across its end.
    #[cold]
    fn reach(&mut self, address: u64, cpu: &mut dyn Cpu) {
        let Some(data) = &mut self.data else { return };
        let process = u64::from(self.threads.running().thread.tgid);
        let (number, _) = data.page(self.cpus.current(), address, process, cpu);
        data.footprint.touch(number, address);
    }

    /// Other regions are open from here on.
    pub(crate) fn regions_change(&mut self) {
        let Some(data) = &mut self.data else { return };
        let regions = self.regions.open().filter_map(|region| self.regions.list.get(region as usize));
        let names: Vec<&str> = regions.map(|region| region.name.as_str()).collect();
        data.footprint.opens(self.regions.open().last(), &names);
        // What was touched last is touched anew. For caches and TLBs it is what they have used last.
        for core in &mut data.cores {
            *core = Core { table: core.table, ..NOWHERE };
        }
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
    fn count_access(&mut self, access: &Access, counts: DataCounts) {
        let (Some(data), Some(region)) = (&mut self.data, self.regions.open().last()) else { return };
        if data.counted.0 != region {
            data.put_away(region);
        }
        data.footprint.count(data.cores[self.cpus.current()].touched.1, access.store);
        let sum = &mut data.counted.1[usize::from(!Guest::is_kernel(access.code))];
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
