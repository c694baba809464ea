//! The kernel's variables: what an address of data belongs to.

use crate::{Error, Kernel, Result};
use kerntune_work::IoContext;
use object::{Object, ObjectSymbol, ReadCache, SymbolKind};
use std::fs::File;

impl Kernel {
    /// Its variables by address: address, bytes, name. Those that each CPU has one of have the address that they have in
    /// the image. Of several at one address it is the first by name.
    ///
    /// # Errors
    /// What is wrong with `vmlinux`.
    pub fn variables(&self) -> Result<Vec<(u64, u64, String)>> {
        let path = self.vmlinux();
        let cache = ReadCache::new(File::open(&path).at("open", &path)?);
        let file = object::File::parse(&cache)
            .map_err(|error| Error::Elf { path: path.clone(), reason: error.to_string() })?;
        let data = file.symbols().filter(|symbol| symbol.kind() == SymbolKind::Data && symbol.size() > 0);
        let mut objects: Vec<(u64, u64, String)> = data
            .filter_map(|symbol| Some((symbol.address(), symbol.size(), symbol.name().ok()?.to_owned())))
            .collect();
        objects.sort_unstable_by(|a, b| (a.0, &a.2).cmp(&(b.0, &b.2)));
        objects.dedup_by_key(|object| object.0);
        Ok(objects)
    }
}
