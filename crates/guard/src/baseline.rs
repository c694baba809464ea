//! Figures that are kept in a file of their own, to be committed and held against later kernels.

use crate::cell::{Cell, Measured};
use crate::{Error, Result};
use kerntune_work::{read_versioned, write_json};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Format and version of the file.
pub const SCHEMA: &str = "kerntune-guard/1";

/// What figures are of: `kernel base`, `commit 1a2b3c`, `source debian:6.12`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// In words.
    pub what: String,
    /// The commit's full name, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// The file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Baseline {
    /// [`SCHEMA`].
    pub schema: String,
    /// What was measured.
    pub subject: Subject,
    /// Every workload on every kernel of it.
    pub cells: Vec<Cell>,
}

impl Baseline {
    /// Of what was measured.
    pub fn of(subject: Subject, measured: &[Measured]) -> Self {
        Self { schema: SCHEMA.into(), subject, cells: measured.iter().map(|of| of.cell.clone()).collect() }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// One that is none, or of another version; one with the same cell twice.
    pub fn read(path: &Path) -> Result<Self> {
        let found: Self = read_versioned(path, SCHEMA)?;
        let twice =
            |(at, cell): &(usize, &Cell)| found.cells[..*at].iter().any(|known| known.same_place(cell));
        match found.cells.iter().enumerate().find(twice) {
            Some((_, cell)) => Err(Error::NoFigures {
                path: path.to_owned(),
                what: format!("{} that are told apart", cell.named()),
            }),
            None => Ok(found),
        }
    }

    /// Writes it, all or nothing.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        Ok(write_json(path, self)?)
    }

    /// The cell to hold another one against: of the same configuration, compiler and workload; of the same workload, where one
    /// of them is of a kernel that was named and there is but one.
    pub fn cell_for(&self, of: &Cell) -> Option<&Cell> {
        let exact = self.cells.iter().find(|cell| cell.same_place(of));
        let mut alike = self.cells.iter().filter(|cell| cell.workload == of.workload);
        let only = alike.next().filter(|_| alike.next().is_none());
        let named = |cell: &Cell| cell.configuration.is_empty();
        exact.or_else(|| only.filter(|cell| named(cell) || named(of)))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::cell::KernelName;

    pub(crate) fn cell(configuration: &str, workload: &str) -> Cell {
        Cell {
            configuration: configuration.into(),
            compiler: if configuration.is_empty() { String::new() } else { "gcc".into() },
            workload: workload.into(),
            kernel: KernelName {
                id: "k".into(),
                label: "base".into(),
                version: "6.12".into(),
                compiler: "gcc".into(),
            },
            making: "m".into(),
            means: None,
            profile: "p".into(),
            rows: Vec::new(),
        }
    }

    fn baseline(cells: Vec<Cell>) -> Baseline {
        Baseline {
            schema: SCHEMA.into(),
            subject: Subject { what: "kernel base".into(), commit: None },
            cells,
        }
    }

    #[test]
    fn a_file_comes_back_and_another_version_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("b.json");
        let written = baseline(vec![cell("base", "rr"), cell("hz", "rr")]);
        written.write(&path).unwrap();
        assert_eq!(Baseline::read(&path).unwrap(), written);
        baseline(vec![cell("base", "rr"), cell("base", "rr")]).write(&path).unwrap();
        assert!(Baseline::read(&path).is_err());
        Baseline { schema: "kerntune-guard/9".into(), ..written }.write(&path).unwrap();
        let error = Baseline::read(&path).unwrap_err().to_string();
        assert!(error.contains("kerntune-guard/9") && error.contains(SCHEMA), "{error}");
    }

    #[test]
    fn a_kernel_that_was_named_is_held_against_the_only_one() {
        let one = baseline(vec![cell("base", "rr"), cell("base", "kbx")]);
        assert_eq!(one.cell_for(&cell("", "rr")).unwrap().configuration, "base");
        assert_eq!(one.cell_for(&cell("hz", "rr")), None);
        let two = baseline(vec![cell("base", "rr"), cell("hz", "rr")]);
        assert_eq!(two.cell_for(&cell("", "rr")), None);
        assert_eq!(two.cell_for(&cell("hz", "rr")).unwrap().configuration, "hz");
        assert_eq!(baseline(vec![cell("", "rr")]).cell_for(&cell("base", "rr")).unwrap().configuration, "");
    }
}
