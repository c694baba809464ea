//! `kerntune doctor`: checks the tools and abilities of this machine, each by using it, and names
//! the command that fixes each problem.
//!
//! Start from [`examine`], which returns a [`DoctorReport`]. The existence of a file proves
//! nothing: accelerators are proved by booting on them, the plugin API by loading the recorder,
//! headers by compiling, perf by counting. Probes run in parallel, each with a time limit, and take
//! less than 15 seconds together; a probe that fails becomes a line of the report. No project or
//! work directory is needed.
//!
//! - `host`: access to the machine, behind a trait, so that tests can give their own answers.
//! - `probe`: one file for each group of checks.
//! - [`DoctorReport`]: the checks, as text and as JSON (`kerntune-doctor/1`).
//!
//! ```no_run
//! let report = kerntune_doctor::examine(&kerntune_doctor::ExamineOptions::default());
//! print!("{}", report.text(false));
//! std::process::exit(if report.is_ready() { 0 } else { 3 });
//! ```

mod check;
mod host;
mod perf_event;
mod probe;
mod report;
#[cfg(test)]
mod test_host;
mod text;
mod version;

pub use check::{Ability, CheckGroup, CheckStatus, HostCheck};
pub use report::{AbilityProblem, DoctorReport, SCHEMA};

use std::path::PathBuf;

/// Paths that the checks use.
#[derive(Debug, Clone)]
pub struct ExamineOptions {
    /// The recorder (`libkerntune_recorder.so`). Without it, the plugin API is inferred from the
    /// functions that QEMU exports, and the check says so.
    pub recorder: Option<PathBuf>,
    /// A kernel image (`bzImage`) to boot. Without it, the newest readable `/boot/vmlinuz-*` is
    /// booted, and without that a boot sector, which proves less.
    pub kernel: Option<PathBuf>,
    /// A kernel for User-Mode Linux (`vmlinux`) to start.
    pub uml: Option<PathBuf>,
    /// The work directory, whose free space is checked. It need not exist.
    pub work_dir: PathBuf,
}

impl Default for ExamineOptions {
    fn default() -> Self {
        Self { recorder: None, kernel: None, uml: None, work_dir: PathBuf::from(".kerntune") }
    }
}

/// Examines this machine. Takes up to 15 seconds; changes nothing.
///
/// After an interrupt (`kerntune_work::interrupt`), unfinished checks report it.
pub fn examine(options: &ExamineOptions) -> DoctorReport {
    DoctorReport::new(probe::all(&host::ThisMachine, options))
}
