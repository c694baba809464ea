//! Functions of a kernel that load code: modules and BPF programs.

use crate::selection::FunctionSelection;
use crate::{Error, Result};
use kerntune_debuginfo::{BtfTypes, DwarfTypes, Elf, MappedFile, TypeSource};
use kerntune_kernel::{Kernel, StructureOffsets, Symbols};
use kerntune_trace::loaded::{
    AreaLayout, BpfLayout, LoadEvent, LoadPoint, LoadSelection, LoadSpec, ModuleLayout, SymbolsLayout,
};
use kerntune_work::IoContext;
use std::path::Path;

/// Functions that load or free code, in kernels since 6.1; their arguments say which.
/// Modules are initialized once their symbols are in place.
const POINTS: [(&str, LoadEvent); 6] = [
    ("do_init_module", LoadEvent::Module),
    // The first before 6.10, the second since.
    ("module_memfree", LoadEvent::Freed),
    ("execmem_free", LoadEvent::Freed),
    ("bpf_ksym_add", LoadEvent::Bpf),
    ("bpf_ksym_del", LoadEvent::BpfFreed),
    ("perf_event_ksymbol", LoadEvent::Trampoline),
];

/// Members that lead to a module's symbols, and to the code of a BPF program.
const MEMBERS: [(&str, &str); 15] = [
    ("module", "name"),
    ("module", "kallsyms"),
    ("module", "mem"),
    ("module", "core_layout"),
    ("module", "init_layout"),
    ("module_memory", "base"),
    ("module_memory", "size"),
    ("module_layout", "base"),
    ("module_layout", "text_size"),
    ("mod_kallsyms", "symtab"),
    ("mod_kallsyms", "num_symtab"),
    ("mod_kallsyms", "strtab"),
    ("bpf_ksym", "start"),
    ("bpf_ksym", "end"),
    ("bpf_ksym", "name"),
];

/// Element of `mem`, whose size is needed as well.
const MEMORY: &str = "module_memory";
/// Name of that size among the offsets, also in `embedded/kernel/structure_offsets.c`.
const MEMORY_BYTES: &str = "module_memory.sizeof";

/// Places of code in `mem`, an array of `struct module_memory` since 6.4: `MOD_TEXT` and
/// `MOD_INIT_TEXT`.
const MEMORY_OF_CODE: [u64; 2] = [0, 4];

/// Returns the description of how a kernel loads code; `None` if it cannot, or if neither its build
/// nor type information says how.
///
/// # Errors
/// Kernel files that cannot be read.
pub(crate) fn load_spec(
    kernel: &Kernel,
    symbols: &Symbols,
    selection: &FunctionSelection,
) -> Result<Option<LoadSpec>> {
    let points: Vec<LoadPoint> = POINTS
        .iter()
        .filter_map(|(name, event)| Some(LoadPoint { address: symbols.address_of(name)?, event: *event }))
        .collect();
    if !loads_code(symbols) {
        return Ok(None);
    }
    // Line tables alone are DWARF without types.
    let mut layouts = kernel.manifest.structures.clone();
    layouts.extend(types(&kernel.vmlinux())?.unwrap_or_default());
    let (module, bpf) = (module_layout(&layouts), bpf_layout(&layouts));
    let selection = match selection.is_everything() {
        true => None,
        false => Some(LoadSelection {
            only: selection.only.clone(),
            skip: selection.skip.clone(),
            paths: kernel.modules()?.object_paths(),
        }),
    };
    Ok((module.is_some() || bpf.is_some()).then_some(LoadSpec { points, module, bpf, selection }))
}

/// Returns true if the kernel can load code.
pub fn loads_code(symbols: &Symbols) -> bool {
    let loads = |event: LoadEvent| matches!(event, LoadEvent::Module | LoadEvent::Bpf);
    POINTS.iter().any(|(name, event)| loads(*event) && symbols.address_of(name).is_some())
}

/// Returns the offset of each member that the kernel has, and the size of [`MEMORY`]; `None` if it
/// carries neither BTF nor DWARF.
fn types(vmlinux: &Path) -> Result<Option<StructureOffsets>> {
    let bytes = MappedFile::open(vmlinux).at("read", vmlinux)?;
    let read = || {
        let elf = Elf::parse(&bytes)?;
        Ok(match elf.section(".BTF")? {
            Some(types) => Some(offsets(&BtfTypes::parse(&types)?)?),
            None if elf.has_section(".debug_info") => {
                Some(offsets(&DwarfTypes::of(&elf.debug_info()?, &[])?)?)
            }
            None => None,
        })
    };
    read().map_err(|error: kerntune_debuginfo::Error| Error::Code {
        path: vmlinux.to_owned(),
        reason: format!("type information: {error}"),
    })
}

fn offsets(types: &dyn TypeSource) -> kerntune_debuginfo::Result<StructureOffsets> {
    let mut found = StructureOffsets::new();
    for (structure, member) in MEMBERS {
        found.extend(types.member(structure, member)?.map(|at| (format!("{structure}.{member}"), at)));
    }
    let bytes = types.structure(MEMORY).map(|kind| types.bytes(kind)).transpose()?.flatten();
    found.extend(bytes.map(|bytes| (MEMORY_BYTES.to_owned(), bytes)));
    Ok(found)
}

/// Returns an offset or size; those of structures are a few kilobytes.
fn at(layouts: &StructureOffsets, name: &str) -> Option<u32> {
    layouts.get(name).and_then(|at| u32::try_from(*at).ok())
}

fn module_layout(layouts: &StructureOffsets) -> Option<ModuleLayout> {
    let of = |name: &str| at(layouts, name);
    let symbols = || {
        Some(SymbolsLayout {
            table: of("module.kallsyms")?,
            symbols: of("mod_kallsyms.symtab")?,
            count: of("mod_kallsyms.num_symtab")?,
            strings: of("mod_kallsyms.strtab")?,
        })
    };
    let memory = || -> Option<Vec<AreaLayout>> {
        let (first, each) = (of("module.mem")?, of(MEMORY_BYTES)?);
        let (base, size) = (of("module_memory.base")?, of("module_memory.size")?);
        let area = |place: u64| {
            let begin = first.checked_add(u32::try_from(place).ok()?.checked_mul(each)?)?;
            Some(AreaLayout { base: begin.checked_add(base)?, size: begin.checked_add(size)? })
        };
        MEMORY_OF_CODE.into_iter().map(area).collect()
    };
    let layout = || -> Option<Vec<AreaLayout>> {
        let (base, size) = (of("module_layout.base")?, of("module_layout.text_size")?);
        let area =
            |begin: u32| Some(AreaLayout { base: begin.checked_add(base)?, size: begin.checked_add(size)? });
        [of("module.core_layout")?, of("module.init_layout")?].into_iter().map(area).collect()
    };
    Some(ModuleLayout { name: of("module.name")?, symbols: symbols(), areas: memory().or_else(layout)? })
}

fn bpf_layout(layouts: &StructureOffsets) -> Option<BpfLayout> {
    let of = |name: &str| at(layouts, name);
    Some(BpfLayout { start: of("bpf_ksym.start")?, end: of("bpf_ksym.end")?, name: of("bpf_ksym.name")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layouts(members: &[(&str, u64)]) -> StructureOffsets {
        members.iter().map(|(name, at)| ((*name).to_owned(), *at)).collect()
    }

    /// Offsets of Debian's 6.1 and 7.3 kernels.
    #[test]
    fn modules_have_areas_before_and_since_6_4() {
        let old = layouts(&[
            ("module.name", 24),
            ("module.core_layout", 320),
            ("module.init_layout", 400),
            ("module_layout.base", 0),
            ("module_layout.text_size", 12),
        ]);
        let area = |base, size| AreaLayout { base, size };
        let old = module_layout(&old).unwrap();
        assert_eq!((old.areas, old.symbols), (vec![area(320, 332), area(400, 412)], None));
        let new = layouts(&[
            ("module.name", 24),
            ("module.mem", 320),
            ("module_memory.sizeof", 80),
            ("module_memory.base", 0),
            ("module_memory.size", 12),
            ("module.kallsyms", 960),
            ("mod_kallsyms.symtab", 0),
            ("mod_kallsyms.num_symtab", 8),
            ("mod_kallsyms.strtab", 16),
        ]);
        let new = module_layout(&new).unwrap();
        assert_eq!(new.areas, [area(320, 332), area(640, 652)]);
        assert_eq!(new.symbols, Some(SymbolsLayout { table: 960, symbols: 0, count: 8, strings: 16 }));
        assert_eq!(module_layout(&layouts(&[("module.name", 24)])), None);
    }

    #[test]
    fn bpf_needs_all_its_members() {
        let all = layouts(&[("bpf_ksym.start", 0), ("bpf_ksym.end", 8), ("bpf_ksym.name", 16)]);
        assert_eq!(bpf_layout(&all), Some(BpfLayout { start: 0, end: 8, name: 16 }));
        assert_eq!(bpf_layout(&layouts(&[("bpf_ksym.start", 0)])), None);
    }
}
