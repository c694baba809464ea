//! Figures of the functions of one name in many profiles.

use crate::directory::{load_tables, WantedTables};
use crate::known_symbols::KnownSymbols;
use crate::{FunctionIndex, FunctionTotals, Manifest, Result};
use std::path::Path;

/// Reader of the figures of all functions of one name, in profiles that are read one after the
/// other. It reads only the tables that it needs, and decodes equal tables of symbols once.
pub struct NamedFunctions {
    name: String,
    symbols: KnownSymbols<NamedSymbols>,
}

/// Functions of the name in a table of symbols.
#[derive(Clone)]
struct NamedSymbols {
    /// Rows of the table.
    rows: usize,
    functions: Vec<FunctionIndex>,
}

impl NamedFunctions {
    /// Creates a reader for the functions of this name.
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), symbols: KnownSymbols::default() }
    }

    /// Reads the profile in `dir`, whose manifest this is. Returns the figures of the functions that
    /// ran, each summed over all regions.
    ///
    /// # Errors
    /// A damaged file, by its name.
    pub fn totals(&mut self, dir: &Path, manifest: &Manifest) -> Result<Vec<FunctionTotals>> {
        let known = self.symbols.get(manifest).cloned();
        let wanted = WantedTables {
            names: Some(&["functions", "regions", "symbols"]),
            known_symbols: known.as_ref().map(|symbols| symbols.rows),
        };
        let tables = load_tables(dir, manifest, wanted)?;
        let named = known.unwrap_or_else(|| {
            let named = tables.symbols.iter().filter(|symbol| symbol.name == self.name);
            let named = NamedSymbols {
                rows: tables.symbols.len(),
                functions: named.map(|symbol| symbol.function).collect(),
            };
            self.symbols.insert(manifest, named.clone());
            named
        });
        let mut totals = tables.totals(|_| true);
        totals.retain(|totals| named.functions.contains(&totals.function));
        Ok(totals)
    }
}
