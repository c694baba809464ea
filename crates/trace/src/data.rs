//! Results of the data cache model.
//!
//! [`DataSpec`] tells the recorder where the kernel keeps its data structures. [`DataFile`] is what
//! the recorder writes to `data.json`.

use crate::check_version;
use serde::{Deserialize, Deserializer, Serialize};

/// Description of the kernel's data, as the recorder needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataSpec {
    /// Begin and end of the per-CPU variables in the image (`__per_cpu_start`, `__per_cpu_end`).
    pub per_cpu: (u64, u64),
    /// Layout of the slab allocator; without it, slab objects are not identified.
    pub slab: Option<SlabSpec>,
}

/// Byte offsets of the slab allocator's structures, from the kernel's debug information.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlabSpec {
    /// Size of `struct page`, in bytes.
    pub page_bytes: u32,
    /// Rule by which a page is recognized as a slab page.
    pub mark: SlabMark,
    /// Offset of `slab_cache` in `struct slab`.
    pub cache: u32,
    /// Offset of `name` in `struct kmem_cache`.
    pub name: u32,
    /// Offset of `size` in `struct kmem_cache`: 4 bytes, the distance between objects.
    pub size: u32,
    /// Offset of `object_size` in `struct kmem_cache`, 4 bytes.
    pub object_size: u32,
    /// Offset of `refcount` in `struct kmem_cache`: 4 bytes, above 1 if several caches were merged.
    pub refcount: u32,
    /// Offset of `stack` in `struct task_struct`.
    pub stack: u32,
}

/// Rule by which a page is recognized as a slab page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SlabMark {
    /// The top byte of the 4 bytes at `offset` equals `value`.
    Type {
        /// Offset of `page_type` in `struct page`.
        offset: u32,
        /// Value of `PGTY_slab`.
        value: u8,
    },
    /// This bit of the page's first 8 bytes is set.
    Flag(u32),
}

/// Kind of memory that an access touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DataLocationKind {
    /// User memory, accessed by user or kernel code. No address is recorded.
    User,
    /// Variable of the kernel image; `object` is its address.
    Image,
    /// Per-CPU variable; `object` is its address in the image.
    PerCpu,
    /// Object of a slab cache; `object` is an index into [`DataFile::caches`], `offset` lies in the
    /// object.
    Slab,
    /// A `struct page`; `offset` lies in it.
    Page,
    /// Stack of the running thread.
    Stack,
    /// Other memory in the direct map: page tables, page cache, pages of programs, buffers.
    Memory,
    /// Memory mapped page by page: `vmalloc`, modules, stacks of other threads.
    Mapped,
    /// All other memory, such as CPU tables and device memory.
    Other,
}

/// Location of data, in terms that stay valid after the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DataLocation {
    /// Kind of memory.
    pub kind: DataLocationKind,
    /// Address or index of the object, as [`DataLocationKind`] defines it; 0 for the other kinds.
    pub object: u64,
    /// Byte offset in the object; 0 for kinds without objects.
    pub offset: u32,
}

/// Slab cache that was seen in accesses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlabCache {
    /// Name as in `/proc/slabinfo`.
    pub name: String,
    /// Size of an object, in bytes.
    pub object_bytes: u32,
    /// True if the kernel merged several caches into one, which then has the name of one of them.
    pub merged: bool,
}

/// Misses in the data cache model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissCounts {
    /// Lines that missed the L1D.
    pub l1d: u64,
    /// Lines that missed the L1D on a write; part of `l1d`.
    pub stores: u64,
    /// Lines that also missed the CPU's L2.
    pub l2: u64,
    /// Lines that missed all caches.
    pub l3: u64,
    /// Lines supplied by the cache of another CPU that had written them.
    pub transfers: u64,
    /// Translations that missed the first-level data TLB.
    pub dtlb: u64,
    /// Translations that missed all TLBs and needed a page walk.
    pub walks: u64,
}

/// Data accesses in a region, made in one CPU mode.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessCounts {
    /// Number of reads.
    pub loads: u64,
    /// Number of writes.
    pub stores: u64,
    /// Misses of these accesses.
    pub misses: MissCounts,
}

/// Data accesses of a region, without those of nested regions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegionAccesses {
    /// Region as an index into [`crate::Recording::regions`].
    pub region: u32,
    /// Accesses by kernel code.
    pub kernel: AccessCounts,
    /// Accesses by user code.
    pub user: AccessCounts,
}

/// Misses on one call path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathMisses {
    /// Innermost open region, as an index into [`crate::Recording::regions`].
    pub region: u32,
    /// Call path as an index into [`DataFile::paths`].
    pub path: u32,
    /// Misses counted on the path.
    pub misses: MissCounts,
}

/// Misses of one function at one data location.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocationMisses {
    /// Innermost open region, see [`PathMisses::region`].
    pub region: u32,
    /// Kernel function that made the access, numbered as in [`crate::Event::Enter`]; `None` for
    /// user code.
    pub function: Option<u32>,
    /// Location of the accessed data.
    pub place: DataLocation,
    /// Misses counted at the location.
    pub misses: MissCounts,
}

/// Accesses to a cache line that moved between CPUs, counted from its first transfer on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedLine {
    /// Innermost open region, see [`PathMisses::region`].
    pub region: u32,
    /// Physical address of the line.
    pub line: u64,
    /// Accesses to each piece of [`PIECE_BYTES`], by location and CPU.
    pub pieces: Vec<SharedPiece>,
}

/// Granularity of [`SharedPiece`], in bytes.
pub const PIECE_BYTES: u64 = 4;

/// Accesses of one CPU to one piece of a shared line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedPiece {
    /// Byte offset of the piece in the line.
    pub at: u32,
    /// Number of the CPU.
    pub cpu: u32,
    /// Location of the data in the piece.
    pub place: DataLocation,
    /// Number of reads.
    pub loads: u64,
    /// Number of writes.
    pub stores: u64,
    /// Number of accesses for which the line came from another CPU's cache.
    pub transfers: u64,
}

/// Accesses of a region to pages of one size, without those of nested regions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageAccesses {
    /// Innermost open region, see [`PathMisses::region`].
    pub region: u32,
    /// True for user memory, whether user or kernel code accesses it.
    pub user: bool,
    /// Size of a page, in bytes.
    pub page_bytes: u64,
    /// Number of reads.
    pub loads: u64,
    /// Number of writes.
    pub stores: u64,
}

/// Memory touched in pages of one size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FootprintRow {
    /// Name of the regions counted here, with their nested regions; `None` for all regions.
    pub region: Option<String>,
    /// True for user memory, see [`PageAccesses::user`].
    pub user: bool,
    /// Size of a page, in bytes.
    pub page_bytes: u64,
    /// Number of pages by virtual address; a page that two processes map counts twice.
    pub pages: u64,
    /// Number of lines touched in these pages.
    pub lines: u64,
}

/// Contents of `data.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataFile {
    /// Format version: [`crate::VERSION`]; other versions are rejected.
    #[serde(deserialize_with = "this_version")]
    pub version: u32,
    /// Slab caches, in the order in which the recorder met them.
    pub caches: Vec<SlabCache>,
    /// Call paths as lists of function numbers, outermost first.
    pub paths: Vec<Vec<u32>>,
    /// Accesses by region.
    pub regions: Vec<RegionAccesses>,
    /// Misses by region and call path.
    pub by_path: Vec<PathMisses>,
    /// Misses by region, function and location.
    pub by_place: Vec<LocationMisses>,
    /// Shared lines by region and line.
    pub shared: Vec<SharedLine>,
    /// Accesses by region, user or kernel memory, and page size.
    pub pages: Vec<PageAccesses>,
    /// Touched memory by region name, user or kernel memory, and page size.
    pub footprints: Vec<FootprintRow>,
}

fn this_version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    check_version("data file", u32::deserialize(deserializer)?).map_err(serde::de::Error::custom)
}
