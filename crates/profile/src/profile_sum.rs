//! Adding up profiles one after the other.

use crate::directory::{load_tables, WantedTables};
use crate::known_symbols::KnownSymbols;
use crate::numbering::MergeNumbering;
use crate::tables::{TableSums, Tables};
use crate::{DataTlb, Footprint, FunctionIndex, Manifest, Result};
use kerntune_work::{note_use, RESULT_FILE};
use std::path::Path;
use std::sync::Arc;

/// Sum of the tables of profiles of one kernel, which are added in order. It takes the memory of the
/// sum and of one profile.
///
/// Every count is multiplied by the weight of its profile and summed in whole numbers, so the parts
/// add up exactly to the total. Rows of two profiles match by these keys:
///
/// - functions: address and name;
/// - regions: name and occurrence (the second `tcp_rr` of one is the second `tcp_rr` of the other);
/// - threads: kind, ids, name and occurrence.
///
/// Functions, regions, threads and paths are numbered in the order in which they first appear.
/// Regions that only a later profile has come last: [`Tables::within`] holds if all ran the same
/// regions in order.
#[derive(Default)]
pub struct ProfileSum {
    numbering: MergeNumbering,
    sums: TableSums,
    /// Numbers of the functions of tables of symbols that were added.
    symbols: KnownSymbols<Arc<[FunctionIndex]>>,
    /// `None` before the first profile.
    machine: Option<MachineTables>,
}

/// Tables that describe one machine or one run, and are not added up.
struct MachineTables {
    /// Those of a single profile.
    footprints: Vec<Footprint>,
    /// Those that all profiles have; `None` if they differ.
    data_tlbs: Option<Vec<DataTlb>>,
}

impl ProfileSum {
    /// Adds the tables of a profile, each count times `weight`; 0 leaves the profile out.
    ///
    /// # Errors
    /// More than 2^32 functions, regions, threads or paths.
    pub fn add(&mut self, tables: Tables, weight: u64) -> Result<()> {
        if weight == 0 {
            return Ok(());
        }
        let functions = self.numbering.symbols(&tables.symbols)?;
        self.add_numbered(tables, functions, weight)
    }

    /// Reads, checks and adds the tables of the profile in `dir`, whose manifest this is. Checks a
    /// table of symbols whose content was added before by its hash, and does not decode it again.
    ///
    /// # Errors
    /// A damaged file, by its name; those of [`Self::add`].
    pub fn add_stored(&mut self, dir: &Path, manifest: &Manifest, weight: u64) -> Result<()> {
        if weight == 0 {
            return Ok(());
        }
        let known = self.symbols.get(manifest).cloned();
        let known_symbols = known.as_ref().map(|functions| functions.len());
        let tables = load_tables(dir, manifest, WantedTables { known_symbols, ..WantedTables::ALL })?;
        note_use(&dir.join(RESULT_FILE));
        let functions = match known {
            Some(functions) => functions,
            None => {
                let functions = self.numbering.symbols(&tables.symbols)?;
                self.symbols.insert(manifest, functions.clone());
                functions
            }
        };
        self.add_numbered(tables, functions, weight)
    }

    fn add_numbered(
        &mut self,
        mut tables: Tables,
        functions: Arc<[FunctionIndex]>,
        weight: u64,
    ) -> Result<()> {
        let footprints = std::mem::take(&mut tables.footprints);
        self.add_machine(MachineTables {
            footprints: if weight == 1 { footprints } else { Vec::new() },
            data_tlbs: Some(std::mem::take(&mut tables.data_tlbs)),
        });
        let part = self.numbering.part(&tables, functions, weight)?;
        self.sums.add(tables, &part);
        Ok(())
    }

    fn add_machine(&mut self, more: MachineTables) {
        self.machine = Some(match self.machine.take() {
            None => more,
            Some(all) => MachineTables {
                footprints: Vec::new(),
                data_tlbs: all.data_tlbs.filter(|tlbs| Some(tlbs) == more.data_tlbs.as_ref()),
            },
        });
    }

    /// Adds the sum of the profiles that come after those of this sum. The result is the same as if
    /// they had been added to this one.
    ///
    /// # Errors
    /// Those of [`Self::add`].
    pub fn append(&mut self, later: Self) -> Result<()> {
        if let Some(machine) = later.machine {
            self.add_machine(machine);
        }
        let part = self.numbering.append(later.numbering)?;
        self.sums.add(later.sums.into_tables(), &part);
        Ok(())
    }

    /// Returns the sums, each table sorted by its key.
    pub fn into_tables(self) -> Tables {
        let mut tables = self.sums.into_sorted();
        if let Some(machine) = self.machine {
            tables.footprints = machine.footprints;
            tables.data_tlbs = machine.data_tlbs.unwrap_or_default();
        }
        tables
    }
}
