//! What accesses to data missed: what the recorder is told of the kernel's objects, and `data.json`, which it writes.

use crate::{Error, VERSION};
use serde::{Deserialize, Deserializer, Serialize};

/// What the recorder is told of the kernel's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataSpec {
    /// Addresses in the image between which lies what each CPU has one of (`__per_cpu_start`, `__per_cpu_end`).
    pub per_cpu: (u64, u64),
    /// How slab caches are found; without it their objects are not told apart.
    pub slab: Option<SlabSpec>,
}

/// Where the kernel keeps what is known of a page, a slab and a cache: byte offsets, from its debug information.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlabSpec {
    /// Bytes of `struct page`.
    pub page_bytes: u32,
    /// What says that a page is a slab's.
    pub mark: SlabMark,
    /// `slab_cache` in `struct slab`.
    pub cache: u32,
    /// `name` in `struct kmem_cache`.
    pub name: u32,
    /// `size` in `struct kmem_cache`, 4 bytes: from one object to the next.
    pub size: u32,
    /// `object_size` in `struct kmem_cache`, 4 bytes.
    pub object_size: u32,
    /// `refcount` in `struct kmem_cache`, 4 bytes: more than 1 where objects of several kinds share it.
    pub refcount: u32,
    /// `stack` in `struct task_struct`.
    pub stack: u32,
}

/// What says that a page is a slab's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SlabMark {
    /// 4 bytes at `offset`, of which the highest is `value`.
    Type {
        /// `page_type` in `struct page`.
        offset: u32,
        /// `PGTY_slab`.
        value: u8,
    },
    /// This bit of the first 8 bytes.
    Flag(u32),
}

/// What data is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlaceKind {
    /// User memory, whoever accesses it. No address is kept.
    User,
    /// A variable of the kernel's image: the address.
    Image,
    /// A variable that each CPU has one of: the address in the image.
    PerCpu,
    /// An object of a slab cache: the cache's place in [`DataFile::caches`], and the offset.
    Slab,
    /// A `struct page`: the offset.
    Page,
    /// The stack of the thread that runs.
    Stack,
    /// Memory that the kernel maps as it is: page tables, pages of files and of programs, buffers.
    Memory,
    /// Memory that the kernel maps in pieces: `vmalloc`, modules, other threads' stacks.
    Mapped,
    /// Anything else: tables of the CPU, device memory.
    Other,
}

/// Where data lies, in terms that outlive the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place {
    /// What it is.
    pub kind: PlaceKind,
    /// Which.
    pub object: u64,
    /// Byte offset in it.
    pub offset: u32,
}

/// A slab cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlabCache {
    /// As in `/proc/slabinfo`.
    pub name: String,
    /// Bytes of an object.
    pub object_bytes: u32,
    /// Whether the kernel made one cache of several, so that its name is that of one of them.
    pub merged: bool,
}

/// What was missed. All are events of a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Misses {
    /// Lines that were not in the L1D.
    pub l1d: u64,
    /// Of these, those that were to be written.
    pub stores: u64,
    /// Lines that the CPU's L2 did not have either.
    pub l2: u64,
    /// Lines that no cache had.
    pub l3: u64,
    /// Lines that another CPU's cache had, which had written them.
    pub transfers: u64,
    /// Translations that were not in the first-level data TLB.
    pub dtlb: u64,
    /// Translations that no TLB had.
    pub walks: u64,
}

/// Accesses of one mode of the CPU in a region.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accesses {
    /// Reads.
    pub loads: u64,
    /// Writes.
    pub stores: u64,
    /// What they missed.
    pub misses: Misses,
}

/// Accesses in a region, without those in regions in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegionAccesses {
    /// Index into [`crate::Recording::regions`].
    pub region: u32,
    /// Of kernel code.
    pub kernel: Accesses,
    /// Of user code.
    pub user: Accesses,
}

/// Misses on one path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathMisses {
    /// Index into [`crate::Recording::regions`], the innermost that was open.
    pub region: u32,
    /// Index into [`DataFile::paths`].
    pub path: u32,
    /// How many.
    pub misses: Misses,
}

/// Misses of one function at one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlaceMisses {
    /// As [`PathMisses::region`].
    pub region: u32,
    /// The kernel's function whose instruction it is, as in [`crate::Event::Enter`]; `None` for user code.
    pub function: Option<u32>,
    /// What was accessed.
    pub place: Place,
    /// How many.
    pub misses: Misses,
}

/// Accesses to a line that went from one CPU's cache to another's, from the first time on that it did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedLine {
    /// As [`PathMisses::region`].
    pub region: u32,
    /// The line's address in physical memory.
    pub line: u64,
    /// What is accessed, in pieces of [`PIECE_BYTES`], by place and CPU.
    pub pieces: Vec<SharedPiece>,
}

/// Bytes of a line that are told apart.
pub const PIECE_BYTES: u64 = 4;

/// What one CPU did to a piece of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedPiece {
    /// Where in the line it begins, bytes.
    pub at: u32,
    /// Which CPU.
    pub cpu: u32,
    /// What it is.
    pub place: Place,
    /// Reads.
    pub loads: u64,
    /// Writes.
    pub stores: u64,
    /// How often it had to come from another CPU's cache.
    pub transfers: u64,
}

/// Accesses in a region to memory in pages of one size, without those in regions in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageAccesses {
    /// As [`PathMisses::region`].
    pub region: u32,
    /// Whether to user memory, whoever accesses it.
    pub user: bool,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Reads.
    pub loads: u64,
    /// Writes.
    pub stores: u64,
}

/// What was touched of memory in pages of one size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Footprint {
    /// In regions of this name and those within them; in all if there is none.
    pub region: Option<String>,
    /// As [`PageAccesses::user`].
    pub user: bool,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Pages by virtual address; one that two processes map is two.
    pub pages: u64,
    /// Lines in them.
    pub lines: u64,
}

/// The whole file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataFile {
    /// [`VERSION`]; a file of another one is refused.
    #[serde(deserialize_with = "this_version")]
    pub version: u32,
    /// Slab caches, in the order in which they were met.
    pub caches: Vec<SlabCache>,
    /// Functions of call paths, outermost first.
    pub paths: Vec<Vec<u32>>,
    /// By region.
    pub regions: Vec<RegionAccesses>,
    /// By region and path.
    pub by_path: Vec<PathMisses>,
    /// By region, function and place.
    pub by_place: Vec<PlaceMisses>,
    /// By region and line.
    pub shared: Vec<SharedLine>,
    /// By region, memory and size of page.
    pub pages: Vec<PageAccesses>,
    /// By name of region, memory and size of page.
    pub footprints: Vec<Footprint>,
}

fn this_version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    match u32::deserialize(deserializer)? {
        VERSION => Ok(VERSION),
        found => Err(serde::de::Error::custom(Error::Version { what: "data file", found })),
    }
}
