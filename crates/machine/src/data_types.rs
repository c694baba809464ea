//! Names kernel data by debug information: variables, structures and their members.

use crate::io_types::MEMBERS;
use crate::{Error, Result};
use kerntune_debuginfo::{BtfTypes, DwarfTypes, Elf, MappedFile, TypeId, TypeSource};
use kerntune_kernel::{Kernel, StructureOffsets};
use kerntune_trace::data::{
    DataFile, DataLocation, DataLocationKind, DataSpec, SlabCache, SlabMark, SlabSpec,
};
use kerntune_work::IoContext;
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// Slab caches whose names differ from those of their objects' structures.
const SLABS: &str = include_str!("slab_types.tsv");

/// Names of a data location.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DataName {
    /// Variable or slab cache; empty for anything else.
    pub object: String,
    /// Type, such as `struct tcp_sock`; empty if unknown.
    pub type_name: String,
    /// Member, such as `sk.sk_lock.slock`, or offset in the object, such as `+0x18`; empty without
    /// either.
    pub field: String,
}

/// Enumerators that mark slab pages: the first since kernel 6.12, the second before.
const ENUMERATORS: [&str; 2] = ["PGTY_slab", "PG_slab"];

/// Calls a function with an image and its types: from debug information, else from the type
/// information that the kernel carries. Without either there are none.
fn with_types<T>(
    path: &Path,
    use_them: impl FnOnce(&dyn TypeSource, &Elf) -> kerntune_debuginfo::Result<T>,
) -> Result<T> {
    const BTF: &str = ".BTF";
    let bytes = MappedFile::open(path).at("read", path)?;
    let read = || {
        let elf = Elf::parse(&bytes)?;
        if elf.has_section(BTF) && !elf.has_section(".debug_info") {
            let types = elf.section(BTF)?.unwrap_or_default();
            return use_them(&BtfTypes::parse(&types)?, &elf);
        }
        let debug_info = elf.debug_info()?;
        use_them(&DwarfTypes::of(&debug_info, &ENUMERATORS)?, &elf)
    };
    read().map_err(|error: kerntune_debuginfo::Error| Error::Code {
        path: path.to_owned(),
        reason: format!("debug information: {error}"),
    })
}

/// Returns the offsets that the recorder needs to recognize slabs; `None` if the kernel lacks
/// any of them.
fn slab(types: &dyn TypeSource) -> kerntune_debuginfo::Result<Option<SlabSpec>> {
    let at = |structure: &str, member: &str| -> kerntune_debuginfo::Result<Option<u32>> {
        Ok(types.member(structure, member)?.and_then(|at| u32::try_from(at).ok()))
    };
    let Some(page) = types.structure("page") else { return Ok(None) };
    let page_bytes = types.bytes(page)?.and_then(|bytes| u32::try_from(bytes).ok());
    let value = |name: &str| types.enumerator(name);
    let mark = match (value("PGTY_slab"), at("page", "page_type")?, value("PG_slab")) {
        (Some(value), Some(offset), _) => Some(SlabMark::Type { offset, value: value as u8 }),
        (None, _, Some(bit)) => Some(SlabMark::Flag(bit as u32)),
        _ => None,
    };
    let (name, size, object_size) =
        (at("kmem_cache", "name")?, at("kmem_cache", "size")?, at("kmem_cache", "object_size")?);
    let (cache, refcount, stack) =
        (at("slab", "slab_cache")?, at("kmem_cache", "refcount")?, at("task_struct", "stack")?);
    let spec = || {
        Some(SlabSpec {
            page_bytes: page_bytes?,
            mark: mark?,
            cache: cache?,
            name: name?,
            size: size?,
            object_size: object_size?,
            refcount: refcount?,
            stack: stack?,
        })
    };
    Ok(spec())
}

/// Returns the structure at the beginning of a cache's objects. An object may be larger: a
/// `struct task_struct` is followed by room for the FPU's registers, a `struct mm_struct` by a
/// bit for each CPU.
fn slab_type(
    types: &dyn TypeSource,
    SlabCache { name, object_bytes, merged }: &SlabCache,
) -> kerntune_debuginfo::Result<Option<TypeId>> {
    if *merged {
        return Ok(None);
    }
    let cache = name.as_str();
    let listed = SLABS.lines().filter_map(|line| line.split_once('\t'));
    let listed = listed.filter(|(name, _)| *name == cache).map(|(_, structure)| structure);
    let own = [cache, cache.trim_end_matches("_cache"), cache.trim_end_matches("_cachep")];
    for name in listed.chain(own) {
        if let Some(kind) = types.structure(name) {
            let bytes = types.bytes(kind)?.unwrap_or(0);
            if bytes > 0 && bytes <= u64::from(*object_bytes) {
                return Ok(Some(kind));
            }
        }
    }
    Ok(None)
}

fn describe(
    types: &dyn TypeSource,
    place: &DataLocation,
    file: &DataFile,
    variables: &[(u64, u64, String)],
) -> kerntune_debuginfo::Result<DataName> {
    let (object, kind, offset) = match place.kind {
        DataLocationKind::Image | DataLocationKind::PerCpu => {
            let Some((start, name)) = variable(variables, place.object) else {
                return Ok(DataName::default());
            };
            (name.to_owned(), types.variable(start), place.object - start)
        }
        DataLocationKind::Slab => {
            let Some(cache) = file.caches.get(place.object as usize) else {
                return Ok(DataName::default());
            };
            let kind = slab_type(types, cache)?;
            (cache.name.clone(), kind, place.offset.into())
        }
        DataLocationKind::Page => (String::new(), types.structure("page"), place.offset.into()),
        _ => return Ok(DataName::default()),
    };
    let (type_name, mut field) = match kind {
        Some(kind) => (types.type_name(kind)?, types.field(kind, offset)?),
        None => Default::default(),
    };
    if field.is_empty() && (offset > 0 || kind.is_none()) {
        field = format!("+{offset:#x}");
    }
    Ok(DataName { object, type_name, field })
}

/// Finds the variable that contains an address; returns its start and name.
fn variable(variables: &[(u64, u64, String)], address: u64) -> Option<(u64, &str)> {
    let after = variables.partition_point(|(start, ..)| *start <= address);
    let (start, bytes, name) = variables.get(after.checked_sub(1)?)?;
    (address - start < *bytes).then_some((*start, name))
}

/// Returns the recorder's description of a kernel's data. Slabs are recognized only in kernels with
/// debug information.
///
/// # Errors
/// An image that cannot be read.
pub fn data_spec(kernel: &Kernel) -> Result<DataSpec> {
    with_types(&kernel.vmlinux(), |types, elf| {
        let symbol = |name: &str| elf.address_of(name).unwrap_or(0);
        Ok(DataSpec { per_cpu: (symbol("__per_cpu_start"), symbol("__per_cpu_end")), slab: slab(types)? })
    })
}

/// Returns the offsets of structures for block requests and network packets; empty for a kernel
/// without debug information.
///
/// # Errors
/// As [`data_spec`].
pub fn debug_structures(kernel: &Kernel) -> Result<StructureOffsets> {
    with_types(&kernel.vmlinux(), |types, _| {
        let mut found = StructureOffsets::new();
        for (structure, member) in MEMBERS {
            if let Some(at) = types.member(structure, member)? {
                found.insert(format!("{structure}.{member}"), at);
            }
        }
        Ok(found)
    })
}

/// Names the data locations of a recording.
///
/// # Errors
/// As [`data_spec`].
pub fn data_names(kernel: &Kernel, file: &DataFile) -> Result<HashMap<DataLocation, DataName>> {
    let variables = kernel.variables()?;
    let by_place = file.by_place.iter().map(|row| row.place);
    let shared = file.shared.iter().flat_map(|line| line.pieces.iter().map(|piece| piece.place));
    let places: HashSet<DataLocation> = by_place.chain(shared).collect();
    with_types(&kernel.vmlinux(), |types, _| {
        let name = |place: DataLocation| Ok((place, describe(types, &place, file, &variables)?));
        places.into_iter().map(name).collect()
    })
}
