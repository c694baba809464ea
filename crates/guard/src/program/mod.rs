//! Guards programs: what a program costs on one kernel, its user code, system calls and page faults.
//!
//! The kernel stays, the program changes. [`measure_programs`] runs the guarded workloads and counts
//! the kernel's code and the program's functions; [`ProgramBaseline`] keeps the figures in a file to
//! commit, and [`check_programs`] compares.

mod baseline;
mod check;
mod figures;
mod place;

pub use baseline::{measure_programs, ProgramBaseline, ProgramCell, ProgramInputs, PROGRAM_SCHEMA};
pub use check::{
    check_programs, CheckedFigure, CheckedProgramRow, ProgramChange, ProgramCheck, ProgramCheckCell,
    ProgramMetric, PROGRAM_CHECK_SCHEMA,
};
pub use figures::{CallFigure, FaultFigure, FaultKind, ProgramFigure};
pub use place::SourcePlace;
