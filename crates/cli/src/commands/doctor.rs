//! The command `kerntune doctor`.

use crate::args::{DoctorOptions, GlobalOptions};
use crate::exit::{Exit, Failure};
use crate::global::work_to_read;
use crate::output::CliOutput;
use kerntune_kernel::Arch;

pub fn run(global: &GlobalOptions, options: &DoctorOptions, output: &CliOutput) -> Result<Exit, Failure> {
    // The work directory is only read, not created: doctor works outside of any project.
    let kernels =
        work_to_read(global).ok().and_then(|work| kerntune_kernel::list(&work).ok()).unwrap_or_default();
    let newest = |arch| {
        kernels.iter().rfind(|kernel| kernel.manifest.arch == arch).map(kerntune_kernel::Kernel::image)
    };
    let report = kerntune_doctor::examine(&kerntune_doctor::ExamineOptions {
        recorder: kerntune_machine::find_recorder().ok(),
        kernel: newest(Arch::X86_64),
        uml: newest(Arch::Um),
        work_dir: global.work_dir(),
    });
    if options.format.json {
        output.json(&report);
    } else {
        output.print(&report.text(output.style().color));
    }
    Ok(if report.is_ready() { Exit::Ok } else { Exit::Missing })
}
