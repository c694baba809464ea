//! Variables of a kernel, to name the owner of a data address.

use crate::{Error, Kernel, Result};
use kerntune_debuginfo::{Elf, MappedFile, SymbolKind};
use kerntune_work::IoContext;

impl Kernel {
    /// Returns the variables as address, size in bytes and name, sorted by address. Per-CPU
    /// variables have their address in the image. Of several variables at one address, the first by
    /// name is returned.
    ///
    /// # Errors
    /// A `vmlinux` that cannot be read.
    pub fn variables(&self) -> Result<Vec<(u64, u64, String)>> {
        let path = self.vmlinux();
        let bytes = MappedFile::open(&path).at("open", &path)?;
        let elf = Elf::parse(&bytes)
            .map_err(|error| Error::Elf { path: path.clone(), reason: error.to_string() })?;
        let data = elf.symbols().flatten().filter(|symbol| symbol.kind == SymbolKind::Data);
        let mut objects: Vec<(u64, u64, String)> = data
            .filter(|symbol| symbol.size > 0)
            .map(|symbol| (symbol.address, symbol.size, symbol.name.into_owned()))
            .collect();
        objects.sort_unstable_by(|a, b| (a.0, &a.2).cmp(&(b.0, &b.2)));
        objects.dedup_by_key(|object| object.0);
        Ok(objects)
    }
}
