//! Names of accessed data: variable, slab object, stack and others.

use crate::data::DataTracker;
use crate::known_pages::PAGE_SHIFT;
use kerntune_isa::{AddressSpace, GuestIsa, Isa, StoppedCpu};
use kerntune_trace::data::{DataLocation, DataLocationKind, SlabCache, SlabMark, SlabSpec};

/// Upper bound for the size of a thread's stack (`THREAD_SIZE`), in bytes.
const STACK_BYTES: u64 = 16 << 10;

impl DataTracker {
    /// Returns the location of the data at a kernel address.
    pub(crate) fn place(
        &mut self,
        address: u64,
        task: u64,
        per_cpu: &[u64],
        cpu: &mut dyn StoppedCpu,
    ) -> DataLocation {
        let other = |kind| DataLocation { kind, object: 0, offset: 0 };
        let Some(space) = self.space.filter(|_| GuestIsa::is_kernel(address)) else {
            return other(DataLocationKind::User);
        };
        let within = |(from, to): (u64, u64)| (from..to).contains(&address);
        if within(space.image) {
            return DataLocation { object: address, ..other(DataLocationKind::Image) };
        }
        let in_image = per_cpu.iter().map(|offset| address.wrapping_sub(*offset));
        let (start, end) = self.spec.per_cpu;
        if let Some(object) = in_image.into_iter().find(|at| (start..end).contains(at)) {
            return DataLocation { object, ..other(DataLocationKind::PerCpu) };
        }
        if let Some(slab) = self.spec.slab {
            let stack = read(cpu, task.wrapping_add(slab.stack.into()));
            if stack.is_some_and(|stack| address.wrapping_sub(stack) < STACK_BYTES) {
                return other(DataLocationKind::Stack);
            }
            if within(space.page_structs) {
                let offset = (address - space.page_structs.0) % u64::from(slab.page_bytes.max(1));
                return DataLocation { offset: offset as u32, ..other(DataLocationKind::Page) };
            }
            if within(space.direct) {
                let object = self.slab_object(&space, &slab, address, cpu);
                return object.unwrap_or(other(DataLocationKind::Memory));
            }
        }
        match () {
            () if within(space.page_structs) => other(DataLocationKind::Page),
            () if within(space.direct) => other(DataLocationKind::Memory),
            () if within(space.mapped) || within(space.modules) => other(DataLocationKind::Mapped),
            () => other(DataLocationKind::Other),
        }
    }

    /// Returns the slab object at an address of the direct map, according to `struct page` and
    /// `struct slab`.
    fn slab_object(
        &mut self,
        space: &AddressSpace,
        slab: &SlabSpec,
        address: u64,
        cpu: &mut dyn StoppedCpu,
    ) -> Option<DataLocation> {
        let bytes = u64::from(slab.page_bytes);
        let mut number = (address - space.direct.0) >> PAGE_SHIFT;
        let page = |number: u64| space.page_structs.0 + number * bytes;
        // A tail page points to its head page (`compound_head`).
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
        Some(DataLocation { kind: DataLocationKind::Slab, object, offset })
    }

    /// Returns the index of a slab cache, which may be a new one.
    fn cache(&mut self, cache: u64, slab: &SlabSpec, cpu: &mut dyn StoppedCpu) -> Option<u32> {
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
}

/// Returns the location `bytes` further on.
pub(crate) fn moved(place: DataLocation, bytes: i64) -> DataLocation {
    match place.kind {
        DataLocationKind::Image | DataLocationKind::PerCpu => {
            DataLocation { object: place.object.wrapping_add_signed(bytes), ..place }
        }
        DataLocationKind::Slab | DataLocationKind::Page => {
            DataLocation { offset: place.offset.saturating_add_signed(bytes as i32), ..place }
        }
        _ => place,
    }
}

/// Reads 8 bytes of guest memory.
fn read(cpu: &mut dyn StoppedCpu, address: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    cpu.read(address, &mut bytes).then(|| u64::from_le_bytes(bytes))
}
