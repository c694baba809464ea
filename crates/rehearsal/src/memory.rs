//! The guest's memory, which contains only what was loaded.

const PAGE: u64 = 4096;

/// Consecutive pages.
#[derive(Debug)]
struct MemoryRegion {
    start: u64,
    bytes: Vec<u8>,
    code: bool,
}

/// Memory by virtual address.
#[derive(Debug, Default)]
pub struct GuestMemory {
    regions: Vec<MemoryRegion>,
}

impl GuestMemory {
    /// Maps `bytes` at `start`, followed by zeros up to `size`, in whole pages.
    pub fn map(&mut self, start: u64, bytes: &[u8], size: u64, code: bool) {
        let before = start % PAGE;
        let mut all = vec![0; before as usize];
        all.extend_from_slice(bytes);
        all.resize((before + size).next_multiple_of(PAGE) as usize, 0);
        self.regions.push(MemoryRegion { start: start - before, bytes: all, code });
    }

    /// Reads a little-endian value of at most 8 bytes, zero-extended.
    pub fn read(&self, address: u64, size: usize) -> Option<u64> {
        let mut word = [0; 8];
        word[..size].copy_from_slice(self.slice(address, size)?);
        Some(u64::from_le_bytes(word))
    }

    /// Writes the low `size` bytes of a value; `None` if the memory is not mapped or is code.
    pub fn write(&mut self, address: u64, size: usize, value: u64) -> Option<()> {
        let region = self.regions.iter_mut().find(|region| region.holds(address, size))?;
        let at = (address - region.start) as usize;
        (!region.code).then(|| region.bytes[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]))
    }

    /// Returns mapped bytes.
    pub fn slice(&self, address: u64, size: usize) -> Option<&[u8]> {
        let region = self.regions.iter().find(|region| region.holds(address, size))?;
        let at = (address - region.start) as usize;
        Some(&region.bytes[at..at + size])
    }

    /// Returns code from `address` on, at most the length of an instruction.
    pub fn code(&self, address: u64) -> Option<&[u8]> {
        let region = self.regions.iter().find(|region| region.code && region.holds(address, 1))?;
        let rest = &region.bytes[(address - region.start) as usize..];
        Some(&rest[..rest.len().min(15)])
    }
}

impl MemoryRegion {
    fn holds(&self, address: u64, size: usize) -> bool {
        let offset = address.wrapping_sub(self.start);
        offset.checked_add(size as u64).is_some_and(|end| end <= self.bytes.len() as u64)
    }
}
