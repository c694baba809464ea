//! Baseline files: figures to commit, which later kernels are compared with.

use crate::cell::{CellFigures, MeasuredCell};
use crate::{Error, Result};
use kerntune_work::{read_versioned, write_json};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Schema of a baseline file.
pub const SCHEMA: &str = "kerntune-guard/1";

/// The kernel, commit or source whose figures these are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasuredSubject {
    /// Description: `kernel base`, `commit 1a2b3c`, `source debian:6.12`.
    pub what: String,
    /// Full hash of the commit; `None` if it is not a commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// A baseline file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Baseline {
    /// [`SCHEMA`].
    pub schema: String,
    /// Subject of the figures.
    pub subject: MeasuredSubject,
    /// Figures of every workload on every kernel of the subject.
    pub cells: Vec<CellFigures>,
}

impl Baseline {
    /// Creates a baseline from measured cells.
    pub fn of(subject: MeasuredSubject, measured: &[MeasuredCell]) -> Self {
        Self { schema: SCHEMA.into(), subject, cells: measured.iter().map(|of| of.cell.clone()).collect() }
    }

    /// Reads a baseline file.
    ///
    /// # Errors
    /// An invalid file, one of another version, or one with the same cell twice.
    pub fn read(path: &Path) -> Result<Self> {
        let found: Self = read_versioned(path, SCHEMA)?;
        let twice = |(at, cell): &(usize, &CellFigures)| {
            found.cells[..*at].iter().any(|known| known.is_same_cell(cell))
        };
        match found.cells.iter().enumerate().find(twice) {
            Some((_, cell)) => Err(Error::NoFigures {
                path: path.to_owned(),
                what: format!("{} that are told apart", cell.display_name()),
            }),
            None => Ok(found),
        }
    }

    /// Writes the file atomically.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        Ok(write_json(path, self)?)
    }

    /// Finds the cell to compare another one with: that of the same configuration, compiler and
    /// workload. If one of the two kernels was named by the user, the only cell with the same
    /// workload.
    pub fn cell_for(&self, of: &CellFigures) -> Option<&CellFigures> {
        let exact = self.cells.iter().find(|cell| cell.is_same_cell(of));
        let mut alike = self.cells.iter().filter(|cell| cell.workload == of.workload);
        let only = alike.next().filter(|_| alike.next().is_none());
        let named = |cell: &CellFigures| cell.configuration.is_empty();
        exact.or_else(|| only.filter(|cell| named(cell) || named(of)))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::cell::KernelName;

    pub(crate) fn cell(configuration: &str, workload: &str) -> CellFigures {
        CellFigures {
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

    fn baseline(cells: Vec<CellFigures>) -> Baseline {
        Baseline {
            schema: SCHEMA.into(),
            subject: MeasuredSubject { what: "kernel base".into(), commit: None },
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
