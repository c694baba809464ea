//! No kernel gets slower unnoticed: figures of kernels and of commits, held against each other exactly.
//!
//! A file, `guard.toml`, says what is guarded ([`Project`]). A workload on a kernel is a cell ([`cell`]), whose rows have figures
//! ([`RowFigure`]): the path of an operation, and apart from it what the kernel puts off ([`put_off`]), so that a row that nobody
//! touched does not move. From there
//!
//! - [`Baseline`] keeps figures in a file that can be committed,
//! - [`check()`] holds a kernel against it, and names functions, call paths and source lines of what grew, with nothing left over,
//! - [`bisect()`] finds the commit in a git tree ([`Tree`]),
//! - [`History`] has every row over versions and commits, and where it stepped,
//! - [`Branch`] does it for each new commit.
//!
//! Kernels and recordings are those of the work directory, found by content; what is known of commits is kept beside them.
//!
//! ```
//! use kerntune_guard::{judge, Tolerance};
//! let tolerance = Tolerance::default();
//! assert!(judge::is_beyond(20_000.0, 20_010.0, &tolerance));
//! assert!(!judge::is_beyond(20_000.0, 20_002.0, &tolerance), "a hundredth of a per cent");
//! ```

/// Names the code of this crate and of those below it, part of what figures are kept by.
pub const CODE: &str = env!("KERNTUNE_CODE");

mod baseline;
mod bisect;
pub mod cause;
pub mod cell;
mod check;
mod error;
mod figures;
mod file;
mod history;
pub mod judge;
mod junit;
mod ledger;
pub mod lines;
mod project;
pub mod put_off;
mod texts;
mod tree;
mod watch;

pub use baseline::{Baseline, Subject, SCHEMA};
pub use bisect::{bisect, Bisected, Judged, Search, Tried};
pub use check::{check, Against, Check, CheckedCell, CheckedRow, Explained};
pub use error::{Error, Result};
pub use figures::{rows, RowFigure};
pub use file::{Configuration, GuardFile, Guarded, Tolerance, BASELINE, FILE};
pub use history::{History, Point, Series, Step};
pub use junit::junit;
pub use ledger::{Entry, Ledger};
pub use project::{Project, Variant, Work};
pub use texts::Texts;
pub use tree::{Commit, Tree};
pub use watch::{measured, subject, Branch, Watched};
