//! Guards kernels against regressions: compares figures of kernels and commits exactly.
//!
//! `guard.toml` names the guarded workloads and rows ([`GuardProject`]). A workload on a kernel is
//! a cell ([`cell`]); its rows have figures ([`RowFigure`]): the path length of an operation, and
//! separately the deferred work ([`deferred`]), so that unrelated changes leave a row as it is. On
//! these figures build
//!
//! - [`Baseline`], which keeps figures in a file to commit,
//! - [`check()`], which compares a kernel with a baseline and explains every growth by functions,
//!   call paths and source lines,
//! - [`bisect()`], which finds the commit that made a row longer in a git tree ([`GitTree`]),
//! - [`RowHistory`], which has every row over versions and commits, with the points at which it
//!   changed,
//! - [`WatchedBranch`], which checks each new commit of a branch.
//!
//! Kernels and recordings are in the work directory, named by content; so is the ledger of commits.
//!
//! ```
//! use kerntune_guard::{judge, Tolerance};
//! let tolerance = Tolerance::default();
//! assert!(judge::is_beyond(20_000.0, 20_010.0, &tolerance));
//! assert!(!judge::is_beyond(20_000.0, 20_002.0, &tolerance), "a hundredth of a per cent");
//! ```

/// Hash of the code of this crate and of those below it; part of the key of figures.
pub const CODE: &str = env!("KERNTUNE_CODE");

mod baseline;
mod bisect;
pub mod cause;
pub mod cell;
mod check;
pub mod deferred;
mod error;
mod figures;
mod file;
mod finding;
mod formats;
mod history;
pub mod judge;
mod ledger;
pub mod lines;
mod program;
mod project;
mod suite;
mod texts;
mod tree;
mod watch;

pub use baseline::{Baseline, MeasuredSubject, SCHEMA};
pub use bisect::{bisect, BisectRequest, BisectResult, CommitVerdict, TriedCommit};
pub use check::{check, CheckBase, CheckReport, CheckedCell, CheckedRow, RowExplanation};
pub use error::{Error, Result};
pub use figures::{rows, RowFigure};
pub use file::{GuardFile, KernelConfiguration, Tolerance, WorkloadEntry, BASELINE, FILE};
pub use finding::FindingRule;
pub use formats::CheckFormat;
pub use history::{HistoryPoint, HistoryStep, RowHistory, RowSeries};
pub use ledger::{CommitLedger, LedgerEntry};
pub use program::{
    check_programs, measure_programs, CallFigure, CheckedFigure, CheckedProgramRow, FaultFigure, FaultKind,
    ProgramBaseline, ProgramCell, ProgramChange, ProgramCheck, ProgramCheckCell, ProgramFigure,
    ProgramInputs, ProgramMetric, SourcePlace, PROGRAM_CHECK_SCHEMA, PROGRAM_SCHEMA,
};
pub use project::{BuildVariant, GuardProject, GuardedWorkload};
pub use suite::{CheckCase, CheckFinding, CheckSuite};
pub use texts::SourceTexts;
pub use tree::{Commit, GitTree};
pub use watch::{measure_commit, subject_of, WatchedBranch, WatchedCommit};
