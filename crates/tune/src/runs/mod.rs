//! One run of a kernel: what it is asked, its recording, counters or functional checks, and the
//! files that it leaves.

pub mod detail;
pub mod export;
pub mod import_instructions;
pub mod import_perf;
pub mod merge;
pub mod model;
pub mod outputs;
pub mod rebuild;
pub mod record;
pub mod run_files;
pub mod selftest;
pub mod train;
pub mod watch;
