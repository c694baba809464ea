//! `kerntune doctor`: which tools and abilities this machine has, each proved by using it, and
//! for each missing one the command that fixes it.
//!
//! Start from [`examine`], which gives a [`Report`]. A file's existence proves nothing here: an
//! accelerator is proved by booting something on it, the plugin API by loading the recorder, the
//! headers by compiling, perf by counting. Probes run side by side, each with a time limit, all
//! of them together in less than 15 seconds; one that fails is a line in the report and never
//! the end of it. Nothing here needs a project or a work directory.
//!
//! - `host`: everything that touches the machine, behind a trait, so that probes are tested with
//!   made-up answers.
//! - `probe`: one file per group of checks.
//! - [`Report`]: the checks, as text and as JSON (`kerntune-doctor/1`).
//!
//! ```no_run
//! let report = kerntune_doctor::examine(&kerntune_doctor::Options::default());
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

pub use check::{Ability, Check, Group, Status};
pub use report::{Absent, Report, SCHEMA};

use std::path::PathBuf;

/// What to look at.
#[derive(Debug, Clone)]
pub struct Options {
    /// The recorder (`libkerntune_recorder.so`). Without it the plugin API is told from the
    /// functions that QEMU exports, and the check says so.
    pub recorder: Option<PathBuf>,
    /// A kernel image (`bzImage`) for the proof by booting. Without it the newest readable
    /// `/boot/vmlinuz-*` is taken, and without that a boot sector, which proves less.
    pub kernel: Option<PathBuf>,
    /// A kernel for User-Mode Linux (`vmlinux`) for the proof by starting it.
    pub uml: Option<PathBuf>,
    /// Where results would be kept: its free space is looked at. It need not exist.
    pub work_dir: PathBuf,
}

impl Default for Options {
    fn default() -> Self {
        Self { recorder: None, kernel: None, uml: None, work_dir: PathBuf::from(".kerntune") }
    }
}

/// Examines this machine. Takes seconds, less than 15 of them; changes nothing.
///
/// After an interrupt (`kerntune_work::interrupt`) the checks that were under way say so.
pub fn examine(options: &Options) -> Report {
    Report::new(probe::all(&host::ThisMachine, options))
}
