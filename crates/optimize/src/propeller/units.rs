//! Of which compilation unit a function is, as the compiler named it.

use crate::{Error, Result};
use gimli::{EndianSlice, LittleEndian};
use kerntune_kernel::Kernel;
use kerntune_work::IoContext;
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;

/// A kernel's map of blocks, as bytes, and the units of its code.
pub(super) struct Image {
    /// The section of [`kerntune_convert::propeller::read_map`]; empty if there is none.
    pub map: Vec<u8>,
    /// First address → the address after the last, and the unit's name.
    units: BTreeMap<u64, (u64, String)>,
}

impl Image {
    /// Reads a kernel's image with its debug information.
    ///
    /// # Errors
    /// [`Error::BadBlockMap`] with what does not read.
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

    /// The name of the unit that has code there: what the compiler was given for its source.
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
            // What the linker threw away has its addresses set to 0 or 1.
            if range.begin > 1 && range.begin < range.end {
                found.insert(range.begin, (range.end, name.clone()));
            }
        }
    }
    Ok(found)
}
