//! `kerntune export`: one file per format.

mod autofdo;
mod bolt;
mod branches;
mod gmon;
mod uftrace;

use crate::args::{ExportFormat, Global};
use crate::exit::{Exit, Failure};
use crate::output::Output;
use kerntune_profile::Profile;
use kerntune_work::WorkDir;

pub fn run(global: &Global, format: &ExportFormat, output: &Output) -> Result<Exit, Failure> {
    match format {
        ExportFormat::Autofdo(options) => autofdo::run(global, options, output),
        ExportFormat::Bolt(options) => bolt::run(global, options, output),
        ExportFormat::Branches(options) => branches::run(global, options, output),
        ExportFormat::Gmon(options) => gmon::run(global, options, output),
        ExportFormat::Uftrace(options) => uftrace::run(global, options, output),
    }
}

/// Says how much of what ran is not in an export of the kernel's image; bytes times executions.
fn left_out(outside: u128, executed: u128, output: &Output) {
    if outside > 0 {
        let share = 100.0 * outside as f64 / (outside + executed) as f64;
        output.note(&format!("left out: {share:.1} % of what ran is outside of the kernel's image"));
    }
}

/// The image to name to another tool: the recorded kernel's, or a word for it if it is not here.
fn vmlinux(work: &WorkDir, profile: &Profile) -> String {
    let kernel = work.find("kernels", &profile.manifest.kernel.id);
    kernel.map_or("VMLINUX".into(), |kernel| kernel.join("vmlinux").display().to_string())
}
