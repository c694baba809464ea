//! Access to the virtual CPU while it is stopped.

/// A general register, as index into [`Isa::REGISTERS`](crate::Isa::REGISTERS).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Register(pub(crate) u8);

impl Register {
    /// Returns the index into the list of registers.
    pub fn index(self) -> usize {
        self.0.into()
    }
}

/// Registers and memory of the virtual CPU at a point where it is stopped.
pub trait StoppedCpu {
    /// Returns the value of a register.
    fn register(&mut self, register: Register) -> u64;
    /// Reads memory at a virtual address; returns `false` if it is not mapped.
    fn read(&mut self, address: u64, into: &mut [u8]) -> bool;
}

/// Layout of the kernel's half of the address space: first address of each part, and the address
/// after its last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressSpace {
    /// Direct mapping of all physical memory.
    pub direct: (u64, u64),
    /// Memory that is mapped page by page (`vmalloc`).
    pub mapped: (u64, u64),
    /// Array of the `struct page` of all pages.
    pub page_structs: (u64, u64),
    /// The kernel's image.
    pub image: (u64, u64),
    /// Modules.
    pub modules: (u64, u64),
    /// Number of levels of page tables.
    pub levels: u32,
}

/// Exception frame that the CPU pushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExceptionFrame {
    /// Address of the instruction that raised the exception, or of the one after it.
    pub address: u64,
    /// True if there is an error code.
    pub coded: bool,
}
