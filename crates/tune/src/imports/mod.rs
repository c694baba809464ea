//! Profiles of other recorders: McRae's profiler and perf.

pub mod follow_mcrae;
pub mod import_mcrae;
pub mod import_perf;
