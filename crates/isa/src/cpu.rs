//! The virtual CPU, as far as it is looked at.

/// A general register: its place in [`Isa::REGISTERS`](crate::Isa::REGISTERS).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Register(pub(crate) u8);

impl Register {
    /// Its place in the list of registers.
    pub fn index(self) -> usize {
        self.0.into()
    }
}

/// The virtual CPU, where it stopped.
pub trait Cpu {
    /// A register's value.
    fn register(&mut self, register: Register) -> u64;
    /// Reads memory at a virtual address; false if it is not mapped.
    fn read(&mut self, address: u64, into: &mut [u8]) -> bool;
}

/// Where the kernel's half of the address space has what: the first address of each part and the one after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressSpace {
    /// All of physical memory, in a row.
    pub direct: (u64, u64),
    /// Memory that is mapped in pieces (`vmalloc`).
    pub mapped: (u64, u64),
    /// The `struct page` of each page, in a row.
    pub page_structs: (u64, u64),
    /// The kernel's image.
    pub image: (u64, u64),
    /// Modules.
    pub modules: (u64, u64),
    /// Levels of page tables.
    pub levels: u32,
}

/// What the CPU left behind when it raised an exception.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExceptionFrame {
    /// Address of the instruction that raised it, or of the one after it.
    pub address: u64,
    /// Whether there is an error code.
    pub coded: bool,
}
