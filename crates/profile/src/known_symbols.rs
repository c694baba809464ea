//! Tables of symbols that many profiles share.

use crate::Manifest;
use kerntune_work::Hash;
use std::collections::HashMap;

/// Largest number of tables that are remembered.
const TABLES_MAX: usize = 64;

/// A value for each table of symbols that was read, by the table's content.
pub(crate) struct KnownSymbols<T> {
    tables: HashMap<Hash, T>,
}

impl<T> Default for KnownSymbols<T> {
    fn default() -> Self {
        Self { tables: HashMap::new() }
    }
}

impl<T> KnownSymbols<T> {
    /// Returns the value for the symbols of a profile. The caller still checks their file.
    pub fn get(&self, manifest: &Manifest) -> Option<&T> {
        self.tables.get(&manifest.tables.get("symbols")?.blake3)
    }

    /// Remembers the value for the symbols of a profile, whose file was checked and decoded.
    pub fn insert(&mut self, manifest: &Manifest, value: T) {
        let Some(file) = manifest.tables.get("symbols") else { return };
        if self.tables.len() == TABLES_MAX {
            self.tables.clear();
        }
        self.tables.insert(file.blake3.clone(), value);
    }
}
