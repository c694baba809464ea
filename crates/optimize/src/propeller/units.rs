//! Compilation units of functions, as the compiler named them.

use crate::{Error, Result};
use gimli::{EndianSlice, LittleEndian};
use kerntune_kernel::Kernel;
use kerntune_work::IoContext;
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;

/// A kernel's map of blocks as bytes, and the compilation units of its code.
pub(super) struct BlockMapImage {
    /// Section for [`kerntune_convert::propeller::read_map`]; empty if missing.
    pub map: Vec<u8>,
    /// First address → end address and name of the unit.
    units: BTreeMap<u64, (u64, String)>,
}

impl BlockMapImage {
    /// Reads a kernel's image with its debug information.
    ///
    /// # Errors
    /// [`Error::BadBlockMap`] with the damage.
    pub fn load(kernel: &Kernel) -> Result<Self> {
        let path = kernel.vmlinux();
        let bytes = fs::read(&path).at("read", &path)?;
        let bad = |reason: String| Error::BadBlockMap { kernel: kernel.manifest.label.clone(), reason };
        let file: ElfFile64 = ElfFile64::parse(&*bytes).map_err(|error| bad(error.to_string()))?;
        let data = |name: &str| -> Result<Cow<[u8]>> {
            let section = file.section_by_name(name).map(|section| section.uncompressed_data());
            section.unwrap_or(Ok(Cow::Borrowed(&[]))).map_err(|error| bad(format!("{name}: {error}")))
        };
        let map = data(kerntune_convert::propeller::SECTION)?.into_owned();
        let sections = gimli::DwarfSections::load(|id| data(id.name()))?;
        let units = units(&sections).map_err(|error| bad(format!("its debug information: {error}")))?;
        Ok(Self { map, units })
    }

    /// Returns the name of the unit with code at `address`: the compiler's argument for its source.
    pub fn unit(&self, address: u64) -> Option<&str> {
        let (_, (end, name)) = self.units.range(..=address).next_back()?;
        (address < *end).then_some(name)
    }
}

fn units(sections: &gimli::DwarfSections<Cow<[u8]>>) -> gimli::Result<BTreeMap<u64, (u64, String)>> {
    let dwarf = sections.borrow(|section| EndianSlice::new(section, LittleEndian));
    let (mut found, mut headers) = (BTreeMap::new(), dwarf.units());
    while let Some(header) = headers.next()? {
        let unit = dwarf.unit(header)?;
        let Some(name) = unit.name else { continue };
        let name = name.to_string_lossy().into_owned();
        let mut ranges = dwarf.unit_ranges(&unit)?;
        while let Some(range) = ranges.next()? {
            // The linker sets addresses of discarded code to 0 or 1.
            if range.begin > 1 && range.begin < range.end {
                found.insert(range.begin, (range.end, name.clone()));
            }
        }
    }
    Ok(found)
}
