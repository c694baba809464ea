//! Compilation units of functions, as the compiler named them.

use crate::{Error, Result};
use kerntune_debuginfo::{Elf, MappedFile};
use kerntune_kernel::Kernel;
use kerntune_work::IoContext;
use std::collections::BTreeMap;

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
        let bytes = MappedFile::open(&path).at("read", &path)?;
        let bad = |reason: String| Error::BadBlockMap { kernel: kernel.manifest.label.clone(), reason };
        let elf = Elf::parse(&bytes).map_err(|error| bad(error.to_string()))?;
        let map =
            elf.section(kerntune_convert::propeller::SECTION).map_err(|error| bad(error.to_string()))?;
        let units = units(&elf).map_err(|error| bad(format!("its debug information: {error}")))?;
        Ok(Self { map: map.unwrap_or_default().into_owned(), units })
    }

    /// Returns the name of the unit with code at `address`: the compiler's argument for its source.
    pub fn unit(&self, address: u64) -> Option<&str> {
        let (_, (end, name)) = self.units.range(..=address).next_back()?;
        (address < *end).then_some(name)
    }
}

fn units(elf: &Elf) -> kerntune_debuginfo::Result<BTreeMap<u64, (u64, String)>> {
    let debug_info = elf.debug_info()?;
    // The linker sets addresses of discarded code to 0 or 1.
    let units = debug_info.code_units()?.into_iter().filter(|unit| unit.code.start > 1);
    Ok(units.filter_map(|unit| Some((unit.code.start, (unit.code.end, unit.name?.into_owned())))).collect())
}
